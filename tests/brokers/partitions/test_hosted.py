"""A replica and its log: the producer state of batches already in the log."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.partitions.fetcher import _truncate as truncate
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, PartitionHost, ReadBy
from mockraft.brokers.partitions.partition import Assignment, CommittedIsr, IsrChange, Partition, Registered
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import error_codes, record_batch


def batch(producer_id: int, base_offset: int = 0) -> bytes:
    """One record of an idempotent producer."""
    data = bytearray(record_batch.encode([b"a"], base_offset=base_offset, leader_epoch=0, timestamp_ms=1_000))
    struct.pack_into(">qhi", data, 43, producer_id, 0, 0)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def hosted_over(
    log: ReplicaLog,
    isr: tuple[int, ...] = (1,),
    proposed: list[IsrChange] | None = None,
    config: LogConfig | None = None,
) -> HostedPartition:
    """Led by broker 1 over this log; brokers 2 and 3 are alive."""
    changes = [] if proposed is None else proposed
    hosted = HostedPartition(
        (bytes(16), 0),
        "orders",
        Partition(1, lambda broker_id: Registered(10 * broker_id)),
        lambda: TopicSettings(1, config or LogConfig()),
        PartitionHost(lambda _key: log, lambda _hosted, change: changes.append(change), lambda: None),
    )
    assignment = Assignment(leader=1, leader_epoch=1, isr=isr, replicas=(1, 2, 3), partition_epoch=1)
    hosted.lead(assignment, 0)
    return hosted


@pytest.fixture
def log() -> ReplicaLog:
    return ReplicaLog(MemoryDisk("/d0"), "orders-0")


@pytest.mark.parametrize(("is_log_append_time", "time_ms"), [(True, 5_000), (False, -1)])
def test_the_time_of_the_append_is_returned_if_the_log_has_it(
    log: ReplicaLog, is_log_append_time: bool, time_ms: int
) -> None:
    hosted = hosted_over(log, config=LogConfig(is_log_append_time=is_log_append_time))
    assert hosted.append(batch(7), 1, 5_000).log_append_time_ms == time_ms


def test_a_refusal_names_the_partition_and_the_error(log: ReplicaLog) -> None:
    with pytest.raises(LogError, match="orders-0: UNKNOWN_LEADER_EPOCH") as refused:
        hosted_over(log).check_epoch(99, only_leader=True)
    assert refused.value.error_code == error_codes.UNKNOWN_LEADER_EPOCH


def test_leader_has_the_producer_state_of_earlier_epochs(log: ReplicaLog) -> None:
    log.append_as_leader(batch(7), 0, 1_000)
    log.append_as_follower(batch(8, base_offset=1))
    hosted = hosted_over(log)
    again = [hosted.append(batch(producer_id), 1, 1_000) for producer_id in (7, 8)]
    assert [each.base_offset for each in again] == [0, 1]
    assert [each.end_offset for each in again] == [1, 2]
    assert [each.log_append_time_ms for each in again] == [1_000, 1_000]
    assert log.end_offset == 2


def test_a_follower_reads_everything_and_a_consumer_up_to_the_high_watermark(log: ReplicaLog) -> None:
    hosted = hosted_over(log, isr=(1, 2))
    for producer_id in range(3):
        hosted.append(batch(producer_id), 1, 1_000)
    consumer = hosted.read(0, 1 << 20)
    assert (consumer.records, consumer.high_watermark) == (b"", 0)
    follower = FollowerFetch(2, 20, 0)
    assert len(read_headers(hosted.read(0, 1 << 20, by=ReadBy(follower=follower)).records)) == 3
    hosted.fetched(2, follower, 0)
    consumer = hosted.read(0, 1 << 20)
    assert [header.base_offset for header in read_headers(consumer.records)] == [0, 1]
    assert consumer.high_watermark == 2


def test_records_up_to_the_high_watermark_can_be_deleted_and_no_further(log: ReplicaLog) -> None:
    hosted = hosted_over(log, isr=(1, 2))
    for producer_id in range(3):
        hosted.append(batch(producer_id), 1, 1_000)
    hosted.fetched(2, FollowerFetch(2, 20, 0), 0)
    for offset in (-1, 3):
        with pytest.raises(LogError) as refused:
            hosted.delete_before(offset)
        assert refused.value.error_code == error_codes.OFFSET_OUT_OF_RANGE
    for offset in (0, 2):
        hosted.delete_before(offset)
        assert log.start_offset == offset


def test_the_epoch_of_an_offset_is_that_of_the_leader_that_wrote_it(log: ReplicaLog) -> None:
    log.append_as_leader(batch(7), 4, 1_000)
    log.append_as_leader(batch(8), 6, 1_000)
    hosted = HostedPartition(
        (bytes(16), 0),
        "orders",
        Partition(1, lambda _: None),
        lambda: TopicSettings(1, LogConfig()),
        PartitionHost(lambda _: log, lambda *_: None, lambda: None),
    )
    assert [hosted.epoch_at(offset) for offset in (-1, 0, 1, 5)] == [-1, 4, 6, 6]


@pytest.mark.parametrize(
    ("epoch", "end_offset", "expected"),
    [(5, -1, 1), (4, 1, 1), (4, 9, 2), (6, 9, 4), (5, 3, 2), (-1, 3, 3), (2, 1, 0), (6, 3, 3)],
)
def test_a_follower_truncates_where_its_log_leaves_the_leaders(
    log: ReplicaLog, epoch: int, end_offset: int, expected: int
) -> None:
    for leader_epoch in (4, 4, 6, 6):
        log.append_as_leader(batch(-1), leader_epoch, 1_000)
    log.high_watermark = 1
    hosted = hosted_over(log, isr=(1, 2))
    truncate(hosted, epoch, end_offset)
    assert log.end_offset == expected


def test_epoch_0_of_the_leader_is_known_too(log: ReplicaLog) -> None:
    for leader_epoch in (0, 0, 1, 1):
        log.append_as_leader(batch(-1), leader_epoch, 1_000)
    truncate(hosted_over(log, isr=(1, 2)), 0, 9)
    assert log.end_offset == 2


@pytest.mark.parametrize("records", [b"", batch(7) + batch(7)])
def test_a_producer_appends_exactly_one_batch(log: ReplicaLog, records: bytes) -> None:
    with pytest.raises(LogError, match=r"exactly one record batch is expected, not [02]") as refused:
        hosted_over(log).append(records, 1, 1_000)
    assert (refused.value.error_code, log.end_offset) == (error_codes.INVALID_RECORD, 0)


def test_an_isr_change_is_proposed_once_and_again_when_it_is_to_be_repeated(log: ReplicaLog) -> None:
    proposed: list[IsrChange] = []
    hosted = hosted_over(log, isr=(1,), proposed=proposed)
    for _ in range(2):
        hosted.fetched(2, FollowerFetch(2, 20, 0), 0)
    (change,) = proposed
    hosted.committed_or_refused(change, error_codes.UNKNOWN_SERVER_ERROR, 0)
    assert proposed == [change, change]
    hosted.committed_or_refused(change, CommittedIsr(1, 2, (1, 2)), 0)
    assert hosted.state.isr == {1, 2}
