"""A replica and its log: readers, producers, and transactions with their markers and the last stable offset."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.log_dirs.transaction_markers import Marker, encode
from mockraft.brokers.partitions import hosted as hosted_module
from mockraft.brokers.partitions.fetcher import _truncate as truncate
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, PartitionHost, Read, ReadBy
from mockraft.brokers.partitions.partition import Assignment, CommittedIsr, IsrChange, Partition, Registered
from mockraft.brokers.partitions.producers import Ended
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import error_codes, record_batch

from .data_requests import transactional, with_producer


@pytest.fixture
def log() -> ReplicaLog:
    return ReplicaLog(MemoryDisk("/d0"), "orders-0")


def replica(
    log: ReplicaLog,
    *,
    leader: int = 1,
    isr: tuple[int, ...] = (1,),
    proposed: list[IsrChange] | None = None,
    config: LogConfig | None = None,
) -> HostedPartition:
    """The replica of broker 1 over this log; brokers 2 and 3 are alive."""
    changes = [] if proposed is None else proposed
    hosted = HostedPartition(
        (bytes(16), 0),
        "orders",
        Partition(1, lambda broker_id: Registered(10 * broker_id)),
        lambda: TopicSettings(1, config or LogConfig()),
        PartitionHost(lambda _key: log, lambda _hosted, change: changes.append(change), lambda: None),
    )
    assignment = Assignment(leader=leader, leader_epoch=1, isr=isr, replicas=(1, 2, 3), partition_epoch=1)
    if leader == 1:
        hosted.lead(assignment, 0)
    else:
        hosted.follow(assignment)
    return hosted


def write(leader: HostedPartition, producer_id: int = 7) -> int:
    """Append two records of a transaction; return the offset of the first."""
    return leader.append(transactional(producer_id), 1, 1_000, is_verified=True).base_offset


def end(leader: HostedPartition, producer_id: int = 7, *, is_commit: bool) -> int:
    return leader.append_marker(Marker(producer_id, 0, 3, is_commit), 1_000)


def committed(hosted: HostedPartition, offset: int = 0) -> Read:
    return hosted.read(offset, 1 << 20, by=ReadBy(only_leader=False, read_committed=True))


def test_first_batch_of_a_transaction_must_be_verified(log: ReplicaLog) -> None:
    leader = replica(log)
    with pytest.raises(LogError) as refused:
        leader.append(transactional(7), 1, 1_000)
    assert (refused.value.error_code, log.end_offset) == (error_codes.INVALID_TXN_STATE, 0)
    write(leader)
    leader.append(transactional(7, sequence=2), 1, 1_000)
    assert log.end_offset == 4


def test_readers_of_committed_records_get_a_transaction_once_its_marker_is_replicated(log: ReplicaLog) -> None:
    leader, follower = replica(log, isr=(1, 2)), FollowerFetch(2, 20, 0)
    write(leader)
    end(leader, is_commit=True)
    found = []
    for offset in (2, 3):
        leader.fetched(offset, follower, 0)
        found.append((log.high_watermark, leader.last_stable_offset, bool(committed(leader).records)))
    assert found == [(2, 0, False), (3, 3, True)]


def test_aborted_transactions_are_listed_with_the_records_that_they_have_a_part_in(log: ReplicaLog) -> None:
    leader = replica(log)
    for producer_id in (7, 8):
        write(leader, producer_id)
    end(leader, 8, is_commit=False)
    assert (committed(leader).records, leader.last_stable_offset, log.high_watermark) == (b"", 0, 5)
    end(leader, 7, is_commit=False)
    write(leader, 9)
    assert committed(leader).aborted == [Ended(8, 2, 4), Ended(7, 0, 5)]
    assert committed(leader, 5).aborted == [Ended(7, 0, 5)]
    assert leader.read(0, 1 << 20).aborted == ()
    assert committed(leader).last_stable_offset == 6


@pytest.mark.parametrize(
    ("late", "error_code"),
    [
        (Marker(7, -1, 3, True), error_codes.INVALID_PRODUCER_EPOCH),
        (Marker(7, 0, 2, True), error_codes.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_refused_marker_is_not_written(log: ReplicaLog, late: Marker, error_code: int) -> None:
    leader = replica(log)
    write(leader)
    end(leader, is_commit=True)
    with pytest.raises(LogError) as refused:
        leader.append_marker(late, 1_000)
    assert (refused.value.error_code, log.end_offset) == (error_code, 3)


def test_only_the_leader_writes_markers(log: ReplicaLog) -> None:
    with pytest.raises(LogError) as refused:
        end(replica(log, leader=2), is_commit=True)
    assert (refused.value.error_code, log.end_offset) == (error_codes.NOT_LEADER_OR_FOLLOWER, 0)


def fetched(follower: HostedPartition, records: bytes) -> None:
    """Append records of the leader, replicated."""
    follower.append_fetched(records)
    follower.log.high_watermark = follower.log.end_offset


def test_follower_knows_the_transactions_that_it_fetched_before_and_after_it_was_first_read(log: ReplicaLog) -> None:
    source = replica(ReplicaLog(MemoryDisk("/d1"), "orders-0"))
    for producer_id in (7, 8):
        write(source, producer_id)
    follower = replica(log, leader=2)
    fetched(follower, source.read(0, 1 << 20).records)
    assert follower.last_stable_offset == 0
    for producer_id in (7, 8):
        end(source, producer_id, is_commit=producer_id == 8)
    fetched(follower, source.read(4, 1 << 20).records)
    assert committed(follower).aborted == [Ended(7, 0, 4)]
    assert follower.last_stable_offset == 6


@pytest.mark.parametrize("end_offset", [0, 2, 3])
def test_truncated_transactions_are_forgotten(log: ReplicaLog, end_offset: int) -> None:
    write(replica(log))
    end(replica(log), is_commit=False)
    log.append_as_leader(with_producer(8, 0, 0), 1, 1_000)
    follower = replica(log, leader=2)
    log.high_watermark = 5
    assert (follower.last_stable_offset, len(committed(follower).aborted)) == (5, 1)
    follower.truncate_to(end_offset)
    assert follower.last_stable_offset == (end_offset if end_offset == 3 else 0)
    assert len(committed(follower).aborted) == (end_offset == 3)


def test_log_that_restarts_where_the_leaders_does_has_no_open_transaction(log: ReplicaLog) -> None:
    write(replica(log))
    follower = replica(log, leader=2)
    log.high_watermark = 2
    assert follower.last_stable_offset == 0
    follower.restart_at(20)
    log.append_as_follower(source_batch(20))
    log.high_watermark = 22
    assert follower.last_stable_offset == 22


def source_batch(offset: int) -> bytes:
    """Two records at this offset."""
    data = bytearray(with_producer(8, 0, 0))
    data[:8] = offset.to_bytes(8)
    data[12:16] = bytes(4)
    return bytes(data)


def test_aborted_transactions_are_forgotten_when_retention_deletes_them(log: ReplicaLog) -> None:
    leader = replica(log)
    write(leader)
    end(leader, is_commit=False)
    write(leader, 8)
    end(leader, 8, is_commit=False)
    log.config = LogConfig(retention_bytes=0)
    log.retain(2_000)
    assert log.start_offset == 6
    assert (leader.last_stable_offset, leader.producers.aborted) == (6, [])


def test_transactions_are_read_from_the_end_of_a_log_only(log: ReplicaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_module, "REPLAYED_OFFSETS", 3)
    earlier = replica(log)
    for producer_id in (7, 8):
        write(earlier, producer_id)
        end(earlier, producer_id, is_commit=False)
    assert committed(replica(log)).aborted == [Ended(8, 3, 5)]


def test_marker_of_a_producer_without_a_transaction_is_written(log: ReplicaLog) -> None:
    leader = replica(log)
    assert end(leader, is_commit=True) == 1
    assert len(log.read(0, 1 << 20, 1)) == len(encode(Marker(7, 0, 3, True), 1_000))
    assert leader.last_stable_offset == 1


def batch(producer_id: int, base_offset: int = 0) -> bytes:
    """One record of an idempotent producer."""
    data = bytearray(record_batch.encode([b"a"], base_offset=base_offset, leader_epoch=0, timestamp_ms=1_000))
    struct.pack_into(">qhi", data, 43, producer_id, 0, 0)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


@pytest.mark.parametrize(("is_log_append_time", "time_ms"), [(True, 5_000), (False, -1)])
def test_the_time_of_the_append_is_returned_if_the_log_has_it(
    log: ReplicaLog, is_log_append_time: bool, time_ms: int
) -> None:
    hosted = replica(log, config=LogConfig(is_log_append_time=is_log_append_time))
    assert hosted.append(batch(7), 1, 5_000).log_append_time_ms == time_ms


def test_a_refusal_names_the_partition_and_the_error(log: ReplicaLog) -> None:
    with pytest.raises(LogError, match="orders-0: UNKNOWN_LEADER_EPOCH") as refused:
        replica(log).check_epoch(99, only_leader=True)
    assert refused.value.error_code == error_codes.UNKNOWN_LEADER_EPOCH


def test_leader_has_the_producer_state_of_earlier_epochs(log: ReplicaLog) -> None:
    log.append_as_leader(batch(7), 0, 1_000)
    log.append_as_follower(batch(8, base_offset=1))
    hosted = replica(log)
    again = [hosted.append(batch(producer_id), 1, 1_000) for producer_id in (7, 8)]
    assert [each.base_offset for each in again] == [0, 1]
    assert [each.end_offset for each in again] == [1, 2]
    assert [each.log_append_time_ms for each in again] == [1_000, 1_000]
    assert log.end_offset == 2


def test_a_follower_reads_everything_and_a_consumer_up_to_the_high_watermark(log: ReplicaLog) -> None:
    hosted = replica(log, isr=(1, 2))
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
    hosted = replica(log, isr=(1, 2))
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
    hosted = replica(log, leader=2)
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
    hosted = replica(log, isr=(1, 2))
    truncate(hosted, epoch, end_offset)
    assert log.end_offset == expected


def test_epoch_0_of_the_leader_is_known_too(log: ReplicaLog) -> None:
    for leader_epoch in (0, 0, 1, 1):
        log.append_as_leader(batch(-1), leader_epoch, 1_000)
    truncate(replica(log, isr=(1, 2)), 0, 9)
    assert log.end_offset == 2


@pytest.mark.parametrize("records", [b"", batch(7) + batch(7)])
def test_a_producer_appends_exactly_one_batch(log: ReplicaLog, records: bytes) -> None:
    with pytest.raises(LogError, match=r"exactly one record batch is expected, not [02]") as refused:
        replica(log).append(records, 1, 1_000)
    assert (refused.value.error_code, log.end_offset) == (error_codes.INVALID_RECORD, 0)


def test_an_isr_change_is_proposed_once_and_again_when_it_is_to_be_repeated(log: ReplicaLog) -> None:
    proposed: list[IsrChange] = []
    hosted = replica(log, isr=(1,), proposed=proposed)
    for _ in range(2):
        hosted.fetched(2, FollowerFetch(2, 20, 0), 0)
    (change,) = proposed
    hosted.committed_or_refused(change, error_codes.UNKNOWN_SERVER_ERROR, 0)
    assert proposed == [change, change]
    hosted.committed_or_refused(change, CommittedIsr(1, 2, (1, 2)), 0)
    assert hosted.state.isr == {1, 2}
