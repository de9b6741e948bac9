"""Authorization of requests: each needs the operation that ControllerApis requires."""

from typing import Any

import pytest
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.authorization.acl_types import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockraft.server.apis.api import RequestContext
from mockraft.server.apis.authorization import is_allowed_on_cluster
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.image import Image
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import Request
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_request import AlterConfigsResource as LegacyResource
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord

from ...configs import change_configs
from ...conftest import Cluster
from ...rows import each_row
from ...topics import more_partitions, topic

CLUSTER_OPERATIONS = {
    AclOperation.CLUSTER_ACTION: {
        *(api_keys.FETCH, api_keys.FETCH_SNAPSHOT, api_keys.VOTE, api_keys.BEGIN_QUORUM_EPOCH),
        *(api_keys.END_QUORUM_EPOCH, api_keys.UPDATE_RAFT_VOTER, api_keys.ENVELOPE, api_keys.BROKER_REGISTRATION),
        *(api_keys.BROKER_HEARTBEAT, api_keys.CONTROLLER_REGISTRATION, api_keys.ALTER_PARTITION),
        *(api_keys.ALLOCATE_PRODUCER_IDS, api_keys.ASSIGN_REPLICAS_TO_DIRS),
    },
    AclOperation.ALTER: {
        *(api_keys.ELECT_LEADERS, api_keys.UNREGISTER_BROKER, api_keys.ALTER_PARTITION_REASSIGNMENTS),
        *(api_keys.ALTER_USER_SCRAM_CREDENTIALS, api_keys.UPDATE_FEATURES, api_keys.CREATE_ACLS, api_keys.DELETE_ACLS),
        *(api_keys.ADD_RAFT_VOTER, api_keys.REMOVE_RAFT_VOTER, api_keys.UNREGISTER_CONTROLLER),
    },
    AclOperation.DESCRIBE: {*(api_keys.DESCRIBE_QUORUM, api_keys.LIST_PARTITION_REASSIGNMENTS, api_keys.DESCRIBE_ACLS)},
    AclOperation.ALTER_CONFIGS: {api_keys.ALTER_CLIENT_QUOTAS},
}
"""Operations that ControllerApis checks before it reads the request; other APIs check by resource, or not at all."""


def acl_record(**fields: Any) -> RecordAt:
    """An ACL on the cluster for bob from anywhere, unless told otherwise."""
    defaults: dict[str, Any] = {
        "id": bytes(15) + b"\x07",
        "resource_type": ResourceType.CLUSTER,
        "resource_name": CLUSTER_NAME,
        "pattern_type": PatternType.LITERAL,
        "principal": "User:bob",
        "host": "*",
        "permission_type": PermissionType.ALLOW,
    }
    return RecordAt(AccessControlEntryRecord(**defaults | fields), 0)


def test_every_api_requires_kafkas_permission() -> None:
    needed = {key: operation for operation, keys in CLUSTER_OPERATIONS.items() for key in keys}
    assert {key: api.operation for key, api in APIS.items()} == {key: needed.get(key) for key in APIS}


@each_row("key", [key for key, api in APIS.items() if api.operation is not None])
def test_unauthorized_request_is_refused_before_validation(new_cluster: type[Cluster], key: int) -> None:
    cluster = new_cluster(authorizer=True)
    api = APIS[key]
    assert api.operation is not None
    refused = cluster.ask(api.request())
    message = (
        "Request Request(connectionId=1, session=Session(User:ANONYMOUS,127.0.0.1:50000), listenerName=CONTROLLER)"
    )
    expected = api.error(
        api.request(), error_codes.CLUSTER_AUTHORIZATION_FAILED, f"{message} needs {api.operation.name} permission."
    )
    assert refused == api.response.read(expected.write(api.max_version), api.max_version)
    assert cluster.written() == []


def test_everything_is_allowed_without_an_authorizer(cluster: Cluster) -> None:
    assert cluster.controller.authorizer is None
    assert cluster.ask(DescribeClusterRequest(endpoint_type=2), principal="User:nobody").error_code == 0


def test_naming_super_users_turns_the_authorizer_on(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(super_users=" User:admin ; ;User:CN=broker,O=x")
    for principal, code in (("User:admin", 0), ("User:CN=broker,O=x", 0), ("User:ANONYMOUS", 31)):
        assert cluster.ask(DescribeClusterRequest(endpoint_type=2), principal=principal).error_code == code


@each_row("users", ["admin", "User:a;b", ":a", "User:"])
def test_a_super_user_without_a_type_or_name_is_named(users: str) -> None:
    with pytest.raises(ValueError, match=r"^super_users=.* is not Type:name"):
        ControllerConfig(super_users=users)


def test_describe_cluster_returns_authorized_operations(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(authorizer=True)
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    cluster.write(acl_record(operation=AclOperation.ALTER))
    assert cluster.ask(request, principal="User:bob").cluster_authorized_operations == 1 << 7 | 1 << 8
    cluster.write(acl_record(id=bytes(16), operation=AclOperation.ALL))
    assert cluster.ask(request, principal="User:bob").cluster_authorized_operations == 0b1_1111_1010_0000
    assert cluster.ask(request, principal="User:eve").error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED


def test_describe_cluster_is_not_authorized_below_its_level(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(authorizer=True, metadata_version=14)
    assert cluster.ask(DescribeClusterRequest(endpoint_type=2)).error_code == error_codes.UNSUPPORTED_VERSION


@each_row(
    ("client_address", "forwarded", "host"),
    [
        ("10.1.2.3:50000", False, "10.1.2.3"),
        ("10.1.2.3", True, "10.1.2.3"),
        ("::1:50000", False, "0:0:0:0:0:0:0:1"),
        ("fe80::a%eth0:50000", False, "fe80:0:0:0:0:0:0:a"),
        ("2001:db8::1", True, "2001:db8:0:0:0:0:0:1"),
        ("::ffff:10.1.2.3", True, "10.1.2.3"),
        ("unknown", True, "unknown"),
    ],
)
def test_hosts_are_compared_in_java_s_form(
    new_cluster: type[Cluster], client_address: str, forwarded: bool, host: str
) -> None:
    cluster = new_cluster(authorizer=True)
    cluster.write(acl_record(operation=AclOperation.ALTER, host=host))
    for address, allowed in ((client_address, True), ("9.9.9.9" if forwarded else "9.9.9.9:1", False)):
        client = Client(1, address, "CONTROLLER", "User:bob")
        ctx = RequestContext(Request(0, 0, 1, "", b"", 0), client, 0, APIS, forwarded)
        assert is_allowed_on_cluster(cluster.controller, ctx, AclOperation.ALTER) is allowed


def allow(cluster: Cluster, operation: AclOperation, kind: ResourceType, name: str, user: str = "bob") -> None:
    """One more ACL, of any resource by its literal name."""
    number = len(cluster.controller.image.security.acls) + 1
    fields = {"id": number.to_bytes(16, "big"), "resource_type": kind, "resource_name": name}
    cluster.write(acl_record(operation=operation, principal=f"User:{user}", **fields))


@pytest.fixture
def guarded(new_cluster: type[Cluster]) -> Cluster:
    """A controller with an authorizer, one broker and three topics."""
    cluster = new_cluster(super_users="User:ANONYMOUS", delegation_token_secret_key="secret")
    cluster.start(1)
    for name in ("mine", "seen", "hidden"):
        cluster.create_topic(name, [1])
    return cluster


def test_creates_authorized_topics_and_returns_configs_to_authorized_clients(guarded: Cluster) -> None:
    allow(guarded, AclOperation.CREATE, ResourceType.TOPIC, "a")
    allow(guarded, AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "b", "creator")
    allow(guarded, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, "creator")
    asked = [topic(name, 1, 1) for name in "ab"]
    request = CreateTopicsRequest(topics=asked, timeout_ms=9000, validate_only=True)
    for principal, codes, config_codes in (("bob", [0, 29], [29, 0]), ("creator", [0, 0], [29, 0])):
        topics = guarded.ask(request, principal=f"User:{principal}").topics
        assert [topic.error_code for topic in topics] == codes
        assert [topic.topic_config_error_code for topic in topics] == config_codes
    assert topics[0].num_partitions == -1
    assert topics[1].num_partitions == 1
    refused = guarded.ask(request, principal="User:eve").topics
    assert [(topic.error_code, topic.error_message) for topic in refused] == [(29, "Authorization failed.")] * 2


def test_hides_topics_without_describe_permission(guarded: Cluster) -> None:
    allow(guarded, AclOperation.DELETE, ResourceType.TOPIC, "mine")
    allow(guarded, AclOperation.DESCRIBE, ResourceType.TOPIC, "seen")
    allow(guarded, AclOperation.DELETE, ResourceType.TOPIC, "no")
    by_name = DeleteTopicsRequest(topic_names=["mine", "seen", "hidden", "no", "none"], timeout_ms=9000)
    answer = guarded.ask(by_name, 5, principal="User:bob")
    assert {topic.name: topic.error_code for topic in answer.responses} == {
        "mine": 0,
        "no": 3,
        "seen": 29,
        "hidden": 29,
        "none": 29,
    }
    image = guarded.controller.image.topics
    ids = {name: image.by_name[name].topic_id for name in ("seen", "hidden")}
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=each) for each in ids.values()], timeout_ms=9000)
    answer = guarded.ask(by_id, 6, principal="User:bob")
    assert {(topic.topic_id, topic.name, topic.error_code) for topic in answer.responses} == {
        (ids["seen"], "seen", 29),
        (ids["hidden"], None, 29),
    }
    allow(guarded, AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME, "deleter")
    answer = guarded.ask(by_id, 6, principal="User:deleter")
    assert {topic.error_code for topic in answer.responses} == {0}


def test_adds_partitions_with_alter_permission(guarded: Cluster) -> None:
    allow(guarded, AclOperation.ALTER, ResourceType.TOPIC, "mine")
    asked = [more_partitions(name, 2) for name in ("mine", "seen", "none")]
    answer = guarded.ask(CreatePartitionsRequest(topics=asked, timeout_ms=9000), principal="User:bob")
    assert {each.name: (each.error_code, each.error_message) for each in answer.results} == {
        "mine": (0, None),
        "seen": (29, None),
        "none": (29, None),
    }


def test_config_permissions_depend_on_the_resource_type(guarded: Cluster) -> None:
    resources = [(2, "mine"), (2, "seen"), (4, ""), (32, "g"), (32, "h"), (8, "3000"), (16, "m")]
    allow(guarded, AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "mine")
    allow(guarded, AclOperation.ALTER_CONFIGS, ResourceType.GROUP, "g")
    request = change_configs(*resources)
    legacy = AlterConfigsRequest(
        resources=[LegacyResource(resource_type=kind, resource_name=name) for kind, name in resources if kind != 8]
    )
    described = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in resources]
    )
    expected = dict(zip(resources, [0, 29, 31, 0, 30, 31, 31], strict=True))
    for asked in (request, legacy, described):
        answer = guarded.ask(asked, principal="User:bob")
        results = answer.results if asked is described else answer.responses
        result = {(each.resource_type, each.resource_name): each.error_code for each in results}
        assert result == {resource: expected[resource] for resource in result}
        assert len(result) == len(asked.resources)


def test_a_token_for_another_user_requires_create_tokens(guarded: Cluster) -> None:
    allow(guarded, AclOperation.CREATE_TOKENS, ResourceType.USER, "User:carol")
    for owner, code in (("bob", 0), ("carol", 0), ("dave", error_codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED)):
        request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner)
        assert guarded.ask(request, forwarded=True, principal="User:bob").error_code == code


def test_a_controller_that_starts_from_a_snapshot_decides_as_before(guarded: Cluster) -> None:
    allow(guarded, AclOperation.DESCRIBE, ResourceType.TOPIC, "seen")
    allow(guarded, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    guarded.write(RecordAt(RemoveAccessControlEntryRecord(id=(1).to_bytes(16, "big")), 0))
    image = Image()
    for offset, (record, _) in enumerate(guarded.controller.image.to_records(30)):
        image.apply(record, offset)
    authorizer = guarded.controller.authorizer
    assert authorizer is not None
    for acls in (image.security.acl_index, guarded.controller.image.security.acl_index):
        asked = (acls, "User:bob", "127.0.0.1")
        assert not authorizer.allows(*asked, AclOperation.DESCRIBE, ResourceType.TOPIC, "seen")
        assert authorizer.allows(*asked, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
