"""Timestamps of the records in a batch: the only part of records that a log decodes, for ListOffsets by time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from mockraft.brokers.log_dirs.batch_headers import RECORD_BYTES_MIN
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import COMPRESSION, HEADER_BYTES, LOG_APPEND_TIME, BatchHeader

GZIP: Final = 1
UNPACKED_BYTES_MAX: Final = 4 << 20
"""Beyond it records are neither checked nor searched: 80 kB hold eight million of them, half a minute's work."""


def unpack(packed: bytes) -> tuple[bytes, bool]:
    """Return the records, and True if these are all. Raises zlib.error for bytes that are no complete gzip stream."""
    stream = zlib.decompressobj(wbits=31)
    records = stream.decompress(packed, UNPACKED_BYTES_MAX)
    if not stream.eof and len(records) < UNPACKED_BYTES_MAX:
        raise zlib.error("the stream is cut")
    return records, stream.eof


_INT64 = range(-(1 << 63), 1 << 63)


def times(data: bytes, header: BatchHeader, start_offset: int) -> Iterator[tuple[int, int]]:
    """Return (offset, timestamp in ms) of each record from `start_offset` on in the bytes of a batch.

    Only gzip is decompressed. For other codecs, and for a batch that cannot be read, the batch's largest timestamp is
    returned for its first record; so it is after the first 4 MiB of decompressed records.
    """
    unknown = max(header.base_offset, start_offset), header.max_timestamp_ms
    if header.attributes & LOG_APPEND_TIME:
        yield unknown
        return
    records = _plain(data, header.attributes & COMPRESSION)
    if records is None:
        yield unknown
        return
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = record_batch.read_varint(records, position, len(records))
            if length < RECORD_BYTES_MIN:
                # Not all compressed records were validated: lengths must not lead backwards or into a loop.
                raise WireError(f"a record of {length} bytes")
            time_delta, at = record_batch.read_varint(records, position + 1, len(records))
            offset_delta, _ = record_batch.read_varint(records, at, len(records))
            offset, time_ms = header.base_offset + offset_delta, header.base_timestamp_ms + time_delta
            if not header.base_offset <= offset <= header.last_offset or time_ms not in _INT64:
                raise WireError(f"a record at offset {offset} with the time {time_ms}")
            if offset >= start_offset:
                yield offset, time_ms
            position += length
    except WireError:
        yield unknown


def _plain(data: bytes, codec: int) -> bytes | None:
    if codec == 0:
        return data[HEADER_BYTES:]
    if codec != GZIP:
        return None
    try:
        return unpack(data[HEADER_BYTES:])[0]
    except zlib.error:
        return None
