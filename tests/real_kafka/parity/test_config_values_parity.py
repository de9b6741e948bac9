"""Thousands of config values, most of them odd, for every key: accepted or refused in the same words."""

import random
from functools import partial
from typing import Any

import pytest
from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, CLIENT_METRICS, GROUP, TOPIC
from mockraft.releases import release
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from .conftest import COMPARED

pytestmark = pytest.mark.real_kafka

BLANK_SEPARATED_VALUES = """
0 1 -1 -2 5 +5 + - 7.0 1e3 0.5 .5 1. 1.5f 0.1 1.00001 NaN Infinity -Infinity 1e400 -1e-400 12345678.9 1e-5
0.9999999999999999999 9223372036854775807 9223372036854775808 -9223372036854775808 2147483647 2147483648
1048575 1048576 22 23 -131073 17 18 99 100 3600000 3600001 1000 15000 30000 45000 60000 60001 100000 true
false TRUE yes 0:1 0:1,1:2 * *,* 0:1,,1:2 0:1,* delete compact compact,delete compact,compact Delete ,
compact, ,compact none gzip zstd snappy producer uncompressed lz4 GZIP CreateTime LogAppendTime latest
earliest read_committed by_duration:PT1S by_duration:P1D by_duration:PT-1S by_duration:-PT-1S
by_duration:P1DT1H1M1.5S by_duration:PT by_duration:P1Y by_duration:pt5m by_duration:+P1D by_duration:P-1D
by_duration:PT.5S by_duration:PT1,5S by_duration:PT1.1234567890S a a=b client_id=a client_id=a=b client_id==a
client_id= client_id=[ client_id=a,client_software_name=b = sticky highly_available __dead dead
"""
VALUES = [*BLANK_SEPARATED_VALUES.split(), "", " ", " 7 ", "\t8", "\u00a09", "\u0663", " 0:1 , 1:2 ", "client_id = x "]
Keys = dict[int, list[str]]


def keys_of(kafka_version: str) -> Keys:
    of = release(kafka_version)
    keys = {kind: [*config_keys.keys(kind, of), "no.such"] for kind in (TOPIC, GROUP, CLIENT_METRICS)}
    return keys | {BROKER: [name for name, key in config_keys.keys(BROKER, of).items() if key.type == "LIST"]}


def topics(keys: Keys, rng: random.Random) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        validate_only=True,
        topics=[
            CreatableTopic(
                name=f"t{number}",
                num_partitions=1,
                replication_factor=1,
                configs=[
                    CreatableTopicConfig(name=rng.choice(keys[TOPIC]), value=rng.choice(VALUES))
                    for _ in range(rng.choice((1, 1, 1, 2, 3)))
                ],
            )
            for number in range(25)
        ],
    )


def resources(keys: Keys, rng: random.Random) -> IncrementalAlterConfigsRequest:
    kinds = [rng.choice((GROUP, CLIENT_METRICS)) for _ in range(15)]
    return IncrementalAlterConfigsRequest(
        resources=[resource(keys, rng, kind, f"r{n}", (0, 0, 0, 1)) for n, kind in enumerate(kinds)]
        + [resource(keys, rng, BROKER, "1", (0, 1, 2, 2, 3))]
    )


def resource(keys: Keys, rng: random.Random, kind: int, name: str, operations: tuple[int, ...]) -> AlterConfigsResource:
    changes = [
        AlterableConfig(name=rng.choice(keys[kind]), config_operation=rng.choice(operations), value=rng.choice(VALUES))
        for _ in range(rng.choice((1, 2)))
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)


def run(keys: Keys, side: Any) -> list[Any]:
    rng = random.Random(5)
    side.add_broker(1)
    side.new_records()
    answers: list[Any] = []
    for _ in range(100):
        asked = topics(keys, rng)
        result = {each.name: (each.error_code, each.error_message) for each in side.ask(asked, 4).topics}
        answers += [(topic, result[topic.name]) for topic in asked.topics]
    for _ in range(100):
        request = resources(keys, rng)
        outcome = side.outcome(request, 1)
        # Kafka keeps resources in a map by their identity: of several, the order is its own.
        answers.append((request, outcome.answer, sorted(map(str, outcome.records))))
    return answers


@pytest.mark.parametrize("kafka_version", COMPARED)
def test_values_are_accepted_or_refused_with_the_same_message(on_both: Any, kafka_version: str) -> None:
    theirs, ours = on_both(partial(run, keys_of(kafka_version)), kafka_version=kafka_version)
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == []
