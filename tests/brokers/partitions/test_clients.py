"""kafka-python and confluent-kafka against simulated brokers, alone and in groups, and the errors of producers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest

from ...topics import ask
from ...waiting import until
from .conftest import consume, produce

TEXTS = [f"record {number}" for number in range(100)]


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
async def test_kafka_python_produces_and_consumes(brokers: Any) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as PythonTopicPartition

    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", replicas=3, min_insync_replicas=2)

    def run() -> list[str]:
        with KafkaProducer(bootstrap_servers=brokers.bootstrap, acks="all") as producer:
            sent = [producer.send("orders", text.encode()) for text in TEXTS]
            assert [each.get(10).offset for each in sent] == list(range(len(TEXTS)))
        consumer = KafkaConsumer(bootstrap_servers=brokers.bootstrap, consumer_timeout_ms=10_000)
        try:
            place = PythonTopicPartition("orders", 0)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            texts: list[str] = []
            while len(texts) < len(TEXTS):
                texts.append(next(consumer).value.decode())
            assert consumer.beginning_offsets([place]) == {place: 0}
            assert consumer.end_offsets([place]) == {place: len(TEXTS)}
            return texts
        finally:
            consumer.close()

    assert await asyncio.to_thread(run) == TEXTS


async def test_records_of_each_codec_and_acks_come_back_as_they_went(brokers: Any) -> None:
    await brokers.start(1, 2)
    kinds: list[dict[str, Any]] = [
        *({"compression_type": codec} for codec in ("gzip", "snappy", "lz4", "zstd")),
        {"acks": "0"},
        {"acks": "1"},
    ]
    for number, kind in enumerate(kinds):
        await brokers.create_topic(f"orders-{number}", replicas=2)

        await produce(brokers, f"orders-{number}", TEXTS, **kind)

        assert await consume(brokers, f"orders-{number}", len(TEXTS)) == TEXTS, kind


async def test_an_idempotent_producer_writes_each_record_once(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    key = await brokers.create_topic("orders", assigned=[1, 2, 3], min_insync_replicas=2)

    async def leader_dies() -> None:
        await until(lambda: brokers.running[1].logs.log(key).end_offset > 100)
        await brokers.kill(1)

    texts = [f"record {number}" for number in range(3000)]
    acknowledged, _ = await asyncio.gather(
        produce(brokers, "orders", texts, enable_idempotence=True, batch_num_messages=20), leader_dies()
    )
    assert acknowledged == texts
    assert await consume(brokers, "orders", len(texts)) == texts


async def refusal(brokers: Any, value: bytes = b"x", **config: Any) -> int:
    """The error code that a producer is told for one record."""

    def run() -> int:
        result: list[KafkaError] = []
        settings = {key.replace("_", "."): setting for key, setting in config.items()}
        producer = Producer({"bootstrap.servers": brokers.bootstrap, **settings})
        producer.produce("orders", value, on_delivery=lambda error, _: result.append(error) if error else None)
        producer.flush(10)
        return result[0].code()

    return await asyncio.to_thread(run)


async def test_too_few_replicas_in_sync_refuse_acks_all_alone(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2], min_insync_replicas=2)
    await brokers.kill(2)
    await brokers.isr("orders", 1)
    assert await refusal(brokers, acks="all", retries=0) == KafkaError.NOT_ENOUGH_REPLICAS
    assert await produce(brokers, "orders", ["with acks=1"], acks="1") == ["with acks=1"]


async def test_isr_below_the_minimum_after_the_append_is_reported(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2], min_insync_replicas=2)
    brokers.running[2].replicas.stick()
    code = await refusal(brokers, acks="all", retries=0, request_timeout_ms=1500)
    # Kafka 4: below min.insync.replicas the high watermark stands, so that the time runs out.
    assert code in (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT)
    leader = await brokers.isr("orders", 1)
    assert (leader.log.end_offset, leader.log.high_watermark) == (1, 0)


async def test_a_record_that_is_too_large_is_refused(brokers: Any) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders", max_message_bytes=1000)
    assert await refusal(brokers, b"x" * 2000) == KafkaError.MSG_SIZE_TOO_LARGE


async def test_offsets_are_found_by_time(brokers: Any) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders")
    base_ms = int(time.time() * 1000)

    def run() -> list[int]:
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "linger.ms": 50})
        for number in range(10):
            producer.produce("orders", b"x", timestamp=base_ms + number * 100)
        producer.flush(10)
        consumer = Consumer({"bootstrap.servers": brokers.bootstrap, "group.id": "none"})
        try:
            asked = [base_ms - 5, base_ms, base_ms + 101, base_ms + 900, base_ms + 901]
            return [consumer.offsets_for_times([TopicPartition("orders", 0, at)], 10)[0].offset for at in asked]
        finally:
            consumer.close()

    assert await asyncio.to_thread(run) == [0, 0, 2, 9, -1]


GROUP_TEXTS = [f"record {number}" for number in range(40)]


def consumer(brokers: Any, group: str, **config: Any) -> Consumer:
    usual = {"bootstrap.servers": brokers.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**usual, "session.timeout.ms": 6000, "heartbeat.interval.ms": 200, **config})


async def test_group_resumes_at_its_committed_offsets(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", partitions=2, replicas=3)
    await produce(brokers, "orders", GROUP_TEXTS[:20])

    def run(count: int) -> list[str]:
        reader = consumer(brokers, "g")
        reader.subscribe(["orders"])
        texts: list[str] = []
        while len(texts) < count:
            texts += [(message.value() or b"").decode() for message in reader.consume(count - len(texts), 10)]
        reader.close()
        return texts

    assert sorted(await asyncio.to_thread(run, 20)) == sorted(GROUP_TEXTS[:20])
    await produce(brokers, "orders", GROUP_TEXTS[20:])
    assert sorted(await asyncio.to_thread(run, 20)) == sorted(GROUP_TEXTS[20:])


async def test_administrator_sees_and_deletes_groups(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders")

    def run() -> None:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        readers = {name: consumer(brokers, name) for name in ("a", "b", "c")}
        for reader in readers.values():
            reader.subscribe(["orders"])
        for _ in range(200):
            for reader in readers.values():
                reader.poll(0.02)
            if all(reader.assignment() for reader in readers.values()):
                break
        assert {group.group_id for group in admin.list_consumer_groups().result(10).valid} == set(readers)
        described = admin.describe_consumer_groups(["a"])["a"].result(10)
        assert described.state is ConsumerGroupState.STABLE
        (member,) = described.members
        assert member.assignment.topic_partitions == [TopicPartition("orders", 0)]
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups(["a"])["a"].result(10)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
        for reader in readers.values():
            reader.close()
        admin.delete_consumer_groups(["a"])["a"].result(10)
        assert {group.group_id for group in admin.list_consumer_groups().result(10).valid} == {"b", "c"}

    await asyncio.to_thread(run)


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
    await produce(brokers, "orders", GROUP_TEXTS)

    def run() -> list[str]:
        reader = KafkaConsumer(
            "orders", bootstrap_servers=brokers.bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        try:
            return [next(reader).value.decode() for _ in GROUP_TEXTS]
        finally:
            reader.close()

    assert await asyncio.to_thread(run) == GROUP_TEXTS


async def coordinator(brokers: Any, group_id: str = "g") -> int:
    """The broker that coordinates a group, once it does."""
    await ask(brokers.running[1].listener.bootstrap, FindCoordinatorRequest(coordinator_keys=[group_id]), 6)

    def found() -> int | None:
        for broker_id, broker in brokers.running.items():
            log = broker.node.coordinators.groups.log
            if log.leader_of(group_id) == broker_id and log.is_loaded(log.partition_of(group_id)):
                return int(broker_id)
        return None

    return await until(found)


async def test_every_broker_names_the_same_coordinator(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    await coordinator(brokers)
    for version in range(7):
        request = FindCoordinatorRequest(
            key="" if version >= 4 else "g", coordinator_keys=["g"] if version >= 4 else []
        )

        found = [await ask(brokers.running[each].listener.bootstrap, request, version) for each in (1, 2, 3)]

        result = [each.coordinators[0] if version >= 4 else each for each in found]
        assert {each.error_code for each in result} == {0}
        assert len({(each.node_id, each.port) for each in result}) == 1
