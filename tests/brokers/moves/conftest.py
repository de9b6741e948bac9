"""A broker with three directories and no controller: its assignments are kept, and acknowledged on demand."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import draw_config
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves.movers import Move
from mockraft.brokers.moves.requests import start_move
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

from ...waiting import until
from ..log_dirs.conftest import batch

PATHS = ("/d0", "/d1", "/d2")


class Bench:
    """The broker, and what a controller and clients would do to it."""

    def __init__(self, files: Mapping[str, MemoryDisk] | None = None, **options: Any) -> None:
        config = draw_config(
            1, "a-cluster", (("127.0.0.1", 9),), random.Random(1), log_dir_paths=PATHS, serve_clients=True, **options
        )
        self.broker = SimulatedBroker(config)
        self.files = files or {log_dir.path: MemoryDisk(log_dir.path) for log_dir in config.log_dirs}
        self.disks = {path: FailingDisk(files) for path, files in self.files.items()}
        self.broker.node.logs = Logs([LogDir(self.disks[each.path], each.directory_id) for each in config.log_dirs])
        self.broker.logs.on_error = self._failed
        self.reported: list[tuple[ReplicaKey, bytes]] = []
        self.accepted: Callable[[], None] | None = None
        self.broker.directories.assign = self._assign  # type: ignore[method-assign]
        self.apply(FeatureLevelRecord(name="metadata.version", feature_level=30))

    def apply(self, *records: Any) -> None:
        """Commit records of metadata."""
        for record in records:
            at = RecordAt(record, type(record).max_version)
            self.broker.view.apply(at)
            assert self.broker.image is not None
            self.broker.image.apply(at)

    def directory(self, path: str) -> bytes:
        return self.broker.directories.find(path).directory_id

    def create(self, topic: str, path: str = "/d0", partition: int = 0, *values: str) -> ReplicaKey:
        """A replica of this broker in a directory, with one batch for each value."""
        key, directory_id = self.assigned(topic, path, partition), self.directory(path)
        log = self.broker.logs.create(key, topic, directory_id)
        self.broker.directories.placed[key] = directory_id
        for value in values:
            log.append_as_leader(batch(value), 0, 1000)
        return key

    def assigned(self, topic: str, path: str, partition: int = 0) -> ReplicaKey:
        """The metadata has a replica on this broker, in a directory or in one nobody knows."""
        topic_id = topic.encode().rjust(16, b"t")[:16]
        directory_id = self.directory(path) if path in PATHS else b"u" * 16
        partition_record = PartitionRecord(
            topic_id=topic_id, partition_id=partition, replicas=[1], isr=[1], leader=1, directories=[directory_id]
        )
        self.apply(TopicRecord(name=topic, topic_id=topic_id), partition_record)
        return topic_id, partition

    def log(self, key: ReplicaKey) -> ReplicaLog:
        log = self.broker.logs.log(key)
        assert log is not None
        return log

    def future(self, key: ReplicaKey) -> ReplicaLog:
        log = self.broker.logs.future(key)
        assert log is not None
        return log

    def path_of(self, key: ReplicaKey, *, future: bool = False) -> str | None:
        """The path of the directory that a replica's log lies in."""
        directory_id = self.broker.logs.directory_of(key, future=future)
        return None if directory_id is None else self.broker.directories.find(directory_id).path

    def names(self) -> dict[str, list[str]]:
        """Contents of each directory, without the unique part of names."""
        return {
            path: [name.split(".")[0] + name[name.rfind("-") :] * ("." in name) for name in files.names()]
            for path, files in self.files.items()
        }

    def begin(self, topic: str, path: str, partition: int = 0) -> Move:
        """Move a replica, which must not be there already."""
        move = start_move(self.broker.movers, topic, partition, path)
        assert move is not None
        return move

    def hold(self) -> None:
        """Let nothing be copied."""
        self.throttle("0")
        self.broker.movers.quota.record(1, asyncio.get_running_loop().time() * 1000)

    def acknowledge(self) -> None:
        """The controller takes what it was told last."""
        accepted, self.accepted = self.accepted, None
        assert accepted is not None, "it was told nothing that is waited for"
        accepted()

    async def agree(self, move: Move) -> None:
        """The controller takes the assignment of this move as soon as it is told, and the move ends."""
        await until(lambda: self.accepted)
        self.acknowledge()
        await until(lambda: move.is_ended)

    def throttle(self, value: str | None, broker: str = "1") -> None:
        """Set the throttle in the metadata."""
        name = "replica.alter.log.dirs.io.max.bytes.per.second"
        self.apply(ConfigRecord(resource_type=4, resource_name=broker, name=name, value=value))
        self.broker.movers.metadata_advanced()

    def _assign(
        self, key: ReplicaKey, directory_id: bytes, reason: str, on_accepted: Callable[[], None] | None = None
    ) -> None:
        self.reported.append((key, directory_id))
        self.accepted = on_accepted

    def _failed(self, log_dir: LogDir, error: OSError, _key: ReplicaKey | None) -> None:
        self.broker.logs.take_offline(log_dir.directory_id, str(error))
        self.broker.directories.offline[log_dir.directory_id] = str(error)
        self.broker.movers.directory_offline(log_dir.directory_id)


@pytest.fixture
async def make_bench() -> AsyncIterator[Callable[..., Bench]]:
    """Makes brokers, with options of `draw_config`, on the disks of another one when `files` are given."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(**options))
        return made[-1]

    yield make
    for bench in made:
        await bench.broker.kill()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """One broker."""
    return make_bench()
