"""The same AlterConfigs requests to Kafka's controller and to ours: the same answers and records."""

from collections.abc import Mapping
from typing import Any

import pytest
from mockraft.wire.messages.alter_configs_request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ...configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ...topics import topic
from .conftest import Case, Outcome, Side

pytestmark = pytest.mark.real_kafka

Values = Mapping[str, str | None]
MINIMUM: Values = {"min.insync.replicas": "1"}
MANY = {f"key-{number}": "x" for number in range(40)}


def alter(name: str, *resources: tuple[int, str, Values], version: int = 2, validate_only: bool = False) -> Case:
    asked = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=resource,
            configs=[AlterableConfig(name=key, value=value) for key, value in values.items()],
        )
        for kind, resource, values in resources
    ]
    return Case(name, AlterConfigsRequest(resources=asked, validate_only=validate_only), version)


def replace(name: str, kind: int, resource: str, values: Values, version: int = 2) -> Case:
    return alter(name, (kind, resource, values), version=version)


CASES = [
    alter("nothing"),
    replace("set", TOPIC, "t", {"retention.ms": "1000", "segment.ms": "5", "flush.ms": "4", "preallocate": "true"}),
    replace("set to the same", TOPIC, "t", {"segment.ms": "5", "flush.ms": "4", "retention.ms": "1000"}),
    replace("one left", TOPIC, "t", {"flush.ms": "4"}, version=0),
    replace("null", TOPIC, "t", {"flush.ms": None, "retention.ms": None, "no.such": None}),
    replace("many", TOPIC, "t", {"retention.ms": "1", "retention.bytes": "2", "segment.ms": "3", "flush.ms": "4"}),
    replace("others", TOPIC, "t", {"max.message.bytes": "9", "preallocate": "true"}, version=1),
    replace("none left", TOPIC, "t", {}),
    replace("bad", TOPIC, "t", {"retention.ms": "x"}),
    replace("unknown key", TOPIC, "t", {"no.such": "x"}),
    replace("topic that is not", TOPIC, "nowhere", {"flush.ms": "4"}),
    replace("topic that can not be", TOPIC, "no/where", {"flush.ms": "4"}),
    replace("topic of no name", TOPIC, "", {}),
    replace("minimum of a topic", TOPIC, "t", {"min.insync.replicas": "2", "flush.ms": "1"}),
    replace("minimum of a topic gone", TOPIC, "t", {"flush.ms": "1"}),
    replace("minimum of a broker", BROKER, "1", {"min.insync.replicas": "2"}),
    replace("minimum of all gone", BROKER, "", {"num.io.threads": "9"}),
    replace("minimum of all", BROKER, "", {"num.io.threads": "9", "min.insync.replicas": "2"}),
    replace("minimum of all, unchanged", BROKER, "", {"min.insync.replicas": "2"}),
    replace("many keys of a broker", BROKER, "2", dict(MANY)),
    replace("some keys of a broker", BROKER, "2", {"key-7": "x", "key-8": "y", "key-9": None}),
    replace("two keys of a broker", BROKER, "3000", {"a": "x", "b": "y"}),
    replace("no keys of a broker", BROKER, "3000", {}),
    replace("broker that is not", BROKER, "77", {"x": "y"}),
    replace("broker of another name", BROKER, "one", {"x": "y"}),
    replace("cordoned", BROKER, "1", {"cordoned.log.dirs": "/a"}),
    replace("not cordoned", BROKER, "1", {"cordoned.log.dirs": " "}),
    replace("no longer cordoned", BROKER, "1", {}),
    replace("client metrics", CLIENT_METRICS, "cm", {"interval.ms": "100", "match": "client_id=a.*"}),
    replace("client metrics, fewer", CLIENT_METRICS, "cm", {"metrics": "a,b"}),
    replace("client metrics, bad", CLIENT_METRICS, "cm", {"interval.ms": "1"}),
    replace("group", GROUP, "g", {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"}),
    replace("group, none", GROUP, "g", {}),
    alter("broker logger", (BROKER_LOGGER, "3000", {"root": "INFO"}), (BROKER_LOGGER, "x", {}), (BROKER, "1", {})),
    alter("unknown types", (0, "a", {}), (3, "b", {}), (-1, "c", {})),
    alter("repeated", *[(TOPIC, "t", {"flush.ms": str(ms)}) for ms in (7, 8, 9)], (BROKER, "", MINIMUM)),
    alter("repeated loggers", *[(BROKER_LOGGER, "3000", {})] * 3, (BROKER, "1", {})),
    alter("one bad resource", (TOPIC, "t", {"flush.ms": "8"}), (TOPIC, "ratio?", {"flush.ms": "8"})),
    alter("only validated", (TOPIC, "t", {"flush.ms": "11"}), (TOPIC, "none", {}), validate_only=True),
    alter("too many", (BROKER, "1", {f"k{number}": "x" for number in range(10_001)})),
]  # fmt: skip


def run(side: Side) -> dict[str, Outcome]:
    for broker_id in (1, 2):
        side.add_broker(broker_id, None, 1)
    side.ask(CreateTopicsRequest(topics=[topic("t", 1, 1)]), 7)
    side.skip_start()
    return side.outcomes(CASES)


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]
