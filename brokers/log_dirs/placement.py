"""Choice of the directory for a new replica (Kafka's `LogManager.nextLogDirs`)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple


class DirectoryAt(NamedTuple):
    """One log directory as configured: its path and its uuid, 16 bytes."""

    path: str
    directory_id: bytes


def candidates(
    log_dirs: Sequence[DirectoryAt], load: Mapping[bytes, int], offline: Container[bytes], cordoned: Container[bytes]
) -> list[DirectoryAt]:
    """Return the directories for a new replica, best first; Kafka tries the next one when creating the log fails.

    The live, uncordoned directories by the number of replicas in them (`load`, by uuid; a future replica counts), ties
    in the order of `log_dirs`. With a single live directory: that one, cordoned or not. With all live ones cordoned:
    the first of them. With none live: empty.
    """
    live = [log_dir for log_dir in log_dirs if log_dir.directory_id not in offline]
    uncordoned = [log_dir for log_dir in live if log_dir.directory_id not in cordoned]
    if len(live) == 1 or not uncordoned:
        return live[:1]
    return sorted(uncordoned, key=lambda log_dir: load.get(log_dir.directory_id, 0))
