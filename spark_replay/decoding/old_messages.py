"""Messages of the record formats 0 and 1, which clients before Kafka 0.11 write and Fetch before version 4 returns.

Source: Kafka's LegacyRecord and AbstractLegacyRecordBatch. A compressed message has messages as its value; in format 1
their offsets are relative.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from mockraft.spark_replay.decoding.client_batches import Record, decompressed
from mockraft.wire.errors import WireError

BYTES_MIN = 26
"""Size of a message of format 0 without key and value."""

_COUNTED_FROM, _CRC_START = 12, 16
_OFFSET_AND_LENGTH = Struct(">qi")
_FIRST = Struct(">qiIbb")  # offset, length, crc, magic, attributes
_TIMESTAMP, _LENGTH = Struct(">q"), Struct(">i")
_COMPRESSIONS = ("none", "gzip", "snappy", "lz4")
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_NO_TIME = -1


class Message(NamedTuple):
    """A message and its range in the bytes; the value of a compressed one is packed messages."""

    start: int
    end: int
    magic: int
    attributes: int
    record: Record

    @property
    def compression(self) -> str:
        """The name of the codec, "none" for a message that is not compressed."""
        codec = self.attributes & _CODEC
        return _COMPRESSIONS[codec] if codec < len(_COMPRESSIONS) else f"codec {codec}"


def is_message(data: bytes, start: int) -> bool:
    """Return True if there is a message at `start`, not a batch of format 2."""
    return data[start + _CRC_START : start + _CRC_START + 1] in (b"\0", b"\1")


def is_partial(data: bytes, start: int) -> bool:
    """Return True if `data` ends inside the message at `start`, of which it has the first 17 bytes."""
    length: int = _OFFSET_AND_LENGTH.unpack_from(data, start)[1]
    return len(data) - start < _COUNTED_FROM + length


def read_message(data: bytes, start: int) -> Message:
    """Read the message at `start`. Raises WireError for a wrong length or CRC."""
    if len(data) - start < BYTES_MIN:
        raise WireError(f"message at {start}: {len(data) - start} bytes, it needs at least {BYTES_MIN}")
    offset, length, crc, magic, attributes = _FIRST.unpack_from(data, start)
    end = start + _COUNTED_FROM + length
    if not start + BYTES_MIN + 8 * magic <= end <= len(data):
        raise WireError(f"message at {start}: length {length}, {len(data) - start - _COUNTED_FROM} bytes follow")
    computed = zlib.crc32(memoryview(data)[start + _CRC_START : end])
    if computed != crc:
        raise WireError(f"message at {start}: CRC {crc:#010x}, computed {computed:#010x}")
    at, timestamp_ms = start + _FIRST.size, _NO_TIME
    if magic:
        (timestamp_ms,) = _TIMESTAMP.unpack_from(data, at)
        at += _TIMESTAMP.size
    key, at = _bytes(data, at, end)
    value, at = _bytes(data, at, end)
    if at != end:
        raise WireError(f"message at {start}: {end - at} bytes after its value")
    return Message(start, end, magic, attributes, Record(offset, timestamp_ms, key, value, []))


def records_of(message: Message, bytes_max: int) -> Iterator[Record]:
    """Yield the records of a message, those in it if it is compressed.

    Raises WireError for bytes that are not such messages, and for more than `bytes_max` of them.
    """
    if message.compression == "none":
        yield message.record
        return
    packed = message.record.value or b""
    if message.compression == "lz4" and not message.magic:
        packed = _with_header_checksum(packed)
    data = decompressed(packed, message.compression, bytes_max, f"message at {message.start}")
    # Relative offsets count from the first message; librdkafka may leave the outer offset 0.
    is_relative = message.magic == 1 and message.record.offset > 0
    base = message.record.offset - _last_offset(data) if is_relative else 0
    at = 0
    while at < len(data):
        inner = read_message(data, at)
        outer = message if message.attributes & _LOG_APPEND_TIME else inner
        yield inner.record._replace(offset=base + inner.record.offset, timestamp_ms=outer.record.timestamp_ms)
        at = inner.end


def _last_offset(data: bytes) -> int:
    offset = at = 0
    while at + _OFFSET_AND_LENGTH.size <= len(data):
        offset, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        at += _COUNTED_FROM + max(length, 0)
    return offset


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size: int = _LENGTH.unpack_from(data, at)[0] if at + 4 <= end else end
    at += 4
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise WireError(f"message: {size} bytes at {at} leave it")
    return data[at : at + size], at + size


def _with_header_checksum(packed: bytes) -> bytes:
    """Correct the checksum of an LZ4 frame's header, which clients of format 0 got wrong (KAFKA-3160)."""
    descriptor = packed[4:6]
    if len(descriptor) < 2:
        return packed
    # xxHash32 of two bytes.
    digest = 374761393 + len(descriptor)
    for byte in descriptor:
        digest = digest + byte * 374761393 & 0xFFFFFFFF
        digest = (digest << 11 | digest >> 21) * 2654435761 & 0xFFFFFFFF
    digest = (digest ^ digest >> 15) * 2246822519 & 0xFFFFFFFF
    digest = (digest ^ digest >> 13) * 3266489917 & 0xFFFFFFFF
    return packed[:6] + bytes(((digest ^ digest >> 16) >> 8 & 0xFF,)) + packed[7:]
