"""The same requests about configs and producer ids to Kafka's controller and to ours: the same answers and records."""

from typing import Any

import pytest
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ...configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    change_configs,
)
from ...topics import topic
from .conftest import Case, Outcome, Side

pytestmark = pytest.mark.real_kafka

LONG = "v" * 32_767


def create(name: str) -> Case:
    request = CreateTopicsRequest(topics=[topic(name, 1, 1)])
    return Case(f"create {name}", request, 7, True)


def alter(name: str, *resources: Any, version: int = 1, validate_only: bool = False) -> Case:
    """Resources as (type, name, *(operation, key, value))."""
    return Case(f"alter {name}", change_configs(*resources, validate_only=validate_only), version)


def allocate(name: str, broker_id: int, epoch_more: int = 0) -> Case:
    return Case(
        f"allocate {name}",
        lambda side: AllocateProducerIdsRequest(
            broker_id=broker_id, broker_epoch=side.epochs.get(broker_id, 0) + epoch_more
        ),
        0,
    )


CASES = [
    create("plus"),
    alter("nothing"),
    alter("no keys", (TOPIC, "plus")),
    alter("set", (TOPIC, "plus", (SET, "retention.ms", "1000"), (SET, "segment.ms", "5"), (SET, "flush.ms", "4"))),
    alter("set to the same", (TOPIC, "plus", (SET, "retention.ms", "1000"))),
    alter("set null", (TOPIC, "plus", (SET, "retention.ms", None))),
    alter("delete", (TOPIC, "plus", (DELETE, "segment.ms", "ignored"), (DELETE, "never.there", None))),
    alter("append", (TOPIC, "plus", (APPEND, "cleanup.policy", "compact,delete"))),
    alter("append again", (TOPIC, "plus", (APPEND, "cleanup.policy", "compact"))),
    alter("append empty", (TOPIC, "plus", (APPEND, "cleanup.policy", ""))),
    alter("subtract", (TOPIC, "plus", (SUBTRACT, "cleanup.policy", "delete,other"))),
    alter("subtract all", (TOPIC, "plus", (SUBTRACT, "cleanup.policy", "compact"))),
    alter("append to a number", (TOPIC, "plus", (APPEND, "retention.ms", "1"))),
    alter("subtract from an unknown key", (TOPIC, "plus", (SUBTRACT, "no.such", "1"))),
    alter("append to another resource", (CLIENT_METRICS, "cm", (APPEND, "metrics", "a"))),
    alter("append beyond the longest", (BROKER, "1", (SET, "log.cleanup.policy", LONG), (APPEND, "ssl.x", "v"))),
    alter("a long list", (BROKER, "1", (SET, "ssl.cipher.suites", LONG))),
    alter("a list that grows too long", (BROKER, "1", (APPEND, "ssl.cipher.suites", "w"))),
    alter("the same key twice", (TOPIC, "plus", (SET, "retention.ms", "1"), (DELETE, "retention.ms", None))),
    alter("one bad key", (TOPIC, "plus", (SET, "retention.ms", "7"), (SET, "segment.ms", "0"))),
    alter("one bad resource", (TOPIC, "plus", (SET, "flush.ms", "8")), (TOPIC, "ratio?", (SET, "flush.ms", "8"))),
    alter("only validated", (TOPIC, "plus", (SET, "flush.ms", "11")), (TOPIC, "none"), validate_only=True),
    alter("repeated", (TOPIC, "plus", (SET, "flush.ms", "9")), (TOPIC, "plus"), (TOPIC, "plus"), (BROKER, "")),
    alter("unknown types", (0, "a"), (3, "b"), (64, "c"), (-1, "d")),
    alter("broker logger", (BROKER_LOGGER, "x"), (BROKER_LOGGER, "1"), (BROKER_LOGGER, "3000")),
    alter("append to a broker logger", (BROKER_LOGGER, "3000", (APPEND, "root", "INFO"))),
    alter("an operation a broker logger does not know", (BROKER_LOGGER, "3000", (9, "root", "INFO"))),
    alter("topic of no name", (TOPIC, "", (SET, "flush.ms", "1"))),
    alter("topic that is not", (TOPIC, "nowhere", (SET, "flush.ms", "1"))),
    alter("topic that can not be", (TOPIC, "no/where", (SET, "flush.ms", "1"))),
    alter("min.insync.replicas of a topic", (TOPIC, "plus", (SET, "min.insync.replicas", "2"))),
    alter("min.insync.replicas of a broker", (BROKER, "1", (SET, "min.insync.replicas", "2"))),
    alter("min.insync.replicas of all", (BROKER, "", (SET, "min.insync.replicas", "2"))),
    alter("min.insync.replicas of all, deleted", (BROKER, "", (DELETE, "min.insync.replicas", None))),
    create("effective"),
    alter("broker defaults", (BROKER, "", (SET, "log.retention.hours", "2"), (SET, "log.roll.ms", "77"))),
    alter("controller's own", (BROKER, "3000", (SET, "log.retention.minutes", "3"), (SET, "num.io.threads", "9"))),
    create("effective-too"),
    alter("broker, unchanged", (BROKER, "3000", (SET, "num.io.threads", "9"), (DELETE, "not.there", None))),
    alter("broker, unknown key", (BROKER, "2", (SET, "anything.goes", "x"))),
    alter(
        "broker, many keys", (BROKER, "2", *((SET, f"key-{n}-\N{SNOWMAN}\N{GRINNING FACE}", "x") for n in range(60)))
    ),
    alter("broker that is not", (BROKER, "77", (SET, "x", "x"))),
    alter("broker of another name", (BROKER, "one", (SET, "x", "x")), (BROKER, "-1", (SET, "x", "x"))),
    alter("broker named out of range", (BROKER, "2147483648", (SET, "x", "x")), (BROKER, "+1", (SET, "x", "x"))),
    alter("cordoned log dirs", (BROKER, "1", (SET, "cordoned.log.dirs", "/a"))),
    alter("no cordoned log dirs", (BROKER, "1", (SET, "cordoned.log.dirs", " "))),
    alter("cordoned log dirs deleted", (BROKER, "1", (DELETE, "cordoned.log.dirs", None))),
    alter("client metrics", (CLIENT_METRICS, "cm", (SET, "interval.ms", "100"), (SET, "match", "client_id=a.*"))),
    alter("client metrics, too often", (CLIENT_METRICS, "cm", (SET, "interval.ms", "99"))),
    alter("client metrics, no match", (CLIENT_METRICS, "cm", (SET, "match", "client=a"))),
    alter("client metrics, unknown", (CLIENT_METRICS, "cm", (SET, "b.c", "1"))),
    alter("client metrics of no name", (CLIENT_METRICS, "", (SET, "interval.ms", "100"))),
    alter("group", (GROUP, "g", (SET, "consumer.session.timeout.ms", "50000"), (SET, "share.isolation.level", "x"))),
    alter("group, in bounds", (GROUP, "g", (SET, "consumer.session.timeout.ms", "50000"))),
    alter("group, out of bounds", (GROUP, "g", (SET, "consumer.heartbeat.interval.ms", "4999"))),
    alter("group, beyond bounds", (GROUP, "g", (SET, "streams.num.standby.replicas", "3"))),
    alter("group, locks", (GROUP, "g", (SET, "share.partition.max.record.locks", "4001"))),
    alter("group, offsets", (GROUP, "g", (SET, "share.auto.offset.reset", "by_duration:P-1D"))),
    alter("group, good offsets", (GROUP, "g", (SET, "share.auto.offset.reset", "by_duration:PT1H30M"))),
    alter("group, unknown", (GROUP, "g", (SET, "b.c", "1"))),
    alter("group of no name", (GROUP, "", (SET, "share.auto.offset.reset", "latest"))),
    alter("version 0", (TOPIC, "plus", (SET, "retention.ms", "1000")), version=0),
    allocate("the first", 1),
    allocate("the second", 2),
    allocate("fenced", 4),
    allocate("an old epoch", 1, -1),
    allocate("a stranger", 99),
]


def run(side: Side) -> dict[str, Outcome]:
    side.add_five_brokers()
    return side.outcomes(CASES)


@pytest.mark.parametrize("name", [each.name for each in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]


@pytest.mark.parametrize(("operation", "value"), [(9, "x"), (APPEND, None)])
def test_refuses_the_whole_request_where_kafka_breaks(on_both: Any, operation: int, value: str | None) -> None:
    good = (CLIENT_METRICS, "cm", (SET, "interval.ms", "100"))
    broken = (BROKER, "", (operation, "log.cleanup.policy", value))
    asked = alter("", good, broken)
    theirs, ours = on_both(lambda side: to_json(side.ask(asked.request, asked.version), asked.version))
    assert ours == theirs
