"""Injection of disk faults: the operations of a test on the directories of one broker."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, TypeAlias

from mockraft.brokers.disks.failing_disk import FailingDisk

if TYPE_CHECKING:
    from mockraft.brokers.log_dirs.log_dir import LogDir
    from mockraft.brokers.node import BrokerNode

AnyLogDir: TypeAlias = str | bytes | os.PathLike[str]


class DiskFaults:
    """Operations of `SimulatedBroker` that inject disk faults.

    A directory is its path or its uuid (16 bytes, or the text); LookupError names the known ones. A directory that
    went offline stays so until the broker is started again, healed or not, as in Kafka.
    """

    node: BrokerNode

    def fail_log_dir(self, log_dir: AnyLogDir, error: int = errno.EIO) -> None:
        """Break a directory: all I/O there fails with this errno, and the broker notices at once."""
        broken = self._disk(log_dir)
        broken.fail(error)
        self.node.directories.fail(
            self.node.directories.find(log_dir).directory_id, f"it fails on purpose ({errno.errorcode[error]})"
        )

    def fill_log_dir(self, log_dir: AnyLogDir) -> None:
        """Leave no space: the next write there fails with ENOSPC. Reading still works."""
        self._disk(log_dir).fill()

    def slow_log_dir(self, log_dir: AnyLogDir, ms: float) -> None:
        """Delay the operations of clients and fetchers on a directory by `ms`; nothing else is delayed."""
        self._disk(log_dir).slow(ms)

    def flaky_log_dir(self, log_dir: AnyLogDir, probability: float, seed: int = 0) -> None:
        """Let operations there fail with EIO at random, the same ones for the same seed. Raises ValueError."""
        self._disk(log_dir).flaky(probability, seed)

    def heal_log_dir(self, log_dir: AnyLogDir) -> None:
        """Repair a directory; corrupted bytes stay corrupted."""
        self._disk(log_dir).heal()

    def corrupt(self, path: str | os.PathLike[str], position: int | None = None, count: int = 1) -> None:
        """Flip the bits of `count` bytes of a file below a directory, in its middle unless `position` is given.

        LookupError for a path in no directory, FileNotFoundError, ValueError when the file has no such bytes.
        """
        log_dir, name = self._file(path)
        _failing(log_dir).corrupt(name, position, count)

    def fail_file(self, path: str | os.PathLike[str], error: int = errno.EIO) -> None:
        """Let all I/O on one file, or in one replica's directory, fail with this errno. LookupError as `corrupt`."""
        log_dir, name = self._file(path)
        _failing(log_dir).fail_file(name, error)

    @property
    def queued_replica_to_dir_assignments(self) -> int:
        """Kafka's metric QueuedReplicaToDirAssignments: replicas whose directory the controller does not know yet."""
        return self.node.directories.assignments.queued

    def _file(self, path: str | os.PathLike[str]) -> tuple[LogDir, str]:
        path = os.fspath(path)
        self.node.directories.make_logs()
        for log_dir in self.node.logs.log_dirs:
            if path.startswith(f"{log_dir.path}/"):
                return log_dir, path.removeprefix(f"{log_dir.path}/")
        known = ", ".join(log_dir.path for log_dir in self.node.logs.log_dirs)
        raise LookupError(f"{path} is in none of the log dirs {known}")

    def _disk(self, log_dir: AnyLogDir) -> FailingDisk:
        return _failing(self.node.logs.log_dir(self.node.directories.find(log_dir).directory_id))


def _failing(log_dir: LogDir) -> FailingDisk:
    assert isinstance(log_dir.disk, FailingDisk)
    return log_dir.disk
