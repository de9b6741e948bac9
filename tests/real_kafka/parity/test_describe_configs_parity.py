"""Descriptions of configs by Kafka's controller and ours: equal, except for the configs of the start."""

from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

from ...configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, SET, TOPIC, Resource, change_configs
from .conftest import Case

pytestmark = pytest.mark.real_kafka

STATIC = 4

SETTINGS = {
    (BROKER, ""): {
        "log.retention.ms": "7000",
        "log.retention.hours": "3",
        "log.roll.ms": " 77 ",
        "num.io.threads": "5",
        "min.insync.replicas": "1",
        "cordoned.log.dirs": "",
        "an.own.key": "x",
        "max.connections": "no number",
        "ssl.key.password": "secret",
        "listener.name.a.ssl.key.password": "secret",
        "listener.name.a.max.connections": "9",
        "group.share.assignment.interval.ms": "1500",
        "log.cleanup.policy": "delete, compact",
        "process.roles": "broker",
    },
    (BROKER, "3000"): {
        "num.io.threads": "6",
        "log.flush.interval.ms": "9",
        "log.cleaner.backoff.ms": "17",
        "another.own.key": "y",
        "listener.name.a.ssl.key.password": "secret",
        "listener.name.a.ssl.keystore.location": "/a",
        "ssl.truststore.type": "JKS",
        "log.cleaner.min.cleanable.ratio": "0.75",
    },
    (GROUP, "g"): {"consumer.session.timeout.ms": " 50000 ", "share.auto.offset.reset": "earliest"},
    (CLIENT_METRICS, "m"): {"interval.ms": "100", "match": "client_id=a.* , client_source_port=1"},
}
OWN = {
    "retention.ms": "5",
    "cleanup.policy": "compact, delete,compact",
    "min.cleanable.dirty.ratio": "0.25",
    "preallocate": "TRUE",
    "leader.replication.throttled.replicas": "0:1,1:2",
}


def describe(name: str, *resources: tuple[int, str], keys: Any = None, version: int = 4, synonyms: bool = True) -> Case:
    asked = [
        DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=keys)
        for kind, resource in resources
    ]
    return Case(name, DescribeConfigsRequest(resources=asked, include_synonyms=synonyms), version)


CASES = [
    describe("nothing"),
    describe("a topic", (TOPIC, "own")),
    describe("a topic of defaults", (TOPIC, "plain")),
    describe("a topic without synonyms", (TOPIC, "own"), synonyms=False),
    describe("some keys", (TOPIC, "own"), (GROUP, "g"), keys=["retention.ms", "no.such", "share.isolation.level"]),
    describe("no keys", (TOPIC, "own"), keys=[]),
    describe("topics that are not", (TOPIC, "none"), (TOPIC, "no/where"), (TOPIC, "")),
    describe("all brokers", (BROKER, "")),
    describe("the node", (BROKER, "3000")),
    describe("other brokers", (BROKER, "1"), (BROKER, "x"), (BROKER, "-1")),
    describe("other loggers", (BROKER_LOGGER, ""), (BROKER_LOGGER, "x"), (BROKER_LOGGER, "1")),
    describe("groups", (GROUP, "g"), (GROUP, "none"), (GROUP, "")),
    describe("client metrics", (CLIENT_METRICS, "m"), (CLIENT_METRICS, "none"), (CLIENT_METRICS, "")),
    describe("an unknown type", (TOPIC, "own"), (3, "x")),
    *[describe(f"version {number}", (TOPIC, "own"), (BROKER, ""), version=number) for number in (1, 2, 3)],
]


def run(side: Any) -> dict[str, Any]:
    side.add_broker(1, None, 1)
    own = [CreatableTopicConfig(name=key, value=value) for key, value in OWN.items()]
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
        for name, configs in (("own", own), ("plain", []))
    ]
    assert all(topic.error_code == 0 for topic in side.ask(CreateTopicsRequest(topics=topics), 7).topics)
    resources: list[Resource] = [
        (kind, name, *((SET, key, value) for key, value in values.items())) for (kind, name), values in SETTINGS.items()
    ]
    altered = side.ask(change_configs(*resources), 1)
    assert [each.error_code for each in altered.responses] == [0] * len(SETTINGS)

    def is_known() -> bool:
        """Kafka's controller describes what its metadata cache has, a moment later."""
        asked = describe("", (BROKER, "3000"), (CLIENT_METRICS, "m"), keys=["num.io.threads", "interval.ms"])
        found = side.ask(asked.request, 4).results
        return [each.value for result in found for each in result.configs] == ["6", "100"]

    wait_until(is_known, 60, "the new settings")
    return {case.name: described(side, case) for case in CASES}


def described(side: Any, case: Case) -> Any:
    answer = side.ask(case.request, case.version)
    for result in answer.results:
        result.configs.sort(key=lambda config: config.name)
    return to_json(answer, case.version)


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_responses_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    static = {
        config["name"]
        for outcome in outcomes
        for result in outcome["the node"]["results"]
        for config in result["configs"]
        if any(synonym["source"] == STATIC for synonym in config["synonyms"])
    }
    for answer in (theirs[name], ours[name]):
        for result in answer["results"]:
            if result["resourceType"] == BROKER:
                result["configs"] = [config for config in result["configs"] if config["name"] not in static]
    assert ours[name] == theirs[name]
