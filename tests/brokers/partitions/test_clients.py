"""kafka-python and confluent-kafka against simulated brokers, and the errors of producers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

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


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_records_come_back_as_they_went(brokers: Any, codec: str) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", replicas=2)
    await produce(brokers, "orders", TEXTS, compression_type=codec)
    assert await consume(brokers, "orders", len(TEXTS)) == TEXTS


@pytest.mark.parametrize("acks", ["0", "1"])
async def test_records_need_not_be_waited_for(brokers: Any, acks: str) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders")
    await produce(brokers, "orders", TEXTS, acks=acks)
    assert await consume(brokers, "orders", len(TEXTS)) == TEXTS


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


async def test_too_few_replicas_in_sync_refuse_acks_all_alone(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2], min_insync_replicas=2)
    await brokers.kill(2)
    await brokers.isr("orders", 1)

    def run() -> KafkaError:
        told: list[KafkaError] = []
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "retries": 0})
        producer.produce("orders", b"x", on_delivery=lambda error, _: told.append(error) if error else None)
        producer.flush(10)
        return told[0]

    assert (await asyncio.to_thread(run)).code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert await produce(brokers, "orders", ["with acks=1"], acks="1") == ["with acks=1"]


async def test_isr_below_the_minimum_after_the_append_is_reported(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2], min_insync_replicas=2)
    brokers.running[2].replicas.stick()

    def run() -> KafkaError:
        told: list[KafkaError] = []
        settings = {"bootstrap.servers": brokers.bootstrap, "acks": "all", "retries": 0, "request.timeout.ms": 1500}
        producer = Producer(settings)
        producer.produce("orders", b"x", on_delivery=lambda error, _: told.append(error) if error else None)
        producer.flush(10)
        return told[0]

    error = await asyncio.to_thread(run)
    # Kafka 4: below min.insync.replicas the high watermark stands, so that the time runs out.
    assert error.code() in (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT)
    leader = await brokers.isr("orders", 1)
    assert (leader.log.end_offset, leader.log.high_watermark) == (1, 0)


async def test_a_record_that_is_too_large_is_refused(brokers: Any) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders", max_message_bytes=1000)

    def run() -> KafkaError:
        told: list[KafkaError] = []
        producer = Producer({"bootstrap.servers": brokers.bootstrap})
        producer.produce("orders", b"x" * 2000, on_delivery=lambda error, _: told.append(error) if error else None)
        producer.flush(10)
        return told[0]

    assert (await asyncio.to_thread(run)).code() == KafkaError.MSG_SIZE_TOO_LARGE


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


async def test_transactional_producer_is_refused_at_once(brokers: Any) -> None:
    await brokers.start(1)

    def run() -> KafkaError:
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "transactional.id": "t"})
        with pytest.raises(KafkaException) as refused:
            producer.init_transactions(10)
        error: KafkaError = refused.value.args[0]
        return error

    assert (await asyncio.to_thread(run)).fatal()
