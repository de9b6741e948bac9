"""Events in the metadata log: brokers, leaders, topics and configurations, each once however often it was fetched."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.wire.topic_names import CLUSTER_METADATA

_EVENTS_MAX = 20_000
_TOPICS_MAX = 20_000
_TOPICS_SHOWN = 3
_UNCHANGED, _NO_LEADER = -2, -1
_BROKER_KINDS = {
    "RegisterBrokerRecord": "registered",
    "UnregisterBrokerRecord": "unregistered",
    "FenceBrokerRecord": "fenced",
    "UnfenceBrokerRecord": "unfenced",
}
_OTHERS = ("BrokerRegistrationChangeRecord", "LeaderChangeMessage", "PartitionChangeRecord", "TopicRecord")
_READ = pa.array([*_BROKER_KINDS, *_OTHERS, "RemoveTopicRecord", "ConfigRecord"])
RECORD_COLUMNS = ["topic", "snapshot", "offset", "leader_epoch", "timestamp_ms", "record", "body"]
"""The columns of RECORDS used by `LogEvents`."""


class LogEvent(NamedTuple):
    """An event at an offset of the log, of a broker, or with a `name` of a topic or another resource."""

    at_ms: int
    kind: str
    offset: int
    broker: int
    name: str = ""


class LogEvents:
    """The events of the log, by offset; a capture is taken to have one log.

    `broker_epochs` has the epochs of registrations by their offset, `leaders` time in ns and node by leader epoch.
    """

    def __init__(self) -> None:
        self._events: dict[tuple[int, str], LogEvent] = {}
        self._topics: dict[str, str] = {}
        self.broker_epochs: dict[int, int] = {}
        self.leaders: dict[int, tuple[int, int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of RECORDS; those of snapshots and other topics are ignored."""
        is_log = pc.and_(pc.equal(batch.column("topic"), CLUSTER_METADATA), pc.is_null(batch.column("snapshot")))
        is_read = pc.and_(is_log, pc.and_(pc.is_in(batch.column("record"), _READ), pc.is_valid(batch.column("body"))))
        for row in batch.select(RECORD_COLUMNS).filter(pc.fill_null(is_read, False)).to_pylist():
            self._add(row, json.loads(row["body"]))

    def events(self, span_ns: tuple[int, int]) -> list[LogEvent]:
        """Return the events of a time, in the order of the log."""
        first_ms, last_ms = span_ns[0] // 1_000_000, span_ns[1] // 1_000_000
        named = (
            each._replace(name=self._topics.get(each.name, each.name)) if each.name else each
            for _, each in sorted(self._events.items())
        )
        return [each for each in named if first_ms <= each.at_ms <= last_ms]

    def _add(self, row: dict[str, Any], body: dict[str, Any]) -> None:
        record, offset, at_ms = row["record"], row["offset"], row["timestamp_ms"]
        if record == "LeaderChangeMessage" and len(self.leaders) < _EVENTS_MAX:
            self.leaders[row["leader_epoch"]] = (at_ms * 1_000_000, body["leaderId"])
        if record == "TopicRecord" and len(self._topics) < _TOPICS_MAX:
            self._topics[body["topicId"]] = body["name"]
        for kind, broker, name in _kinds(record, body):
            if len(self._events) < _EVENTS_MAX:
                self._events[offset, kind] = LogEvent(at_ms, kind, offset, broker, name)
        if record == "RegisterBrokerRecord" and len(self.broker_epochs) < _EVENTS_MAX:
            self.broker_epochs[offset] = body["brokerEpoch"]


def together(events: list[LogEvent]) -> list[tuple[int, str, str, str]]:
    """Return time in ns, kind, subject and detail of events; those of topics of one kind and time together."""
    groups: dict[tuple[int, str, object], list[LogEvent]] = {}
    for each in events:
        groups.setdefault((each.at_ms, each.kind, None if each.name else each.offset), []).append(each)
    rows = []
    for (at_ms, kind, _), found in groups.items():
        names = list(dict.fromkeys(each.name for each in found))
        shown = ", ".join(names[:_TOPICS_SHOWN]) + (" …" if len(names) > _TOPICS_SHOWN else "")
        some = f"{len(found)} records from " if len(found) > 1 else ""
        who = shown if found[0].name else f"broker {found[0].broker}"
        rows.append((at_ms * 1_000_000, kind, who, f"{some}offset {found[0].offset}"))
    return rows


def _kinds(record: str, body: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return kind, broker and topic (or resource) of what a record says happened."""
    if record in _BROKER_KINDS:
        return [(_BROKER_KINDS[record], body.get("brokerId", body.get("id", -1)), "")]
    if record == "BrokerRegistrationChangeRecord":
        changed = {1: "fenced", -1: "unfenced"}.get(body.get("fenced", 0))
        kinds = [changed] if changed else []
        kinds += ["shutting down"] if body.get("inControlledShutdown", 0) == 1 else []
        return [(kind, body["brokerId"], "") for kind in kinds]
    if record == "PartitionChangeRecord":
        leader = body.get("leader", _UNCHANGED)
        kind = "no leader" if leader == _NO_LEADER else "leader moved"
        return [] if leader == _UNCHANGED else [(kind, leader, body["topicId"])]
    if record == "ConfigRecord":
        return [("config changed", -1, body["resourceName"] or "all brokers")]
    if record == "LeaderChangeMessage":
        return []
    return [("topic created" if record == "TopicRecord" else "topic deleted", -1, body["topicId"])]
