"""A broker's log directories: where replicas lie and under which uuid the controller knows each place (KIP-858)."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from mockraft.wire.uuids import text_of

MIGRATING = bytes(16)
"""The directory of a replica that never told one (Kafka's `DirectoryId.MIGRATING`)."""


class LogDir(NamedTuple):
    """One log directory: its path as configured and its uuid, 16 bytes."""

    path: str
    directory_id: bytes


def draw_uuid(chance: random.Random) -> bytes:
    """A version 4 uuid as Kafka's `Uuid.randomUuid` gives it: no dash at the start of its text."""
    while True:
        drawn = bytearray(chance.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not text_of(bytes(drawn)).startswith("-"):
            return bytes(drawn)


def in_java_order(directory_ids: Iterable[bytes]) -> list[bytes]:
    """Sorted as Java's `Uuid.compareTo` does: two signed 64-bit numbers, so a set top bit comes first."""
    return sorted(directory_ids, key=lambda d: (int.from_bytes(d[:8], signed=True), int.from_bytes(d[8:], signed=True)))


def choose(
    log_dirs: Sequence[LogDir], load: Mapping[bytes, int], offline: Container[bytes], cordoned: Container[bytes]
) -> LogDir | None:
    """Where a new replica goes: the live, uncordoned directory with the fewest replicas (`load`, by uuid).

    A cordoned one is taken when there is no other, as Kafka's LogManager does; None when all are offline.
    """
    live = [log_dir for log_dir in log_dirs if log_dir.directory_id not in offline]
    candidates = [log_dir for log_dir in live if log_dir.directory_id not in cordoned] or live
    return min(candidates, key=lambda log_dir: load.get(log_dir.directory_id, 0), default=None)
