"""Reserved log directory ids, and the order of ids (Kafka's DirectoryId, Uuid.compareTo)."""

from collections.abc import Sequence
from typing import Final

ZERO: Final = bytes(16)
"""Kafka's Uuid.ZERO_UUID."""

MIGRATING: Final = ZERO
"""Replica of a broker that has not reported its directories yet."""

UNASSIGNED: Final = bytes(15) + b"\x01"
"""Replica whose broker will choose the directory."""

LOST: Final = bytes(15) + b"\x02"
"""Replica whose directory is offline and not known."""

_RESERVED_IDS = 100
_SIGN = 0x80


def is_reserved(directory_id: bytes) -> bool:
    """Return True for an id reserved by Kafka: the first half zero, the second, signed as in Java, below 100."""
    return directory_id[:8] == MIGRATING[:8] and int.from_bytes(directory_id[8:], signed=True) < _RESERVED_IDS


def is_online(directory_id: bytes, log_dirs: Sequence[bytes]) -> bool:
    """Return True if a replica in this directory is served by a broker with these online directories."""
    if directory_id in (UNASSIGNED, MIGRATING):
        return True
    if directory_id == LOST:
        return False
    return not log_dirs or directory_id in log_dirs


def in_java_order(directory_ids: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the ids in Uuid.compareTo's order: two signed 64-bit halves, so those with the top bit set come first."""
    return tuple(sorted(directory_ids, key=_java_order))


def _java_order(directory_id: bytes) -> bytes:
    return bytes([directory_id[0] ^ _SIGN]) + directory_id[1:8] + bytes([directory_id[8] ^ _SIGN]) + directory_id[9:]
