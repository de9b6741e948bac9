"""All logs of a broker in all its directories (Kafka's LogManager): loaded at start, created, moved, removed, closed.

Disk errors are reported to `Logs.on_error` and then raised as a StorageError.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import random
from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs import log_loading
from mockraft.brokers.log_dirs.checkpoints import (
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    read_topic_id,
    write_topic_id,
)
from mockraft.brokers.log_dirs.errors import LogClosedError, LogError, StorageError
from mockraft.brokers.log_dirs.log_loading import HeldLog, LogDir, load_dir
from mockraft.brokers.log_dirs.produced_batches import DEFAULT_CONFIG, LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.wire import error_codes, uuids

_LOGGER = logging.getLogger(__name__)


class LoadedLogs(NamedTuple):
    """The result of `Logs.load`: current logs, future ones, further current ones of a replica, other names."""

    live: list[HeldLog]
    future: list[HeldLog]
    duplicates: list[HeldLog]
    strays: list[tuple[LogDir, str]]


class Logs:
    """The logs in the directories `log_dirs`, by replica: (topic id, partition).

    `on_error(log_dir, error, key)` is called for every OSError before it is raised as StorageError; by default it takes
    the whole directory offline, as Kafka does. `previous_broker_epoch` is that of an earlier clean shutdown, else -1.
    """

    __slots__ = ("_future", "_live", "_lost", "_rng", "log_dirs", "on_error", "previous_broker_epoch")

    def __init__(self, log_dirs: Iterable[LogDir], rng: random.Random | None = None) -> None:
        self.log_dirs = tuple(log_dirs)
        self.previous_broker_epoch = -1
        self.on_error: Callable[[LogDir, OSError, ReplicaKey | None], None] = self._fail_directory
        self._rng = rng
        self._live: dict[ReplicaKey, HeldLog] = {}
        self._future: dict[ReplicaKey, HeldLog] = {}
        self._lost: dict[ReplicaKey, bytes] = {}

    # Directories.

    def live(self) -> list[LogDir]:
        """Return the directories that are not offline."""
        return [log_dir for log_dir in self.log_dirs if log_dir.offline is None]

    def log_dir(self, directory_id: bytes) -> LogDir:
        """Return the directory of this id. Raises LookupError when there is none."""
        for log_dir in self.log_dirs:
            if log_dir.directory_id == directory_id:
                return log_dir
        raise LookupError(f"no log directory has the id {uuids.text_of(directory_id)}")

    def take_offline(self, directory_id: bytes, reason: str) -> None:
        """Take a directory offline: close its logs and release it; its replicas are lost until the next start."""
        log_dir = self.log_dir(directory_id)
        if log_dir.offline is not None:
            return
        log_dir.offline = reason
        for held in self._live, self._future:
            for entry in [entry for entry in held.values() if entry.log_dir is log_dir]:
                entry.log.close()
                del held[entry.key]
                if held is self._live:
                    self._lost[entry.key] = directory_id
        log_dir.unlock()

    # Replicas.

    def log(self, key: ReplicaKey) -> ReplicaLog | None:
        """Return the log of a replica; None when there is none, or its directory is offline."""
        held = self._live.get(key)
        return None if held is None else held.log

    def future(self, key: ReplicaKey) -> ReplicaLog | None:
        """Return the future log of a replica that is being moved (KIP-113); None when there is none."""
        held = self._future.get(key)
        return None if held is None else held.log

    def held(self, *, future: bool = False) -> list[HeldLog]:
        """Return every open log, or every future one."""
        return list((self._future if future else self._live).values())

    def directory_of(self, key: ReplicaKey, *, future: bool = False) -> bytes | None:
        """Return the id of the directory with a replica's log, also when that directory is offline."""
        held = (self._future if future else self._live).get(key)
        if held is None:
            return None if future else self._lost.get(key)
        return held.log_dir.directory_id

    def is_lost(self, key: ReplicaKey) -> bool:
        """Return True if the replica's log was in a directory that went offline, or was closed by `forget`."""
        return key in self._lost

    def replicas_in(self, directory_id: bytes) -> list[ReplicaKey]:
        """Return the replicas whose log is in a directory, or was when it went offline."""
        return [
            *(key for key, held in self._live.items() if held.log_dir.directory_id == directory_id),
            *(key for key, lost_with in self._lost.items() if lost_with == directory_id),
        ]

    def create(
        self,
        key: ReplicaKey,
        topic: str,
        directory_id: bytes,
        *,
        future: bool = False,
        config: LogConfig = DEFAULT_CONFIG,
    ) -> ReplicaLog:
        """Return the replica's log in a directory, creating it if needed.

        ValueError when there is an open one elsewhere already; LogError when a topic with this name and another id has
        it (INCONSISTENT_TOPIC_ID), and for a name that no directory can have; StorageError when the disk fails, or is
        offline.
        """
        held = (self._future if future else self._live).get(key)
        if held is not None:
            if held.log_dir.directory_id == directory_id:
                return held.log
            raise ValueError(f"{topic}-{key[1]} lies in {held.log_dir.path} already")
        log_dir = self.log_dir(directory_id)
        if future and self.directory_of(key) == directory_id:
            raise ValueError(f"{topic}-{key[1]} lies in {log_dir.path} already: it cannot be moved there")
        if "/" in topic or "\0" in topic:  # records may have any name; CreateTopics refuses it
            raise LogError(
                error_codes.INVALID_TOPIC_EXCEPTION, f"topic {topic!r} has a name that no directory can have"
            )
        name = log_loading.live_name(topic, key[1])
        if future:
            name = log_loading.marked_name(topic, key[1], "future", self._random())
        with self._io(log_dir, key):
            self._check_topic_id(log_dir, name, key[0])
            log = ReplicaLog(log_dir.disk, name, config)
            write_topic_id(log_dir.disk, name, key[0])
        self._hold(HeldLog(key, topic, log_dir, log), future=future)
        return log

    def remove(self, key: ReplicaKey, *, future: bool = False) -> None:
        """Delete a replica's log: renamed to -delete first, so that a half-deleted one is never taken for a log.

        Does nothing when there is none. Raises StorageError.
        """
        held = (self._future if future else self._live).pop(key, None)
        if held is not None:
            self._delete(held)
        elif not future:
            self._lost.pop(key, None)

    def forget(self, key: ReplicaKey, *, future: bool = False) -> None:
        """Close a replica's log and leave its files: it is lost until the next start (one partition, not the disk)."""
        held = (self._future if future else self._live).pop(key, None)
        if held is not None:
            held.log.close()
            if not future:
                self._lost[key] = held.log_dir.directory_id

    def promote(self, key: ReplicaKey) -> ReplicaLog:
        """Replace the current log by the future one, and delete the old one. Raises LookupError, StorageError.

        In Kafka's order: the future log is renamed first, so that a crash leaves two current logs rather than none.
        """
        held = self._future.get(key)
        if held is None:
            raise LookupError(f"no future log of partition {key[1]} of {uuids.text_of(key[0])}")
        old = self._live.get(key)
        if old is not None:
            held.log.high_watermark, held.log.config = old.log.high_watermark, old.log.config
        name = log_loading.live_name(*held.topic_partition)
        with self._io(held.log_dir, key):
            if held.log_dir.disk.exists(name):
                # Files of a replica that failed here by itself and was recreated elsewhere (KIP-18).
                stray = log_loading.marked_name(*held.topic_partition, "stray", self._random())
                held.log_dir.disk.rename(name, stray)
        held.log.rename(name)
        del self._future[key]
        self._lost.pop(key, None)
        self._live[key] = held
        if old is not None:
            self._delete(old)
        return held.log

    def mark_stray(self, key: ReplicaKey, *, future: bool = False) -> None:
        """Rename a log that is not to be here to `<topic>-<partition>.<hex>-stray`. Raises StorageError."""
        held = (self._future if future else self._live).pop(key, None)
        if held is not None:
            held.log.rename(log_loading.marked_name(*held.topic_partition, "stray", self._random()))
            _LOGGER.warning("%s/%s: marked stray", held.log_dir.path, held.log.dir_name)
            held.log.close()

    def mark_strays(self, known: Container[ReplicaKey]) -> None:
        """Rename every log of a replica not in `known` to -stray: the metadata changed during the downtime."""
        for future in (False, True):
            for held in self.held(future=future):
                if held.key not in known:
                    with contextlib.suppress(StorageError):
                        self.mark_stray(held.key, future=future)

    def keep(self, duplicates: HeldLog) -> None:
        """Of two logs of a replica keep the `duplicates` one and delete the other. Raises StorageError."""
        old = self._live.get(duplicates.key)
        self._live[duplicates.key] = duplicates
        if old is not None:
            self._delete(old)

    def drop(self, duplicates: HeldLog) -> None:
        """Of two logs of a replica that `load` found, delete the `duplicates` one. Raises StorageError."""
        self._delete(duplicates)

    # Start and end.

    def lock(self) -> None:
        """Lock every directory. BlockingIOError when another broker has one; other errors take it offline."""
        for log_dir in self.live():
            try:
                log_dir.lock()
            except BlockingIOError:
                self.unlock()
                raise
            except OSError as error:
                self.on_error(log_dir, error, None)

    def unlock(self) -> None:
        """Unlock all directories without any other disk operation."""
        for log_dir in self.log_dirs:
            log_dir.unlock()

    def load(self) -> LoadedLogs:
        """Open the logs in the directories. A directory that cannot be read is reported to `on_error`.

        Logs marked -delete are deleted. Of a replica found twice the first log is used and the others are `duplicates`.
        """
        found = LoadedLogs([], [], [], [])
        epochs = [self._load_dir(log_dir, found) for log_dir in self.log_dirs]
        # Kafka's readBrokerEpochFromCleanShutdownFiles: valid only if all directories have the same epoch.
        self.previous_broker_epoch = epochs[0] if len(set(epochs)) == 1 else -1
        return found

    def checkpoint_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint in each directory that has logs. StorageErrors go to `on_error` only."""
        for log_dir in self.live():
            offsets = {held.topic_partition: held.log.high_watermark for held in self._in(log_dir)}
            if offsets:
                with contextlib.suppress(StorageError), self._io(log_dir):
                    log_dir.write_offsets(REPLICATION_OFFSETS, offsets)

    def checkpoint(self, *, flush: bool = False) -> None:
        """Write the recovery points and start offsets of each directory. StorageErrors go to `on_error` only."""
        for log_dir in self.live():
            with contextlib.suppress(StorageError), self._io(log_dir):
                self._checkpoint(log_dir, flush)

    def retain(self, now_ms: int) -> None:
        """Delete what exceeds each log's retention. StorageErrors go to `on_error` only."""
        for held in self.held():
            with contextlib.suppress(StorageError):
                held.log.retain(now_ms)

    def shut_down(self, broker_epoch: int = -1) -> None:
        """Flush, write all checkpoints and the mark of a clean shutdown, close and unlock."""
        self.checkpoint_high_watermarks()
        for log_dir in self.live():
            with contextlib.suppress(StorageError), self._io(log_dir):
                self._checkpoint(log_dir, flush=True)
                log_dir.write_clean_shutdown(broker_epoch)
        self.close()

    def close(self) -> None:
        """Close all logs and unlock, as for a process that is killed: nothing is flushed or written."""
        for held in (*self._live.values(), *self._future.values()):
            held.log.close()
        self._live.clear()
        self._future.clear()
        self.unlock()

    # Internals.

    def _load_dir(self, log_dir: LogDir, found: LoadedLogs) -> int:
        """Take over a directory's contents; return the broker epoch of its clean shutdown, -1 without one."""
        try:
            with self._io(log_dir):
                loaded = load_dir(log_dir)
        except StorageError:
            return -1
        found.strays.extend((log_dir, name) for name in loaded.strays)
        for held in (*loaded.live, *loaded.future):
            held.log.failed = functools.partial(self._failed, held.log_dir, held.key)
        for held in loaded.live:
            (found.live if self._live.setdefault(held.key, held) is held else found.duplicates).append(held)
        for held in loaded.future:
            self._future.setdefault(held.key, held)
            found.future.append(held)
        return loaded.broker_epoch

    def _check_topic_id(self, log_dir: LogDir, dir_name: str, topic_id: bytes) -> None:
        there = read_topic_id(log_dir.disk, dir_name)
        if there not in (None, topic_id):
            raise LogError(
                error_codes.INCONSISTENT_TOPIC_ID,
                f"Tried to assign topic ID {uuids.text_of(topic_id)} to the log {log_dir.path}/{dir_name}, but it"
                f" already contained topic ID {uuids.text_of(there or b'')}",
            )

    def _hold(self, held: HeldLog, *, future: bool) -> None:
        held.log.failed = functools.partial(self._failed, held.log_dir, held.key)
        if future:
            self._future[held.key] = held
        else:
            self._live[held.key] = held
            self._lost.pop(held.key, None)

    def _in(self, log_dir: LogDir) -> list[HeldLog]:
        return [held for held in self._live.values() if held.log_dir is log_dir]

    def _checkpoint(self, log_dir: LogDir, flush: bool) -> None:
        held_logs = self._in(log_dir)
        if flush:
            futures = [held for held in self._future.values() if held.log_dir is log_dir]
            for held in (*held_logs, *futures):
                held.log.flush()
        log_dir.write_offsets(RECOVERY_POINTS, {held.topic_partition: held.log.recovery_point for held in held_logs})
        starts = {held.topic_partition: held.log for held in held_logs}
        log_dir.write_offsets(
            LOG_START_OFFSETS, {at: log.start_offset for at, log in starts.items() if log.starts_in_segment}
        )

    def _delete(self, held: HeldLog) -> None:
        try:
            held.log.rename(log_loading.marked_name(*held.topic_partition, "delete", self._random()))
            held.log.remove()
        finally:
            held.log.close()

    @contextlib.contextmanager
    def _io(self, log_dir: LogDir, key: ReplicaKey | None = None) -> Iterator[None]:
        try:
            if log_dir.offline is not None:
                raise StorageError(f"{log_dir.path} is offline: {log_dir.offline}", log_dir.directory_id, key)
            yield
        except OSError as error:
            raise self._failed(log_dir, key, error) from error

    def _failed(self, log_dir: LogDir, key: ReplicaKey | None, error: OSError) -> Exception:
        if log_dir.offline is None and not isinstance(error, LogClosedError):
            self.on_error(log_dir, error, key)
        return StorageError(f"{log_dir.path}: {error}", log_dir.directory_id, key)

    def _fail_directory(self, log_dir: LogDir, error: OSError, key: ReplicaKey | None) -> None:
        self.take_offline(log_dir.directory_id, str(error))

    def _random(self) -> random.Random:
        if self._rng is None:
            self._rng = random.Random()
        return self._rng
