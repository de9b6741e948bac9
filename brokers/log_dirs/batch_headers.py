"""Headers of record batches (magic 2) as clients and brokers write them; the records are opaque, compressed or not.

Source: Kafka's DefaultRecordBatch. `mockraft.wire.record_batch` is strict about what a metadata log holds; this module
also accepts what a compacted log holds: gaps in offsets, and batches without records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    crc32c,
    read_sparse_header,
)

RECORD_BYTES_MIN = 6
"""Attributes, two deltas, and the lengths of no key, no value and no headers."""

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
ATTRIBUTES = struct.Struct(">h")
_LEADER_EPOCH_AT, _MAGIC_AT, _CRC_AT, ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 12, 16, 17, 21, 35
CHUNK_BYTES = 1 << 20


class CorruptBatchError(LogError):
    """CORRUPT_MESSAGE (2): there is no complete and valid batch at `position`."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(error_codes.CORRUPT_MESSAGE, message)
        self.position = position


def begins_transactional(data: bytes) -> bool:
    """Return True if the first batch is part of a transaction; its other fields may be invalid."""
    if len(data) < HEADER_BYTES or data[_MAGIC_AT] != MAGIC:
        return False
    return bool(ATTRIBUTES.unpack_from(data, ATTRIBUTES_AT)[0] & TRANSACTIONAL)


def read_header(
    data: bytes | memoryview, position: int, *, check_crc: bool = True, file_position: int = 0
) -> BatchHeader:
    """Return the header of the batch at `position`, as `read_sparse_header` does. Raises CorruptBatchError."""
    try:
        return read_sparse_header(data, position, check_crc=check_crc, file_position=file_position)
    except WireError as error:
        raise CorruptBatchError(str(error), file_position + position) from None


def read_headers(data: bytes, *, check_crc: bool = True) -> list[BatchHeader]:
    """Return the headers of all batches in `data`. Raises CorruptBatchError when there is anything else."""
    headers = []
    position = 0
    while position < len(data):
        header = read_header(data, position, check_crc=check_crc)
        if header.end > len(data):
            raise CorruptBatchError(f"batch at {position}: it ends {header.end - len(data)} bytes too late", position)
        headers.append(header)
        position = header.end
    return headers


def write_crc(data: bytearray, position: int, end: int) -> None:
    """Write the CRC of the batch from `position` to `end` into its header."""
    with memoryview(data) as view, view[position + ATTRIBUTES_AT : end] as covered:
        _CRC.pack_into(data, position + _CRC_AT, crc32c(covered))


def check_offsets(header: BatchHeader) -> None:
    """Raise CorruptBatchError for offsets that no log has."""
    if not 0 <= header.base_offset <= header.last_offset:
        message = f"batch at {header.position}: offsets {header.base_offset} to {header.last_offset}"
        raise CorruptBatchError(message, header.position)


def scan(
    disk: Disk, name: str, start: int = 0, *, check_crc: bool, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[BatchHeader]:
    """Yield the headers of a file's batches from byte `start` on; CorruptBatchError for an incomplete last one.

    Without `check_crc` the records are not read. OSErrors of the disk pass through.
    """
    size = disk.size(name)
    chunk, chunk_at = b"", start
    position = start
    while position < size:
        needed = HEADER_BYTES
        if position - chunk_at + needed > len(chunk):
            chunk, chunk_at = disk.read(name, position, chunk_bytes), position
        header = read_header(chunk, position - chunk_at, check_crc=False, file_position=chunk_at)
        if header.end > size:
            raise CorruptBatchError(f"batch at {position}: it ends {header.end - size} bytes after the file", position)
        if check_crc:
            if header.end - chunk_at > len(chunk):
                chunk = disk.read(name, position, max(header.end - position, chunk_bytes))
                chunk_at = position
            header = read_header(chunk, position - chunk_at, file_position=chunk_at)
        check_offsets(header)
        yield header
        position = header.end


def stamp(
    data: bytearray, header: BatchHeader, base_offset: int, leader_epoch: int, append_time_ms: int | None
) -> BatchHeader:
    """Write offset and epoch into the header at its position, and the time when LogAppendTime is wanted.

    The CRC covers neither offset nor epoch; with a time it is recomputed.
    """
    at = header.position
    _BASE_OFFSET.pack_into(data, at, base_offset)
    _LEADER_EPOCH.pack_into(data, at + _LEADER_EPOCH_AT, leader_epoch)
    attributes, max_timestamp_ms = header.attributes, header.max_timestamp_ms
    if append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp_ms = append_time_ms
    elif attributes & LOG_APPEND_TIME:
        attributes &= ~LOG_APPEND_TIME
    if attributes != header.attributes or max_timestamp_ms != header.max_timestamp_ms:
        ATTRIBUTES.pack_into(data, at + ATTRIBUTES_AT, attributes)
        _BASE_OFFSET.pack_into(data, at + _MAX_TIMESTAMP_AT, max_timestamp_ms)
        write_crc(data, at, header.end)
    return header._replace(
        base_offset=base_offset,
        last_offset=base_offset + header.last_offset - header.base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        max_timestamp_ms=max_timestamp_ms,
    )
