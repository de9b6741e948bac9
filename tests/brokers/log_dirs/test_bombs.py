"""Batches that expand enormously are kept as they came and need little memory; broken ones get Kafka's errors."""

import tracemalloc
from collections.abc import Callable

import pytest
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.record_times import UNPACKED_BYTES_MAX, unpack
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.wire import error_codes

from ...bombs import CODECS, EMPTY_RECORD, bomb, compressed_batch, record_of_zeros

MANY = 8_000_000
PEAK_BYTES_MAX = 8 * UNPACKED_BYTES_MAX


@pytest.fixture
def log() -> ReplicaLog:
    return ReplicaLog(MemoryDisk("d"), "t-0")


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def packed_zeros(bytes_max: int) -> bytes:
    return compressed_batch("gzip", record_of_zeros(bytes_max))[61:]


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_kept_compressed_and_searched_in_little_memory(log: ReplicaLog, codec: str) -> None:
    data = bomb(codec)
    assert len(data) < 60_000
    assert peak_bytes(lambda: log.append_as_leader(data, 0, 0)) < PEAK_BYTES_MAX
    assert peak_bytes(lambda: log.offset_for_timestamp(1)) < PEAK_BYTES_MAX
    assert peak_bytes(log.max_timestamp) < PEAK_BYTES_MAX
    assert (log.end_offset, log.offset_for_timestamp(1)) == (1, (0, 1000))
    assert len(log.read(0, 1 << 30)) == len(data)


def test_millions_of_records_in_a_few_bytes_are_neither_all_checked_nor_searched(log: ReplicaLog) -> None:
    data = compressed_batch("gzip", EMPTY_RECORD * MANY, MANY)
    assert len(data) < 100_000
    assert log.append_as_leader(data, 0, 0) == (0, MANY)
    # Every record has the batch's first offset and time: only the end of the search is the batch's latest time.
    assert log.offset_for_timestamp(1000) == (0, 1000)
    records, is_whole = unpack(data[61:])
    assert (len(records), is_whole) == (UNPACKED_BYTES_MAX, False)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        pytest.param(87, compressed_batch("gzip", bytes(50 << 20)), id="zeros"),
        pytest.param(87, compressed_batch("gzip", bytes(1000), 1000), id="records without a length"),
        pytest.param(87, compressed_batch("gzip", b""), id="no records"),
        pytest.param(87, compressed_batch("gzip", EMPTY_RECORD * 2), id="more records than announced"),
        pytest.param(87, compressed_batch("gzip", EMPTY_RECORD, 2), id="fewer records than announced"),
        pytest.param(87, compressed_batch("gzip", EMPTY_RECORD * MANY, 1000), id="many more than announced"),
        pytest.param(87, compressed_batch("gzip", b"\xff" * 20), id="length of no end"),
        pytest.param(-1, compressed_batch("gzip", b"", packed=bytes(40)), id="no gzip"),
        pytest.param(-1, compressed_batch("gzip", b"", packed=packed_zeros(3000)[:-12]), id="cut"),
        pytest.param(0, compressed_batch("gzip", b"", packed=packed_zeros(3000) + bytes(7)), id="bytes after it"),
    ],
)
def test_gzip_that_is_no_records_gets_kafkas_error(log: ReplicaLog, code: int, data: bytes) -> None:
    found = error_codes.NONE
    try:
        log.append_as_leader(data, 0, 0)
    except LogError as refused:
        found = refused.error_code
    assert found == code
    assert log.end_offset == (code == error_codes.NONE)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(b"\x1e\0" + b"\xff" * 9 + b"\x7f\0\x01\x01\0", id="time beyond 64 bits"),
        pytest.param(b"\x0e\0\0\x80\x01\x01\x01\0", id="offset after the batch"),
        pytest.param(b"\x0c\0\0\x01\x01\x01\0", id="offset before the batch"),
    ],
)
def test_times_and_offsets_that_no_response_can_hold_are_not_found(log: ReplicaLog, record: bytes) -> None:
    log.append_as_leader(compressed_batch("gzip", record), 0, 0)
    assert log.offset_for_timestamp(1000) == (0, 1000)


def test_a_large_record_over_the_limit_is_no_error(log: ReplicaLog) -> None:
    records = EMPTY_RECORD * 3 + record_of_zeros(UNPACKED_BYTES_MAX)
    assert log.append_as_leader(compressed_batch("gzip", records, 4), 0, 0) == (0, 4)
