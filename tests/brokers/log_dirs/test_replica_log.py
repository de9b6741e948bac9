"""The log of one replica, on each kind of disk."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest
from crc32c import crc32c
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.batch_headers import CorruptBatchError, read_header, scan, stamp
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.record_times import times
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.wire import error_codes, record_batch

from ...rows import each_row
from .conftest import batch, with_header

SMALL = LogConfig(segment_bytes=200)


def values(data: bytes) -> list[tuple[int, str]]:
    return [
        (batch.base_offset + index, (value or b"").decode())
        for batch in record_batch.read_batches(data)
        for index, (_, value) in enumerate(batch.records)
    ]


def everything(log: ReplicaLog) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while (offset := found[-1][0] + 1 if found else log.start_offset) < log.end_offset:
        found += values(log.read(offset, 1 << 20))
    return found


def check_refused(code: int, call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(LogError) as raised:
        call(*arguments)
    assert raised.value.error_code == code
    return str(raised.value)


def filled(disk: Disk, count: int, *, per_epoch: int = 1000, step_ms: int = 0) -> ReplicaLog:
    """A log of small segments with the records "0", "1", …, each a batch, `per_epoch` of them in each leader epoch."""
    log = ReplicaLog(disk, "t-0", SMALL)
    for index in range(count):
        log.append_as_leader(batch(str(index), time_ms=step_ms * index), index // per_epoch, 0)
    return log


@pytest.fixture
def log(disk: Disk) -> ReplicaLog:
    return ReplicaLog(disk, "t-0")


def test_a_new_log_is_empty_and_its_first_segment_is_there(log: ReplicaLog, disk: Disk) -> None:
    assert (log.start_offset, log.end_offset, log.high_watermark, log.size_bytes) == (0, 0, 0, 0)
    assert log.latest_epoch is None
    assert log.read(0, 1000) == b""
    assert disk.names("t-0") == ["00000000000000000000.log"]


def test_a_leader_gives_offsets_and_its_epoch_and_the_crc_still_fits(log: ReplicaLog) -> None:
    assert log.append_as_leader(batch("a", "b"), 3, 0) == (0, 2)
    assert log.append_as_leader(batch("c") + batch("d", "e"), 4, 0) == (2, 5)

    assert everything(log) == [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]
    assert [b.leader_epoch for b in record_batch.read_batches(log.read(0, 1000))] == [3, 4, 4]
    assert (log.leader_epochs, log.end_offset) == (((3, 0), (4, 2)), 5)


def test_a_follower_keeps_the_batches_of_the_leader_byte_for_byte(log: ReplicaLog) -> None:
    sent = batch("a", "b", at=10, epoch=2) + batch("c", at=12, epoch=5)
    log.truncate_fully_at(10)
    log.append_as_follower(sent)

    assert log.read(10, 1000) == sent
    assert (log.start_offset, log.end_offset) == (10, 13)
    assert log.leader_epochs == ((2, 10), (5, 12))
    check_refused(error_codes.INVALID_RECORD, log.append_as_follower, batch("d", at=12))
    log.append_as_follower(batch("after a gap, as compaction leaves them", at=20, epoch=5))
    assert log.end_offset == 21
    assert values(log.read(15, 1000)) == [(20, "after a gap, as compaction leaves them")]


def test_log_append_time_is_written_into_the_batch(disk: Disk) -> None:
    log = ReplicaLog(disk, "t-0", LogConfig(is_log_append_time=True))
    log.append_as_leader(batch("a", time_ms=5), 0, 77)

    (read,) = record_batch.read_batches(log.read(0, 1000))
    assert read.timestamps_ms == [77]


def test_invalid_producer_batches_are_refused_with_kafkas_code(log: ReplicaLog, disk: Disk) -> None:
    good = batch("a", "b")

    def append(data: bytes) -> tuple[int, int]:
        return log.append_as_leader(data, 0, 0)

    check_refused(error_codes.CORRUPT_MESSAGE, append, good[:-1] + b"x")
    check_refused(error_codes.CORRUPT_MESSAGE, append, good[:16] + b"\3" + good[17:])
    check_refused(error_codes.CORRUPT_MESSAGE, append, good[:8] + bytes(4) + good[12:])
    check_refused(error_codes.INVALID_RECORD, append, good[:16] + b"\1" + good[17:])
    check_refused(error_codes.INVALID_RECORD, append, good[:-1])
    check_refused(error_codes.INVALID_RECORD, append, b"")
    check_refused(error_codes.INVALID_RECORD, append, batch("a", at=7))
    for count, reason in ((1, "records still remaining in file"), (3, "premature EOF reached")):
        wrong = with_header(good, count=count, last_offset_delta=count - 1)
        assert reason in check_refused(error_codes.INVALID_RECORD, append, wrong)
    empty = with_header(good, count=0, last_offset_delta=-1)
    text = "Batch has an invalid offset range: [0, -1]"
    assert check_refused(error_codes.INVALID_RECORD, append, empty) == text
    check_refused(error_codes.UNKNOWN_SERVER_ERROR, append, good[:8] + b"\x7f\xff\xff\xff" + good[12:])
    check_refused(error_codes.INVALID_TIMESTAMP, append, batch("a", time_ms=3_600_001))
    check_refused(error_codes.INVALID_RECORD, append, with_header(good, count=3))
    for count in (0, -1):
        text = f"Invalid reported count for record batch: {count}"
        assert check_refused(error_codes.INVALID_RECORD, append, with_header(good, count=count)) == text
    check_refused(error_codes.INVALID_RECORD, append, with_header(good, attributes=0x20))
    check_refused(error_codes.UNKNOWN_SERVER_ERROR, append, with_header(good, attributes=5))
    check_refused(error_codes.INVALID_RECORD, append, with_header(good, producer_id=5))
    check_refused(error_codes.INVALID_RECORD, append, with_header(good, attributes=2) * 2)
    log.config = LogConfig(max_message_bytes=len(good) - 1)
    assert "exceeds the maximum configured value" in check_refused(error_codes.MESSAGE_TOO_LARGE, append, good)
    log.config = LogConfig(segment_bytes=len(good) - 1)
    check_refused(error_codes.RECORD_LIST_TOO_LARGE, append, good)

    assert log.end_offset == 0
    assert disk.size("t-0/00000000000000000000.log") == 0
    assert log.leader_epochs == ()


def test_bytes_after_the_last_whole_batch_are_dropped(log: ReplicaLog) -> None:
    good = batch("a", "b" * 100)
    assert log.append_as_leader(good + good[:30], 0, 0) == (0, 2)

    assert log.read(0, 1000) == good


def test_a_compressed_batch_is_kept_as_it_is(log: ReplicaLog) -> None:
    compressed = with_header(batch("a", "b", "c"), attributes=4)

    assert log.append_as_leader(compressed, 0, 0) == (0, 3)
    assert log.read(1, 1000) == compressed


def test_read_gives_whole_batches_within_the_limit_and_one_at_least(log: ReplicaLog) -> None:
    for value in "abcdef":
        log.append_as_leader(batch(value, value), 0, 0)
    size = len(batch("a", "a"))

    assert values(log.read(0, 2 * size + 5)) == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]
    assert values(log.read(3, 1)) == [(2, "b"), (3, "b")]
    assert log.read(3, 1, at_least_one=False) == b""
    assert values(log.read(0, 10_000, 3)) == [(0, "a"), (1, "a")]
    assert log.read(2, 10_000, 3) == b""
    assert log.read(12, 10_000) == b""
    assert "from offset 0 up to 12" in check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.read, 13, 10)
    check_refused(error_codes.OFFSET_OUT_OF_RANGE, log.read, -1, 10)


def test_segments_roll_and_reads_find_their_way(disk: Disk) -> None:
    log = filled(disk, 50)

    assert len([name for name in disk.names("t-0") if name.endswith(".log")]) == 25
    assert everything(log) == [(index, str(index)) for index in range(50)]
    assert values(log.read(31, 1 << 20))[0] == (31, "31")
    assert log.size_bytes == sum(disk.size(f"t-0/{name}") for name in disk.names("t-0") if name.endswith(".log"))


def test_a_large_segment_is_looked_up_through_its_index(log: ReplicaLog, disk: Disk) -> None:
    for index in range(200):
        log.append_as_leader(batch(str(index), "x" * 300), 0, index)
    again = ReplicaLog(disk, "t-0", was_closed=True)

    for opened in (log, again):
        assert [values(opened.read(offset, 1))[0][0] for offset in range(0, 400, 7)] == [
            offset // 2 * 2 for offset in range(0, 400, 7)
        ]


@pytest.mark.parametrize("was_closed", [True, False])
def test_a_log_opened_again_is_as_it_was(disk: Disk, was_closed: bool) -> None:
    log = filled(disk, 10, per_epoch=3)
    log.flush()
    log.close()
    again = ReplicaLog(disk, "t-0", SMALL, was_closed=was_closed)

    assert everything(again) == [(index, str(index)) for index in range(10)]
    assert (again.leader_epochs, again.end_offset) == (((0, 0), (1, 3), (2, 6), (3, 9)), 10)
    assert again.append_as_leader(batch("more"), 4, 0) == (10, 11)
    again.truncate_to(5)
    assert (again.end_offset, everything(again)) == (5, [(index, str(index)) for index in range(5)])


def test_the_high_watermark_stays_within_the_log(log: ReplicaLog) -> None:
    log.append_as_leader(batch("a", "b"), 0, 0)
    log.high_watermark = 100
    assert log.high_watermark == 2
    log.high_watermark = -5
    assert log.high_watermark == 0


def test_end_of_an_epoch_equals_offset_for_leader_epoch(log: ReplicaLog) -> None:
    assert log.end_of_epoch(0) == (-1, -1)
    for epoch in (2, 2, 5):
        log.append_as_leader(batch("a", "b"), epoch, 0)

    assert [log.end_of_epoch(epoch) for epoch in (-1, 1, 2, 3, 5, 6)] == [
        (-1, -1),
        (1, 0),
        (2, 4),
        (2, 4),
        (5, 6),
        (-1, -1),
    ]


def test_an_epoch_can_be_assigned_before_its_first_record(log: ReplicaLog) -> None:
    log.append_as_leader(batch("a"), 1, 0)
    log.assign_epoch(3)
    log.assign_epoch(2)
    assert log.leader_epochs == ((1, 0), (3, 1))
    log.assign_epoch(4)
    assert list(log.leader_epochs) == [(1, 0), (4, 1)]
    log.truncate_to(1)
    assert list(log.leader_epochs) == [(1, 0)]


def test_a_record_is_found_by_its_time(disk: Disk) -> None:
    assert ReplicaLog(disk, "u-0").offset_for_timestamp(0) is None
    log = filled(disk, 10, step_ms=100)
    expected = [(0, 0), (5, 500), (9, 900), None]
    assert [log.offset_for_timestamp(ms) for ms in (0, 450, 900, 901)] == expected
    log.flush()
    log.close()
    again = ReplicaLog(disk, "t-0", SMALL, was_closed=True)
    assert [again.offset_for_timestamp(ms) for ms in (0, 450, 900, 901)] == expected
    assert again.max_timestamp() == (9, 900)
    assert ReplicaLog(disk, "v-0").max_timestamp() is None


def with_times(*times_ms: int, gzip: bool = False) -> bytes:
    """A batch of one record for each time."""
    records = b""
    for index, time_ms in enumerate(times_ms):
        delta = 2 * (time_ms - times_ms[0]) if time_ms >= times_ms[0] else -2 * (time_ms - times_ms[0]) - 1
        body = bytes((0, delta, 2 * index, 1, 0, 0))
        records += bytes((2 * len(body),)) + body
    count = len(times_ms)
    header = struct.pack(">hiqqqhii", int(gzip), count - 1, times_ms[0], max(times_ms), -1, -1, -1, count)
    body = header + (zlib.compress(records, wbits=31) if gzip else records)
    return struct.pack(">qiibI", 0, 9 + len(body), 0, 2, crc32c(body)) + body


@pytest.mark.parametrize("gzip", [False, True])
def test_a_record_within_a_batch_is_found_by_its_time(disk: Disk, gzip: bool) -> None:
    log = ReplicaLog(disk, "t-0")
    log.append_as_leader(with_times(10, 20, 15, 40, gzip=gzip), 0, 0)
    log.append_as_leader(with_times(50, 30, gzip=gzip), 0, 0)

    found = [log.offset_for_timestamp(ms) for ms in (0, 11, 21, 41, 51)]
    assert found == [(0, 10), (1, 20), (3, 40), (4, 50), None]
    assert log.max_timestamp() == (4, 50)
    log.high_watermark = 6
    log.advance_start_offset(2)
    assert log.offset_for_timestamp(0) == (2, 15)


def test_of_records_compressed_otherwise_the_batch_is_found(log: ReplicaLog) -> None:
    lz4 = with_header(with_times(10, 20), attributes=3)
    log.append_as_leader(lz4, 0, 0)

    assert log.offset_for_timestamp(15) == (0, 20)


def test_log_is_renamed_and_removed_and_then_refuses_calls(log: ReplicaLog, disk: Disk) -> None:
    log.append_as_leader(batch("a"), 0, 0)
    log.rename("t-0.0123-delete")
    assert everything(log) == [(0, "a")]
    log.remove()
    assert disk.names() == []
    with pytest.raises(OSError, match=r"the log is closed: .*t-0\.0123-delete"):
        log.read(0, 10)


@each_row("length", [b"\x01", b"\x03", b"\x00", b"\x0a"])
def test_compressed_records_with_bad_offsets_are_reported_by_batch(length: bytes) -> None:
    count = (1 << 31) - 1
    header = struct.pack(">hiqqqhii", 1, count - 1, 10, 50, -1, -1, -1, count)
    body = header + zlib.compress(length * 64, wbits=31)
    data = struct.pack(">qiibI", 0, 9 + len(body), 0, 2, crc32c(body)) + body
    assert list(times(data, read_header(data, 0), 0)) == [(0, 50)]


def test_an_incomplete_batch_has_its_position() -> None:
    first = batch("a")
    with pytest.raises(CorruptBatchError, match=r"it has \d+ bytes, of which \d+ are given") as raised:
        read_header(first + batch("b")[:-1], len(first))
    assert raised.value.position == len(first)


def test_a_batch_that_ends_after_its_file_is_reported(disk: Disk) -> None:
    disk.append("x", batch("a")[:-3])
    with pytest.raises(CorruptBatchError, match="batch at 0: it ends 3 bytes after the file"):
        list(scan(disk, "x", check_crc=False))


@each_row("append_time_ms", [None, 77])
@each_row("attributes", [0, 8])
def test_a_stamped_batch_has_the_header_that_is_returned(append_time_ms: int | None, attributes: int) -> None:
    data = bytearray(batch("a", "b", attributes=attributes))
    stamped = stamp(data, read_header(bytes(data), 0), 7, 3, append_time_ms)
    assert stamped == read_header(bytes(data), 0)
    assert (stamped.base_offset, stamped.last_offset, stamped.leader_epoch) == (7, 8, 3)
