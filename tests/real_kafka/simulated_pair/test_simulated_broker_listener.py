"""A real broker and a simulated one receive the same requests, of configs too, in every version: equal responses."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import client, error_codes, json_form, messages
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.uuids import text_of

from ...topics import assigned, topic
from .conftest import Change, setting

pytestmark = pytest.mark.real_kafka

REAL, SIMULATED = 1, 2


def asked(name: str, version: int, **fields: Any) -> Any:
    """A request out of Kafka's JSON form in this version."""
    return json_form.from_json(messages.by_name(f"{name}Request"), fields, version)


def versions(name: str, least: int = 0) -> range:
    message = messages.by_name(f"{name}Request")
    return range(max(least, message.min_version), message.max_version + 1)


@pytest.mark.parametrize("version", versions("ApiVersions"))
async def test_api_versions(pair: Any, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    result = await pair.same(request, version)
    assert len(result["apiKeys"]) > 30


@pytest.mark.parametrize(
    ("cluster", "broker", "code"),
    [
        ("its own", "its own", error_codes.NONE),
        ("its own", "another", error_codes.REBOOTSTRAP_REQUIRED),
        ("another", "its own", error_codes.REBOOTSTRAP_REQUIRED),
        ("its own", None, error_codes.INVALID_REQUEST),
        (None, "its own", error_codes.INVALID_REQUEST),
    ],
)
async def test_api_versions_for_a_cluster_and_broker(
    pair: Any, cluster: str | None, broker: str | None, code: int
) -> None:
    described = await pair.ask(REAL, asked("DescribeCluster", 0, includeClusterAuthorizedOperations=False))
    answers = []
    for which in (REAL, SIMULATED):
        request = ApiVersionsRequest(
            client_software_name="test",
            client_software_version="1",
            cluster_id=described.cluster_id if cluster == "its own" else cluster,
            node_id={"its own": which, "another": 7, None: -1}[broker],
        )
        response = await pair.ask(which, request, 5)
        answers.append((response.error_code, len(response.api_keys) > 0))
    assert answers == [(code, code == 0)] * 2


def metadata(version: int, topics: Any, *, operations: bool = False) -> Any:
    fields: dict[str, Any] = {"topics": topics}
    if version >= 4:
        fields["allowAutoTopicCreation"] = False
    if 8 <= version <= 10:
        fields["includeClusterAuthorizedOperations"] = operations
    if version >= 8:
        fields["includeTopicAuthorizedOperations"] = operations
    return asked("Metadata", version, **fields)


@pytest.mark.parametrize("version", versions("Metadata"))
@pytest.mark.parametrize("names", [["both", "none", "no/name", "single", "__consumer_offsets"], [], None])
async def test_metadata(pair: Any, version: int, names: list[str] | None) -> None:
    if names is None and version == 0:
        names = []
    named = None if names is None else [{"name": name} for name in names]
    if named and version >= 10:
        named = [{**each, "topicId": text_of(bytes(16))} for each in named]
    result = await pair.same(metadata(version, named, operations=True), version)
    assert {broker["nodeId"] for broker in result["brokers"]} == {REAL, SIMULATED}


@pytest.mark.parametrize("version", versions("Metadata", 10))
@pytest.mark.parametrize("with_name", [False, True])
async def test_metadata_by_topic_id(pair: Any, version: int, with_name: bool) -> None:
    ids = [pair.topic_ids["both"], b"u" * 16, bytes(16)]
    named = [{"topicId": text_of(each), "name": "both" if with_name else None} for each in ids]
    result = await pair.same(metadata(version, named), version)
    assert len(result["topics"]) >= 2


@pytest.mark.parametrize("version", versions("Metadata", 10))
async def test_metadata_of_neither_a_name_nor_an_id(pair: Any, version: int) -> None:
    named = [{"topicId": text_of(bytes(16)), "name": None}, {"topicId": text_of(bytes(16)), "name": "both"}]
    result = await pair.same(metadata(version, named), version)
    assert len(result["topics"]) >= 2


@pytest.mark.parametrize("version", versions("DescribeCluster"))
@pytest.mark.parametrize("endpoint_type", [1, 2, 7])
async def test_describe_cluster(pair: Any, version: int, endpoint_type: int) -> None:
    fields: dict[str, Any] = {"includeClusterAuthorizedOperations": True}
    if version >= 1:
        fields["endpointType"] = endpoint_type
    if version >= 2:
        fields["includeFencedBrokers"] = True
    result = await pair.same(asked("DescribeCluster", version, **fields), version)
    assert result["errorCode"] == (0 if version == 0 else {1: 0, 2: 114, 7: 115}[endpoint_type])


@pytest.mark.parametrize(
    ("names", "limit", "cursor"),
    [
        ([], 2000, None),
        ([], 1, None),
        (["both", "single"], 2, {"topicName": "both", "partitionIndex": 1}),
        (["none", "both", "no/name"], 2000, None),
        (["both"], 2000, {"topicName": "single", "partitionIndex": 0}),
        (["both"], 2000, {"topicName": "both", "partitionIndex": -1}),
        (["both"], 0, {"topicName": "both", "partitionIndex": 7}),
    ],
)
async def test_describe_topic_partitions(pair: Any, names: list[str], limit: int, cursor: Any) -> None:
    fields = {"topics": [{"name": name} for name in names], "responsePartitionLimit": limit, "cursor": cursor}
    result = await pair.same(asked("DescribeTopicPartitions", 0, **fields), 0)
    assert result["topics"] or not names


ABOUT: dict[str, list[dict[str, Any]]] = {
    "DescribeClientQuotas": [
        {"components": [], "strict": False},
        {"components": [{"entityType": "user", "matchType": 0, "match": "u"}], "strict": True},
        {"components": [{"entityType": "client-id", "matchType": 1, "match": None}], "strict": False},
        {"components": [{"entityType": "group", "matchType": 2, "match": None}], "strict": False},
        {"components": [{"entityType": "user", "matchType": 9, "match": None}], "strict": False},
    ],
    "DescribeUserScramCredentials": [{"users": None}, {"users": [{"name": "u"}, {"name": "v"}, {"name": "v"}]}],
    "DescribeDelegationToken": [{"owners": None}],
    "RenewDelegationToken": [{"hmac": "aGFsbG8=", "renewPeriodMs": -1}],
    "ExpireDelegationToken": [{"hmac": "aGFsbG8=", "expiryTimePeriodMs": -1}],
    "ListPartitionReassignments": [{"timeoutMs": 1000, "topics": None}],
    "SaslHandshake": [{"mechanism": "PLAIN"}],
    "SaslAuthenticate": [{"authBytes": ""}],
}


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, all_of in ABOUT.items() for n in range(len(all_of))])
async def test_other_responses_are_equal(pair: Any, name: str, number: int) -> None:
    for version in versions(name):
        result = await pair.same(asked(name, version, **ABOUT[name][number]), version)
        assert result


async def test_config_resources(pair: Any) -> None:
    for version, types in [(0, None), (1, []), (1, [2, 4]), (1, [8, 16, 32]), (1, [99])]:
        fields = {} if types is None else {"resourceTypes": types}
        assert await pair.same(asked("ListConfigResources", version, **fields), version)


async def test_acls_are_not_there(pair: Any) -> None:
    fields = {"resourceTypeFilter": 2, "resourceNameFilter": None, "principalFilter": None, "hostFilter": None}
    for version in versions("DescribeAcls"):
        more = {"patternTypeFilter": 3, "operation": 1, "permissionType": 1}
        result = await pair.same(asked("DescribeAcls", version, **fields, **more), version)
        assert result["errorMessage"] == "No Authorizer is configured on the broker"


async def test_tokens_are_refused(pair: Any) -> None:
    for version in versions("CreateDelegationToken"):
        fields: dict[str, Any] = {"renewers": [], "maxLifetimeMs": -1}
        if version >= 3:
            fields |= {"ownerPrincipalType": None, "ownerPrincipalName": None}
        result = await pair.same(asked("CreateDelegationToken", version, **fields), version)
        assert result["errorCode"] == 64


@pytest.mark.parametrize("version", versions("CreateTopics"))
async def test_refusals_of_the_controller(pair: Any, version: int) -> None:
    many = topic("x", 1, 9)
    topics = [assigned("both", [REAL]), assigned("no/name", [REAL]), many]
    result = await pair.same(CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=True), version)
    assert {each["errorCode"] for each in result["topics"]} == {36, 17, 38}


@pytest.mark.parametrize("name", ["Vote", "BrokerHeartbeat", "Envelope", "AlterPartition", "ControllerRegistration"])
async def test_an_api_that_brokers_do_not_serve_closes_the_connection(pair: Any, name: str) -> None:
    for which in (REAL, SIMULATED):
        message = messages.by_name(f"{name}Request")
        with pytest.raises(client.DisconnectedError):
            await pair.ask(which, message(), message.max_version)


ITS_OWN = {"node.id", "log.dirs", "metadata.log.dir", "listeners", "advertised.listeners"}


def without_its_own(tree: Any) -> Any:
    """Two brokers have names, places and ports of their own."""
    for result in tree["results"]:
        result["resourceName"] = result["resourceName"].replace(str(SIMULATED), str(REAL))
        result["configs"] = [
            config for config in result["configs"] if config["name"] not in ITS_OWN | {"broker.id", "log.dir"}
        ]
    return tree


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((2, name) for name in ("both", "single", "none", "no/name")),
        *((4, ""), (4, "x"), (8, "")),
        *((16, name) for name in ("metrics", "none", "")),
        *((32, name) for name in ("group", "none", "")),
    ],
)
async def test_describe_configs(pair: Any, version: int, kind: int, name: str) -> None:
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": None}
    fields: dict[str, Any] = {"resources": [resource], "includeSynonyms": True}
    if version >= 3:
        fields["includeDocumentation"] = False
    result = await pair.same(asked("DescribeConfigs", version, **fields), version, without_ids)
    assert len(result["results"]) == 1


def without_ids(tree: Any) -> Any:
    """A message may name the broker."""
    for result in tree["results"]:
        if result["errorMessage"]:
            result["errorMessage"] = result["errorMessage"].replace(f"expected {SIMULATED}", f"expected {REAL}")
    return tree


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
async def test_describe_configs_of_the_broker_itself(pair: Any, version: int) -> None:
    result = []
    for which in (REAL, SIMULATED):
        resource = {"resourceType": 4, "resourceName": str(which), "configurationKeys": None}
        fields: dict[str, Any] = {"resources": [resource], "includeSynonyms": True}
        if version >= 3:
            fields["includeDocumentation"] = False
        response = await pair.tree(which, asked("DescribeConfigs", version, **fields), version)
        result.append(without_its_own(response))
    assert pair.difference(result[1], result[0]) == []


CHANGES = [
    (2, "both", "retention.ms", "x"),
    (2, "none", "retention.ms", "1"),
    (2, "both", "no.such.key", "1"),
    (4, "7", "log.cleaner.backoff.ms", "1"),
    (4, "x", "log.cleaner.backoff.ms", "1"),
    (4, "", "node.id", "7"),
    (4, "", "cordoned.log.dirs", "*"),
    (4, "", "log.cleaner.backoff.ms", "many"),
    (4, "", "log.cleaner.backoff.ms", "-3"),
    (4, "", "ssl.keystore.location", "f"),
    (4, "", "no.such.key", "1"),
    (4, "", "log.cleaner.backoff.ms", "3"),
    (4, "", "log.cleaner.backoff.ms", None),
    (8, "7", "root", "INFO"),
    (8, "x", "root", "INFO"),
    (16, "metrics", "interval.ms", "1"),
    (32, "group", "consumer.session.timeout.ms", "1"),
    (99, "x", "k", "1"),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, change)))
async def test_changes_of_configs(pair: Any, change: Change) -> None:
    def without_broker(tree: Any) -> Any:
        for each in tree["responses"]:
            for before in ("expected ", "Expected "):
                if each["errorMessage"]:
                    each["errorMessage"] = each["errorMessage"].replace(f"{before}{SIMULATED},", f"{before}{REAL},")
        return tree

    for version in versions("IncrementalAlterConfigs"):
        assert await pair.same(setting(change, validate_only=True), version, without_broker)


async def test_cordoning_an_unknown_directory_is_refused(pair: Any) -> None:
    result = []
    for which in (REAL, SIMULATED):
        request = setting((4, str(which), "cordoned.log.dirs", "/nope,/nor"), validate_only=True)
        (each,) = (await pair.ask(which, request)).responses
        result.append((each.error_code, each.error_message))
    assert result[1] == result[0]
