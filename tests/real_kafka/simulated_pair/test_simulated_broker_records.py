"""A real broker and a simulated one are asked the same about records, each about a topic of its own."""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from base64 import b64decode
from contextlib import nullcontext
from typing import Any

import pytest
from crc32c import crc32c
from mockraft.brokers.partitions.hosted import whole_batches
from mockraft.wire import error_codes, json_form, record_batch
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

from ...bombs import CODECS, EMPTY_RECORD, compressed_batch, record_of_zeros
from ...topics import assigned

pytestmark = pytest.mark.real_kafka

REAL, SIMULATED = 1, 2
SAID_OTHERWISE = {"errorMessage", "recordErrors", "throttleTimeMs", "currentLeader", "nodeEndpoints", "sessionId"}
_names = itertools.count()


def time_now_ms() -> int:
    """The time of a test's records: Kafka deletes what is older than a topic's retention."""
    return time.time_ns() // 1_000_000


def batch(*values: bytes, time_ms: int | None = None, **header: tuple[str, int, int]) -> bytes:
    """A producer's batch, of now unless told; `header` fields are (struct format, position, value)."""
    time_ms = time_now_ms() if time_ms is None else time_ms
    made = bytearray(record_batch.encode(values, base_offset=0, leader_epoch=-1, timestamp_ms=time_ms))
    for form, position, value in header.values():
        struct.pack_into(form, made, position, value)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return bytes(made)


def of_producer(producer_id: int, epoch: int, sequence: int) -> bytes:
    return batch(b"x", a=(">q", 43, producer_id), b=(">h", 51, epoch), c=(">i", 53, sequence))


class Topics:
    """One topic on each of the two brokers, and the same questions to both."""

    def __init__(self, pair: Any, names: dict[int, str], ids: dict[int, bytes]) -> None:
        self.pair = pair
        self.names = names
        self.ids = ids

    async def expect_same(self, make: Any, version: int) -> Any:
        """The equal answer of both to `make(topic name, topic id)`; fails on a difference."""
        answers = {}
        for which in (REAL, SIMULATED):
            response = await self.pair.ask(which, make(self.names[which], self.ids[which]), version)
            answers[which] = _neutral(json_form.to_json(response, version))
        assert self.pair.difference(answers[SIMULATED], answers[REAL]) == []
        return answers[REAL]

    async def expect_same_produced(
        self, records: bytes, version: int = 13, *, acks: int = -1, partition: int = 0
    ) -> Any:
        def make(name: str, topic_id: bytes) -> ProduceRequest:
            data = PartitionProduceData(index=partition, records=records)
            topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])
            return ProduceRequest(acks=acks, timeout_ms=3000, topic_data=[topic])

        return await self.expect_same(make, version)


def _neutral(tree: Any) -> Any:
    """Without names, ids and words, and without the half batch that a real broker gives where the bytes end."""
    if isinstance(tree, dict):
        named = {"name", "topic", "topicId"}
        if isinstance(tree.get("records"), str):
            tree["records"] = whole_batches(b64decode(tree["records"]), 1 << 30).hex()
        return {key: _neutral(value) for key, value in tree.items() if key not in SAID_OTHERWISE | named}
    return [_neutral(each) for each in tree] if isinstance(tree, list) else tree


@pytest.fixture
async def topics(pair: Any) -> Topics:
    number = next(_names)
    names = {which: f"records-{number}-{which}" for which in (REAL, SIMULATED)}
    request = CreateTopicsRequest(
        timeout_ms=10_000, topics=[assigned(name, [which], max_message_bytes="2000") for which, name in names.items()]
    )
    created = await pair.ask(SIMULATED, request)
    # The cluster's quota for everyone would have the real broker answer with nothing.
    entity = EntityData(entity_type="client-id", entity_name="test")
    ample = EntryData(entity=[entity], ops=[OpData(key="consumer_byte_rate", value=1e9)])
    await pair.ask(SIMULATED, AlterClientQuotasRequest(entries=[ample]))
    ids = {which: topic.topic_id for which in names for topic in created.topics if topic.name == names[which]}
    made = Topics(pair, names, ids)
    for which in (REAL, SIMULATED):
        # The metadata comes to each broker in its own time.
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        listing = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=names[which], partitions=[asked])])
        async with asyncio.timeout(40):
            while (await pair.ask(which, listing)).topics[0].partitions[0].error_code:
                await asyncio.sleep(0.01)
    return made


@pytest.mark.parametrize("version", range(3, 14))
async def test_produce(topics: Topics, version: int) -> None:
    good = batch(b"a", b"b")
    refused = [b"", good + good, good[:40], good[:-1] + b"?", batch(b"x" * 3000), batch(b"c", a=(">h", 21, 0x20))]
    for records in (good, *refused, good):
        await topics.expect_same_produced(records, version)
    await topics.expect_same_produced(good, version, acks=1)
    await topics.expect_same_produced(good, version, acks=2)
    for acks, records in ((-1, good), (2, good), (2, b""), (-1, b"")):
        await topics.expect_same_produced(records, version, acks=acks, partition=3)
    await topics.expect_same_produced(b"", version, acks=2)


async def test_idempotent_producers(topics: Topics) -> None:
    for producer_id, epoch, sequence in [
        (7, 0, 0),
        (7, 0, 1),
        (7, 0, 0),
        (7, 0, 5),
        (7, 1, 3),
        (7, 1, 0),
        (7, 0, 2),
        (8, 0, 4),
        (8, 0, 5),
    ]:
        await topics.expect_same_produced(of_producer(producer_id, epoch, sequence))


@pytest.mark.parametrize("version", range(4, 19))
async def test_fetch(topics: Topics, version: int) -> None:
    for _ in range(3):
        await topics.expect_same_produced(batch(b"a", b"b"))
    wholes = [{"max_bytes": 1 << 20}, {"max_bytes": 1}, {"max_bytes": 1 << 20, "isolation_level": 1}]
    partitions: list[dict[str, int]] = [{"fetch_offset": offset} for offset in (-1, 0, 1, 5, 6, 7)]
    partitions += [{"partition": 4}, {"partition_max_bytes": 1}, {"partition_max_bytes": 150}]
    if version >= 9:
        partitions += [{"current_leader_epoch": epoch} for epoch in (0, 1)]
    if version >= 12:
        partitions += [{"fetch_offset": offset, "last_fetched_epoch": epoch} for offset in (6, 9) for epoch in (0, 1)]
    for whole in wholes:
        for each in partitions:
            asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20, **each}

            def make(name: str, topic_id: bytes, asked: Any = asked, whole: Any = whole) -> FetchRequest:
                topic = FetchTopic(topic=name, topic_id=topic_id, partitions=[FetchPartition(**asked)])
                return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic], **whole)

            await topics.expect_same(make, version)


@pytest.mark.parametrize("version", range(1, 12))
async def test_list_offsets(topics: Topics, version: int) -> None:
    now_ms = time_now_ms()
    for number in range(3):
        await topics.expect_same_produced(batch(b"a", b"b", time_ms=now_ms + number))
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, now_ms, now_ms + 1, now_ms + 9):
        for epoch in (-1, 0, 1) if version >= 4 else (-1,):
            asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)

            def make(name: str, _: bytes, asked: Any = asked) -> ListOffsetsRequest:
                return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[asked])])

            await topics.expect_same(make, version)


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_offset_for_leader_epoch(topics: Topics, version: int) -> None:
    await topics.expect_same_produced(batch(b"a", b"b"))
    for current, epoch, partition in [(-1, 0, 0), (0, 0, 0), (1, 0, 0), (-1, 4, 0), (-1, -1, 0), (-1, 0, 7)]:
        asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)

        def make(name: str, _: bytes, asked: Any = asked) -> OffsetForLeaderEpochRequest:
            topic = OffsetForLeaderTopic(topic=name, partitions=[asked])
            return OffsetForLeaderEpochRequest(replica_id=-1 if version >= 3 else -2, topics=[topic])

        await topics.expect_same(make, version)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_delete_records(topics: Topics, version: int) -> None:
    await topics.expect_same_produced(batch(b"a", b"b"))
    await topics.expect_same_produced(batch(b"c"))
    for offset, partition in [(5, 0), (-2, 0), (1, 0), (0, 0), (2, 0), (-1, 0), (0, 4)]:
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)

        def make(name: str, _: bytes, asked: Any = asked) -> DeleteRecordsRequest:
            return DeleteRecordsRequest(timeout_ms=3000, topics=[DeleteRecordsTopic(name=name, partitions=[asked])])

        await topics.expect_same(make, version)


async def test_partitions_that_are_named_twice(topics: Topics) -> None:
    now_ms = time_now_ms()

    def produce(name: str, topic_id: bytes) -> ProduceRequest:
        made = [batch(*values, time_ms=now_ms) for values in ((b"a",), (b"b", b"c"))]
        data = [PartitionProduceData(index=0, records=records) for records in made]
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=data)
        return ProduceRequest(acks=-1, timeout_ms=3000, topic_data=[topic, topic])

    def listing(name: str, _: bytes) -> ListOffsetsRequest:
        asked = ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        return ListOffsetsRequest(replica_id=-1, topics=[asked, asked, ListOffsetsTopic(name=name, partitions=[])])

    def deleting(name: str, _: bytes) -> DeleteRecordsRequest:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (0, 1)]
        asked = [DeleteRecordsTopic(name=name, partitions=partitions), DeleteRecordsTopic(name="both", partitions=[])]
        return DeleteRecordsRequest(timeout_ms=3000, topics=asked)

    def fetching(name: str, topic_id: bytes) -> FetchRequest:
        offsets = ((0, 9), (7, 0), (0, 0), (7, 0))
        asked = [FetchPartition(partition=index, fetch_offset=at, partition_max_bytes=1 << 20) for index, at in offsets]
        known = FetchTopic(topic=name, topic_id=topic_id, partitions=asked)
        unknown = FetchTopic(topic="none", topic_id=b"?" * 16, partitions=asked)
        return FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[known, unknown, known])

    for version in (12, 13):
        await topics.expect_same(produce, version)
        await topics.expect_same(fetching, version)
    await topics.expect_same(listing, 9)
    await topics.expect_same(deleting, 2)


async def test_internal_topics_take_no_records(topics: Topics) -> None:
    names = {which: f"__{kind}" for which, kind in ((REAL, "consumer_offsets"), (SIMULATED, "transaction_state"))}
    made = [assigned(name, [which]) for which, name in names.items()]
    await topics.pair.ask(SIMULATED, CreateTopicsRequest(timeout_ms=10_000, topics=made))
    described = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names.values()])
    for which in names:
        async with asyncio.timeout(40):
            while any(each.error_code for each in (await topics.pair.ask(which, described, 9)).topics):
                await asyncio.sleep(0.05)
    for name in names.values():
        for index in (0, 7):

            def produce(_name: str, _id: bytes, name: str = name, index: int = index) -> ProduceRequest:
                data = [PartitionProduceData(index=index, records=batch(b"a"))]
                topic = TopicProduceData(name=name, partition_data=data)
                return ProduceRequest(acks=-1, timeout_ms=3000, topic_data=[topic])

            def deleting(_name: str, _id: bytes, name: str = name, index: int = index) -> DeleteRecordsRequest:
                asked = [DeleteRecordsPartition(partition_index=index, offset=0)]
                return DeleteRecordsRequest(timeout_ms=3000, topics=[DeleteRecordsTopic(name=name, partitions=asked)])

            await topics.expect_same(produce, 12)
            await topics.expect_same(deleting, 2)


@pytest.mark.parametrize(("session_id", "epoch"), [(0, 5), (0, -3), (9, -3), (9, 1), (0, 0), (9, -1)])
async def test_fetch_sessions(topics: Topics, session_id: int, epoch: int) -> None:
    def make(_: str, topic_id: bytes) -> FetchRequest:
        topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])
        return FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0, topics=[topic])

    await topics.expect_same(make, 13)


async def test_fetch_waits_for_the_partitions_that_exist(topics: Topics) -> None:
    """Each broker gets a record while it waits for one: unknown partitions beside it end no wait."""

    def make(_: str, topic_id: bytes) -> FetchRequest:
        asked = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in (0, 7)]
        unknown = FetchTopic(topic_id=b"?" * 16, partitions=[FetchPartition(partition=0)])
        known = FetchTopic(topic_id=topic_id, partitions=asked)
        # More than `max_bytes` is never waited for.
        return FetchRequest(max_wait_ms=20_000, min_bytes=1 << 30, max_bytes=60, topics=[known, unknown])

    asked = [topics.pair.ask(which, make("", topics.ids[which]), 13) for which in (REAL, SIMULATED)]
    waiting = asyncio.gather(*asked)
    ended, _ = await asyncio.wait([waiting], timeout=0.5)
    assert not ended
    await topics.expect_same_produced(batch(b"a"))
    for response in await waiting:
        codes = sorted(each.error_code for topic in response.responses for each in topic.partitions)
        assert codes == [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION, error_codes.UNKNOWN_TOPIC_ID]
        assert any(each.records for topic in response.responses for each in topic.partitions)


@pytest.mark.parametrize("codec", CODECS)
async def test_bombs_are_taken(topics: Topics, codec: str) -> None:
    small = {"gzip": 1 << 20, "snappy": 30_000, "lz4": 60_000, "zstd": 50 << 20}[codec]
    records = record_of_zeros(small)
    answer = await topics.expect_same_produced(compressed_batch(codec, records, time_ms=time_now_ms()))
    assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == 0
    with pytest.raises(AssertionError) if codec != "gzip" else nullcontext():
        # Known difference: of the others a simulated broker decompresses nothing.
        await topics.expect_same_produced(compressed_batch(codec, bytes(small), time_ms=time_now_ms()))


@pytest.mark.parametrize(
    ("records", "also_plain"),
    [
        pytest.param(b"", True, id="no records"),
        pytest.param(EMPTY_RECORD * 2, True, id="more than announced"),
        pytest.param(b"\x0a" + EMPTY_RECORD[1:-1], True, id="too short"),
        pytest.param(b"\xff" * 20, False, id="length of no end"),
    ],
)
async def test_broken_records(topics: Topics, records: bytes, also_plain: bool) -> None:
    answer = await topics.expect_same_produced(compressed_batch("gzip", records, time_ms=time_now_ms()))
    assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == error_codes.INVALID_RECORD
    plain = compressed_batch("gzip", b"", packed=records, time_ms=time_now_ms())
    await topics.expect_same_produced(plain)
    if also_plain:
        plain = plain[:21] + bytes(2) + plain[23:]
        await topics.expect_same_produced(plain[:17] + struct.pack(">I", crc32c(plain[21:])) + plain[21:])
