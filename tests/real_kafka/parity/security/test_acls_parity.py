"""The same requests about ACLs to Kafka's controller and to ours: the same answers and records, ids aside."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.kafka_api.authorization.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.wire.connection import write_request
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest

from ....acls import creation

pytestmark = pytest.mark.real_kafka

WITH_AUTHORIZER = {"authorizer": True, "super_users": "User:ANONYMOUS;User:boss"}
ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


def filters(kind: Any, **fields: Any) -> Any:
    """A filter that takes in all ACLs, but for what `fields` say of name, principal and so on."""
    result: dict[str, Any] = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    return kind(**ANY | result | fields)


class Life:
    """A request with its answers and records; ids are replaced by the name of what they identify."""

    def __init__(self, side: Any, *, is_described: bool = True) -> None:
        self.side = side
        self.is_described = is_described
        self.outcomes: list[Any] = []
        self.ids: dict[str, str] = {}
        side.skip_start()

    def create(self, *creations: AclCreation, version: int = 3) -> None:
        self.tell(CreateAclsRequest(creations=list(creations)), version)

    def delete(self, *asked: DeleteAclsFilter, version: int = 3) -> None:
        self.tell(DeleteAclsRequest(filters=list(asked)), version)

    def describe(self, version: int = 3, **fields: Any) -> None:
        self.tell(filters(DescribeAclsRequest, **fields), version)

    def wait_until_described(self) -> None:
        """Kafka's authorizer learns of ACLs some time after they were committed."""

        def described() -> int:
            found = self.side.ask(filters(DescribeAclsRequest), 3)
            return sum(len(resource.acls) for resource in found.resources)

        wait_until(lambda: described() == len(self.ids), 60, f"{len(self.ids)} ACLs described")

    def tell(self, message: Any, version: int, user: str | None = None) -> None:
        answer = self.side.ask(message, version) if user is None else self.side.forward(message, version, user)
        records = sorted((self._shape(*record) for record in self.side.new_records()), key=json.dumps)
        self.outcomes.append((type(message).__name__, version, _sorted(to_json(answer, version)), records))
        if self.is_described:
            self.wait_until_described()

    def _shape(self, record: Any, version: int) -> Any:
        tree: dict[str, Any] = to_json(record, version)
        acl_id = tree.pop("id")
        if type(record).__name__ == "AccessControlEntryRecord":
            self.ids[acl_id] = json.dumps(tree)
            return [type(record).__name__, version, tree]
        return [type(record).__name__, version, self.ids.pop(acl_id)]


def _sorted(tree: dict[str, Any]) -> dict[str, Any]:
    """With what comes out of hash maps in order."""
    for result in tree.get("filterResults", ()):
        result["matchingAcls"].sort(key=json.dumps)
    for resource in tree.get("resources", ()):
        resource["acls"].sort(key=json.dumps)
    if "resources" in tree:
        tree["resources"].sort(key=json.dumps)
    return tree


def created(life: Life) -> None:
    """Good ones, known ones, bad ones in any mixture."""
    life.create()
    for version in (1, 2, 3):
        life.create(creation(resource_name=f"v{version}"), version=version)
    life.create(creation(), creation(), creation(resource_name="v1"), creation(host="10.0.0.1"))
    for kind in (kind for kind in ResourceType if kind > ResourceType.ANY):
        life.create(creation(resource_type=kind), creation(resource_type=kind, resource_name="kafka-cluster"))
    for operation in (each for each in AclOperation if each > AclOperation.ANY):
        life.create(creation(operation=operation), creation(operation=operation, permission_type=PermissionType.DENY))
    life.create(
        creation(resource_name="ord", resource_pattern_type=PatternType.PREFIXED),
        creation(resource_name="*"),
        creation(resource_name="*", resource_pattern_type=PatternType.PREFIXED),
        creation(resource_name=""),
        creation(resource_type=ResourceType.CLUSTER, resource_name=""),
        creation(principal="alice"),
        creation(principal=""),
        creation(principal=":"),
        creation(principal="Group:a:b"),
        creation(host=""),
        creation(host="no such host"),
        creation(resource_type=99, resource_name="", principal="x"),
        creation(resource_type=99),
        creation(resource_type=-1),
        creation(resource_pattern_type=99),
        creation(operation=99),
        creation(permission_type=99),
        creation(resource_name="last"),
    )
    for broken in (
        creation(resource_type=ResourceType.ANY),
        creation(resource_pattern_type=PatternType.ANY),
        creation(resource_pattern_type=PatternType.MATCH),
        creation(operation=AclOperation.ANY),
        creation(permission_type=PermissionType.ANY),
    ):
        life.create(creation(resource_name="before"), broken, creation(resource_name=""))


def filtered(life: Life, ask: Callable[..., None]) -> None:
    """Every part of a filter, alone and together."""
    ask(resource_name_filter="orders", resource_type_filter=ResourceType.GROUP)
    ask(resource_name_filter="orders", host_filter="10.0.0.1")
    ask(resource_type_filter=99)
    ask(pattern_type_filter=99)
    ask(operation=99)
    ask(permission_type=99)
    ask(resource_name_filter="")
    ask(resource_name_filter="*", pattern_type_filter=PatternType.LITERAL)
    ask(resource_name_filter="orders-eu", pattern_type_filter=PatternType.MATCH)
    ask(resource_name_filter="*eu", pattern_type_filter=PatternType.MATCH, operation=AclOperation.WRITE)
    ask(resource_name_filter="ord", pattern_type_filter=PatternType.PREFIXED)
    ask(resource_name_filter="v1", pattern_type_filter=PatternType.PREFIXED)
    ask(pattern_type_filter=PatternType.PREFIXED)
    ask(principal_filter="Group:a:b")
    ask(principal_filter="")
    ask(operation=AclOperation.ALL)
    ask(permission_type=PermissionType.DENY)
    ask(resource_type_filter=ResourceType.CLUSTER)


def acls(side: Any) -> list[Any]:
    life = Life(side)
    created(life)
    for version in (1, 2, 3):
        life.describe(version)
    filtered(life, life.describe)
    life.delete()
    life.delete(
        filters(DeleteAclsFilter, resource_name_filter="v1"),
        filters(DeleteAclsFilter, resource_name_filter="v1", pattern_type_filter=PatternType.MATCH),
        filters(DeleteAclsFilter, resource_name_filter="v2"),
        filters(DeleteAclsFilter, operation=99),
        filters(DeleteAclsFilter, resource_type_filter=99, operation=99),
        version=1,
    )
    filtered(life, lambda **fields: life.delete(filters(DeleteAclsFilter, **fields)))
    life.delete(filters(DeleteAclsFilter, resource_name_filter="v3"), version=2)
    life.describe()
    life.delete(filters(DeleteAclsFilter))
    life.describe()
    return life.outcomes


def test_acls_are_created_described_and_deleted(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(acls, **WITH_AUTHORIZER)
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours, strict=True):
        assert their == our
    assert sum(len(records) for *_, records in theirs) > 80


BROKEN_HOSTS = ("", "10.0.0.0/33", "10.0.0.256/8", "a/8", "fd00::/129", "fd00::/x", "/")


def hosts(side: Any) -> list[Any]:
    life = Life(side)
    life.create(*(creation(host=host) for host in ("*", "10.0.0.1", "10.0.0.0/8", "fd00::/8", *BROKEN_HOSTS)))
    life.delete(filters(DeleteAclsFilter, host_filter="10.0.0.0/8"))
    return life.outcomes


@pytest.mark.parametrize(("level", "acl_count"), [("4.4-IV0", 2), (None, 4)])
def test_hosts_are_checked_from_4_4_on(
    on_both: Callable[..., tuple[Any, Any]], level: str | None, acl_count: int
) -> None:
    theirs, ours = on_both(hosts, level, **WITH_AUTHORIZER)
    assert theirs == ours
    assert len(theirs[0][-1]) == acl_count


def decisions(side: Any) -> list[int]:
    """Error codes of deletions of nothing by users from these addresses, whom ACLs let in or not."""
    life = Life(side)
    cluster = {"resource_type": ResourceType.CLUSTER, "resource_name": "kafka-cluster"}
    life.create(
        creation(**cluster, principal="User:alice", host="10.0.0.0/8", operation=AclOperation.ALTER),
        creation(**cluster, principal="User:*", host="fd00::/8", operation=AclOperation.ALTER),
        creation(
            **cluster,
            principal="User:alice",
            host="10.0.0.4/31",
            operation=AclOperation.ALL,
            permission_type=PermissionType.DENY,
        ),
    )
    addresses = [bytes((10, 0, 0, last)) for last in (3, 4, 5, 6)] + [b"\x0b\0\0\1", b"\xfd" + bytes(15), bytes(16)]
    nothing = DeleteAclsRequest(filters=[filters(DeleteAclsFilter, resource_name_filter="nothing")])
    return [
        side.forward(nothing, 3, user, address=address).filter_results[0].error_code
        for user in ("alice", "bob")
        for address in addresses
    ]


def test_ranges_of_addresses_are_let_in(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(decisions, **WITH_AUTHORIZER)
    assert theirs == ours
    assert theirs == [0, 31, 31, 0, 31, 0, 31, 31, 31, 31, 31, 31, 0, 31]


def without_authorizer(side: Any) -> list[Any]:
    life = Life(side, is_described=False)
    for version in (1, 2, 3):
        life.create(creation(), creation(resource_name="", operation=AclOperation.ANY), version=version)
        life.delete(filters(DeleteAclsFilter), filters(DeleteAclsFilter, operation=99), version=version)
        life.describe(version)
        life.tell(CreateAclsRequest(creations=[creation()]), version, "alice")
        life.tell(DeleteAclsRequest(filters=[filters(DeleteAclsFilter)]), version, "alice")
    return life.outcomes


def test_without_an_authorizer_there_are_no_acls(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(without_authorizer)
    assert theirs == ours


UNKNOWN = (
    CreateAclsRequest(creations=[creation(), creation(resource_type=0)]),
    CreateAclsRequest(creations=[creation(resource_pattern_type=0)]),
    CreateAclsRequest(creations=[creation(operation=0)]),
    CreateAclsRequest(creations=[creation(permission_type=0)]),
    DeleteAclsRequest(filters=[filters(DeleteAclsFilter), filters(DeleteAclsFilter, operation=0)]),
    DeleteAclsRequest(filters=[filters(DeleteAclsFilter, pattern_type_filter=0)]),
    filters(DescribeAclsRequest, resource_type_filter=0),
    filters(DescribeAclsRequest, permission_type=0),
)


def unknown_elements(side: Any) -> list[Any]:
    result: list[Any] = []
    host, port = side.connection.getpeername()[:2]
    for message in UNKNOWN:
        data = write_request(message, 3, 1, "tool")
        result.append(side.envelope(data[4:], "boss", "User", False, b"\x7f\0\0\1").error_code)
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(data)
            result.append(connection.recv(1 << 16))
    return result


def test_unknown_elements_close_the_connection(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(unknown_elements, **WITH_AUTHORIZER)
    assert theirs == ours


def large(side: Any) -> list[Any]:
    """More than one batch takes, to make and to remove."""
    result: list[Any] = []
    side.skip_start()
    for first, last in ((0, 10_001), (0, 10_000), (10_000, 10_001), (0, 10_001)):
        creations = [creation(resource_name=f"t-{number}") for number in range(first, last)]
        creations.append(creation(resource_name=""))
        answer = side.ask(CreateAclsRequest(creations=creations), 3)
        result.append({(each.error_code, each.error_message) for each in answer.results})
        result.append(len(side.new_records()))
    for name in (None, "t-7", None):
        mine = filters(DeleteAclsFilter, resource_name_filter=name)
        answer = side.ask(DeleteAclsRequest(filters=[mine, filters(DeleteAclsFilter, resource_name_filter="t-8")]), 3)
        result.append(
            [(each.error_code, each.error_message, len(each.matching_acls)) for each in answer.filter_results]
        )
        result.append(len(side.new_records()))
    return result


def test_request_too_large_for_one_batch_is_refused_as_a_whole(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(large, **WITH_AUTHORIZER)
    assert theirs == ours
