"""The authorizer decides as Kafka's StandardAuthorizer: super users, denials first, patterns, what an ACL implies."""

import random
from typing import Any

import pytest
from mockraft.kafka_api.authorization.acl_index import AccessControlEntry, AclIndex, MatchingAcls
from mockraft.kafka_api.authorization.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.kafka_api.authorization.authorizer import Authorizer
from mockraft.kafka_api.authorization.host_ranges import is_in_range, parse_range
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes

from ....rows import each_row

HOST = "10.0.0.1"


def entry(**fields: Any) -> AccessControlEntry:
    """An ACL that lets alice read the topic `orders` from anywhere, unless told otherwise."""
    defaults: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return AccessControlEntry(**defaults | fields)


def index_of(*acls: AccessControlEntry) -> AclIndex:
    index = AclIndex()
    for acl in acls:
        index.add(acl)
    return index


def allows(index: AclIndex, operation: AclOperation = AclOperation.READ, name: str = "orders", **who: Any) -> bool:
    authorizer = Authorizer(
        who.pop("super_users", ()),
        allow_everyone_if_no_acl_found=who.pop("allow_everyone_if_no_acl_found", False),
        ranges=who.pop("ranges", True),
    )
    principal, host = who.pop("principal", "User:alice"), who.pop("host", HOST)
    return authorizer.allows(index, principal, host, operation, ResourceType.TOPIC, name)


def test_unmatched_operation_is_denied_except_for_super_users() -> None:
    denied = index_of(entry(permission_type=PermissionType.DENY, principal="User:*", operation=AclOperation.ALL))
    assert not allows(index_of())
    assert allows(denied, super_users=["User:alice"])
    assert not allows(denied, super_users=["User:bob"])


def test_a_denial_counts_before_an_allowance_wherever_either_stands() -> None:
    for name, pattern in (("orders", PatternType.LITERAL), ("ord", PatternType.PREFIXED), ("*", PatternType.LITERAL)):
        denial = entry(resource_name=name, pattern_type=pattern, permission_type=PermissionType.DENY)
        assert not allows(index_of(entry(), denial))
        assert not allows(index_of(denial, entry(resource_name="*"), entry(resource_name="orders")))


@each_row(
    ("name", "pattern", "resource", "matches"),
    [
        ("orders", PatternType.LITERAL, "orders", True),
        ("orders", PatternType.LITERAL, "orders-eu", False),
        ("orders", PatternType.PREFIXED, "orders", True),
        ("orders", PatternType.PREFIXED, "orders-eu", True),
        ("orders", PatternType.PREFIXED, "order", False),
        ("*", PatternType.LITERAL, "anything", True),
        ("*", PatternType.PREFIXED, "anything", False),
        ("*", PatternType.PREFIXED, "*anything", True),
    ],
)
def test_patterns_match_by_type(name: str, pattern: PatternType, resource: str, matches: bool) -> None:
    index = index_of(entry(resource_name=name, pattern_type=pattern))
    assert allows(index, name=resource) is matches
    assert allows(index_of(entry(resource_type=ResourceType.GROUP)), name="orders") is False


def test_principals_and_hosts_are_one_or_any() -> None:
    assert allows(index_of(entry(principal="User:*")), principal="Group:any")
    assert not allows(index_of(entry(principal="Group:*")), principal="Group:any")
    assert allows(index_of(entry(host=HOST)))
    assert not allows(index_of(entry(host="10.0.0.2")))


def test_hosts_may_be_ranges_of_addresses() -> None:
    index = index_of(entry(host="10.0.0.0/8"), entry(host="fd00::/8", principal="User:*"))
    assert allows(index)
    assert allows(index, host="fd00:0:0:0:0:0:0:1", principal="User:bob")
    assert not allows(index, host="11.0.0.1")
    assert not allows(index, ranges=False)
    index.add(entry(host="10.0.0.0/31", permission_type=PermissionType.DENY))
    assert not allows(index)
    assert allows(index, host="10.0.0.2")


def test_a_range_is_forgotten_with_its_last_acl() -> None:
    denial = entry(host="10.0.0.0/31", permission_type=PermissionType.DENY)
    index = index_of(entry(), denial, entry(host="10.0.0.0/31", principal="User:bob"))
    index.remove(denial)
    assert allows(index)
    assert allows(index, principal="User:bob")
    index.remove(entry(host="10.0.0.0/31", principal="User:bob"))
    assert not allows(index, principal="User:bob")
    assert index._by_type[ResourceType.TOPIC].literal["orders"].ranges == {}


def test_wildcard_principal_is_refused_unless_super_user() -> None:
    with pytest.raises(ApiError) as refused:
        allows(index_of(entry(principal="User:*")), principal="User:*")
    assert refused.value.error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert allows(index_of(), principal="User:*", super_users=["User:*"])


def test_deny_implies_no_other_operations() -> None:
    implied = {
        AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
        AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
    }
    real = [each for each in AclOperation if each > AclOperation.ALL]
    for asked in real:
        for given in (*real, AclOperation.ALL):
            same = given in (asked, AclOperation.ALL)
            assert allows(index_of(entry(operation=given)), asked) is (same or given in implied.get(asked, set()))
            denial = entry(operation=given, permission_type=PermissionType.DENY)
            everything = entry(operation=AclOperation.ALL)
            assert allows(index_of(denial, everything), asked) is not same


def test_resources_without_any_acl_may_be_everybodys() -> None:
    others = index_of(entry(principal="User:bob", operation=AclOperation.WRITE))
    assert allows(others, name="free", allow_everyone_if_no_acl_found=True)
    assert not allows(others, name="orders", allow_everyone_if_no_acl_found=True)
    assert not allows(others, name="free")


@each_row(
    ("allowed", "denied", "is_allowed"),
    [
        ("", "", False),
        ("a", "", True),
        ("a", "a", False),
        ("a b", "a", True),
        ("a-b", "a-", False),
        ("a-", "a-", False),
        ("a-b-", "a-", False),
        ("a-", "a-b-", True),
        ("*", "a", True),
        ("a a-", "*", False),
    ],
)
def test_an_operation_on_any_resource_is_decided_as_by_kafka(allowed: str, denied: str, is_allowed: bool) -> None:
    """As Authorizer.authorizeByResourceType; a name with a dash at its end is a prefix."""
    index = AclIndex()
    for permission, names in ((PermissionType.ALLOW, allowed), (PermissionType.DENY, denied)):
        for name in names.split():
            kind = PatternType.PREFIXED if name.endswith("-") else PatternType.LITERAL
            index.add(entry(resource_name=name, pattern_type=kind, permission_type=permission))
    assert any(allows(index, name=name) for name in index.examples(ResourceType.TOPIC)) is is_allowed


def test_an_acl_is_another_one_with_another_permission_or_operation() -> None:
    index = index_of(denial := entry(permission_type=PermissionType.DENY))
    assert [acl in index for acl in (denial, entry(), entry(operation=AclOperation.WRITE))] == [True, False, False]


def test_a_removed_acl_has_no_effect() -> None:
    acls = [entry(), entry(pattern_type=PatternType.PREFIXED), entry(host=HOST), entry(resource_name="*")]
    index = index_of(*acls)
    for acl in acls:
        assert allows(index)
        index.remove(acl)
    assert not allows(index)
    assert allows(index, allow_everyone_if_no_acl_found=True)


def test_the_index_decides_as_reading_all_acls_does() -> None:
    rng = random.Random(4)
    names = ["a", "ab", "abc", "abd", "b", "*"]

    def any_acl() -> AccessControlEntry:
        return entry(
            resource_name=rng.choice(names),
            pattern_type=rng.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            principal=rng.choice(["User:alice", "User:bob", "User:*"]),
            host=rng.choice([HOST, "10.0.0.2", "*"]),
            operation=rng.choice([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL]),
            permission_type=rng.choice([PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY]),
        )

    for _ in range(300):
        acls = list({any_acl() for _ in range(rng.randrange(8))})
        index = index_of(*acls)
        gone = acls[: len(acls) // 3]
        for acl in gone:
            index.remove(acl)
        for name in (*names, "abcd"):
            found = [each for each in acls if each not in gone and _matches(each, name)]
            mine = [each for each in found if each.principal != "User:bob" and each.host != "10.0.0.2"]
            denied = [each for each in mine if each.permission_type == PermissionType.DENY]
            expected = bool(mine) and not any(each.operation != AclOperation.READ for each in denied)
            expected = expected and any(each.permission_type == PermissionType.ALLOW for each in mine)
            assert allows(index, AclOperation.DESCRIBE, name) is expected
            everyone = allows(index, AclOperation.DESCRIBE, name, allow_everyone_if_no_acl_found=True)
            assert everyone is (expected or not found)


def _matches(acl: AccessControlEntry, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def test_a_decision_looks_at_as_few_acls_among_a_hundred_thousand() -> None:
    index = AclIndex()
    for number in range(50_000):
        index.add(entry(resource_name=f"topic-{number}"))
        index.add(entry(resource_name="*", principal=f"User:{number}"))
    for number in range(1000):
        index.add(entry(resource_name=f"prefix-{number}", pattern_type=PatternType.PREFIXED))
    patterns = index._by_type[ResourceType.TOPIC]
    assert len(patterns.matching("topic-7")) == 2
    assert sorted(patterns.lengths) == [8, 9, 10]
    assert allows(index, name="topic-7")
    assert allows(index, name="prefix-77-or-any", principal="User:7")
    assert not allows(index, name="topic-7", principal="User:nobody")


def test_a_verdict_reports_why() -> None:
    index = index_of(entry(), entry(principal="User:bob", permission_type=PermissionType.DENY))

    def verdict(principal: str, name: str = "orders") -> MatchingAcls:
        return index.verdict(principal, HOST, AclOperation.READ, ResourceType.TOPIC, name, ranges=True)

    assert verdict("User:alice") == MatchingAcls(denied=False, allowed=True, has_acls=True)
    assert verdict("User:bob") == MatchingAcls(denied=True, allowed=False, has_acls=True)
    assert verdict("User:eve") == MatchingAcls(denied=False, allowed=False, has_acls=True)
    assert verdict("User:alice", "others") == MatchingAcls(denied=False, allowed=False, has_acls=False)


def test_ipv6_prefix_may_have_any_length() -> None:
    assert is_in_range("fd00::1", "fd00::1/128")
    assert not is_in_range("fd00::2", "fd00::1/128")
    assert is_in_range("fd00::2", "::/0")


def test_bits_after_an_ipv4_prefix_do_not_count() -> None:
    assert parse_range("255.1.2.3/8") == parse_range("255.0.0.0/8")
