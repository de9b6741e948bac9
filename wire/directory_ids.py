"""Ids of log directories (Kafka's `DirectoryId`, KIP-858) and drawn uuids: reserved ids, order and generation."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING

from mockraft.wire.uuids import text_of

if TYPE_CHECKING:
    import random

MIGRATING = bytes(16)
"""Directory of a replica whose broker has not reported its directories yet."""
UNASSIGNED = bytes(15) + b"\1"
"""Directory of a replica that its broker has not placed yet."""
LOST = bytes(15) + b"\2"
"""Directory of a replica that was in some unknown offline directory."""
RESERVED_BELOW = 100


def is_reserved(directory_id: bytes) -> bool:
    """Return True for an id reserved by Kafka: the first half zero, the second, signed as in Java, below 100."""
    return directory_id[:8] == bytes(8) and int.from_bytes(directory_id[8:], signed=True) < RESERVED_BELOW


def draw_uuid(rng: random.Random) -> bytes:
    """Return a version 4 uuid as Kafka's `Uuid.randomUuid` does: never reserved, no dash at the start of its text."""
    while True:
        drawn = bytearray(rng.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not text_of(bytes(drawn)).startswith("-"):
            return bytes(drawn)


def draw_cluster_id(rng: random.Random) -> str:
    """Return a new cluster id: a Kafka uuid that does not begin with a dash (Uuid.randomUuid)."""
    while True:
        text = text_of(rng.randbytes(16))
        if not text.startswith("-"):
            return text


def in_java_order(directory_ids: Iterable[bytes]) -> list[bytes]:
    """Return the ids in Uuid.compareTo's order: two signed 64-bit halves, so those with the top bit set come first."""
    return sorted(directory_ids, key=_SIGNED_HALVES.unpack)


_SIGNED_HALVES = Struct(">qq")
