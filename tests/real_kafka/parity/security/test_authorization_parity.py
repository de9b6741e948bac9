"""Authorization: Kafka's controller and ours with the same ACLs and requests of the same principals."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from mockraft.conformance.requests import request
from mockraft.kafka.processes import wait_until
from mockraft.kafka_api.authorization.acl_types import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockraft.releases import release
from mockraft.server.apis.overlaid import offered
from mockraft.server.apis.registry import APIS
from mockraft.server.controller.settings.offers import Offer
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.json_form import to_json
from mockraft.wire.messages import alter_configs_request, describe_configs_request, incremental_alter_configs_request
from mockraft.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest

pytestmark = pytest.mark.real_kafka

TOPIC, CLUSTER, GROUP, USER = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.USER
OFFERED = offered(APIS, Offer(release()))
WITH_AUTHORIZER = {"authorizer": True, "super_users": "User:ANONYMOUS;User:boss"}
TOKENS = {"delegation_token_secret_key": "secret", "delegation_token_expiry_time_ms": (1 << 63) - 1}


class Acl(NamedTuple):
    """An ACL: the operation on the resource, for a user."""

    operation: AclOperation
    resource_type: ResourceType
    name: str
    principal: str = "User:alice"
    permission: PermissionType = PermissionType.ALLOW
    pattern: PatternType = PatternType.LITERAL
    host: str = "*"

    @property
    def creation(self) -> AclCreation:
        return AclCreation(
            resource_type=self.resource_type,
            resource_name=self.name,
            resource_pattern_type=self.pattern,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )


def create(side: Any, *acls: Acl) -> None:
    """Make them as the boss, and wait until the authorizer knows them."""
    every = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    def described() -> int:
        return sum(len(resource.acls) for resource in side.ask(every, 3).resources)

    before = described()
    made = side.forward(CreateAclsRequest(creations=[acl.creation for acl in acls]), 3, "boss")
    assert [each.error_code for each in made.results] == [0] * len(acls)
    wait_until(lambda: described() == before + len(acls), 60, "the authorizer knows them")
    side.new_records()


class Life:
    """A request and its principal, with the answers and records."""

    def __init__(self, side: Any) -> None:
        self.side = side
        self.outcomes: list[Any] = []
        self.ids: dict[str, str] = {}
        side.skip_start()

    def forward(self, user: str, message: Any, version: int | None = None, **how: Any) -> Any:
        version = OFFERED[message.api_key].max_version if version is None else version
        answer = self.side.forward(message, version, user, **how)
        self._tell(user, answer, version)
        return answer

    def direct(self, message: Any, version: int | None = None) -> None:
        version = OFFERED[message.api_key].max_version if version is None else version
        self._tell("direct", self.side.ask(message, version), version)

    def _tell(self, user: str, answer: Any, version: int) -> None:
        name = type(answer).__name__
        records = [[type(r).__name__, v, to_json(r, v)] for r, v in self.side.new_records()]
        self.outcomes.append((user, name, version, self._masked(to_json(answer, version)), self._masked(records)))

    def _masked(self, tree: Any) -> Any:
        text = re.sub(r"Request Request\(.*?\) needs", "Request needs", json.dumps(tree))
        text = re.sub(r'"(id|topicId|hmac|tokenId)": "[^"]+"', r'"\1": "masked"', text)
        text = re.sub(r'"(salt|storedKey|serverKey|\w*imestamp\w*)": [^,}\]]+', r'"\1": "masked"', text)
        text = re.sub(r'"port": \d+', '"port": 0', text.replace(self.side.cluster_id, "cluster"))
        return _sorted(json.loads(text))


def _sorted(tree: Any) -> Any:
    """With every list in order: Kafka's come out of hash maps."""
    if isinstance(tree, dict):
        return {key: _sorted(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return sorted((_sorted(each) for each in tree), key=json.dumps)
    return tree


def cluster_requests() -> Iterator[Any]:
    """One of each API that is forwarded and that asks for an operation on the cluster, with something in it."""
    mixed = Acl(AclOperation.READ, TOPIC, "t"), Acl(AclOperation.ANY, TOPIC, "")
    yield CreateAclsRequest(creations=[acl.creation for acl in mixed])
    yield DeleteAclsRequest(
        filters=[DeleteAclsFilter(resource_type_filter=1, operation=each, permission_type=1) for each in (1, 99)]
    )
    partition = {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}
    entity = [{"entityType": "user", "entityName": "a"}, {"entityType": "client-id", "entityName": None}]
    upsertion = {"name": "a", "mechanism": 1, "iterations": 4096, "salt": "cw==", "saltedPassword": "cA=="}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("ElectLeaders", {"topicPartitions": [{"topic": "t", "partitions": [0, 1]}], "timeoutMs": 0}),
        ("ElectLeaders", {"topicPartitions": None}),
        ("AlterPartitionReassignments", {"topics": [partition]}),
        ("ListPartitionReassignments", {"topics": None}),
        ("ListPartitionReassignments", {"topics": [{"name": "t", "partitionIndexes": [0, 1]}]}),
        ("AlterClientQuotas", {"entries": [{"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1.0}]}]}),
        (
            "AlterUserScramCredentials",
            {"deletions": [{"name": "b", "mechanism": 1}, {"name": "a", "mechanism": 1}], "upsertions": [upsertion]},
        ),
        ("UpdateFeatures", {"featureUpdates": [{"feature": "group.version", "maxVersionLevel": 9}]}),
        ("DescribeQuorum", {}),
        ("UnregisterBroker", {}),
        ("UnregisterController", {}),
        ("AllocateProducerIds", {}),
        ("AddRaftVoter", {}),
        ("RemoveRaftVoter", {}),
    ]
    for api, fields in requests:
        yield request(api, fields, messages.by_name(f"{api}Request").max_version)


def refused_on_cluster(side: Any) -> list[Any]:
    life = Life(side)
    for message in cluster_requests():
        api = OFFERED[message.api_key]
        for version in range(api.min_version, api.max_version + 1):
            life.forward("eve", message, version)
    return life.outcomes


def each_operation(side: Any) -> list[Any]:
    """One allowed operation on the cluster implies others."""
    life = Life(side)
    operations = [each for each in AclOperation if each > AclOperation.ANY]
    create(side, *(Acl(each, CLUSTER, CLUSTER_NAME, f"User:{each.name}") for each in operations))
    for operation in operations:
        for message in cluster_requests():
            if message.api_key not in (api_keys.DESCRIBE_QUORUM, api_keys.CREATE_ACLS, api_keys.ALLOCATE_PRODUCER_IDS):
                life.forward(operation.name, message)
    return life.outcomes


def new_topic(name: str, **fields: Any) -> CreatableTopic:
    return CreatableTopic(**{"name": name, "num_partitions": 1, "replication_factor": 1, **fields})


def topics(side: Any) -> list[Any]:
    life = Life(side)
    side.add_broker(1)
    prefixed = PatternType.PREFIXED
    create(
        side,
        Acl(AclOperation.CREATE, TOPIC, "a-", pattern=prefixed),
        Acl(AclOperation.CREATE, TOPIC, "a-not", permission=PermissionType.DENY),
        Acl(AclOperation.DESCRIBE_CONFIGS, TOPIC, "a-shown"),
        Acl(AclOperation.CREATE, CLUSTER, CLUSTER_NAME, "User:creator"),
        Acl(AclOperation.ALTER_CONFIGS, TOPIC, "*", "User:creator"),
        Acl(AclOperation.DELETE, TOPIC, "gone-", pattern=prefixed),
        Acl(AclOperation.DESCRIBE, TOPIC, "seen-", pattern=prefixed),
        Acl(AclOperation.ALTER, TOPIC, "grow-", pattern=prefixed),
        Acl(AclOperation.DELETE, CLUSTER, CLUSTER_NAME, "User:deleter"),
    )
    names = ["a-1", "a-shown", "a-not", "b-1", "a-bad name", "b-bad name", "a-two", "a-two", "__cluster_metadata"]
    asked = [new_topic(name) for name in names]
    asked[1].configs = []
    for user in ("alice", "creator", "eve"):
        for version in (2, 5, 7):
            for is_trial in (True, version < 7):
                life.forward(user, CreateTopicsRequest(topics=asked, timeout_ms=9000, validate_only=is_trial), version)
    life.forward("eve", CreateTopicsRequest(topics=[new_topic("x")], timeout_ms=0))
    life.forward("alice", CreateTopicsRequest(topics=[new_topic("a-x"), new_topic("b-x")], timeout_ms=0))
    made = [f"{kind}-{number}" for kind in ("gone", "seen", "grow", "other") for number in range(4)]
    answer = life.forward("boss", CreateTopicsRequest(topics=[new_topic(name) for name in made], timeout_ms=9000))
    ids = {topic.name: topic.topic_id for topic in answer.topics}
    for user in ("alice", "eve"):
        for version in (0, 3):
            grown = [CreatePartitionsTopic(name=name, count=2) for name in (*made, "grow-none", "none")]
            grown += [CreatePartitionsTopic(name="grow-two", count=2), CreatePartitionsTopic(name="grow-two", count=2)]
            life.forward(user, CreatePartitionsRequest(topics=grown, timeout_ms=9000, validate_only=True), version)
    for user in ("eve", "alice", "deleter"):
        for version in (1, 5):
            absent = ["gone-none", "seen-none", "none"]
            number = ("eve", "alice", "deleter").index(user) + (0 if version == 1 else 1)
            existing = [f"{kind}-{number}" for kind in ("gone", "seen", "grow", "other")]
            life.forward(user, DeleteTopicsRequest(topic_names=[*absent, *existing], timeout_ms=9000), version)
        by_id = [DeleteTopicState(topic_id=topic_id) for topic_id in ids.values()]
        by_name = [DeleteTopicState(name=name) for name in ("gone-3", "seen-3", "other-3", "none", "twice", "twice")]
        unknown = [DeleteTopicState(topic_id=bytes(15) + b"\x99"), DeleteTopicState()]
        life.forward(user, DeleteTopicsRequest(topics=by_id[-4:] + by_name + unknown, timeout_ms=9000), 6)
    return life.outcomes


def config_resources(request: Any) -> Any:
    """A request of any API about configs, with one key of each type of resource."""
    kinds = {
        incremental_alter_configs_request: (
            incremental_alter_configs_request.AlterConfigsResource,
            incremental_alter_configs_request.AlterableConfig,
        ),
        alter_configs_request: (alter_configs_request.AlterConfigsResource, alter_configs_request.AlterableConfig),
    }
    resource, config = kinds[request]
    asked = [(2, "mine", "retention.ms", "5"), (2, "other", "retention.ms", "5"), (2, "none", "retention.ms", "5")]
    asked += [(4, "", "log.cleaner.threads", "2"), (4, "1", "log.cleaner.threads", "2"), (8, "3000", "no.such", "INFO")]
    asked += [(16, "m", "interval.ms", "5000"), (32, "g", "consumer.session.timeout.ms", "46000"), (99, "x", "y", "z")]
    asked += [(32, "h", "consumer.session.timeout.ms", "46000"), (2, "twice", "k", "v"), (2, "twice", "k", "v")]
    return [
        resource(resource_type=kind, resource_name=name, configs=[config(name=key, value=value)])
        for kind, name, key, value in asked
    ]


def configs(side: Any) -> list[Any]:
    life = Life(side)
    side.add_broker(1)
    create(
        side,
        Acl(AclOperation.ALTER_CONFIGS, TOPIC, "mine"),
        Acl(AclOperation.ALTER_CONFIGS, GROUP, "g"),
        Acl(AclOperation.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME, "User:admin"),
        Acl(AclOperation.ALTER, CLUSTER, CLUSTER_NAME, "User:other"),
    )
    made = [new_topic(name) for name in ("mine", "other")]
    life.forward("boss", CreateTopicsRequest(topics=made, timeout_ms=9000))
    for user in ("alice", "admin", "other", "boss"):
        incremental = incremental_alter_configs_request.IncrementalAlterConfigsRequest(
            resources=config_resources(incremental_alter_configs_request)
        )
        life.forward(user, incremental)
        legacy = alter_configs_request.AlterConfigsRequest(resources=config_resources(alter_configs_request))
        life.forward(user, legacy)
    keys = ["authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"]
    node = describe_configs_request.DescribeConfigsResource(
        resource_type=4, resource_name="3000", configuration_keys=keys
    )
    life.direct(describe_configs_request.DescribeConfigsRequest(resources=[node], include_synonyms=True))
    return life.outcomes


def tokens(side: Any) -> list[Any]:
    life = Life(side)
    create(side, Acl(AclOperation.CREATE_TOKENS, USER, "User:carol"), Acl(AclOperation.ALL, USER, "User:"))
    for user in ("alice", "boss"):
        for owner in ("alice", "carol", "dave"):
            asked = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner)
            life.forward(user, asked, 3)
        life.forward(user, asked, 3, token_authenticated=True)
        made = life.forward(user, CreateDelegationTokenRequest(), 2)  # at last the boss's
    renewal = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1)
    renewed: list[Any] = []

    def is_over() -> bool:
        answer = side.forward(renewal, 2, "boss")
        renewed.append((answer.error_code, answer.expiry_timestamp_ms < 0))
        return bool(answer.error_code == error_codes.DELEGATION_TOKEN_EXPIRED)

    # A period without end overflows. Kafka's controller finds a token a moment after it has written it.
    wait_until(is_over, 60, "the renewed token is over")
    return [*life.outcomes, *sorted({*renewed} - {(error_codes.DELEGATION_TOKEN_NOT_FOUND, False)})]


def hosts_and_principals(side: Any) -> list[Any]:
    life = Life(side)
    listed = ListPartitionReassignmentsRequest(topics=[])
    create(
        side,
        Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, host="10.1.2.3"),
        Acl(AclOperation.ALTER, CLUSTER, CLUSTER_NAME, host="2001:db8:0:0:0:0:0:1"),
        Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, "User:bob", host="2001:db8::1"),
        Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, "Group:staff"),
        Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, "User:with:colon"),
        Acl(AclOperation.ALTER, CLUSTER, CLUSTER_NAME, "User:*", host="10.9.9.9"),
        Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, "User:mallory", PermissionType.DENY, host="10.9.9.9"),
        Acl(AclOperation.ALTER, CLUSTER, CLUSTER_NAME, "User:walt", PermissionType.DENY, host="10.9.9.9"),
    )
    v6 = bytes.fromhex("20010db8000000000000000000000001")
    mapped = bytes(10) + b"\xff\xff\x0a\x01\x02\x03"
    for address in (b"\x0a\1\2\3", b"\x0a\1\2\4", v6, mapped, b"\x0a\x09\x09\x09"):
        for user in ("alice", "bob", "staff", "with:colon", "mallory", "walt", "ANONYMOUS"):
            for kind in ("User", "Group", "user"):
                life.forward(user, listed, principal_type=kind, address=address)
    life.forward("*", listed)
    return life.outcomes


def direct(side: Any) -> list[Any]:
    """Nobody who connects is a super user: all may do everything until the cluster has an ACL."""
    life = Life(side)
    life.direct(DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True))
    resource = describe_configs_request.DescribeConfigsResource
    kinds = [(2, "t"), (2, "bad name"), (4, ""), (4, "3000"), (4, "1"), (8, "3000"), (16, "m"), (32, "g")]
    asked = [resource(resource_type=kind, resource_name=name, configuration_keys=["x"]) for kind, name in kinds]
    only_action = Acl(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME, "User:ANONYMOUS")
    shown = Acl(AclOperation.ALTER_CONFIGS, TOPIC, "t", "User:ANONYMOUS")
    described = Acl(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME, "User:ANONYMOUS")
    create(side, shown, only_action, described)
    for version in (1, 4):
        life.direct(describe_configs_request.DescribeConfigsRequest(resources=asked), version)
    for key in (each for each, api in OFFERED.items() if not api.forwardable and api.operation is None):
        if key not in (api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, api_keys.API_VERSIONS, api_keys.DESCRIBE_CONFIGS):
            life.direct(messages.request(key)())
    life.direct(messages.request(api_keys.UNREGISTER_BROKER)())
    deny = Acl(AclOperation.ALL, CLUSTER, CLUSTER_NAME, "User:ANONYMOUS", PermissionType.DENY)
    answers = []
    side.forward(CreateAclsRequest(creations=[deny.creation]), 3, "boss")
    fetch = messages.request(api_keys.FETCH)()
    wait_until(lambda: side.ask(fetch, 17).error_code == 31, 60, "the denial known")
    for key, api in OFFERED.items():
        if api.operation is not None:
            for version in range(api.min_version, api.max_version + 1):
                request = api.request()
                if key == api_keys.DESCRIBE_ACLS:
                    request = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
                answers.append((key, version, life._masked(to_json(side.ask(request, version), version))))
    return [*life.outcomes, *answers]


@pytest.mark.parametrize(
    ("run", "options"),
    [
        pytest.param(refused_on_cluster, {}, id="cluster authorization failures have the same form"),
        pytest.param(each_operation, {}, id="operations imply the same operations"),
        pytest.param(topics, {}, id="topics are created, expanded and deleted by authorized users"),
        pytest.param(configs, {"allow_everyone_if_no_acl_found": True}, id="configs are altered by authorized users"),
        pytest.param(tokens, TOKENS, id="tokens for others need permission"),
        pytest.param(hosts_and_principals, {}, id="hosts and principals are those of the client"),
        pytest.param(
            direct,
            {"super_users": "User:boss", "allow_everyone_if_no_acl_found": True},
            id="connections are judged by their own principal",
        ),
    ],
)
def test_the_same_is_allowed_and_refused(
    on_both: Callable[..., tuple[Any, Any]], run: Callable[[Any], list[Any]], options: dict[str, Any]
) -> None:
    theirs, ours = on_both(run, **{**WITH_AUTHORIZER, **options})
    assert theirs == ours


def test_every_api_that_asks_for_an_operation_on_the_cluster_is_asked() -> None:
    asked = {message.api_key for message in cluster_requests()}
    assert {api.api_key for api in OFFERED.values() if api.forwardable and api.operation is not None} == asked
