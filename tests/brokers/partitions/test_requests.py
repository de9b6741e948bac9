"""Data requests as they are on the wire: what each is answered, version by version, right and wrong."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mockraft.wire import client, error_codes, record_batch
from mockraft.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

from ...topics import ask as ask_at
from ...waiting import until

Ask = Callable[..., Awaitable[Any]]
BATCH = record_batch.encode([b"a", b"b"], base_offset=0, leader_epoch=-1, timestamp_ms=1_000)


@pytest.fixture
async def topic_id(brokers: Any) -> bytes:
    """Topic `orders` on brokers 1 (which leads) and 2."""
    await brokers.start(1, 2)
    key = await brokers.create_topic("orders", assigned=[1, 2])
    return bytes(key[0])


@pytest.fixture
def ask(brokers: Any, topic_id: bytes) -> Ask:
    """`ask(request, version, broker_id=1)` over a connection of its own."""

    async def run(request: Any, version: int | None = None, broker_id: int = 1) -> Any:
        return await ask_at(brokers.running[broker_id].listener.bootstrap, request, version, request_timeout_ms=8_000)

    return run


def produced(topic_id: bytes, records: bytes = BATCH, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name="orders", topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=3_000, topic_data=[topic])


def fetch(topic_id: bytes, offset: int = 0, **fields: Any) -> FetchRequest:
    whole: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    for name in list(fields):
        if name in ("max_wait_ms", "min_bytes", "session_id", "session_epoch", "replica_state", "max_bytes"):
            whole[name] = fields.pop(name)
    asked = FetchPartition(**{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields})
    return FetchRequest(**whole, topics=[FetchTopic(topic="orders", topic_id=topic_id, partitions=[asked])])


def with_producer(producer_id: int, epoch: int, sequence: int) -> bytes:
    """BATCH of an idempotent producer."""
    from crc32c import crc32c

    batch = bytearray(BATCH)
    struct.pack_into(">qhi", batch, 43, producer_id, epoch, sequence)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def answered(response: Any) -> Any:
    """The one partition of an answer."""
    topic = (response.responses if hasattr(response, "responses") else response.topics)[0]
    return (topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions)[0]


@pytest.mark.parametrize("version", range(3, 14))
async def test_produce_in_every_version(ask: Ask, topic_id: bytes, version: int) -> None:
    first = answered(await ask(produced(topic_id), version))
    second = answered(await ask(produced(topic_id), version))
    assert [(each.error_code, each.base_offset) for each in (first, second)] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("version", range(4, 19))
async def test_fetch_in_every_version(ask: Ask, topic_id: bytes, version: int) -> None:
    await ask(produced(topic_id))
    found = answered(await ask(fetch(topic_id), version))
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 2, 2)
    (batch,) = record_batch.read_batches(found.records)
    assert [value for _, value in batch.records] == [b"a", b"b"]
    assert (batch.base_offset, batch.leader_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (b"", error_codes.INVALID_RECORD),
        (BATCH + BATCH, error_codes.INVALID_RECORD),
        (BATCH[:40], error_codes.INVALID_RECORD),
        (BATCH[:-1] + b"\xff", error_codes.CORRUPT_MESSAGE),
    ],
    ids=["nothing", "two batches", "half a batch", "wrong CRC"],
)
async def test_invalid_batch_is_refused_and_not_written(
    brokers: Any, ask: Ask, topic_id: bytes, records: bytes, expected: int
) -> None:
    assert answered(await ask(produced(topic_id, records))).error_code == expected
    assert brokers.leader("orders").log.end_offset == 0


async def test_non_leader_is_refused_with_the_current_leader(ask: Ask, topic_id: bytes) -> None:
    response = await ask(produced(topic_id), broker_id=2)
    refused = answered(response)
    assert (refused.error_code, refused.base_offset) == (error_codes.NOT_LEADER_OR_FOLLOWER, -1)
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (1, 0)
    assert [node.node_id for node in response.node_endpoints] == [1]
    refused = answered(await ask(fetch(topic_id), 10, broker_id=2))
    assert refused.error_code == error_codes.NOT_LEADER_OR_FOLLOWER


async def test_follower_serves_consumers_up_to_its_high_watermark(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id))
    await until(lambda: brokers.hosted(2, "orders").log.high_watermark == 2)
    assert answered(await ask(fetch(topic_id), 12, broker_id=2)).records


async def test_topics_and_partitions_that_are_not_there(ask: Ask, topic_id: bytes) -> None:
    unknown = bytes(16)
    assert answered(await ask(produced(unknown), 13)).error_code == error_codes.UNKNOWN_TOPIC_ID
    assert answered(await ask(produced(topic_id, partition=7), 13)).error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert answered(await ask(fetch(unknown), 13)).error_code == error_codes.UNKNOWN_TOPIC_ID
    found = answered(await ask(fetch(topic_id, partition=7), 12))
    assert found.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION


async def test_acks_that_do_not_exist_are_refused(ask: Ask, topic_id: bytes) -> None:
    assert answered(await ask(produced(topic_id, acks=2))).error_code == error_codes.INVALID_REQUIRED_ACKS


async def test_a_failure_with_acks_0_closes_the_connection(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    with pytest.raises(client.DisconnectedError):
        await ask(produced(topic_id, b"", acks=0))
    assert "acks=0" in brokers.running[1].listener.clients.closings[-1]


async def test_acks_all_times_out_while_a_follower_is_stuck(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    brokers.running[2].replicas.stick()
    request = produced(topic_id)
    request.timeout_ms = 100
    assert answered(await ask(request)).error_code == error_codes.REQUEST_TIMED_OUT


async def test_a_batch_that_is_sent_twice_is_written_once(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    offsets = [
        answered(await ask(produced(topic_id, with_producer(9, 0, sequence)))).base_offset for sequence in (0, 2, 0, 2)
    ]
    assert offsets == [0, 2, 0, 2]
    assert brokers.leader("orders").log.end_offset == 4
    gap = answered(await ask(produced(topic_id, with_producer(9, 0, 6))))
    assert gap.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_promoted_follower_has_the_producer_state(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id, with_producer(9, 0, 0)))
    await brokers.kill(1)
    await until(lambda: (leader := brokers.leader("orders")) and leader.state.broker_id == 2)
    assert answered(await ask(produced(topic_id, with_producer(9, 0, 0)), broker_id=2)).base_offset == 0


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, 0), (0, 0), (1, error_codes.UNKNOWN_LEADER_EPOCH)], ids=["none", "ours", "newer"]
)
async def test_fetch_with_a_wrong_leader_epoch_is_refused(ask: Ask, topic_id: bytes, epoch: int, expected: int) -> None:
    await ask(produced(topic_id))
    assert answered(await ask(fetch(topic_id, current_leader_epoch=epoch))).error_code == expected


@pytest.mark.parametrize("offset", [-1, 3])
async def test_an_offset_outside_the_log_is_out_of_range(ask: Ask, topic_id: bytes, offset: int) -> None:
    await ask(produced(topic_id))
    found = answered(await ask(fetch(topic_id, offset)))
    assert (found.error_code, found.high_watermark, found.records) == (error_codes.OFFSET_OUT_OF_RANGE, -1, b"")


async def test_diverging_log_is_answered_with_the_diverging_epoch(ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id))
    found = answered(await ask(fetch(topic_id, 9, last_fetched_epoch=0)))
    assert (found.error_code, found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 0, 2)
    assert found.records == b""
    newer = answered(await ask(fetch(topic_id, 2, last_fetched_epoch=5)))
    assert newer.error_code == error_codes.OFFSET_OUT_OF_RANGE


async def test_a_replica_that_is_not_assigned_may_not_fetch(ask: Ask, topic_id: bytes) -> None:
    stranger = ReplicaState(replica_id=3, replica_epoch=1)
    found = answered(await ask(fetch(topic_id, current_leader_epoch=0, replica_state=stranger)))
    assert found.error_code == error_codes.UNKNOWN_LEADER_EPOCH


async def test_no_fetch_session_is_made(ask: Ask, topic_id: bytes) -> None:
    assert (await ask(fetch(topic_id, session_id=0, session_epoch=0))).session_id == 0
    response = await ask(fetch(topic_id, session_id=5, session_epoch=3))
    assert response.error_code == error_codes.FETCH_SESSION_ID_NOT_FOUND


async def test_first_batch_is_returned_whole_whatever_max_bytes_is(ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id))
    await ask(produced(topic_id))
    assert len(answered(await ask(fetch(topic_id, partition_max_bytes=1))).records) == len(BATCH)
    assert len(answered(await ask(fetch(topic_id, max_bytes=1))).records) == len(BATCH)


async def test_only_one_batch_of_many_partitions_is_returned_with_zero_max_bytes(ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id))
    request = fetch(topic_id, max_bytes=0)
    request.topics[0].partitions *= 3
    partitions = (await ask(request)).responses[0].partitions
    assert [len(partition.records) for partition in partitions] == [len(BATCH), 0, 0]


async def test_a_fetch_waits_until_there_is_something(ask: Ask, topic_id: bytes) -> None:
    import asyncio

    waiting = asyncio.ensure_future(ask(fetch(topic_id, max_wait_ms=6_000)))
    await asyncio.sleep(0)
    await ask(produced(topic_id))
    assert len(answered(await waiting).records) == len(BATCH)


def offsets(timestamp: int, *, replica_id: int = -1, epoch: int = -1, partition: int = 0) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name="orders", partitions=[asked])])


@pytest.mark.parametrize(
    ("timestamp", "offset", "time_ms"),
    [(-1, 4, -1), (-2, 0, -1), (-3, 2, 5_000), (-4, 0, -1), (0, 0, 1_000), (1_001, 2, 5_000), (5_001, -1, -1)],
)
async def test_list_offsets(ask: Ask, topic_id: bytes, timestamp: int, offset: int, time_ms: int) -> None:
    later = record_batch.encode([b"c", b"d"], base_offset=0, leader_epoch=-1, timestamp_ms=5_000)
    await ask(produced(topic_id))
    await ask(produced(topic_id, later))
    found = answered(await ask(offsets(timestamp)))
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, time_ms)
    assert found.leader_epoch == (0 if offset >= 0 else -1)


@pytest.mark.parametrize("version", range(1, 12))
async def test_list_offsets_in_every_version(ask: Ask, topic_id: bytes, version: int) -> None:
    await ask(produced(topic_id))
    assert answered(await ask(offsets(-1), version)).offset == 2


async def test_list_offsets_refuses_invalid_requests(ask: Ask, topic_id: bytes) -> None:
    assert answered(await ask(offsets(-1, epoch=3))).error_code == error_codes.UNKNOWN_LEADER_EPOCH
    assert answered(await ask(offsets(-1), broker_id=2)).error_code == error_codes.NOT_LEADER_OR_FOLLOWER
    assert answered(await ask(offsets(-1, partition=4))).error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_end_of_a_leader_epoch(ask: Ask, topic_id: bytes, version: int) -> None:
    await ask(produced(topic_id))

    def asked(epoch: int) -> OffsetForLeaderEpochRequest:
        partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        return OffsetForLeaderEpochRequest(
            replica_id=-1 if version >= 3 else -2, topics=[OffsetForLeaderTopic(topic="orders", partitions=[partition])]
        )

    known = answered(await ask(asked(0), version))
    newer = answered(await ask(asked(4), version))
    assert (known.error_code, known.leader_epoch, known.end_offset) == (0, 0, 2)
    assert (newer.error_code, newer.leader_epoch, newer.end_offset) == (0, -1, -1)


async def test_producer_ids_are_never_given_twice(ask: Ask) -> None:
    given = [(await ask(InitProducerIdRequest(transactional_id=None), broker_id=each)) for each in (1, 2, 1, 2)]
    assert [each.error_code for each in given] == [0, 0, 0, 0]
    assert len({each.producer_id for each in given}) == 4
    refused = await ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1))
    assert (refused.error_code, refused.producer_id) == (error_codes.INVALID_REQUEST, -1)


async def test_records_are_deleted_on_every_replica(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    def asked(offset: int) -> DeleteRecordsRequest:
        topic = DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        return DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)

    await ask(produced(topic_id))
    await ask(produced(topic_id))
    assert answered(await ask(asked(9))).error_code == error_codes.OFFSET_OUT_OF_RANGE
    deleted = answered(await ask(asked(2)))
    assert (deleted.error_code, deleted.low_watermark) == (0, 2)
    assert [brokers.hosted(each, "orders").log.start_offset for each in (1, 2)] == [2, 2]
    assert answered(await ask(fetch(topic_id, 1))).error_code == error_codes.OFFSET_OUT_OF_RANGE
    assert answered(await ask(asked(-1))).low_watermark == 4


async def test_a_failed_directory_is_a_storage_error_until_another_leads(
    brokers: Any, ask: Ask, topic_id: bytes
) -> None:
    brokers.running[1].replicas.hosted((topic_id, 0))._find_log = lambda _key: None
    for request in (produced(topic_id), fetch(topic_id), offsets(-1)):
        assert answered(await ask(request)).error_code == error_codes.KAFKA_STORAGE_ERROR
