"""Logs of topics, on a disk that is never waited for."""

import dataclasses
import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.raft.raft import Raft
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord

FIRST_SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
Open = Callable[..., MetadataLog]


def topic(number: int) -> RecordAt:
    return RecordAt(TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big")), 0)


def topics(log: MetadataLog) -> list[str]:
    """The names of a log that has no other records."""
    return [at.record.name for _, at in log.records()]


def topics_among(log: MetadataLog) -> list[str]:
    return [at.record.name for _, at in log.records() if isinstance(at.record, TopicRecord)]


def led(config: ControllerConfig, now_ms: int, seed: int) -> MetadataLog:
    log = Raft.open(config, now_ms, random.Random(seed)).log
    if not any(log.records()):
        log.append(log.bootstrap_records(), now_ms)
    return log


def written_snapshot(log: MetadataLog, now_ms: int = 5000) -> SnapshotId:
    found = log.write_snapshot([record for _, record in log.records()], now_ms)
    assert found is not None
    return found


def full_disk(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def reopen(tmp_path: Path) -> Any:
    """Close the log that this opened before and open the data dir again."""
    config = ControllerConfig(data_dir=tmp_path / "data")
    logs: list[MetadataLog] = []

    def open_again(seed: int = 1, **options: Any) -> MetadataLog:
        while logs:
            logs.pop().close()
        logs.append(led(dataclasses.replace(config, **options), 1000 * (len(logs) + 1), seed))
        return logs[-1]

    yield open_again
    while logs:
        logs.pop().close()


def crashed(log: MetadataLog, to: Path) -> Path:
    """The data dir as a kill -9 would leave it now."""
    assert log.config.data_dir is not None
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(log.config.data_dir, to)
    return to


def started_in(data_dir: Path, **options: Any) -> MetadataLog:
    return led(ControllerConfig(data_dir=data_dir, **options), 9000, 3)


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that is in the page cache."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def synced(_without_fsync: None, monkeypatch: pytest.MonkeyPatch) -> dict[Path, bytes | set[str]]:
    """Remains of a power cut: the contents of files, and the names in directories, when they were last synced."""
    found: dict[Path, bytes | set[str]] = {}

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        found[path] = {each.name for each in path.iterdir()} if path.is_dir() else path.read_bytes()

    monkeypatch.setattr(os, "fsync", fsync)
    return found
