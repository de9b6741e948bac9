"""The transactions in a replica's log: markers, the last stable offset, aborted ones, and when their state is read."""

from __future__ import annotations

import pytest
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.log_dirs.transaction_markers import Marker, encode
from mockraft.brokers.partitions import hosted as hosted_module
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, PartitionHost, Read, ReadBy
from mockraft.brokers.partitions.partition import Assignment, Partition, Registered
from mockraft.brokers.partitions.producers import Ended
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import error_codes

from .data_requests import transactional, with_producer


@pytest.fixture
def log() -> ReplicaLog:
    return ReplicaLog(MemoryDisk("/d0"), "orders-0")


def replica(log: ReplicaLog, *, leader: int = 1, isr: tuple[int, ...] = (1,)) -> HostedPartition:
    """The replica of broker 1."""
    hosted = HostedPartition(
        (bytes(16), 0),
        "orders",
        Partition(1, lambda broker_id: Registered(10 * broker_id)),
        lambda: TopicSettings(1, LogConfig()),
        PartitionHost(lambda _key: log, lambda _hosted, _change: None, lambda: None),
    )
    assignment = Assignment(leader=leader, leader_epoch=1, isr=isr, replicas=(1, 2), partition_epoch=1)
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
