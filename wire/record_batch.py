"""Record batches (magic 2) as in the metadata log and its snapshots: uncompressed, contiguous, without record headers.

Source: Kafka's DefaultRecordBatch and DefaultRecord. A batch is 61 bytes of header and then its records; the CRC-32C
covers everything after the CRC field, so neither the base offset nor the leader epoch. Data records have a null key
and a framed metadata record as value (`metadata_log_frame`); control records have a key of two int16 (version, type)
and a bare message as value, and never share a batch with data records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import NamedTuple

from mockraft.wire.errors import WireError

HEADER_BYTES = 61
LENGTH_COUNTED_FROM = 12
MAGIC = 2
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Attributes of a batch: its codec; all records have its largest timestamp; part of a transaction; a control batch."""

LEADER_CHANGE = 2
SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
KRAFT_VERSION = 5
KRAFT_VOTERS = 6
CONTROL_RECORDS = {
    LEADER_CHANGE: "LeaderChangeMessage",
    SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    KRAFT_VERSION: "KRaftVersionRecord",
    KRAFT_VOTERS: "VotersRecord",
}
"""Names of the messages that are values of control records, by type."""

_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_CRC_START = 21
_FIRST = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, crc
_SECOND = struct.Struct(">hiqqqhii")  # attributes … record count: all that the crc covers of the header
_CONTROL_KEY = struct.Struct(">hh")
_NO_PRODUCER = (-1, -1, -1)


def _load_crc32c() -> Callable[..., int]:
    """Return `crc32c.crc32c` without the package's command line, which imports as much as a third of a controller."""
    package = find_spec("crc32c")
    extension = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        import crc32c

        return crc32c.crc32c
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    found: Callable[..., int] = module.crc32c
    return found


crc32c = _load_crc32c()


class BatchHeader(NamedTuple):
    """A batch: its range in the file (`position` to `end`) and its header fields."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def is_control(self) -> bool:
        """True for a batch of KRaft's own records (LeaderChange, KRaftVersion, …) or of transaction markers."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """True if it is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_compressed(self) -> bool:
        """True if the records are compressed."""
        return bool(self.attributes & COMPRESSION)

    @property
    def compression(self) -> str:
        """The name of the codec, "none" for a batch that is not compressed."""
        codec = self.attributes & COMPRESSION
        return _COMPRESSIONS[codec] if codec < len(_COMPRESSIONS) else f"codec {codec}"


class Batch(NamedTuple):
    """A batch and its records, (key, value) each; record i has the offset `base_offset + i`. Times in ms."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    is_control: bool
    records: list[tuple[bytes | None, bytes | None]]
    timestamps_ms: list[int]


def encode(values: Sequence[bytes], *, base_offset: int, leader_epoch: int, timestamp_ms: int) -> bytes:
    """Encode a data batch as the active controller appends it: null keys, one timestamp for all. WireError if empty."""
    parts: list[bytes] = []
    for index, value in enumerate(values):
        delta = _varint(index)
        size = _varint(len(value))
        length = _varint(len(delta) + len(size) + len(value) + 4)
        parts += (length, b"\0\0", delta, b"\x01", size, value, b"\0")
    return _assemble(parts, len(values), 0, base_offset, leader_epoch, timestamp_ms)


def encode_control(
    pairs: Sequence[tuple[bytes, bytes]], *, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytes:
    """Encode a control batch of (key, value) pairs; keys come from `control_key`. Raises WireError if empty."""
    return _assemble(_pairs(pairs), len(pairs), CONTROL, base_offset, leader_epoch, timestamp_ms)


def encode_pairs(pairs: Sequence[tuple[bytes, bytes | None]], *, timestamp_ms: int) -> bytes:
    """Encode a data batch of (key, value) pairs at offset 0 without a leader epoch. Raises WireError if empty."""
    return _assemble(_pairs(pairs), len(pairs), 0, 0, -1, timestamp_ms)


def control_key(control_type: int) -> bytes:
    """Encode the key of a control record: version 0 and the type."""
    return _CONTROL_KEY.pack(0, control_type)


def control_type(key: bytes | None) -> int:
    """Read the type from a control record's key. Raises WireError for anything else."""
    if key is None or len(key) < _CONTROL_KEY.size:
        raise WireError(f"control record: key of {0 if key is None else len(key)} bytes, expected 4")
    version, found = _CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise WireError(f"control record: key version {version}")
    return int(found)


def read_batches(data: bytes, *, allow_partial_tail: bool = False) -> Iterator[Batch]:
    """Read every batch of `data` with its records, with all checks.

    Raises WireError for a bad CRC, length, count or varint, for compression and for record headers. A Fetch response of
    Kafka's may end inside a batch: `allow_partial_tail` omits such a tail instead of refusing it.
    """
    for header in read_headers(data, allow_partial_tail=allow_partial_tail):
        yield read_batch(data, header)


def read_headers(data: bytes, *, allow_partial_tail: bool = False) -> Iterator[BatchHeader]:
    """Check frame and CRC of every batch of `data`, without reading the records. Errors as for `read_batches`."""
    position = 0
    while position < len(data):
        if allow_partial_tail and is_partial(data, position):
            return
        header = read_header(data, position)
        yield header
        position = header.end


def read_header(data: bytes, position: int) -> BatchHeader:
    """Read the batch header at `position`. Raises WireError unless a whole, valid, contiguous batch starts there."""
    header = read_sparse_header(data, position)
    last_offset_delta = header.last_offset - header.base_offset
    if header.base_offset < 0 or last_offset_delta < 0 or header.record_count != last_offset_delta + 1:
        raise WireError(
            f"record batch at {position}: {header.record_count} records, last offset delta {last_offset_delta},"
            f" base offset {header.base_offset}: not contiguous"
        )
    return header


def read_sparse_header(
    data: bytes | memoryview, position: int, *, check_crc: bool = True, file_position: int = 0
) -> BatchHeader:
    """Read the batch header at `position`; records may be missing, as compaction leaves a batch.

    Raises WireError unless a whole batch with a right CRC starts there. With `check_crc` off only the header has to be
    within `data`. Positions in the result and in errors are those in the file, in which `data` starts at
    `file_position`.
    """
    at = file_position + position
    given = len(data) - position
    if given < HEADER_BYTES:
        raise WireError(f"record batch at {at}: {given} bytes, its header alone needs 61")
    base_offset, length, leader_epoch, magic, crc = _FIRST.unpack_from(data, position)
    if magic != MAGIC:
        raise WireError(f"record batch at {at}: magic {magic}, expected 2")
    if length < HEADER_BYTES - LENGTH_COUNTED_FROM:
        raise WireError(f"record batch at {at}: length {length} is below the 49 of a header")
    needed = LENGTH_COUNTED_FROM + length
    if check_crc:
        if needed > given:
            raise WireError(f"record batch at {at}: it has {needed} bytes, of which {given} are given")
        with memoryview(data) as view, view[position + _CRC_START : position + needed] as covered:
            computed = crc32c(covered)
        if computed != crc:
            raise WireError(f"record batch at {at}: CRC {crc:#010x}, computed {computed:#010x}")
    attributes, delta, *rest = _SECOND.unpack_from(data, position + _CRC_START)
    return BatchHeader(at, at + needed, base_offset, base_offset + delta, leader_epoch, attributes, *rest)


def read_batch(data: bytes, header: BatchHeader) -> Batch:
    """Read the records of a batch whose header was read. Errors as for `read_batches`."""
    if header.compression != "none":
        raise WireError(
            f"record batch at {header.position}: compressed with {header.compression}; metadata batches are not"
        )
    position = header.position + HEADER_BYTES
    records: list[tuple[bytes | None, bytes | None]] = []
    timestamps_ms: list[int] = []
    fixed_time = header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else None
    for index in range(header.record_count):
        length, position = read_varint(data, position, header.end)
        end = position + length
        if length < 0 or end > header.end:
            raise WireError(f"record {index} of the batch at {header.position}: length {length} leaves the batch")
        key, value, time_delta = _read_record(data, position, end, index)
        records.append((key, value))
        timestamps_ms.append(header.base_timestamp_ms + time_delta if fixed_time is None else fixed_time)
        position = end
    if position != header.end:
        raise WireError(f"record batch at {header.position}: {header.end - position} bytes after its last record")
    return Batch(header.base_offset, header.last_offset, header.leader_epoch, header.is_control, records, timestamps_ms)


def with_records(data: bytes, header: BatchHeader, pairs: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    """Return the batch at `header` with another key and value in each record; offsets, times and attributes stay.

    Errors as for `read_batch`, and WireError if the number of pairs differs from that of the records.
    """
    if len(pairs) != header.record_count:
        raise WireError(f"record batch at {header.position}: {len(pairs)} pairs for {header.record_count} records")
    parts: list[bytes] = []
    position = header.position + HEADER_BYTES
    for key, value in pairs:
        length, position = read_varint(data, position, header.end)
        _, after_time = read_varint(data, position + 1, header.end)
        _, after_offset = read_varint(data, after_time, header.end)
        parts += _record(data[position:after_offset], key, value)
        position += length
    records = b"".join(parts)
    second = data[header.position + _CRC_START : header.position + HEADER_BYTES]
    length = HEADER_BYTES - LENGTH_COUNTED_FROM + len(records)
    first = _FIRST.pack(header.base_offset, length, header.leader_epoch, MAGIC, crc32c(records, crc32c(second)))
    return b"".join((first, second, records))


def _pairs(pairs: Sequence[tuple[bytes, bytes | None]]) -> list[bytes]:
    return [part for index, (key, value) in enumerate(pairs) for part in _record(b"\0\0" + _varint(index), key, value)]


def _record(start: bytes, key: bytes | None, value: bytes | None) -> tuple[bytes, bytes]:
    """Return the length and the bytes of a record, which starts with its attributes, time delta and offset delta."""
    body = b"".join((start, _nullable(key), _nullable(value), b"\0"))
    return _varint(len(body)), body


def _nullable(data: bytes | None) -> bytes:
    return b"\x01" if data is None else _varint(len(data)) + data


def _read_record(data: bytes, position: int, end: int, index: int) -> tuple[bytes | None, bytes | None, int]:
    """Read key, value and timestamp delta of the record that fills `position` to `end` (attributes to headers)."""
    time_delta, position = read_varint(data, position + 1, end)
    offset_delta, position = read_varint(data, position, end)
    if offset_delta != index:
        raise WireError(f"record {index} of a batch: offset delta {offset_delta}, not contiguous")
    key, position = _read_bytes(data, position, end, index)
    value, position = _read_bytes(data, position, end, index)
    headers, position = read_varint(data, position, end)
    if headers:
        raise WireError(f"record {index} of a batch: {headers} headers, metadata records have none")
    if position != end:
        raise WireError(f"record {index} of a batch: {end - position} bytes after its headers")
    return key, value, time_delta


def _read_bytes(data: bytes, position: int, end: int, index: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise WireError(f"record {index} of a batch: {length} bytes of key or value leave the record")
    return data[position : position + length], position + length


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint (of at most 10 bytes) before `end`; return it and the position after it."""
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise WireError(f"record batch: a varint of more than 10 bytes before {position}")
    raise WireError(f"record batch: a varint runs past {end}")


def _varint(value: int) -> bytes:
    """Encode a non-negative value as a zigzag varint."""
    value <<= 1
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _assemble(
    parts: list[bytes], count: int, attributes: int, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytes:
    if count == 0:
        raise WireError("record batch: no records")
    records = b"".join(parts)
    second = _SECOND.pack(attributes, count - 1, timestamp_ms, timestamp_ms, *_NO_PRODUCER, count)
    crc = crc32c(records, crc32c(second))
    length = HEADER_BYTES - LENGTH_COUNTED_FROM + len(records)
    return b"".join((_FIRST.pack(base_offset, length, leader_epoch, MAGIC, crc), second, records))


def is_partial(data: bytes, position: int) -> bool:
    """Return True if `data` ends inside the batch at `position`."""
    remaining = len(data) - position
    if remaining < HEADER_BYTES:
        return True
    length: int = _FIRST.unpack_from(data, position)[1]
    return remaining < LENGTH_COUNTED_FROM + length
