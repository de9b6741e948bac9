"""What a capture's messages add up to: how many of what, how read, how fast, by whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.report.columns import counted, cut, said, whole
from mockraft.spark_replay.report.happenings import Happenings
from mockraft.spark_replay.report.heartbeats import Heartbeats
from mockraft.spark_replay.report.sketches import DistinctKeys, LogHistogram, Tally, TimeBins
from mockraft.wire import api_keys

UNKNOWN_API = -1
MESSAGE_COLUMNS = [
    *("conn_id", "incarnation", "client", "client_port", "server", "server_port", "frame_no", "is_response"),
    *("api_key", "api_version", "correlation_id", "client_id", "ts_last_ns", "packet_last", "size", "truncated"),
    *("after_gap", "pair_status", "request_frame_no", "latency_ns", "decode_status", "error_offset", "error"),
    *("roundtrip", "first_diff_offset", "unknown_tags", "body"),
]
"""What `Traffic` looks at of MESSAGES."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_EXAMPLES_MAX = 40
_COVERAGE = ["api_key", "api_version", "is_response", "decode_status", "roundtrip", "pair_status"]
_EXAMPLE = ["conn_id", "incarnation", "frame_no", "is_response", "api_key", "api_version", "client", "client_port"]
_EXAMPLE += ["server", "server_port", "ts_last_ns", "packet_last", "size", "decode_status", "error_offset", "error"]
_EXAMPLE += ["first_diff_offset"]


def known(api_key: int) -> int:
    """The key, or UNKNOWN_API for what Kafka 4.3.1 has no name for."""
    return api_key if api_key in api_keys.NAMES else UNKNOWN_API


class Traffic:
    """The sums over MESSAGES, CONN_EVENTS and FILE_EVENTS; `add_…` takes one batch, `merge` the sums of others."""

    def __init__(self) -> None:
        self.coverage = Tally()
        self.bytes = 0
        self.truncated = 0
        self.after_gap = 0
        self.unknown_tags = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.connections = DistinctKeys()
        self.servers = Tally(200)
        self.clients = Tally()
        self.errors = Tally()
        self.latencies: dict[int, LogHistogram] = {}
        self.requests: dict[int, TimeBins] = {}
        self.examples: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.heartbeats = Heartbeats()
        self.happenings = Happenings()
        self.file_events = Tally()

    def add_messages(self, batch: pa.RecordBatch) -> None:
        """Add rows of MESSAGES; those of one connection best in their order."""
        if not batch.num_rows:
            return
        batch = cut(batch.select(MESSAGE_COLUMNS), "client_id", "error", "client", "server")
        for row in counted(batch, _COVERAGE, ("size",)):
            key = known(row["api_key"])
            self.coverage.add(
                (key, row["api_version"] if key >= 0 else -1, *(row[x] for x in _COVERAGE[2:])), row["rows"]
            )
            self.bytes += row["size_sum"]
        self.truncated += pc.sum(batch.column("truncated").cast(pa.int64())).as_py() or 0
        self.after_gap += pc.sum(batch.column("after_gap").cast(pa.int64())).as_py() or 0
        tags = pc.fill_null(pc.list_value_length(batch.column("unknown_tags")), 0)
        self.unknown_tags += pc.sum(pc.greater(tags, 0).cast(pa.int64())).as_py()
        self._span(batch)
        self._connections(batch)
        self._speed(batch)
        self._errors(batch)
        self._examples(batch)
        self.heartbeats.add(batch)
        self.happenings.add_messages(batch)

    def add_conn_events(self, batch: pa.RecordBatch) -> None:
        """Add rows of CONN_EVENTS."""
        self.happenings.add_conn_events(batch)

    def add_file_events(self, batch: pa.RecordBatch) -> None:
        """Add rows of FILE_EVENTS."""
        for row in cut(batch, "detail", "file").to_pylist():
            self.file_events.add((row["kind"], row["file"].rsplit("/", 1)[-1], row["detail"]), row["count"] or 1)

    def merge(self, other: Traffic) -> None:
        """Add the sums over other rows."""
        for name in (
            "coverage",
            "connections",
            "servers",
            "clients",
            "errors",
            "heartbeats",
            "happenings",
            "file_events",
        ):
            getattr(self, name).merge(getattr(other, name))
        for name in ("bytes", "truncated", "after_gap", "unknown_tags"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first_ns is not None and other.last_ns is not None:
            self._extend(other.first_ns, other.last_ns)
        for key, histogram in other.latencies.items():
            self.latencies.setdefault(key, LogHistogram()).merge(histogram)
        for key, bins in other.requests.items():
            self.requests.setdefault(key, TimeBins()).merge(bins)
        for group, example in other.examples.items():
            self._example(group, example)

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return self.coverage.total

    def _span(self, batch: pa.RecordBatch) -> None:
        bounds = pc.min_max(batch.column("ts_last_ns")).as_py()
        if bounds["min"] is not None:
            self._extend(bounds["min"], bounds["max"])

    def _extend(self, first_ns: int, last_ns: int) -> None:
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def _connections(self, batch: pa.RecordBatch) -> None:
        ids = whole(batch, "conn_id").view(np.uint64) + whole(batch, "incarnation").view(np.uint64) * _SPREAD
        self.connections.add(ids)
        for row in counted(batch, ["server", "server_port"]):
            self.servers.add((row["server"], row["server_port"]), row["rows"])
        requests = batch.filter(pc.invert(batch.column("is_response")))
        for row in counted(requests, ["client_id", "client"]):
            self.clients.add((row["client_id"], row["client"]), row["rows"])

    def _speed(self, batch: pa.RecordBatch) -> None:
        keys, times = whole(batch, "api_key", UNKNOWN_API), whole(batch, "ts_last_ns")
        is_response = batch.column("is_response").to_numpy(zero_copy_only=False)
        timed = pc.is_valid(batch.column("latency_ns")).to_numpy(zero_copy_only=False) & is_response
        latencies = whole(batch, "latency_ns")
        for key in np.unique(keys).tolist():
            asked, answered = (keys == key) & ~is_response, (keys == key) & timed
            if asked.any():
                self.requests.setdefault(known(key), TimeBins()).add(times[asked])
            if answered.any():
                self.latencies.setdefault(known(key), LogHistogram()).add(latencies[answered])

    def _errors(self, batch: pa.RecordBatch) -> None:
        answers = batch.filter(batch.column("is_response"))
        codes = said(answers.column("body"), r'"errorCode":\s*(?P<n>-?[1-9]\d{0,4})\b')
        coded = pa.record_batch({"api_key": answers.column("api_key"), "code": codes}).filter(pc.is_valid(codes))
        for row in counted(coded, ["api_key", "code"]):
            self.errors.add((known(row["api_key"]), row["code"]), row["rows"])

    def _examples(self, batch: pa.RecordBatch) -> None:
        unread = pc.not_equal(batch.column("decode_status"), "ok")
        parted = pc.fill_null(pc.invert(batch.column("roundtrip")), False)
        wrong = batch.filter(pc.or_(unread, parted)).select(_EXAMPLE)
        for row in wrong.slice(0, 1_000).to_pylist():
            group = (known(row["api_key"]), row["api_version"], row["is_response"], row["decode_status"])
            self._example(group, row)

    def _example(self, group: tuple[Any, ...], row: dict[str, Any]) -> None:
        had = self.examples.get(group)
        if had is None and len(self.examples) >= _EXAMPLES_MAX:
            return
        if had is None or row["ts_last_ns"] < had["ts_last_ns"]:
            self.examples[group] = row
