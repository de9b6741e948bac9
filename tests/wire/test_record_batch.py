import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

from ..budgets import budget
from ..rows import each_row

# Bytes that Kafka 4.3.1's controller wrote.
NOOP_BATCH = bytes.fromhex(
    "000000000000000d0000003c00000001020926ad81000000000000000001a1f83b304b000001a1f83b304b"
    "ffffffffffffffffffffffffffff000000011400000001080114000000"
)
LOG_HEAD = bytes.fromhex(
    "0000000000000000000000a200000001027c3ccea8002000000002000001a1f83b2de3000001a1f83b2de3"
    "ffffffffffffffffffffffffffff000000033a000000080000000226000000000bb80200000bb8000200000bb80000"
    "001e00000208000000050a000000010000820100000408000000066e00000200000bb8e4503f1825d64cdaab2eba68c7"
    "a3116d020b434f4e54524f4c4c45520a3132372e302e302e314a95000000000100000000"
)
SNAPSHOT = bytes.fromhex(
    "00000000000000000000009a0000000002b03c9595002000000002000001a1f839dd7b000001a1f839dd7b"
    "ffffffffffffffffffffffffffff000000032a0000000800000003160000000001a1f839dd7800001e00000208000000"
    "050a000000010000820100000408000000066e00000200000bb8e4503f1825d64cdaab2eba68c7a3116d020b434f4e54"
    "524f4c4c45520a3132372e302e302e314a9500000000010000000000000000000000030000003f00000000029db6cdde"
    "002000000000000001a1f839dd82000001a1f839dd82ffffffffffffffffffffffffffff000000011a00000008000000"
    "040600000000"
)
NOOP = bytes.fromhex("01140000")

values = st.lists(st.binary(max_size=300), min_size=1, max_size=40)
offsets = st.integers(0, 2**62)
epochs = st.integers(0, 2**31 - 1)
times = st.integers(0, 2**62)


def test_a_data_batch_is_kafkas_byte_for_byte() -> None:
    written = record_batch.encode([NOOP], base_offset=13, leader_epoch=1, timestamp_ms=0x1A1F83B304B)
    assert written == NOOP_BATCH


@each_row("kafkas", {"log head": LOG_HEAD, "snapshot": SNAPSHOT})
def test_control_batches_are_kafkas_byte_for_byte(kafkas: bytes) -> None:
    written = [
        record_batch.encode_control(
            [(key or b"", value or b"") for key, value in batch.records],
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            timestamp_ms=batch.timestamps_ms[0],
        )
        for batch in record_batch.read_batches(kafkas)
    ]
    assert b"".join(written) == kafkas


def test_reads_batches_written_by_kafka() -> None:
    (batch,) = record_batch.read_batches(LOG_HEAD)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.is_control) == (0, 2, 1, True)
    assert [record_batch.control_type(key) for key, _ in batch.records] == [
        record_batch.LEADER_CHANGE,
        record_batch.KRAFT_VERSION,
        record_batch.KRAFT_VOTERS,
    ]
    header, footer = record_batch.read_batches(SNAPSHOT)
    assert record_batch.control_type(header.records[0][0]) == record_batch.SNAPSHOT_HEADER
    assert record_batch.control_type(footer.records[0][0]) == record_batch.SNAPSHOT_FOOTER
    assert footer.base_offset == 3


@given(values, offsets, epochs, times)
def test_data_batches_come_back(values: list[bytes], base_offset: int, epoch: int, timestamp_ms: int) -> None:
    data = record_batch.encode(values, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms)
    (batch,) = record_batch.read_batches(data)
    assert batch.records == [(None, value) for value in values]
    assert (batch.base_offset, batch.leader_epoch, batch.is_control) == (base_offset, epoch, False)
    assert batch.last_offset == base_offset + len(values) - 1
    assert batch.timestamps_ms == [timestamp_ms] * len(values)


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=200)), min_size=1, max_size=9), offsets)
def test_control_batches_come_back(pairs: list[tuple[bytes, bytes]], base_offset: int) -> None:
    data = record_batch.encode_control(pairs, base_offset=base_offset, leader_epoch=3, timestamp_ms=5)
    (batch,) = record_batch.read_batches(data)
    assert batch.records == pairs
    assert batch.is_control


def test_long_values_and_many_records_come_back() -> None:
    values = [bytes(size) for size in (0, 63, 64, 8191, 8192, 1 << 20)] + [b"x"] * 20_000
    data = record_batch.encode(values, base_offset=1 << 40, leader_epoch=1, timestamp_ms=1)
    (batch,) = record_batch.read_batches(data)
    assert [value for _, value in batch.records] == values


def test_reads_batches_one_after_the_other() -> None:
    headers = list(record_batch.read_headers(LOG_HEAD + NOOP_BATCH))
    assert [(header.position, header.base_offset) for header in headers] == [(0, 0), (len(LOG_HEAD), 13)]


@each_row("size", range(1, len(NOOP_BATCH)))
def test_a_partial_tail_is_refused_or_left_out(size: int) -> None:
    data = LOG_HEAD + NOOP_BATCH[:size]
    with pytest.raises(WireError):
        list(record_batch.read_batches(data))
    assert len(list(record_batch.read_batches(data, allow_partial_tail=True))) == 1


@each_row("position", range(8, len(NOOP_BATCH)))
def test_every_damaged_byte_is_noticed(position: int) -> None:
    damaged = bytearray(NOOP_BATCH)
    damaged[position] ^= 0x55
    try:
        (batch,) = record_batch.read_batches(bytes(damaged))
    except WireError:
        return
    assert 12 <= position < 16, "only the leader epoch is outside the CRC"
    assert batch.leader_epoch != 1


def with_crc(data: bytes) -> bytes:
    """Return the batch with a matching CRC, so that the CRC does not reveal the damage."""
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


@each_row(
    ("position", "value", "message"),
    [
        (22, 4, "compressed with zstd"),
        (22, 1, "compressed with gzip"),
        (26, 7, "not contiguous"),
        (60, 2, "not contiguous"),
        (57, 0x7F, "not contiguous"),
        (61, 0x15, "leaves the batch"),
        (61, 0x13, "leaves the batch"),
        (61, 0x12, "runs past"),
        (61, 0x80, "past|leaves|leave"),
        (64, 0x02, "offset delta 1"),
        (65, 0x09, "leave the record"),
        (66, 0x03, "leave the record"),
        (66, 0x0C, "leave the record"),
        (71, 0x02, "1 headers"),
    ],
)
def test_nonsense_under_a_valid_crc_is_refused(position: int, value: int, message: str) -> None:
    damaged = bytearray(NOOP_BATCH)
    damaged[position] = value
    with pytest.raises(WireError, match=message):
        list(record_batch.read_batches(with_crc(bytes(damaged))))


@each_row("length", [-(2**31), -1, 0, 48, 61, 2**31 - 1])
def test_a_false_length_is_refused(length: int) -> None:
    data = NOOP_BATCH[:8] + struct.pack(">i", length) + NOOP_BATCH[12:]
    with pytest.raises(WireError):
        list(record_batch.read_batches(data))


def test_old_magic_is_refused() -> None:
    with pytest.raises(WireError, match="magic 1"):
        list(record_batch.read_batches(NOOP_BATCH[:16] + b"\x01" + NOOP_BATCH[17:]))


@settings(max_examples=budget(150, 500))
@given(st.binary(max_size=200))
def test_garbage_is_a_wire_error(data: bytes) -> None:
    with_frame = NOOP_BATCH[:61] + data
    framed = with_crc(with_frame[:8] + struct.pack(">i", len(with_frame) - 12) + with_frame[12:])
    for hostile in (data, framed):
        try:
            batches = list(record_batch.read_batches(hostile))
        except WireError:
            continue
        assert sum(len(batch.records) for batch in batches) <= len(hostile)


def test_log_append_time_applies_to_all_records() -> None:
    data = bytearray(record_batch.encode([b"a", b"b"], base_offset=0, leader_epoch=0, timestamp_ms=7))
    data[22] |= 0x08
    data[35:43] = struct.pack(">q", 9)
    (batch,) = record_batch.read_batches(with_crc(bytes(data)))
    assert batch.timestamps_ms == [9, 9]


def test_an_empty_batch_cannot_be_written() -> None:
    with pytest.raises(WireError, match="no records"):
        record_batch.encode([], base_offset=0, leader_epoch=0, timestamp_ms=0)


@each_row("key", [None, b"", b"\0\0\0", b"\xff\xff\0\2"])
def test_a_bad_control_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(WireError, match="control record"):
        record_batch.control_type(key)
