"""The file operations that a log directory needs; implemented by a real disk, one in memory and a failing one."""

from __future__ import annotations

import errno
import functools
import re
from enum import Enum
from typing import NamedTuple, Protocol


class Space(NamedTuple):
    """The size of the volume and what can still be written to it."""

    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """The files below one root. Names are relative to it, with `/`. Every method may raise OSError.

    `root` is the absolute path for display in tools, `delay_ms` the time for which clients wait before an operation.
    """

    root: str
    delay_ms: float

    def names(self, under: str = "") -> list[str]:
        """Return the names directly under a directory, sorted."""

    def exists(self, name: str) -> bool:
        """Return True if there is a file or directory of this name."""

    def size(self, name: str) -> int:
        """Return the bytes of a file."""

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Return part of a file, all from `offset` on when `size` is -1; shorter where the file ends."""

    def append(self, name: str, data: bytes) -> None:
        """Append to a file, creating it if needed. Writes all of the data or none."""

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content of a file atomically: write another, force it to the disk, rename."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size."""

    def sync(self, name: str) -> None:
        """Force a file, or the names in a directory, to the disk."""

    def make_dir(self, name: str) -> None:
        """Create a directory; FileExistsError when it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory atomically."""

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""

    def space(self) -> Space:
        """Return the size of the volume and the free space."""

    def lock(self) -> None:
        """Lock the directory for this process (Kafka's `.lock`); BlockingIOError when another has it."""

    def close(self) -> None:
        """Release files and lock."""


@functools.lru_cache(4096)
def checked_name(name: str, *, may_be_root: bool = False) -> str:
    """Return the name if it stays below the root; ValueError otherwise."""
    if not name:
        if may_be_root:
            return name
        raise ValueError("the root of a log directory is not a file")
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise ValueError(f"{name!r} is not a name below a log directory")
    return name


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
