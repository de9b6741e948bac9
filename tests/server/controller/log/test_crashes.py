"""Logs whose process is killed, or whose machine loses power, before any change of a file: each opens, and goes on."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.quorum.voter_set import control_records, read_voters
from mockraft.wire import record_batch, uuids

from tools.simulation.storage import PageCache

from ....budgets import sample, soak
from .conftest import topic, topics

VOTERS = f"1@a:1:{uuids.text_of(bytes([1]) * 16)},2@b:2:{uuids.text_of(bytes([2]) * 16)}"
CHANGES = ("open", "unlink", "replace", "fsync", "truncate", "ftruncate", "pwrite")
TOPICS = [f"topic-{number}" for number in range(8)]
"""Those of the log at first: segments begin at 0, 3 and 6, each topic is a batch of epoch 1."""
NEW = ["topic-20", "topic-21", "topic-22"]
Operation = Callable[["Disk"], object]


class _CrashError(BaseException):
    """The end of a process; nothing catches it."""


class Disk:
    """A data directory, and what a power cut leaves of it. `log` is open on it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, *, is_alone: bool = False) -> None:
        self.path = path
        self.page_cache = PageCache()
        self.log: MetadataLog | None = None
        self.config = ControllerConfig(
            node_id=1,
            data_dir=path,
            initial_controllers="" if is_alone else VOTERS,
            metadata_log_segment_bytes=300,
            metadata_log_fsync=True,
            metadata_max_retention_bytes=1,
        )
        monkeypatch.setattr(os, "fsync", self.page_cache.fsync)

    def open(self) -> MetadataLog:
        self.log = MetadataLog.open(self.config, 1000, random.Random(1))
        return self.log

    def close(self) -> None:
        with self.page_cache.cut():
            if self.log is not None:
                self.log.close()
        self.log = None

    def crash_after(self, changes: int, operation: Operation) -> bool:
        """Carry out the first changes of files of an operation; return False if it has no more."""
        left = changes

        def counted(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if name == "open" and not arguments[1] & os.O_CREAT:
                    return change(*arguments, **options)
                left -= 1
                if left == -1 or (left < 0 and name != "fsync"):
                    raise _CrashError
                return change(*arguments, **options) if left >= 0 else None

            return call

        with pytest.MonkeyPatch.context() as patch:
            for name in CHANGES:
                patch.setattr(os, name, counted(name, getattr(os, name)))
            with contextlib.suppress(_CrashError):
                operation(self)
        self.close()
        return left < 0


def crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Operation, operation: Operation, **options: bool
) -> Iterator[Disk]:
    """Return the disks that a kill or a power cut can leave of an operation, or after it, all of them."""
    paths = (tmp_path / str(number) for number in itertools.count())
    for changes in itertools.count():
        choices: list[bool] | None = None  # None: a kill
        while True:
            disk = Disk(next(paths), monkeypatch, **options)
            prepare(disk)
            is_last = not disk.crash_after(changes, operation)
            made = iter(choices or ())
            drawn: list[bool] = []

            def survives(made: Iterator[bool] = made, drawn: list[bool] = drawn) -> bool:
                drawn.append(next(made, False))
                return drawn[-1]

            if choices is not None:
                disk.page_cache.lose(disk.path, 0.5, zeros=False, survives=survives)
            yield disk
            disk.close()
            disk.page_cache.close()
            if choices is None:
                choices = []
                continue
            while drawn and drawn[-1]:
                drawn.pop()
            if not drawn:
                break
            choices = [*drawn[:-1], True]
        if is_last:
            return


def write(disk: Disk) -> None:
    disk.open().append_fetched(batches(1, range(8)), 1)


def batches(epoch: int, numbers: range, start: int = 0) -> bytes:
    data = [topic(number) for number in numbers]
    log = MetadataLog.open(ControllerConfig(), 1000, random.Random(1))
    values = [log.frames.encode(record, version) for record, version in data]
    return b"".join(
        record_batch.encode([value], base_offset=start + at, leader_epoch=epoch, timestamp_ms=1000)
        for at, value in enumerate(values)
    )


def installed(end_offset: int) -> Operation:
    """Install a leader's snapshot of epoch 2 at that offset, of topics 20 and 21, and append topic 22."""
    snapshot_id = SnapshotId(end_offset, 2)
    voters = control_records(1, read_voters(VOTERS, "CONTROLLER"))
    topics = [topic(20), topic(21)]
    encoded = snapshot.encode(snapshot_id, topics, voters=voters, last_contained_log_timestamp_ms=1000, now_ms=1000)
    data = b"".join(encoded)

    def install(disk: Disk) -> None:
        assert disk.log is not None
        disk.log.install_snapshot(snapshot_id, data, 1000)
        disk.log.append_fetched(batches(2, range(22, 23), end_offset), 2)

    return install


def goes_on(disk: Disk) -> list[str]:
    """Open it, append as a follower of epoch 3, and open it again; return the topics of the first time."""
    log = disk.open()
    found, end_offset = topics(log), log.end_offset
    if "topic-20" in found:
        assert log.start_offset == log.snapshots[-1].id.end_offset, "nothing of the old log is below it"
    log.append_fetched(batches(3, range(30, 34), end_offset), 3)
    assert topics(log) == [*found, *(f"topic-{n}" for n in range(30, 34))]
    disk.close()
    again = disk.open()
    assert (topics(again), again.end_offset) == ([*found, *(f"topic-{n}" for n in range(30, 34))], end_offset + 4)
    return found


@pytest.mark.parametrize("end_offset", sample([100, 8, 7, 6, 4, 2], 2))
def test_an_installed_snapshot_replaces_the_log_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_offset: int
) -> None:
    """Also one that ends within the log: records of an older epoch were never committed."""
    found = [goes_on(disk) for disk in crashed(tmp_path, monkeypatch, write, installed(end_offset))]
    assert {*map(tuple, found)} == {tuple(TOPICS), tuple(NEW[:2]), tuple(NEW)}


@pytest.mark.parametrize(("end_offset", "changes"), sample([(100, 3), (100, 7), (4, 3), (4, 7)], 1))
def test_an_interrupted_installation_is_completed_at_the_next_start_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_offset: int, changes: int
) -> None:
    def prepare(disk: Disk) -> None:
        write(disk)
        disk.crash_after(changes, installed(end_offset))

    for disk in crashed(tmp_path, monkeypatch, prepare, Disk.open):
        assert goes_on(disk) in (TOPICS, NEW[:2])


@pytest.mark.parametrize("end_offset", [0, 2, 3, 5, 7])
def test_a_truncated_log_is_a_shorter_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_offset: int) -> None:
    def truncate(disk: Disk) -> None:
        assert disk.log is not None
        assert disk.log.truncate(EpochEndOffset(1, end_offset)) == end_offset

    for disk in crashed(tmp_path, monkeypatch, write, truncate):
        found = goes_on(disk)
        assert found == TOPICS[: max(len(found), end_offset)]


@soak
def test_retention_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_with_snapshot(disk: Disk) -> None:
        write(disk)
        assert disk.log is not None
        disk.log.high_watermark = 8
        disk.log.write_snapshot([topic(number) for number in range(8)], 1000)
        disk.log.append_fetched(batches(1, range(8, 14), 8), 1)
        disk.log.high_watermark = 14

    def clean(disk: Disk) -> None:
        assert disk.log is not None
        disk.log.write_snapshot([topic(number) for number in range(14)], 1000)

    starts = set()
    for disk in crashed(tmp_path, monkeypatch, write_with_snapshot, clean):
        assert goes_on(disk) == [f"topic-{number}" for number in range(14)]
        assert disk.log is not None
        starts.add(disk.log.start_offset)
    assert {0, 14} <= starts


def test_a_lone_controller_that_lost_its_tail_goes_on_after_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(disk: Disk) -> None:
        log = disk.open()
        log.leader_epoch = 1
        log.commits_alone = True
        for number in range(8):
            log.append([topic(number)], 1000)
        log.write_snapshot([topic(number) for number in range(8)], 1000)
        disk.close()
        *_, torn, empty = sorted((disk.path / "__cluster_metadata-0").glob("*.log"))
        empty.unlink()
        torn.write_bytes(torn.read_bytes()[:-1])

    for disk in crashed(tmp_path, monkeypatch, prepare, Disk.open, is_alone=True):
        assert goes_on(disk) == TOPICS
