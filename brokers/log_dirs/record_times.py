"""Timestamps of the records in a batch: the only part of records that a log decodes, for ListOffsets by time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from mockraft.brokers.log_dirs.batch_headers import COMPRESSION, HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

_GZIP = 1
_INFLATED_BYTES_MAX = 64 << 20
_RECORD_BYTES_MIN = 6
"""Attributes, two deltas, and the lengths of no key, no value and no headers."""


def times(data: bytes, header: BatchHeader, start_offset: int) -> Iterator[tuple[int, int]]:
    """Return (offset, timestamp in ms) of each record from `start_offset` on in the bytes of a batch.

    Only gzip is decompressed. For other codecs, and for a batch that cannot be read, the batch's largest timestamp is
    returned for its first record.
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
            if length < _RECORD_BYTES_MIN:
                # Compressed records were not validated: lengths must not lead backwards or into a loop.
                raise WireError(f"a record of {length} bytes")
            time_delta, at = record_batch.read_varint(records, position + 1, len(records))
            offset_delta, _ = record_batch.read_varint(records, at, len(records))
            if header.base_offset + offset_delta >= start_offset:
                yield header.base_offset + offset_delta, header.base_timestamp_ms + time_delta
            position += length
    except WireError:
        yield unknown


def _plain(data: bytes, codec: int) -> bytes | None:
    if codec == 0:
        return data[HEADER_BYTES:]
    if codec != _GZIP:
        return None
    try:
        return zlib.decompressobj(wbits=31).decompress(data[HEADER_BYTES:], _INFLATED_BYTES_MAX)
    except zlib.error:
        return None
