"""Start and end of a log, its unfinished or damaged segments, and a log beside a list of its expected records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.wire import error_codes, record_batch

from .conftest import batch
from .test_replica_log import SMALL, check_refused, everything, filled


@pytest.fixture
def log(disk: Disk) -> ReplicaLog:
    return ReplicaLog(disk, "t-0")


@pytest.mark.parametrize("damage", ["cut", "zeros", "garbage", "flipped"])
def test_a_damaged_tail_is_cut_at_the_next_start(disk: Disk, damage: str) -> None:
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


def test_segments_after_a_bad_batch_go_as_in_kafka(disk: Disk) -> None:
    filled(disk, 8)
    name = "t-0/00000000000000000004.log"
    disk.truncate(name, disk.size(name) - 1)

    assert everything(ReplicaLog(disk, "t-0", SMALL)) == [(index, str(index)) for index in range(5)]
    assert [name for name in disk.names("t-0") if name.endswith(".log")] == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000004.log",
    ]


def test_batches_below_the_recovery_point_are_not_checked_again(disk: Disk) -> None:
    filled(disk, 8)
    disk.replace("t-0/00000000000000000000.log", b"not a batch")

    assert ReplicaLog(disk, "t-0", SMALL, recovery_point=6).end_offset == 8
    assert ReplicaLog(disk, "t-0", SMALL).end_offset == 0


def test_truncation_takes_a_batch_whole_and_forgets_its_epoch(disk: Disk) -> None:
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


def test_a_log_truncated_to_its_start_offset_keeps_the_segment_around_it(disk: Disk) -> None:
    log = filled(disk, 10)
    log.high_watermark = 7
    log.advance_start_offset(5)
    log.truncate_to(5)
    assert (log.start_offset, log.end_offset) == (5, 5)
    assert disk.names("t-0")[0] == "00000000000000000004.log"
    log.truncate_to(4)
    assert disk.names("t-0")[0] == "00000000000000000004.log"
    assert (log.start_offset, log.end_offset, log.size_bytes) == (4, 4, 0)


def test_a_cleanly_closed_log_is_retained_by_age_and_size(disk: Disk) -> None:
    filled(disk, 10, step_ms=100).close()
    log = ReplicaLog(disk, "t-0", LogConfig(segment_bytes=200, retention_ms=100), was_closed=True)
    log.high_watermark = 10
    log.retain(601)
    assert log.start_offset == 6


def test_full_truncation_keeps_one_empty_segment(disk: Disk) -> None:
    log = filled(disk, 6)
    log.truncate_fully_at(40)

    assert (log.start_offset, log.end_offset, log.high_watermark) == (40, 40, 40)
    assert [name for name in disk.names("t-0") if name.endswith(".log")] == ["00000000000000000040.log"]
    log.append_as_follower(batch("a", at=40))
    log.truncate_fully_at(40)
    assert (log.end_offset, log.size_bytes) == (40, 0)


def test_the_start_of_the_log_advances_up_to_the_high_watermark_and_whole_segments_go(disk: Disk) -> None:
    log = filled(disk, 10, per_epoch=4)
    log.high_watermark = 7
    check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.advance_start_offset, 8)
    log.advance_start_offset(5)
    log.advance_start_offset(3)

    assert log.start_offset == 5
    log.advance_start_offset(5)
    assert log.starts_in_segment
    assert disk.names("t-0")[0] == "00000000000000000004.log"
    assert log.leader_epochs == ((1, 5), (2, 8))
    check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.read, 4, 100)
    assert ReplicaLog(disk, "t-0", SMALL, start_offset=5).start_offset == 5
    assert ReplicaLog(disk, "t-0", SMALL, start_offset=500).end_offset == 500


def test_the_oldest_segments_go_when_the_log_is_too_large_or_they_are_too_old(disk: Disk) -> None:
    log = filled(disk, 10, step_ms=100)
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


def test_indexes_that_a_real_broker_made_go_before_their_segment_is_changed(log: ReplicaLog, disk: Disk) -> None:
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


class Held(NamedTuple):
    """One batch that the log should hold."""

    base: int
    end: int
    epoch: int
    data: bytes


class LogMachine(RuleBasedStateMachine):
    """`held` are the batches of the log; those that end at `flushed` or before are on the disk for certain."""

    @initialize(segment_bytes=st.integers(250, 700))
    def begin(self, segment_bytes: int) -> None:
        self.disk = MemoryDisk("/simulated/d0")
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.log = ReplicaLog(self.disk, "t-0", self.config)
        self.held: list[Held] = []
        self.start = self.flushed = self.end = self.epoch = 0

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=2), size=st.integers(0, 12), bump=st.booleans())
    def append_as_leader(self, counts: list[int], size: int, bump: bool) -> None:
        self.epoch += bump
        sent = [self._batch(count, size, 0, 9) for count in counts]
        before = self.log.end_offset
        assert self.log.append_as_leader(b"".join(sent), self.epoch, 0) == (before, before + sum(counts))
        self._note(self.log.read(before, 1 << 20))

    @rule(count=st.integers(1, 3), size=st.integers(0, 12), gap=st.integers(0, 2))
    def append_as_follower(self, count: int, size: int, gap: int) -> None:
        data = self._batch(count, size, self.end + gap, self.epoch)
        self.log.append_as_follower(data)
        self._note(data)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.truncate_to(offset)
        self.held = [held for held in self.held if held.end <= offset]
        kept_to = self.held[-1].end if self.held else 0
        assert max(self.start, kept_to) <= self.log.end_offset <= offset
        self.end = self.log.end_offset
        self.flushed = min(self.flushed, self.end)
        if kept_to <= self.start:
            self.start = self.log.start_offset

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.high_watermark = offset
        self.log.advance_start_offset(offset)
        self.start = max(self.start, offset)

    @rule(ahead=st.integers(0, 5))
    def start_anew(self, ahead: int) -> None:
        self.start = self.end = self.flushed = self.end + ahead
        self.log.truncate_fully_at(self.end)
        self.held = []

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule()
    def restart_cleanly(self) -> None:
        self.flush()
        self._open(was_closed=True)

    @rule(share=st.floats(0, 1), rest=st.sampled_from([b"", b"\xff" + bytes(70), b"\xff" + b"\x02" * 90]))
    def kill(self, share: float, rest: bytes) -> None:
        """The process dies, and of what was not flushed in the last segment any part is there, and perhaps rubbish."""
        name = max(name for name in self.disk.names("t-0") if name.endswith(".log"))
        in_last = [held for held in self.held if held.base >= int(name[:20])]
        size = self.disk.size(f"t-0/{name}")
        assert size == sum(len(held.data) for held in in_last)
        certain = sum(len(held.data) for held in in_last if held.end <= self.flushed)
        kept = certain + round(share * (size - certain))
        self.disk.truncate(f"t-0/{name}", kept)
        self.disk.append(f"t-0/{name}", rest)
        whole = 0
        for held in in_last:
            whole += len(held.data)
            if whole > kept:
                self.held.remove(held)
        self._open(was_closed=False)
        self.end = self.log.end_offset
        assert self.end == max(self.held[-1].end if self.held else 0, int(name[:20]), self.start)
        self.flushed = min(self.flushed, self.end)

    @invariant()
    def it_holds_what_it_should(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        readable = [held for held in self.held if held.end > self.start]
        read, offset = b"", self.start
        while offset < self.end and (part := self.log.read(offset, 200)):
            read += part
            offset = record_batch.read_header(part, self._last_batch(part)).last_offset + 1
        assert read == b"".join(held.data for held in readable)
        for held in readable:
            assert self.log.read(max(held.base, self.start), 1) == held.data
        epochs = [epoch for epoch, _ in self.log.leader_epochs]
        assert epochs == sorted(set(epochs))
        for held in readable:
            assert self.log.end_of_epoch(held.epoch)[1] >= held.end

    def _open(self, *, was_closed: bool) -> None:
        self.log.close()
        self.log = ReplicaLog(
            self.disk, "t-0", self.config, start_offset=self.start, recovery_point=self.flushed, was_closed=was_closed
        )

    def _note(self, data: bytes) -> None:
        for header in record_batch.read_headers(data):
            part = data[header.position : header.end]
            self.held.append(Held(header.base_offset, header.last_offset + 1, header.leader_epoch, part))
        self.end = self.held[-1].end

    def _last_batch(self, data: bytes) -> int:
        return [header.position for header in record_batch.read_headers(data)][-1]

    def _batch(self, count: int, size: int, offset: int, epoch: int) -> bytes:
        return record_batch.encode([b"v" * size] * count, base_offset=offset, leader_epoch=epoch, timestamp_ms=0)


TestReplicaLog: Callable[..., object] = LogMachine.TestCase
LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "follow", "truncate", "delete", "anew", "flush"]), st.floats(0, 1)),
    max_size=25,
)


def attempt(log: ReplicaLog, what: str, share: float) -> None:
    offset = log.start_offset + round(share * (log.end_offset - log.start_offset))
    data = record_batch.encode([b"v" * round(90 * share)], base_offset=0, leader_epoch=0, timestamp_ms=0)
    if what == "append":
        log.append_as_leader(data, log.end_offset // 3, 0)
    elif what == "follow":
        gap = round(3 * share)
        epoch = log.latest_epoch or 0
        log.append_as_follower(
            record_batch.encode([b"f"], base_offset=log.end_offset + gap, leader_epoch=epoch, timestamp_ms=0)
        )
    elif what == "truncate":
        log.truncate_to(offset)
    elif what == "delete":
        log.high_watermark = offset
        log.advance_start_offset(offset)
    elif what == "anew":
        log.truncate_fully_at(log.end_offset + round(share))
    else:
        log.flush()


def contents(log: ReplicaLog) -> list[bytes]:
    found, offset = [], log.start_offset
    while data := log.read(offset, 1):
        found.append(data)
        offset = record_batch.read_header(data, 0).last_offset + 1
    return found


@given(steps=STEPS, probability=st.floats(0, 0.4), seed=st.integers(0, 1000))
@settings(max_examples=100)
def test_log_on_a_flaky_disk_equals_its_files(steps: list[tuple[str, float]], probability: float, seed: int) -> None:
    disk = FailingDisk(MemoryDisk("/simulated/d0"))
    config = LogConfig(segment_bytes=250)
    log = ReplicaLog(disk, "t-0", config)
    for index, (what, share) in enumerate(steps):
        before, end_offset = contents(log), log.end_offset
        disk.flaky(probability, seed + index)
        failed = False
        try:
            attempt(log, what, share)
        except OSError:
            failed = True
        disk.heal()
        if failed and what in ("append", "follow"):
            assert log.end_offset == end_offset
        if failed:
            assert set(contents(log)) <= set(before)
        again = ReplicaLog(disk, "t-0", config, start_offset=log.start_offset)
        assert contents(again) == contents(log)
        assert (again.start_offset, again.end_offset) == (log.start_offset, log.end_offset)
        log = again if share > 0.8 else log


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
