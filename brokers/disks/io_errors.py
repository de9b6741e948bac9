"""Classification of I/O errors: a whole disk has failed, or one replica on it (KIP-18)."""

from __future__ import annotations

import errno
import re
from enum import Enum

from mockraft.brokers.disks.disk import Disk

PROBE_NAME = ".mockraft-probe"
# One block, so that the write fails on a full disk.
_PROBE = bytes(range(256)) * 16

EVERYBODYS = frozenset(
    {
        *(errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.ESHUTDOWN),
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS),
    }
)
"""Errors that concern every file: the device or the mount is gone, full or read-only."""
_REPLICA_DIRECTORY = re.compile(r".+-\d+(\.[0-9a-f]{32}-(future|delete|stray))?")


class Scope(Enum):
    """The part of the broker that an I/O error takes offline."""

    DISK = "disk"
    PARTITION = "partition"


class Suspicion(Enum):
    """Result of the classification by errno alone, without a probe of the disk."""

    EVERYBODYS = "it is the same for every file"
    WHOLE_DIR = "a file that every replica of the directory needs"
    SUSPECT = "the disk may be well: it is probed"


def suspicion(error: OSError, name: str) -> Suspicion:
    """Classify an error of an operation on `name`, relative to the log directory, by errno and name.

    A replica's files lie in a directory of their own; the other files (checkpoints, meta.properties, .lock) are shared.
    """
    if error.errno in EVERYBODYS:
        return Suspicion.EVERYBODYS
    of_a_replica = _REPLICA_DIRECTORY.fullmatch(name.partition("/")[0])
    return Suspicion.SUSPECT if of_a_replica else Suspicion.WHOLE_DIR


def probe(disk: Disk) -> OSError | None:
    """Write, force, read back and remove a small file; return the error, None when everything worked."""
    try:
        disk.replace(PROBE_NAME, _PROBE)
        disk.sync(PROBE_NAME)
        read_back = disk.read(PROBE_NAME)
        disk.remove(PROBE_NAME)
    except OSError as error:
        return error
    if read_back != _PROBE:
        return OSError(errno.EIO, "read returned other bytes than were written", PROBE_NAME)
    return None


def classify(error: OSError, name: str, disk: Disk) -> tuple[Scope, str]:
    """Decide if `error` on `name` takes the directory or one replica offline; return the reason too.

    The disk is probed unless the error alone is conclusive. An error of one replica's file (missing, corrupt, wrong
    type, not permitted, a bad sector) on a disk that still writes and reads concerns that replica. Everything else
    concerns the disk: it is gone, full or read-only, or the file is shared by all replicas.
    """
    suspected = suspicion(error, name)
    if suspected is not Suspicion.SUSPECT:
        return Scope.DISK, f"{error}: {suspected.value}"
    probed = probe(disk)
    if probed is not None:
        return Scope.DISK, f"{error}; the probe of the disk failed too: {probed}"
    return Scope.PARTITION, f"{error}; the disk itself works"
