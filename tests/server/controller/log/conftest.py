"""Logs of topics, on a disk that is never waited for."""

import os

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
