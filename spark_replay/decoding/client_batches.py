"""The records of one batch as producers and brokers write it: compressed, with headers, or compacted.

`wire.record_batch` reads what a metadata log may hold; this module reads what any topic may. Compressed batches are
untrusted: a batch is decompressed in pieces, and refused as soon as it is longer than the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader, read_varint

_PIECE_BYTES: Final = 1 << 18
_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_BYTES: Final = 16
_INT64_MAX: Final = (1 << 63) - 1
_INT32_MAX: Final = (1 << 31) - 1


class Record(NamedTuple):
    """A record of a batch; header values may be null."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def read_records(data: bytes, header: BatchHeader, bytes_max: int) -> Iterator[Record]:
    """Yield the records of a batch, whose header was read, one by one.

    Raises WireError for bytes that are not such records, and for a batch that decompresses to more than `bytes_max`.
    """
    if header.compression == "none":
        position, end = header.position + HEADER_BYTES, header.end
    else:
        packed = data[header.position + HEADER_BYTES : header.end]
        data = decompressed(packed, header.compression, bytes_max, f"record batch at {header.position}")
        position, end = 0, len(data)
    fixed_time = header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else None
    for index in range(header.record_count):
        length, position = read_varint(data, position, end)
        stop = position + length
        if length < 0 or stop > end:
            raise WireError(f"record {index} of the batch at {header.position}: length {length} leaves the batch")
        time_delta, position = read_varint(data, position + 1, stop)
        offset_delta, position = read_varint(data, position, stop)
        key, position = _bytes(data, position, stop)
        value, position = _bytes(data, position, stop)
        headers, position = _headers(data, position, stop)
        offset, timestamp_ms = header.base_offset + offset_delta, header.base_timestamp_ms + time_delta
        if position != stop:
            raise WireError(f"record {index} of the batch at {header.position}: {stop - position} bytes too long")
        if not 0 <= offset_delta <= _INT32_MAX or offset > _INT64_MAX or not -1 <= timestamp_ms <= _INT64_MAX:
            raise WireError(f"record {index} of the batch at {header.position}: offset {offset}, time {timestamp_ms}")
        yield Record(offset, timestamp_ms if fixed_time is None else fixed_time, key, value, headers)
    if position != end:
        raise WireError(f"record batch at {header.position}: {end - position} bytes after its last record")


def _bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise WireError(f"record batch: {length} bytes at {position} leave their record")
    return data[position : position + length], position + length


def _headers(data: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = read_varint(data, position, end)
    if count < 0:
        raise WireError(f"record batch: {count} headers at {position}")
    found = []
    for _ in range(count):
        key, position = _bytes(data, position, end)
        value, position = _bytes(data, position, end)
        found.append(((key or b"").decode("utf-8", "backslashreplace"), value))
    return found, position


def decompressed(packed: bytes, codec: str, bytes_max: int, source: str) -> bytes:
    """Return decompressed bytes. Raises WireError, which names the source, for damage and more than `bytes_max`."""
    try:
        return _decompressed(packed, codec, bytes_max)
    except (OSError, ValueError) as error:
        raise WireError(f"{source}: cannot be decompressed ({codec}): {error}") from None


def _decompressed(packed: bytes, codec: str, bytes_max: int) -> bytes:
    if codec == "snappy":
        return _snappy(packed, bytes_max)
    parts: list[bytes] = []
    size = 0
    with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
        while piece := stream.read(min(_PIECE_BYTES, bytes_max + 1 - size)):
            size += len(piece)
            if size > bytes_max:
                raise WireError(_too_long(bytes_max))
            parts.append(piece)
    return b"".join(parts)


def _snappy(packed: bytes, bytes_max: int) -> bytes:
    """Decompress blocks with lengths, as Java's clients write them (xerial), or one block, as librdkafka may."""
    if not packed.startswith(_XERIAL):
        return _snappy_block(packed, bytes_max)
    parts: list[bytes] = []
    position, size = _XERIAL_BYTES, 0
    while position < len(packed):
        length = int.from_bytes(packed[position : position + 4], signed=True)
        position += 4
        if length < 0 or position + length > len(packed):
            raise WireError(f"a block of {length} bytes leaves the batch")
        parts.append(_snappy_block(packed[position : position + length], bytes_max - size))
        size += len(parts[-1])
        position += length
    return b"".join(parts)


def _snappy_block(block: bytes, bytes_max: int) -> bytes:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > bytes_max:
        raise WireError(_too_long(bytes_max))
    data: bytes = pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True)
    return data


def _too_long(bytes_max: int) -> str:
    return f"it has more than {bytes_max} bytes (record_bytes_max)"
