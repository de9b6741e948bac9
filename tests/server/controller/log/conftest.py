"""Logs of topics, on a disk that is never waited for."""

import os
from pathlib import Path

import pytest
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord


def topic(number: int) -> RecordAt:
    return RecordAt(TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big")), 0)


def topics(log: MetadataLog) -> list[str]:
    """The names of a log that has no other records."""
    return [at.record.name for _, at in log.records()]


def topics_among(log: MetadataLog) -> list[str]:
    return [at.record.name for _, at in log.records() if isinstance(at.record, TopicRecord)]


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
