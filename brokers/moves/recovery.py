"""Handling of the logs that a starting broker finds: KIP-113's table and the additions of Kafka.

A kill can leave a move at any of its steps. The files and the metadata together determine how it continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple


class Recovery(Enum):
    """The treatment of a replica found at start-up."""

    NOTHING = auto()
    """There is a single current log, or none: serve it."""
    RESUME = auto()
    """Current and future log: continue copying, as after another AlterReplicaLogDirs."""
    FINISH = auto()
    """Both, and the controller has accepted the future one's directory: copy the rest and swap."""
    PROMOTE = auto()
    """The only log is a future one: it becomes the current one."""
    OFFLINE = auto()
    """Only a future log, and the current one may be in a directory that is offline: change nothing."""
    KEEP_ONE = auto()
    """Two current logs, killed between the renames: the one in the directory `keep` stays, the others go."""
    REFUSE = auto()
    """Two current logs, and the metadata names neither directory: the broker does not start, a person decides."""


class ReplicaLogs(NamedTuple):
    """The logs of one replica in the readable directories, each as the uuid of its directory.

    `assigned` is the directory in the metadata, `some_offline` is True if any directory could not be read.
    """

    current: Sequence[bytes]
    future: bytes | None
    assigned: bytes
    some_offline: bool


class Recovered(NamedTuple):
    """The treatment, and for KEEP_ONE the directory."""

    recovery: Recovery
    keep: bytes | None = None


def recover(found: ReplicaLogs) -> Recovered:
    """Return the treatment of the logs of one replica."""
    if len(found.current) > 1:
        if found.assigned in found.current:
            return Recovered(Recovery.KEEP_ONE, found.assigned)
        return Recovered(Recovery.REFUSE)
    if found.future is None:
        return Recovered(Recovery.NOTHING)
    agreed = found.future == found.assigned
    if found.current:
        # Kafka promotes at once when the controller has accepted the directory (KAFKA-16082), and loses later appends.
        return Recovered(Recovery.FINISH if agreed else Recovery.RESUME)
    return Recovered(Recovery.OFFLINE if found.some_offline and not agreed else Recovery.PROMOTE)
