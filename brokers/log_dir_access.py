"""The log directories of a broker as its user sees them: what is in them, moves between them, injected disk faults."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple, TypeAlias

from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.moves.move import MoveEndedError, Stage
from mockraft.brokers.moves.movers import MoveProgress
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.node import BrokerNode
from mockraft.brokers.shell.shell import Shell
from mockraft.wire.uuids import text_of

AnyLogDir: TypeAlias = str | bytes | os.PathLike[str]


class LogDirView(NamedTuple):
    """One log directory as it is now.

    `directory_id` is the text of its uuid, empty where it could not be read; `offline` is the reason, None while it
    is online. `replicas` are those in it, as `topic-partition`, `future` those that are being moved there.
    """

    path: str
    directory_id: str
    offline: str | None
    is_cordoned: bool
    replicas: tuple[str, ...]
    future: tuple[str, ...]


class LogDirAccess:
    """Operations of `SimulatedBroker` on its log directories.

    A directory is its path or its uuid (16 bytes, or the text); LookupError names the known ones. A directory that
    went offline stays so until the broker is started again, healed or not, as in Kafka.
    """

    node: BrokerNode
    shell: Shell

    @property
    def log_dirs(self) -> dict[str, LogDirView]:
        """Every configured log directory by path, those that are offline too."""
        directories = self.node.directories
        directories.make_logs()
        views = {
            path: LogDirView(
                path,
                text_of(directory_id),
                directories.offline.get(directory_id),
                directory_id in directories.cordoned,
                self._replicas(directory_id, future=False),
                self._replicas(directory_id, future=True),
            )
            for path, directory_id in self.node.config.log_dirs
        }
        return views | {
            path: LogDirView(path, "", reason, False, (), ())
            for path, reason in self.node.config.offline_log_dirs.items()
        }

    @property
    def moves(self) -> tuple[MoveProgress, ...]:
        """The active moves, by topic name and partition, with lag, bytes left and an estimate of the time left."""
        return self.node.movers.progress()

    async def move_replica(self, topic: str, partition: int, path: str | os.PathLike[str]) -> None:
        """Move a replica to the log directory with this path, and wait until it is served from there.

        Works as AlterReplicaLogDirs, so another move of the replica is cancelled; does nothing when it is there
        already. Raises MoveRefusedError when the move does not start, MoveEndedError when it ends early.
        """
        move = start_move(self.node.movers, topic, partition, os.fspath(path))
        if move is None:
            return
        await self.shell.until(lambda: move.is_ended)
        if move.stage is not Stage.DONE:
            raise MoveEndedError(f"{topic}-{partition} was not moved to {path}: {move.why}")

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

    def _replicas(self, directory_id: bytes, *, future: bool) -> tuple[str, ...]:
        held = self.node.logs.held(future=future)
        return tuple(
            sorted(
                f"{each.topic_partition[0]}-{each.topic_partition[1]}"
                for each in held
                if each.log_dir.directory_id == directory_id
            )
        )

    def _file(self, path: str | os.PathLike[str]) -> tuple[LogDir, str]:
        path = os.fspath(path)
        self.node.directories.make_logs()
        for log_dir in self.node.logs.log_dirs:
            if path.startswith(f"{log_dir.path}/"):
                return log_dir, path.removeprefix(f"{log_dir.path}/")
        known = ", ".join(log_dir.path for log_dir in self.node.logs.log_dirs)
        raise LookupError(f"{path} is in none of the log dirs {known}")

    def _disk(self, log_dir: AnyLogDir) -> FailingDisk:
        directories = self.node.directories
        found = directories.find(log_dir)
        if directories.metadata_disk is not None and found.path == directories.metadata_disk.root:
            return directories.metadata_disk
        return _failing(self.node.logs.log_dir(found.directory_id))


def _failing(log_dir: LogDir) -> FailingDisk:
    assert isinstance(log_dir.disk, FailingDisk)
    return log_dir.disk
