"""What an I/O error means: that a whole disk is gone, or one replica on it (KIP-18)."""

from __future__ import annotations

import errno
import re
from enum import Enum

from mockraft.brokers.log_dirs.disk import Disk

PROBE_NAME = ".mockraft-probe"
# A block, so that a full disk has no room for it.
_PROBE = bytes(range(256)) * 16

EVERYBODYS = frozenset(
    {
        *(errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.ESHUTDOWN),
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS),
    }
)
"""Errors that are the same for every file: the device or the mount is gone, full or read-only."""
_REPLICA_DIRECTORY = re.compile(r".+-\d+(\.[0-9a-f]{32}-(future|delete|stray))?")


class Scope(Enum):
    """What an I/O error takes with it."""

    DISK = "disk"
    PARTITION = "partition"


class Suspicion(Enum):
    """What an error alone says, before anybody looked at the disk."""

    EVERYBODYS = "it is the same for every file"
    WHOLE_DIR = "a file that every replica of the directory needs"
    SUSPECT = "the disk may be well: it is probed"


def suspicion(error: OSError, name: str) -> Suspicion:
    """What the error says of an operation on `name`, relative to the log directory.

    A replica's files lie in a directory of their own; files beside those (checkpoints, meta.properties, .lock) are
    everybody's.
    """
    if error.errno in EVERYBODYS:
        return Suspicion.EVERYBODYS
    of_a_replica = _REPLICA_DIRECTORY.fullmatch(name.partition("/")[0])
    return Suspicion.SUSPECT if of_a_replica else Suspicion.WHOLE_DIR


def probe(disk: Disk) -> OSError | None:
    """Write, force, read back and remove a small file; what went wrong, None when all went well."""
    try:
        disk.replace(PROBE_NAME, _PROBE)
        disk.sync(PROBE_NAME)
        read_back = disk.read(PROBE_NAME)
        disk.remove(PROBE_NAME)
    except OSError as error:
        return error
    if read_back != _PROBE:
        return OSError(errno.EIO, "reads back other bytes than were written", PROBE_NAME)
    return None


def classify(error: OSError, name: str, disk: Disk) -> tuple[Scope, str]:
    """Whether `error` on `name` costs the directory or one replica, and why, for people.

    The disk is probed unless the error alone says enough: what is one replica's and happens on a disk that still
    writes and reads (a file missing, corrupt, of the wrong kind, not permitted, a bad sector under it) is that
    replica's. Everything else is the disk's: it is gone, full or read-only, or all share the file.
    """
    suspected = suspicion(error, name)
    if suspected is not Suspicion.SUSPECT:
        return Scope.DISK, f"{error}: {suspected.value}"
    probed = probe(disk)
    if probed is not None:
        return Scope.DISK, f"{error}; the probe of the disk failed too: {probed}"
    return Scope.PARTITION, f"{error}; the disk itself answers"
