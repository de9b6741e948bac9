"""Records of a gzip batch, up to a limit: a few bytes can expand to gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

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
