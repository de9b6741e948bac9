"""All logs of a broker in all its directories (Kafka's log manager): found at start, created, moved, removed, closed.

What a disk says no to goes through `Logs.on_error` and is then raised as a StorageError.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import random
from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs import log_names
from mockraft.brokers.log_dirs.checkpoints import read_topic_id, write_topic_id
from mockraft.brokers.log_dirs.errors import LoadError, LogClosedError, LogError, StorageError
from mockraft.brokers.log_dirs.log_dir import LogDir
from mockraft.brokers.log_dirs.log_loading import HeldLog, load_dir
from mockraft.brokers.log_dirs.replica_log import DEFAULT_CONFIG, LogConfig, ReplicaLog
from mockraft.wire import error_codes, uuids

_LOGGER = logging.getLogger(__name__)


class Found(NamedTuple):
    """What `Logs.load` found: the logs in use, future ones, live ones beyond the first of a replica, other names."""

    live: list[HeldLog]
    future: list[HeldLog]
    doubled: list[HeldLog]
    strays: list[tuple[LogDir, str]]


class Logs:
    """The logs in the directories `log_dirs`, by replica: (topic id, partition).

    `on_error(log_dir, error, key)` hears of every OSError before it is raised as StorageError; by default it takes the
    whole directory offline, as Kafka does. `previous_broker_epoch` is that of a clean shutdown before, else -1.
    """

    __slots__ = ("_chance", "_future", "_live", "_lost", "log_dirs", "on_error", "previous_broker_epoch")

    def __init__(self, log_dirs: Iterable[LogDir], chance: random.Random | None = None) -> None:
        self.log_dirs = tuple(log_dirs)
        self.previous_broker_epoch = -1
        self.on_error: Callable[[LogDir, OSError, ReplicaKey | None], None] = self._fail_directory
        self._chance = chance
        self._live: dict[ReplicaKey, HeldLog] = {}
        self._future: dict[ReplicaKey, HeldLog] = {}
        self._lost: dict[ReplicaKey, bytes] = {}

    # Directories.

    def live(self) -> list[LogDir]:
        """The directories that are not offline."""
        return [log_dir for log_dir in self.log_dirs if log_dir.offline is None]

    def log_dir(self, directory_id: bytes) -> LogDir:
        """The directory of this id. LookupError when there is none."""
        for log_dir in self.log_dirs:
            if log_dir.directory_id == directory_id:
                return log_dir
        raise LookupError(f"no log directory has the id {uuids.text_of(directory_id)}")

    def take_offline(self, directory_id: bytes, reason: str) -> None:
        """Close what lies in a directory and let go of it; its replicas are lost until the next start."""
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
        """The log of a replica; None when there is none, or its directory is offline."""
        held = self._live.get(key)
        return None if held is None else held.log

    def future(self, key: ReplicaKey) -> ReplicaLog | None:
        """The log that a replica is being moved to (KIP-113); None when there is none."""
        held = self._future.get(key)
        return None if held is None else held.log

    def held(self, *, future: bool = False) -> list[HeldLog]:
        """Every open log, or every future one."""
        return list((self._future if future else self._live).values())

    def directory_of(self, key: ReplicaKey, *, future: bool = False) -> bytes | None:
        """The id of the directory that a replica's log lies in, or lay in when that went offline."""
        held = (self._future if future else self._live).get(key)
        if held is None:
            return None if future else self._lost.get(key)
        return held.log_dir.directory_id

    def is_lost(self, key: ReplicaKey) -> bool:
        """Whether the replica's log was in a directory that went offline, or was forgotten."""
        return key in self._lost

    def replicas_in(self, directory_id: bytes) -> list[ReplicaKey]:
        """The replicas of which the log lies in a directory, or lay in it when it went offline."""
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
        """The replica's log in a directory, made when it is not there.

        ValueError when there is an open one elsewhere already; LogError (INCONSISTENT_TOPIC_ID) when a topic of this
        name and another id has it; StorageError when the disk refuses, or is offline.
        """
        held = (self._future if future else self._live).get(key)
        if held is not None:
            if held.log_dir.directory_id == directory_id:
                return held.log
            raise ValueError(f"{topic}-{key[1]} lies in {held.log_dir.path} already")
        log_dir = self.log_dir(directory_id)
        if future and self.directory_of(key) == directory_id:
            raise ValueError(f"{topic}-{key[1]} lies in {log_dir.path} already: it cannot be moved there")
        name = log_names.live_name(topic, key[1])
        if future:
            name = log_names.marked_name(topic, key[1], "future", self._random())
        with self._io(log_dir, key):
            self._check_topic_id(log_dir, name, key[0])
            log = ReplicaLog(log_dir.disk, name, config)
            write_topic_id(log_dir.disk, name, key[0])
        self._hold(HeldLog(key, topic, log_dir, log), future=future)
        return log

    def remove(self, key: ReplicaKey, *, future: bool = False) -> None:
        """Delete a replica's log: renamed to -delete first, so that nothing takes half of it for a log.

        Nothing to do when there is none. StorageError.
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
        """Put the future log in the place of the one in use, which is deleted. LookupError, StorageError.

        In Kafka's order: first the future one gets its name, so that a crash leaves two rather than none.
        """
        held = self._future.get(key)
        if held is None:
            raise LookupError(f"no future log of partition {key[1]} of {uuids.text_of(key[0])}")
        old = self._live.get(key)
        if old is not None:
            held.log.high_watermark, held.log.config = old.log.high_watermark, old.log.config
        name = log_names.live_name(*held.topic_partition)
        with self._io(held.log_dir, key):
            if held.log_dir.disk.exists(name):
                # What a replica left that was lost here by itself and began anew elsewhere (KIP-18).
                stray = log_names.marked_name(*held.topic_partition, "stray", self._random())
                held.log_dir.disk.rename(name, stray)
        held.log.rename(name)
        del self._future[key]
        self._lost.pop(key, None)
        self._live[key] = held
        if old is not None:
            self._delete(old)
        return held.log

    def mark_stray(self, key: ReplicaKey, *, future: bool = False) -> None:
        """Put a log aside that the metadata does not want here: `<topic>-<partition>.<hex>-stray`. StorageError."""
        held = (self._future if future else self._live).pop(key, None)
        if held is not None:
            held.log.rename(log_names.marked_name(*held.topic_partition, "stray", self._random()))
            _LOGGER.warning("%s/%s: marked stray", held.log_dir.path, held.log.dir_name)
            held.log.close()

    def mark_strays(self, known: Container[ReplicaKey]) -> None:
        """Put every log aside that is of no `known` replica: the metadata has moved on without us."""
        for future in (False, True):
            for held in self.held(future=future):
                if held.key not in known:
                    with contextlib.suppress(StorageError):
                        self.mark_stray(held.key, future=future)

    def keep(self, doubled: HeldLog) -> None:
        """Of two logs of a replica that `load` found, use the `doubled` one and delete the other. StorageError."""
        old = self._live.get(doubled.key)
        self._live[doubled.key] = doubled
        if old is not None:
            self._delete(old)

    def drop(self, doubled: HeldLog) -> None:
        """Of two logs of a replica that `load` found, delete the `doubled` one. StorageError."""
        self._delete(doubled)

    # Start and end.

    def lock(self) -> None:
        """Take every directory. BlockingIOError when another broker has one; on other errors it is offline."""
        for log_dir in self.live():
            try:
                log_dir.lock()
            except BlockingIOError:
                self.unlock()
                raise
            except OSError as error:
                self.on_error(log_dir, error, None)

    def unlock(self) -> None:
        """Give all directories back, without a word to the disks."""
        for log_dir in self.log_dirs:
            log_dir.unlock()

    def load(self, *, refuse_doubled: bool = False) -> Found:
        """Open what lies in the directories. A directory that cannot be read goes through `on_error`.

        Logs marked -delete are deleted. Of a replica found twice the first one counts and the rest are `doubled`, or
        LoadError when that is refused, as Kafka does.
        """
        found = Found([], [], [], [])
        epochs = [self._load_dir(log_dir, found) for log_dir in self.log_dirs]
        # Kafka's readBrokerEpochFromCleanShutdownFiles: it counts only if all directories say the same.
        self.previous_broker_epoch = epochs[0] if len(set(epochs)) == 1 else -1
        if refuse_doubled and found.doubled:
            raise LoadError(self._said_doubled(found.doubled[0]))
        return found

    def checkpoint_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint in each directory that has logs. StorageErrors go to `on_error` only."""
        for log_dir in self.live():
            offsets = {held.topic_partition: held.log.high_watermark for held in self._in(log_dir)}
            if offsets:
                with contextlib.suppress(StorageError), self._io(log_dir):
                    log_dir.write_high_watermarks(offsets)

    def checkpoint(self, *, flush: bool = False) -> None:
        """Write the recovery points and start offsets of each directory. StorageErrors go to `on_error` only."""
        for log_dir in self.live():
            with contextlib.suppress(StorageError), self._io(log_dir):
                self._checkpoint(log_dir, flush)

    def retain(self, now_ms: int) -> None:
        """Delete what each log no longer has to keep. StorageErrors go to `on_error` only."""
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
        """Close all logs and unlock, as a process that is killed does: nothing is flushed or written."""
        for held in (*self._live.values(), *self._future.values()):
            held.log.close()
        self._live.clear()
        self._future.clear()
        self.unlock()

    # Within.

    def _load_dir(self, log_dir: LogDir, found: Found) -> int:
        """Take in what lies in a directory; the broker epoch of its clean shutdown, -1 when there was none."""
        try:
            with self._io(log_dir):
                loaded = load_dir(log_dir)
        except StorageError:
            return -1
        found.strays.extend((log_dir, name) for name in loaded.strays)
        for held in (*loaded.live, *loaded.future):
            held.log.failed = functools.partial(self._failed, held.log_dir, held.key)
        for held in loaded.live:
            (found.live if self._live.setdefault(held.key, held) is held else found.doubled).append(held)
        for held in loaded.future:
            self._future.setdefault(held.key, held)
            found.future.append(held)
        return loaded.broker_epoch

    def _said_doubled(self, held: HeldLog) -> str:
        return (
            f"Duplicate log directories for {log_names.live_name(*held.topic_partition)} are found in both"
            f" {held.path} and {self._live[held.key].path}. It is likely because log directory failure happened while"
            " broker was replacing current replica with future replica. Delete one of the two, best the one in the"
            " directory that is known to have failed recently"
        )

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
        log_dir.write_recovery_points({held.topic_partition: held.log.recovery_point for held in held_logs})
        starts = {held.topic_partition: held.log for held in held_logs}
        log_dir.write_start_offsets({at: log.start_offset for at, log in starts.items() if log.starts_in_segment})

    def _delete(self, held: HeldLog) -> None:
        try:
            held.log.rename(log_names.marked_name(*held.topic_partition, "delete", self._random()))
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
        if self._chance is None:
            self._chance = random.Random()
        return self._chance
