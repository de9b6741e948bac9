"""Start and end of a log: recovery at the start, truncation, deletion of old segments."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.replica_log import LogConfig, ReplicaLog
from mockraft.wire import error_codes

from .conftest import MakeBatch
from .test_replica_log import SMALL, check_refused, everything


@pytest.fixture
def log(disk: Disk) -> ReplicaLog:
    return ReplicaLog(disk, "t-0")


@pytest.mark.parametrize("damage", ["cut", "zeros", "garbage", "flipped"])
def test_a_damaged_tail_is_cut_at_the_next_start(disk: Disk, batch: MakeBatch, damage: str) -> None:
    log = ReplicaLog(disk, "t-0")
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    name = "t-0/00000000000000000000.log"
    size = len(batch("a"))
    if damage == "cut":
        disk.truncate(name, 3 * size - 10)
    elif damage == "flipped":
        data = bytearray(disk.read(name))
        data[-1] ^= 1
        disk.replace(name, bytes(data))
    else:
        disk.append(name, bytes(80) if damage == "zeros" else b"\x7f" * 80)
    again = ReplicaLog(disk, "t-0")
    kept = 2 if damage in ("cut", "flipped") else 3

    assert again.end_offset == kept
    assert disk.size(name) == kept * size
    assert again.append_as_leader(batch("d"), 0, 0) == (kept, kept + 1)


def test_segments_after_a_bad_batch_go_as_in_kafka(disk: Disk, batch: MakeBatch) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(8):
        log.append_as_leader(batch(str(index)), 0, 0)
    name = "t-0/00000000000000000004.log"
    disk.truncate(name, disk.size(name) - 1)

    assert everything(ReplicaLog(disk, "t-0", SMALL)) == [(index, str(index)) for index in range(5)]
    assert [name for name in disk.names("t-0") if name.endswith(".log")] == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000004.log",
    ]


def test_batches_below_the_recovery_point_are_not_checked_again(disk: Disk, batch: MakeBatch) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(8):
        log.append_as_leader(batch(str(index)), 0, 0)
    disk.replace("t-0/00000000000000000000.log", b"not a batch")

    assert ReplicaLog(disk, "t-0", SMALL, recovery_point=6).end_offset == 8
    assert ReplicaLog(disk, "t-0", SMALL).end_offset == 0


def test_truncation_takes_a_batch_whole_and_forgets_its_epoch(disk: Disk, batch: MakeBatch) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(6):
        log.append_as_leader(batch(str(index), "x"), index // 2, 0)
    log.high_watermark = 12
    log.truncate_to(100)
    assert log.end_offset == 12
    log.truncate_to(9)
    assert (log.end_offset, log.high_watermark) == (8, 8)
    assert log.leader_epochs == ((0, 0), (1, 4))
    log.truncate_to(4)
    assert everything(log) == [(0, "0"), (1, "x"), (2, "1"), (3, "x")]
    assert log.append_as_leader(batch("new"), 9, 0) == (4, 5)
    assert everything(ReplicaLog(disk, "t-0", SMALL)) == everything(log)
    log.truncate_to(0)
    assert (log.start_offset, log.end_offset, list(log.leader_epochs)) == (0, 0, [])


def test_full_truncation_keeps_one_empty_segment(disk: Disk, batch: MakeBatch) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(6):
        log.append_as_leader(batch(str(index)), 0, 0)
    log.truncate_fully_at(40)

    assert (log.start_offset, log.end_offset, log.high_watermark) == (40, 40, 40)
    assert [name for name in disk.names("t-0") if name.endswith(".log")] == ["00000000000000000040.log"]
    log.append_as_follower(batch("a", at=40))
    log.truncate_fully_at(40)
    assert (log.end_offset, log.size_bytes) == (40, 0)


def test_the_start_of_the_log_advances_up_to_the_high_watermark_and_whole_segments_go(
    disk: Disk, batch: MakeBatch
) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(10):
        log.append_as_leader(batch(str(index)), index // 4, 0)
    log.high_watermark = 7
    check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.advance_start_offset, 8)
    log.advance_start_offset(5)
    log.advance_start_offset(3)

    assert log.start_offset == 5
    assert log.starts_in_segment
    assert disk.names("t-0")[0] == "00000000000000000004.log"
    assert log.leader_epochs == ((1, 5), (2, 8))
    check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.read, 4, 100)
    assert ReplicaLog(disk, "t-0", SMALL, start_offset=5).start_offset == 5
    assert ReplicaLog(disk, "t-0", SMALL, start_offset=500).end_offset == 500


def test_the_oldest_segments_go_when_the_log_is_too_large_or_they_are_too_old(disk: Disk, batch: MakeBatch) -> None:
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(10):
        log.append_as_leader(batch(str(index), time_ms=100 * index), 0, 0)
    size = len(batch("0"))

    def starts(now_ms: int, **config: Any) -> int:
        log.config = LogConfig(segment_bytes=200, **config)
        log.retain(now_ms)
        return log.start_offset

    log.high_watermark = 5
    assert starts(10**9) == 0
    assert starts(0, retention_bytes=6 * size) == 4
    assert starts(10**9, retention_ms=0) == 4
    log.high_watermark = 10
    assert starts(0, retention_bytes=5 * size) == 4
    assert starts(600, retention_ms=100) == 4
    assert starts(601, retention_ms=100) == 6
    assert starts(800, retention_ms=200) == 6
    assert everything(log) == [(index, str(index)) for index in range(6, 10)]
    assert starts(10**9, retention_ms=200) == 10
    assert (log.end_offset, log.size_bytes) == (10, 0)
    assert [name for name in disk.names("t-0") if name.endswith(".log")] == ["00000000000000000010.log"]
    assert log.append_as_leader(batch("more"), 0, 0) == (10, 11)


def test_indexes_that_a_real_broker_made_go_before_their_segment_is_changed(
    log: ReplicaLog, batch: MakeBatch, disk: Disk
) -> None:
    log.append_as_leader(batch("a"), 0, 0)
    log.append_as_leader(batch("b"), 0, 0)
    for suffix in ("index", "timeindex"):
        disk.append(f"t-0/00000000000000000000.{suffix}", b"positions")
    for offset in (1, 2):
        disk.append(f"t-0/{offset:020d}.snapshot", b"producers")
    again = ReplicaLog(disk, "t-0")
    assert "00000000000000000000.index" in disk.names("t-0")
    again.truncate_to(1)

    assert disk.names("t-0") == ["00000000000000000000.log", "00000000000000000001.snapshot", "leader-epoch-checkpoint"]
