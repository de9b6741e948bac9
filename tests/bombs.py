"""Record batches of every compression, among them small ones that expand to many bytes or records."""

import struct
from typing import Any

import pyarrow as pa
from crc32c import crc32c

CODECS = ("gzip", "snappy", "lz4", "zstd")
EMPTY_RECORD = b"\x0c\0\0\0\x01\x01\0"
"""Offset and time as the batch's first, no key, no value, no headers: the smallest record."""
UNPACKED_BYTES = {"gzip": 50 << 20, "snappy": 1 << 20, "lz4": 60_000, "zstd": 200 << 20}
"""Kafka reads no linked blocks of LZ4, which others write after 64 KiB; Snappy compresses at most 21 times."""


def record_of_zeros(bytes_max: int) -> bytes:
    """One record whose value is zeros, of about this many bytes in all."""
    value = bytes(bytes_max)
    body = b"\0\0\0\x01" + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def compressed_batch(
    codec: str, records: bytes, count: int = 1, *, time_ms: int = 1000, packed: bytes | None = None
) -> bytes:
    """A producer's batch that announces this many records; `packed` replaces the compressed bytes."""
    body: bytes = pa.compress(records, codec=codec, asbytes=True) if packed is None else packed
    attributes = 1 + CODECS.index(codec)
    covered = struct.pack(">hiqqqhii", attributes, count - 1, time_ms, time_ms, -1, -1, -1, count) + body
    return struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc32c(covered)) + covered


def bomb(codec: str, **fields: Any) -> bytes:
    """A valid batch of one record that expands to `UNPACKED_BYTES`."""
    return compressed_batch(codec, record_of_zeros(UNPACKED_BYTES[codec]), **fields)


def _varint(value: int) -> bytes:
    value, out = 2 * value, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
