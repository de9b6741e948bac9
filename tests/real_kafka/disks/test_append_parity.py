"""A real broker and a simulated one are sent the same odd batches and asked the same odd questions."""

from __future__ import annotations

import asyncio
import gzip
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from crc32c import crc32c
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.wire import client, error_codes
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

from ...topics import ask, assigned, create_topics
from ..running import running

pytestmark = pytest.mark.real_kafka

NOW_MS = 1_790_000_000_000


def zigzag(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def made(
    *times_ms: int,
    attributes: int = 0,
    count: int | None = None,
    delta: int | None = None,
    base: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    size: int = 5,
) -> bytes:
    """A batch with a record for each time after NOW_MS, and any part of its header as told."""
    records = b""
    for index, time_ms in enumerate(times_ms):
        body = b"\0" + zigzag(time_ms - times_ms[0]) + zigzag(index) + zigzag(-1) + zigzag(size) + b"v" * size + b"\0"
        records += zigzag(len(body)) + body
    if attributes & 7 == 1:
        records = gzip.compress(records)
    number = len(times_ms) if count is None else count
    first, last = NOW_MS + (times_ms or (0,))[0], NOW_MS + max(times_ms or (0,))
    last_delta = number - 1 if delta is None else delta
    covered = struct.pack(">hiqqqhii", attributes, last_delta, first, last, *producer, number) + records
    return struct.pack(">qiibI", base, 9 + len(covered), -1, 2, crc32c(covered)) + covered


GOOD = made(0, 1)
ODD = {
    "good": GOOD,
    "nothing": b"",
    "a base offset of its own": made(0, 1, base=77),
    "a byte flipped": GOOD[:-1] + b"x",
    "cut by a byte": GOOD[:-1],
    "a header cut": GOOD[:40],
    "rubbish after it": GOOD + b"rubbish",
    "half of a second": GOOD + GOOD[:40],
    "magic 3": GOOD[:16] + b"\3" + GOOD[17:],
    "magic 1": GOOD[:16] + b"\1" + GOOD[17:],
    "a length of 0": GOOD[:8] + bytes(4) + GOOD[12:],
    "a length below 0": GOOD[:8] + b"\xff" * 4 + GOOD[12:],
    "a huge length": GOOD[:8] + b"\x7f\xff\xff\xff" + GOOD[12:],
    "two batches": GOOD + GOOD,
    "too few counted": made(0, 1, count=1),
    "too many counted": made(0, 1, count=3),
    "none counted": made(0, 1, count=0),
    "a last offset delta that is not": made(0, 1, delta=5),
    "no record": made(count=0, delta=0),
    "a control batch": made(0, attributes=0x20),
    "an unknown codec": made(0, attributes=5),
    "gzip": made(0, 1, attributes=1),
    "two gzipped": made(0, attributes=1) + made(0, attributes=1),
    "a producer id and no sequence": made(0, producer=(5, 0, -1)),
    "log append time": made(0, attributes=8),
    "too large": made(0, size=3000),
    "from the future": made(400 * 24 * 3_600_000),
}


class Both:
    """The addresses of a real broker (1) and a simulated one (2), and the topic that each leads."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self.addresses = addresses

    def ask(self, make: Any, *, version: int) -> dict[str, Any]:
        """The answers to `make(topic)`, by broker; text where there was none."""

        async def one(kind: str) -> Any:
            try:
                return await ask(self.addresses[kind], make(kind), version, request_timeout_ms=10_000)
            except client.DisconnectedError:
                return "disconnected"

        return {kind: asyncio.run(one(kind)) for kind in self.addresses}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    with (
        Controller.sync(session_timeout_ms=3000) as controller,
        running(KafkaBroker(1, folder / "real", controller.cluster_id, controller.bootstrap)) as real,
        SimulatedBroker.sync(
            controller.bootstrap, controller.cluster_id, 2, log_dirs=[folder / "simulated"]
        ) as simulated,
    ):
        simulated.wait_until(BrokerState.RUNNING)
        topics = [
            assigned(f"{kind}{suffix}", [broker_id], max_message_bytes="2000")
            for kind, broker_id in (("real", 1), ("simulated", 2))
            for suffix in ("", "-times")
        ]
        asyncio.run(create_topics(controller.bootstrap, *topics))
        found = Both({"real": real.bootstrap, "simulated": simulated.bootstrap_servers})
        wait_until(lambda: produced(found, "good") == [0, 0], 60, "both lead their topics")
        yield found


def produce(topic: str, records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )


def produced(both: Both, name: str) -> list[Any]:
    answers = both.ask(lambda topic: produce(topic, ODD[name]), version=9)
    return [
        answer if isinstance(answer, str) else answer.responses[0].partition_responses[0].error_code
        for answer in answers.values()
    ]


def test_both_take_and_refuse_the_same_batches(both: Both) -> None:
    def named(code: Any) -> str:
        return code if isinstance(code, str) else error_codes.name(code)

    result = {name: [named(code) for code in produced(both, name)] for name in ODD}

    assert {name: codes for name, codes in result.items() if codes[0] != codes[1]} == {}
    assert result["good"] == ["NONE"] * 2
    assert len({codes[0] for codes in result.values()}) >= 5


def test_both_find_the_same_records_by_time(both: Both) -> None:
    for records in (made(10, 30, 20), made(40, 25, attributes=1), made(60, 60)):
        both.ask(lambda topic, records=records: produce(f"{topic}-times", records), version=9)

    def asked(time_ms: int) -> list[Any]:
        def make(topic: str) -> ListOffsetsRequest:
            partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=time_ms)
            topics = [ListOffsetsTopic(name=f"{topic}-times", partitions=[partition])]
            return ListOffsetsRequest(replica_id=-1, topics=topics)

        answers = both.ask(make, version=7)
        partitions = [answer.topics[0].partitions[0] for answer in answers.values()]
        return [(each.error_code, each.offset, each.timestamp) for each in partitions]

    result = {ms: asked(ms if ms < 0 else NOW_MS + ms) for ms in (-3, -2, -1, 0, 10, 11, 21, 26, 31, 41, 60, 61)}
    assert {ms: answers for ms, answers in result.items() if answers[0] != answers[1]} == {}
    assert result[21][0] == (0, 1, NOW_MS + 30)


def test_both_give_the_same_bytes_for_the_same_limits(both: Both) -> None:
    def asked(offset: int, bytes_max: int, min_bytes: int = 0) -> list[Any]:
        def make(topic: str) -> FetchRequest:
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
            topics = [FetchTopic(topic=f"{topic}-times", partitions=[partition])]
            return FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=min_bytes, max_bytes=bytes_max, topics=topics)

        answers = both.ask(make, version=11)
        partitions = [answer.responses[0].partitions[0] for answer in answers.values()]
        return [(p.error_code, p.high_watermark, whole(bytes(p.records or b""))) for p in partitions]

    def whole(data: bytes) -> bytes:
        """Kafka cuts at the limit, in the middle of a batch too; a client leaves such a tail alone."""
        end = 0
        while len(data) - end >= 12 and (after := end + 12 + int.from_bytes(data[end + 8 : end + 12])) <= len(data):
            end = after
        return data[:end]

    cases = [(offset, size) for offset in (-1, 0, 1, 3, 5, 7, 8) for size in (1, 90, 170, 10_000)]
    result = {case: asked(*case) for case in cases}
    assert {case: answers for case, answers in result.items() if answers[0] != answers[1]} == {}
    assert result[0, 10_000][0][0] == 0
