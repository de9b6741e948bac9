"""CreateAcls, DescribeAcls and DeleteAcls: refusals in Kafka's order, and records."""

from typing import Any

import pytest
from mockraft.kafka_api.authorization.acl_filter import AclFilter, validate_filter
from mockraft.kafka_api.authorization.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.server.apis import create_acls, delete_acls
from mockraft.server.controller.security.acls import delete_acls as delete_acls_of
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord

from ...acls import creation
from ...conftest import Cluster
from ...rows import each_row

ANY: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
ANYBODY: dict[str, Any] = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}


@pytest.fixture
def guarded(new_cluster: type[Cluster]) -> Cluster:
    """A controller with an authorizer, to which everybody who asks is a super user."""
    return new_cluster(super_users="User:ANONYMOUS")


def create(cluster: Cluster, *creations: AclCreation) -> list[tuple[int, str | None]]:
    answer = cluster.ask(CreateAclsRequest(creations=list(creations)))
    return [(each.error_code, each.error_message) for each in answer.results]


def described(cluster: Cluster, **fields: Any) -> list[str]:
    answer = cluster.ask(DescribeAclsRequest(**ANY | ANYBODY | fields))
    return [f"{each.resource_name} {acl.principal}" for each in answer.resources for acl in each.acls]


def deleted(cluster: Cluster, **fields: Any) -> list[str]:
    answer = cluster.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY | ANYBODY | fields)]))
    (result,) = answer.filter_results
    assert result.error_code == 0
    return [each.resource_name for each in result.matching_acls]


def test_repeated_acl_is_written_once(guarded: Cluster) -> None:
    asked = [creation(), creation(), creation(host="10.0.0.1")]
    assert create(guarded, *asked) == [(0, "")] * 3
    first, second = (record for record, _ in guarded.written())
    assert (first.host, second.host) == ("*", "10.0.0.1")
    assert first.id != second.id
    assert create(guarded, *asked) == [(0, "")] * 3
    assert guarded.written() == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_a_bad_acl_is_refused_and_the_good_ones_are_made(
    guarded: Cluster, fields: dict[str, Any], message: str
) -> None:
    refused = (error_codes.INVALID_REQUEST, message)
    assert create(guarded, creation(**fields), creation()) == [refused, (0, "")]
    assert len(guarded.written()) == 1


@pytest.mark.parametrize(
    ("field", "number"),
    [
        *(("resource_type", 1), ("resource_pattern_type", 1), ("resource_pattern_type", 2)),
        *(("operation", 1), ("permission_type", 1)),
    ],
)
def test_any_is_for_filters_and_breaks_the_whole_request(guarded: Cluster, field: str, number: int) -> None:
    assert create(guarded, creation(), creation(**{field: number})) == [(error_codes.UNKNOWN_SERVER_ERROR, None)] * 2
    assert guarded.written() == []


def test_unknown_is_no_request_at_all() -> None:
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        with pytest.raises(WireError, match="UNKNOWN"):
            create_acls.validate(CreateAclsRequest(creations=[creation(), creation(**{field: 0})]))
    for field in ANY:
        with pytest.raises(WireError, match="UNKNOWN"):
            validate_filter(DescribeAclsRequest(**ANY | ANYBODY | {field: 0}))
        with pytest.raises(WireError, match="UNKNOWN"):
            delete_acls.validate(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY | ANYBODY | {field: 0})]))


def test_more_than_one_batch_is_made_or_removed_not_at_all(guarded: Cluster) -> None:
    many = [creation(resource_name=f"t{number}") for number in range(10_001)]
    too_large = (error_codes.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    assert create(guarded, *many, creation(resource_name="")) == [too_large] * 10_001 + [
        (error_codes.INVALID_REQUEST, "Invalid empty resource name")
    ]
    assert guarded.written() == []
    create(guarded, *many[:10_000])
    create(guarded, many[-1])
    every = DeleteAclsFilter(**ANY | ANYBODY)
    answer = guarded.ask(DeleteAclsRequest(filters=[every, every]))
    message = "Cannot remove more than 10000 acls in a single delete operation."
    refused = [(each.error_code, each.error_message) for each in answer.filter_results]
    assert refused == [(error_codes.INVALID_REQUEST, message)] * 2
    assert guarded.written() == []


def test_filters_select_by_field_and_match_applicable_patterns(guarded: Cluster) -> None:
    prefixed = PatternType.PREFIXED
    create(
        guarded,
        creation(),
        creation(resource_name="ord", resource_pattern_type=prefixed),
        creation(resource_name="*", principal="User:bob"),
        creation(resource_name="other", operation=AclOperation.WRITE, permission_type=PermissionType.DENY),
        creation(resource_type=ResourceType.GROUP, host="10.0.0.1"),
    )
    assert len(described(guarded)) == 5
    match = {"pattern_type_filter": PatternType.MATCH}
    assert described(guarded, resource_name_filter="orders", **match) == [
        *("orders User:alice", "ord User:alice", "* User:bob", "orders User:alice")
    ]
    assert described(guarded, resource_name_filter="orders", resource_type_filter=2) == ["orders User:alice"]
    assert described(guarded, resource_name_filter="*") == ["* User:bob"]
    assert described(guarded, pattern_type_filter=prefixed) == ["ord User:alice"]
    assert described(guarded, resource_name_filter="ord", pattern_type_filter=PatternType.LITERAL) == []
    assert described(guarded, principal_filter="User:bob") == ["* User:bob"]
    assert described(guarded, host_filter="10.0.0.1", operation=AclOperation.READ) == ["orders User:alice"]
    assert described(guarded, permission_type=PermissionType.DENY) == ["other User:alice"]
    assert described(guarded, operation=99) == []
    assert deleted(guarded, permission_type=PermissionType.DENY) == ["other"]
    assert deleted(guarded, resource_name_filter="orders", **match) == ["orders", "ord", "*", "orders"]
    assert [type(record).__name__ for record, _ in guarded.written()] == ["RemoveAccessControlEntryRecord"] * 4
    assert described(guarded) == deleted(guarded) == []


def test_an_acl_matched_by_two_filters_is_returned_twice_and_removed_once(guarded: Cluster) -> None:
    create(guarded, creation())
    mine = DeleteAclsFilter(**ANY | ANYBODY)
    wrong = [DeleteAclsFilter(**ANY | ANYBODY | {field: 99}) for field in ("resource_type_filter", "operation")]
    answer = guarded.ask(DeleteAclsRequest(filters=[mine, *wrong, mine]))
    assert [(each.error_message, len(each.matching_acls)) for each in answer.filter_results] == [
        *((None, 1), ("Unknown patternFilter.", 0), ("Unknown entryFilter.", 0), (None, 1))
    ]
    assert len(guarded.written()) == 1


@each_row(
    ("host", "message"),
    [
        ("10.0.0.0/8", ""),
        ("10.0.0.1", ""),
        ("", "Host pattern cannot be null or empty"),
        ("10.0.0.0/33", "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
    ],
)
def test_from_release_4_4_the_host_is_checked(new_cluster: type[Cluster], host: str, message: str) -> None:
    guarded = new_cluster(super_users="User:ANONYMOUS", release="4.4")
    code = error_codes.INVALID_REQUEST if message else 0
    assert create(guarded, creation(host=host)) == [(code, message)]


def test_ranges_of_addresses_need_their_metadata_version(new_cluster: type[Cluster]) -> None:
    guarded = new_cluster(super_users="User:ANONYMOUS", release="4.4", metadata_version=30)
    ((code, message),) = create(guarded, creation(host="10.0.0.0/8"))
    assert code == error_codes.UNSUPPORTED_VERSION
    assert message == "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert create(guarded, creation(host="10.0.0.1")) == [(0, "")]


@each_row(("release", "is_allowed"), [("4.3", False), ("4.4", True)])
def test_ranges_of_addresses_count_from_release_4_4_on(
    new_cluster: type[Cluster], release: str, is_allowed: bool
) -> None:
    guarded = new_cluster(super_users="User:ANONYMOUS", release=release)
    acl = AccessControlEntryRecord(
        id=bytes(15) + b"\1",
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="127.0.0.0/8",
        operation=AclOperation.READ,
        permission_type=PermissionType.ALLOW,
    )
    guarded.write(RecordAt(acl, 0))
    authorizer, index = guarded.controller.authorizer, guarded.controller.image.security.acl_index
    assert authorizer is not None
    allowed = authorizer.allows(index, "User:alice", "127.0.0.1", AclOperation.READ, ResourceType.TOPIC, "orders")
    assert allowed is is_allowed


def test_an_id_that_is_taken_is_not_drawn_again(guarded: Cluster) -> None:
    for host in ("10.0.0.1", "10.0.0.2"):
        guarded.controller.rng.seed(9)
        create(guarded, creation(host=host))
    assert {acl.host for acl in guarded.controller.image.security.acls.values()} == {"10.0.0.1", "10.0.0.2"}


def test_only_a_deletion_that_deletes_has_a_reason_to_log(guarded: Cluster) -> None:
    create(guarded, creation())
    every = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)
    nobodys = every._replace(principal="User:nobody")
    assert delete_acls_of(guarded.controller, [nobodys]).reason == ""
    assert delete_acls_of(guarded.controller, [every]).reason == "ACLs deleted"
