"""Transactional producers of confluent-kafka and kafka-python with their default settings, on simulated brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller, SyncController
from mockraft.wire import client, error_codes
from mockraft.wire.messages.end_txn_request import EndTxnRequest
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TIMEOUT_S = 60
PARTITIONS = 2
AGAIN = frozenset(
    {
        error_codes.CONCURRENT_TRANSACTIONS,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
    }
)


@pytest.fixture(params=[1, 3])
def cluster(request: pytest.FixtureRequest) -> Iterator[SyncController]:
    """One broker, or three; there are the topics `orders` and `bills`, on all of them."""
    with Controller.sync(brokers=request.param) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        topics = [NewTopic(name, PARTITIONS, request.param) for name in ("orders", "bills")]
        for created in admin.create_topics(topics).values():
            created.result(TIMEOUT_S)
        yield controller


def transactional(cluster: SyncController, **settings: Any) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "cook", **settings})
    producer.init_transactions(TIMEOUT_S)
    return producer


def committed_reader(cluster: SyncController, topic: str, group_id: str = "kitchen") -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def read(consumer: Consumer, count: int) -> list[str]:
    messages = consumer.consume(count, TIMEOUT_S)
    assert [message.error() for message in messages] == [None] * count
    return sorted((message.value() or b"").decode() for message in messages)


def produce(producer: Producer, text: str, topic: str = "orders") -> None:
    """Produce the text to every partition, and wait until it is there."""
    for partition in range(PARTITIONS):
        producer.produce(topic, text.encode(), partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def test_readers_get_committed_transactions_only(cluster: SyncController) -> None:
    producer = transactional(cluster)
    for text, end in (("a", producer.commit_transaction), ("b", producer.abort_transaction)) * 2:
        producer.begin_transaction()
        produce(producer, text)
        end(TIMEOUT_S)
    consumer = committed_reader(cluster, "orders")
    assert read(consumer, 2 * PARTITIONS) == ["a"] * 2 * PARTITIONS
    assert consumer.poll(0.2) is None
    consumer.close()


def test_offsets_are_committed_with_the_records(cluster: SyncController) -> None:
    producer = transactional(cluster)
    producer.begin_transaction()
    produce(producer, "order")
    producer.commit_transaction(TIMEOUT_S)
    consumer = committed_reader(cluster, "orders")
    read(consumer, PARTITIONS)
    partitions = consumer.assignment()

    def transfer() -> dict[int, int]:
        """Write bills in a transaction with the positions; return these by partition."""
        producer.begin_transaction()
        produce(producer, "bill", "bills")
        positions, group = consumer.position(partitions), consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, group, TIMEOUT_S)
        return {each.partition: each.offset for each in positions}

    transfer()
    producer.abort_transaction(TIMEOUT_S)
    assert {each.offset for each in consumer.committed(partitions, TIMEOUT_S)} == {OFFSET_INVALID}
    positions = transfer()
    producer.commit_transaction(TIMEOUT_S)
    assert {each.partition: each.offset for each in consumer.committed(partitions, TIMEOUT_S)} == positions
    bills = committed_reader(cluster, "bills", "bank")
    assert read(bills, PARTITIONS) == ["bill"] * PARTITIONS
    assert bills.poll(0.2) is None
    for each in (consumer, bills):
        each.close()


def test_second_producer_fences_the_first(cluster: SyncController) -> None:
    first = transactional(cluster)
    first.begin_transaction()
    produce(first, "lost")
    second = transactional(cluster)
    second.begin_transaction()
    produce(second, "kept")
    second.commit_transaction(TIMEOUT_S)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(TIMEOUT_S)
    assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    consumer = committed_reader(cluster, "orders")
    assert read(consumer, PARTITIONS) == ["kept"] * PARTITIONS
    consumer.close()


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_kafka_python_commits_and_aborts(cluster: SyncController) -> None:
    from kafka.structs import OffsetAndMetadata

    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as Partition

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="python")
    producer.init_transactions()
    for text, end in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)) * 2:
        producer.begin_transaction()
        producer.send("orders", text, partition=0).get(TIMEOUT_S)
        producer.send_offsets_to_transaction({Partition("bills", 0): OffsetAndMetadata(len(text), "", -1)}, "python")
        end()
    producer.close()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="python",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    assert [next(consumer).value for _ in range(2)] == [b"a", b"a"]
    assert consumer.committed(Partition("bills", 0)) == 1
    consumer.close()


async def test_transactions_of_version_2_follow_each_other_at_once() -> None:
    """The next one begins while the markers of the last are written."""

    async def done(request: Any, version: int, code: Callable[[Any], int]) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            while code(response := await connection.send(request, version=version)) in AGAIN:
                await asyncio.sleep(0.01)
        assert code(response) == error_codes.NONE
        return response

    def code_of(response: Any) -> int:
        return int(response.error_code)

    offsets = TxnOffsetCommitRequestTopic(name="orders", partitions=[TxnOffsetCommitRequestPartition()])
    async with Controller(brokers=1) as controller:
        controller.state.create_topic("orders")
        host, port = controller.bootstrap_servers.split(":")
        connection = await client.connect(host, int(port), client_id="test")
        for kind, name in enumerate(("g", "tx")):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
            await done(request, 4, lambda found: code_of(found.coordinators[0]))
        producer = await done(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 5, code_of)
        for _ in range(20):
            ids = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
            commit = TxnOffsetCommitRequest(transactional_id="tx", group_id="g", topics=[offsets], **ids)
            await done(commit, 5, lambda committed: code_of(committed.topics[0].partitions[0]))
            producer = await done(EndTxnRequest(transactional_id="tx", committed=True, **ids), 5, code_of)
        await connection.close()
