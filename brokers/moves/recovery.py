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
    FINISH = auto()
    """Both, and the controller has agreed to the future one's directory: copy what is missing and swap."""
    PROMOTE = auto()
    """The only log is a future one: it becomes the current one."""
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
    agreed = found.future == found.assigned
    if found.current:
        # Kafka promotes at once where the controller had agreed (KAFKA-16082), and loses what was appended since.
        return Recovered(Recovery.FINISH if agreed else Recovery.RESUME)
    return Recovered(Recovery.OFFLINE if found.some_offline and not agreed else Recovery.PROMOTE)
