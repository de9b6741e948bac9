"""What a starting broker does with the logs it finds: KIP-113's table and what Kafka 4.3.1 added to it.

A kill leaves a move at any of its steps. What is on the disks and what the metadata says settles where it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple


class Recovery(Enum):
    """What becomes of a replica found at start-up."""

    NOTHING = auto()
    """There is a current log and no other: serve it. Or there is no log at all."""
    RESUME = auto()
    """Current and future log: go on copying, as if AlterReplicaLogDirs had come again."""
    PROMOTE = auto()
    """The future log becomes the current one, whatever else there is."""
    OFFLINE = auto()
    """Only a future log, and a directory is offline that may have the current one: touch nothing."""
    KEEP_ONE = auto()
    """Two current logs, killed between the renames: `keep` is the directory the metadata names, the others go."""
    REFUSE = auto()
    """Two current logs, and the metadata names neither's directory: the broker does not start, a person decides."""


class Found(NamedTuple):
    """The logs of one replica on the directories that could be read, each as the uuid of its directory.

    `assigned` is the directory that the metadata names, `some_offline` whether any directory could not be read.
    """

    current: Sequence[bytes]
    future: bytes | None
    assigned: bytes
    some_offline: bool


class Recovered(NamedTuple):
    """What to do, and for KEEP_ONE with which directory."""

    recovery: Recovery
    keep: bytes | None = None


def recover(found: Found) -> Recovered:
    """What to do with the logs of one replica."""
    if len(found.current) > 1:
        if found.assigned in found.current:
            return Recovered(Recovery.KEEP_ONE, found.assigned)
        return Recovered(Recovery.REFUSE)
    if found.future is None:
        return Recovered(Recovery.NOTHING)
    if found.future == found.assigned:
        # The controller had agreed, so the future log had caught up (KAFKA-16082).
        return Recovered(Recovery.PROMOTE)
    if found.current:
        return Recovered(Recovery.RESUME)
    return Recovered(Recovery.OFFLINE if found.some_offline else Recovery.PROMOTE)
