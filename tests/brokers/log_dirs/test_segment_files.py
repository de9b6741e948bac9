"""Segments of a log that were left unfinished, closed or damaged, and what a flush forces to the disk."""

from __future__ import annotations

import pytest
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog

from .conftest import batch
from .test_replica_log import SMALL, everything, filled


def test_an_empty_segment_that_a_roll_left_is_deleted_and_the_later_ones_stay(disk: Disk) -> None:
    filled(disk, 8)
    disk.append("t-0/00000000000000000003.log", b"")
    assert everything(ReplicaLog(disk, "t-0", SMALL)) == [(index, str(index)) for index in range(8)]
    assert not disk.exists("t-0/00000000000000000003.log")


def test_a_batch_below_the_last_offset_is_cut_and_reported(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    log = ReplicaLog(disk, "t-0")
    log.append_as_leader(batch("a", "b"), 0, 0)
    name, size = "t-0/00000000000000000000.log", log.size_bytes
    log.close()
    disk.append(name, batch("again", at=1))
    again = ReplicaLog(disk, "t-0")
    assert (again.end_offset, again.size_bytes, disk.size(name)) == (2, size, size)
    added = len(batch("again"))
    assert f"{disk.root}/{name}: cut by {added} bytes: batch at {size}: offset 1 after 1" in caplog.text


def test_a_cleanly_closed_log_is_cut_within_a_segment_that_was_not_read_yet(disk: Disk) -> None:
    filled(disk, 8).close()
    log = ReplicaLog(disk, "t-0", SMALL, was_closed=True)
    log.truncate_to(3)
    assert everything(log) == [(index, str(index)) for index in range(3)]


def test_records_without_times_are_not_retained_by_age(disk: Disk) -> None:
    log = filled(disk, 10, step_ms=-1)
    log.config = LogConfig(segment_bytes=200, retention_ms=100)
    log.high_watermark = 10
    log.truncate_fully_at(20)
    for index in range(20, 24):
        log.append_as_follower(batch("x", at=index, time_ms=-1))
    log.high_watermark = 24
    log.retain(10**9)
    assert log.start_offset == 20


def test_a_restart_deletes_all_snapshots_of_producers(disk: Disk) -> None:
    log = filled(disk, 2)
    for offset in (0, 1):
        disk.append(f"t-0/{offset:020d}.snapshot", b"")
    log.truncate_fully_at(5)
    assert [name for name in disk.names("t-0") if name.endswith(".snapshot")] == []


class SyncedDisk(MemoryDisk):
    """A disk that notes which of its files and directories are synced."""

    def __init__(self) -> None:
        super().__init__("/simulated/d0")
        self.synced: list[str] = []

    def sync(self, name: str) -> None:
        super().sync(name)
        self.synced.append(name)


def test_a_flush_syncs_new_records_and_new_names_alone() -> None:
    disk = SyncedDisk()
    log = ReplicaLog(disk, "t-0", SMALL)

    def synced() -> list[str]:
        disk.synced.clear()
        log.flush()
        return list(disk.synced)

    first, second = (f"t-0/{offset:020d}.log" for offset in (0, 2))
    log.append_as_leader(batch("a"), 0, 0)
    assert synced() == [first, "t-0", ""]
    assert synced() == []
    log.append_as_leader(batch("b"), 0, 0)
    assert synced() == [first]
    log.append_as_leader(batch("c"), 0, 0)
    assert synced() == [second, "t-0", ""]
    log.truncate_fully_at(9)
    assert synced() == ["t-0", ""]
    log = ReplicaLog(disk, "t-0", SMALL, was_closed=True)
    assert synced() == ["t-0", ""], "a file of an earlier run may not have been synced"
