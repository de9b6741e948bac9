"""Clients that subscribe: confluent-kafka and kafka-python in groups on simulated brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import Consumer
from mockraft.wire import error_codes
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

from ...topics import ask
from .conftest import produce

TEXTS = [f"record {number}" for number in range(40)]


def consumer(brokers: Any, group: str, **config: Any) -> Consumer:
    usual = {"bootstrap.servers": brokers.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**usual, "session.timeout.ms": 6000, "heartbeat.interval.ms": 200, **config})


async def test_group_resumes_at_its_committed_offsets(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", partitions=2, replicas=3)
    await produce(brokers, "orders", TEXTS[:20])

    def run(count: int) -> list[str]:
        reader = consumer(brokers, "g")
        reader.subscribe(["orders"])
        texts: list[str] = []
        while len(texts) < count:
            texts += [(message.value() or b"").decode() for message in reader.consume(count - len(texts), 10)]
        reader.close()
        return texts

    assert sorted(await asyncio.to_thread(run, 20)) == sorted(TEXTS[:20])
    await produce(brokers, "orders", TEXTS[20:])
    assert sorted(await asyncio.to_thread(run, 20)) == sorted(TEXTS[20:])


async def test_two_members_share_the_partitions_and_one_takes_over(brokers: Any) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders", partitions=4)

    def run() -> tuple[set[int], set[int], set[int]]:
        first, second = consumer(brokers, "g"), consumer(brokers, "g")
        first.subscribe(["orders"])
        second.subscribe(["orders"])

        def owned(reader: Consumer) -> set[int]:
            return {each.partition for each in reader.assignment()}

        for _ in range(200):
            first.poll(0.05)
            second.poll(0.05)
            if len(owned(first)) == len(owned(second)) == 2:
                break
        shared = (owned(first), owned(second))
        second.close()
        for _ in range(200):
            first.poll(0.05)
            if len(owned(first)) == 4:
                break
        alone = owned(first)
        first.close()
        return (*shared, alone)

    first, second, alone = await asyncio.to_thread(run)
    assert first | second == alone == {0, 1, 2, 3}
    assert not first & second


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
async def test_kafka_python_subscribes(brokers: Any) -> None:
    from kafka import KafkaConsumer

    await brokers.start(1, 2)
    await brokers.create_topic("orders", replicas=2)
    await produce(brokers, "orders", TEXTS)

    def run() -> list[str]:
        reader = KafkaConsumer(
            "orders", bootstrap_servers=brokers.bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        try:
            return [next(reader).value.decode() for _ in TEXTS]
        finally:
            reader.close()

    assert await asyncio.to_thread(run) == TEXTS


@pytest.mark.parametrize("version", range(7))
async def test_every_broker_names_the_same_coordinator(brokers: Any, version: int) -> None:
    await brokers.start(1, 2, 3)
    request = FindCoordinatorRequest(key="" if version >= 4 else "g", coordinator_keys=["g"] if version >= 4 else [])
    found = [await ask(brokers.running[broker_id].listener.bootstrap, request, version) for broker_id in (1, 2, 3)]
    told = [each.coordinators[0] if version >= 4 else each for each in found]
    assert {each.error_code for each in told} == {0}
    assert len({(each.node_id, each.port) for each in told}) == 1


@pytest.mark.parametrize(
    ("key_type", "error_code"),
    [(1, error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (2, error_codes.INVALID_REQUEST)],
)
async def test_only_consumer_groups_have_a_coordinator(brokers: Any, key_type: int, error_code: int) -> None:
    await brokers.start(1)
    response = await ask(
        brokers.running[1].listener.bootstrap, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["t"]), 6
    )
    assert response.coordinators[0].error_code == error_code


async def test_offsets_are_committed_and_fetched_by_topic_id(brokers: Any) -> None:
    await brokers.start(1)
    topic_id, _ = await brokers.create_topic("orders")
    ids = [topic_id, bytes(16)]
    committing = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                topic_id=each, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
            )
            for each in ids
        ],
    )
    committed = await ask(brokers.running[1].listener.bootstrap, committing, 10)
    assert [topic.partitions[0].error_code for topic in committed.topics] == [0, error_codes.UNKNOWN_TOPIC_ID]
    topics = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids]
    fetched = await ask(
        brokers.running[1].listener.bootstrap,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]),
        10,
    )
    found = {topic.topic_id: topic.partitions[0] for topic in fetched.groups[0].topics}
    assert (found[topic_id].committed_offset, found[topic_id].error_code) == (7, 0)
    assert found[bytes(16)].error_code == error_codes.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(1, 10))
async def test_group_without_commits_has_no_offsets(brokers: Any, version: int) -> None:
    await brokers.start(1)
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])])
    if version >= 8:
        topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    response = await ask(brokers.running[1].listener.bootstrap, request, version)
    topic = response.groups[0].topics[0] if version >= 8 else response.topics[0]
    assert (topic.partitions[0].committed_offset, topic.partitions[0].error_code) == (-1, 0)


async def test_broker_that_does_not_coordinate_refuses_with_not_coordinator(brokers: Any) -> None:
    await brokers.start(1, 2)
    found = await ask(brokers.running[1].listener.bootstrap, FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    other = 3 - found.coordinators[0].node_id
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    response = await ask(brokers.running[other].listener.bootstrap, request, 9)
    assert response.groups[0].error_code == error_codes.NOT_COORDINATOR
