"""The same requests about client quotas to Kafka's controller and to ours: the same answers and records."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData

from .conftest import Case, Outcome, Side

pytestmark = pytest.mark.real_kafka

USER, CLIENT, IP = "user", "client-id", "ip"
PRODUCER, CONSUMER, PERCENTAGE, MUTATIONS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
CONNECTIONS = "connection_creation_rate"


def entry(entity: Sequence[tuple[str, str | None]], **changes: float | None) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()],
    )


def alter(name: str, *entries: EntryData, version: int = 1, validate_only: bool = False) -> Case:
    return Case(name, AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), version)


def twice(key: str) -> EntryData:
    asked = entry([(USER, "twice")], **{key: 1})
    asked.ops += [OpData(key=key, value=2.0), OpData(key=key, remove=True)]
    return asked


ANN = [(USER, "ann")]

CASES = [
    alter("nothing"),
    alter("no ops", entry(ANN)),
    alter("a user", entry(ANN, **{PRODUCER: 1024, CONSUMER: 2048, PERCENTAGE: 12.5, MUTATIONS: 0.25})),
    alter("the same", entry(ANN, **{PRODUCER: 1024, CONSUMER: 2049})),
    alter("one removed", entry(ANN, **{CONSUMER: None, PERCENTAGE: 13})),
    alter("what is not there removed", entry(ANN, **{CONSUMER: None, "no.such": None})),
    alter("version 0", entry(ANN, **{CONSUMER: 5}), version=0),
    alter("a client", entry([(CLIENT, "c")], **{CONSUMER: 5})),
    alter("both", entry([(CLIENT, "c"), (USER, "ann")], **{CONSUMER: 5, PRODUCER: 6})),
    alter("both, the other way", entry([(USER, "ann"), (CLIENT, "c")], **{CONSUMER: 5, PRODUCER: 7})),
    alter("defaults", entry([(USER, None)], **{PRODUCER: 1}), entry([(USER, None), (CLIENT, None)], **{PRODUCER: 2})),
    alter("a default client of a user", entry([(USER, "ann"), (CLIENT, None)], **{PRODUCER: 3})),
    alter("an ip", entry([(IP, "10.0.0.1")], **{CONNECTIONS: 9})),
    alter("an ip of six", entry([(IP, "::1")], **{CONNECTIONS: 9}), entry([(IP, "[::2]")], **{CONNECTIONS: 9})),
    *(
        alter(f"the ip {ip}", entry([(IP, ip)], **{CONNECTIONS: 9}))
        for ip in ("127.1", "2130706433", "1.2.3", "01.2.3.4", "1.2.3.256", "1.16777216", "fe80::1%1", "fe80::1%no")
    ),
    alter("a name", entry([(IP, "localhost")], **{CONNECTIONS: 9})),
    alter("the default ip", entry([(IP, None)], **{CONNECTIONS: 10})),
    alter("an ip that is none", entry([(IP, "10.0.0.256")], **{CONNECTIONS: 9})),
    alter("an ip that no name can be", entry([(IP, "no such host!")], **{CONNECTIONS: 9})),
    alter("an ip and a user", entry([(IP, "10.0.0.1"), (USER, "ann")], **{CONNECTIONS: 9})),
    alter("an ip and a client", entry([(CLIENT, "c"), (IP, "10.0.0.1")], **{CONNECTIONS: 9})),
    alter("all three", entry([(CLIENT, "c"), (IP, "10.0.0.1"), (USER, None)], **{CONNECTIONS: 9})),
    alter("an ip's key for a user", entry(ANN, **{CONNECTIONS: 9})),
    alter("a user's key for an ip", entry([(IP, "10.0.0.1")], **{PRODUCER: 9})),
    alter("an unknown key", entry(ANN, **{"no.such": 9})),
    alter("no entity", entry([], **{PRODUCER: 9})),
    alter("an unknown type", entry([("group", "g")], **{PRODUCER: 9})),
    alter("unknown types", entry([("group", "g"), ("topic", ""), (USER, "ann"), ("", "x")], **{PRODUCER: 9})),
    alter("empty names", entry([(USER, "")], **{PRODUCER: 9}), entry([(CLIENT, "")]), entry([(IP, "")])),
    alter("an empty name behind a good one", entry([(USER, "ann"), (CLIENT, "")], **{PRODUCER: 9})),
    alter("a type named twice", entry([(USER, "ann"), (USER, "bob")], **{PRODUCER: 8})),
    alter("a key named twice", twice(PRODUCER)),
    alter("zero", entry(ANN, **{PRODUCER: 0.0}), entry([(USER, "b")], **{PERCENTAGE: -0.0})),
    alter("negative", entry(ANN, **{PRODUCER: -1.0})),
    alter("a fraction", entry(ANN, **{PRODUCER: 1.5}), entry([(IP, "1.1.1.1")], **{CONNECTIONS: 1.5})),
    alter("hardly a fraction", entry(ANN, **{PRODUCER: 3.0000005})),
    alter("the largest", entry(ANN, **{PRODUCER: 2.0**63}), entry([(IP, "1.1.1.1")], **{CONNECTIONS: 2.0**31 - 1})),
    alter("too large", entry(ANN, **{PRODUCER: 2.0**64}), entry([(IP, "1.1.1.1")], **{CONNECTIONS: 2.0**31})),
    alter("endless", entry(ANN, **{PRODUCER: math.inf}), entry([(USER, "b")], **{PERCENTAGE: math.inf})),
    alter("one bad key", entry(ANN, **{PRODUCER: 77, CONSUMER: -1})),
    alter("good and bad entities", entry(ANN, **{PRODUCER: 78}), entry([("group", "g")]), entry([(CLIENT, "d")])),
    alter("an entity twice", entry(ANN, **{PRODUCER: 79}), entry(ANN, **{PRODUCER: 80}), entry(ANN, **{CONSUMER: 1})),
    alter("a pair twice", *[entry([(CLIENT, None), (USER, "ann")], **{PRODUCER: rate}) for rate in (81, 82)]),
    alter("a bad entity twice", entry([("group", "g")]), entry([("group", "g")])),
    alter("only validated", entry(ANN, **{PRODUCER: 83}), entry([("group", "g")]), validate_only=True),
    alter("removed", entry(ANN, **{PRODUCER: None, CONSUMER: None, PERCENTAGE: None, MUTATIONS: None})),
    alter("too many", *[entry([(USER, f"u{number}")], **{PRODUCER: 1}) for number in range(10_001)]),
]


def run(side: Side) -> dict[str, Outcome]:
    side.skip_start()
    return side.outcomes(CASES)


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]
