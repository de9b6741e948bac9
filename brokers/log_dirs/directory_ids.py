"""The uuids of log directories: drawn, ordered and reserved as Kafka has them (`DirectoryId`, KIP-858)."""

from __future__ import annotations

import random
from collections.abc import Iterable

from mockraft.wire.uuids import text_of

MIGRATING = bytes(16)
"""The directory of a replica that never told one."""
UNASSIGNED = bytes(15) + b"\1"
"""The broker has not said yet where the replica lies."""
LOST = bytes(15) + b"\2"
"""The replica lay in a directory that is offline, and nobody knows which."""
RESERVED_BELOW = 100


def is_reserved(directory_id: bytes) -> bool:
    """Whether this is one of the ids that no directory may have: a high half of 0 and a (signed) low half below 100."""
    return directory_id[:8] == bytes(8) and int.from_bytes(directory_id[8:], signed=True) < RESERVED_BELOW


def draw_uuid(chance: random.Random) -> bytes:
    """A version 4 uuid as Kafka's `Uuid.randomUuid` gives it: never reserved, no dash at the start of its text."""
    while True:
        drawn = bytearray(chance.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not text_of(bytes(drawn)).startswith("-"):
            return bytes(drawn)


def in_java_order(directory_ids: Iterable[bytes]) -> list[bytes]:
    """Sorted as Java's `Uuid.compareTo` does: two signed 64-bit numbers, so a set top bit comes first."""
    return sorted(directory_ids, key=lambda d: (int.from_bytes(d[:8], signed=True), int.from_bytes(d[8:], signed=True)))
