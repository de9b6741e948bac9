"""Where a new replica goes (Kafka's `LogManager.nextLogDirs`)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple


class DirectoryAt(NamedTuple):
    """One log directory as configured: its path and its uuid, 16 bytes."""

    path: str
    directory_id: bytes


def choose(
    log_dirs: Sequence[DirectoryAt], load: Mapping[bytes, int], offline: Container[bytes], cordoned: Container[bytes]
) -> DirectoryAt | None:
    """Where a new replica goes: the live, uncordoned directory with the fewest replicas (`load`, by uuid).

    A cordoned one is taken when there is no other, as Kafka's LogManager does; None when all are offline.
    """
    live = [log_dir for log_dir in log_dirs if log_dir.directory_id not in offline]
    candidates = [log_dir for log_dir in live if log_dir.directory_id not in cordoned] or live
    return min(candidates, key=lambda log_dir: load.get(log_dir.directory_id, 0), default=None)
