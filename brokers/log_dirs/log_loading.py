"""The contents of a log directory at the start of a broker (Kafka's `LogManager.loadLogs`).

Names of directories are those of Kafka's `LocalLog.logDirName` and `parseTopicPartitionName`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.checkpoints import (
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    TopicPartition,
    read_offsets,
    read_topic_id,
    write_offsets,
)
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.files.trees import json_tree
from mockraft.wire.topic_names import CLUSTER_METADATA

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class LogDir:
    """A log directory. `offline` is the reason for being offline, None while online. `directory_id` is 16 bytes."""

    __slots__ = ("_is_locked", "_written", "directory_id", "disk", "offline", "path")

    def __init__(self, disk: Disk, directory_id: bytes) -> None:
        self.disk = disk
        self.path = disk.root
        self.directory_id = directory_id
        self.offline: str | None = None
        self._is_locked = False
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def lock(self) -> None:
        """Lock the directory. BlockingIOError when another broker has it, other OSErrors when it is unusable."""
        self.disk.lock()
        self._is_locked = True

    def unlock(self) -> None:
        """Unlock the directory if it is locked."""
        if self._is_locked:
            self._is_locked = False
            with contextlib.suppress(OSError):
                self.disk.close()

    def take_clean_shutdown(self) -> tuple[bool, int]:
        """Return whether the directory was closed cleanly, and its broker epoch then, else -1. Removes the mark."""
        if not self.disk.exists(CLEAN_SHUTDOWN):
            return False, -1
        try:
            epoch = int(json_tree(self.disk.read(CLEAN_SHUTDOWN))["brokerEpoch"])
        except (ValueError, TypeError, KeyError):
            epoch = -1
        self.disk.remove(CLEAN_SHUTDOWN)
        return True, epoch

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Mark the directory as closed cleanly."""
        content = {"version": 0, "brokerEpoch": broker_epoch}
        self.disk.replace(CLEAN_SHUTDOWN, json.dumps(content, separators=(",", ":")).encode())

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write a checkpoint, unless the same was written last and the file still exists."""
        if self._written.get(name) == offsets and self.disk.exists(name):
            return
        write_offsets(self.disk, name, offsets)
        self._written[name] = dict(offsets)


Kind = Literal["", "future", "delete", "stray"]

NAME_LENGTH_MAX = 255

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})")
_MARKED = re.compile(r"(?P<name>\S+-\d{1,10})\.(?P<unique>[^.\s]+)-(?P<kind>future|delete|stray)")


class LogName(NamedTuple):
    """The parts of a directory's name; `kind` is empty for the current log.

    The topic of one marked delete or stray may be truncated.
    """

    topic: str
    partition: int
    kind: Kind = ""


def live_name(topic: str, partition: int) -> str:
    """`topic-partition`."""
    return f"{topic}-{partition}"


def marked_name(topic: str, partition: int, kind: Kind, rng: random.Random) -> str:
    """Return `topic-partition.<32 hex digits>-future` and so on, cut to 255 bytes for delete and stray."""
    end = f"-{partition}.{rng.getrandbits(128):032x}-{kind}"
    return (topic if kind == "future" else topic[: NAME_LENGTH_MAX - len(end)]) + end


def parse(name: str) -> LogName | None:
    """Parse a log's name; None when it is none."""
    kind: Kind = ""
    if marked := _MARKED.fullmatch(name):
        name, kind = marked["name"], marked["kind"]  # type: ignore[assignment]
    found = _NAME.fullmatch(name)
    return None if found is None else LogName(found["topic"], int(found["partition"]), kind)


_LOGGER = logging.getLogger(__name__)


class HeldLog(NamedTuple):
    """A log, its replica and its directory."""

    key: ReplicaKey
    topic: str
    log_dir: LogDir
    log: ReplicaLog

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic name and partition."""
        return self.topic, self.key[1]

    @property
    def path(self) -> str:
        """The current path of the log."""
        return f"{self.log_dir.path}/{self.log.dir_name}"


class LoadedDir(NamedTuple):
    """The logs of one directory; `strays` are names of logs that must not be used. `broker_epoch` is -1 if unknown."""

    broker_epoch: int
    live: list[HeldLog]
    future: list[HeldLog]
    strays: list[str]


def load_dir(log_dir: LogDir) -> LoadedDir:
    """Open every log of a directory, and delete those marked -delete. Other names are left alone. Raises OSError.

    Without the mark of a clean shutdown each log is checked from its recovery point on.
    """
    disk = log_dir.disk
    was_clean, broker_epoch = log_dir.take_clean_shutdown()
    loaded = LoadedDir(broker_epoch, [], [], [])
    starts, points = _read_or_none(log_dir, LOG_START_OFFSETS), _read_or_none(log_dir, RECOVERY_POINTS)
    high_watermarks = read_offsets(disk, REPLICATION_OFFSETS)
    for dir_name in disk.names():
        name = parse(dir_name)
        if name is None or name.topic == CLUSTER_METADATA or not _is_directory(log_dir, dir_name):
            continue
        if name.kind == "delete":
            disk.remove(dir_name)
            continue
        topic_id = None if name.kind == "stray" else read_topic_id(disk, dir_name)
        if topic_id is None:
            loaded.strays.append(dir_name)
            continue
        log = _open(log_dir, dir_name, name, starts, points, was_clean)
        log.high_watermark = high_watermarks.get((name.topic, name.partition), 0)
        held = HeldLog((topic_id, name.partition), name.topic, log_dir, log)
        (loaded.future if name.kind == "future" else loaded.live).append(held)
    return loaded


def _open(
    log_dir: LogDir,
    dir_name: str,
    name: LogName,
    starts: Mapping[TopicPartition, int],
    points: Mapping[TopicPartition, int],
    was_clean: bool,
) -> ReplicaLog:
    where = name.topic, name.partition
    # The checkpoints concern the current log: a future one is checked completely.
    is_future = name.kind == "future"
    return ReplicaLog(
        log_dir.disk,
        dir_name,
        start_offset=0 if is_future else starts.get(where, 0),
        recovery_point=0 if is_future else points.get(where, 0),
        was_closed=was_clean,
    )


def _read_or_none(log_dir: LogDir, name: str) -> Mapping[TopicPartition, int]:
    """Read an optional checkpoint: an unreadable one is only logged."""
    try:
        return read_offsets(log_dir.disk, name)
    except OSError as error:
        _LOGGER.warning("%s/%s: cannot be read, so it is taken as empty: %s", log_dir.path, name, error)
        return {}


def _is_directory(log_dir: LogDir, name: str) -> bool:
    try:
        log_dir.disk.names(name)
    except NotADirectoryError:
        return False
    return True
