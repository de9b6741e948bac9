"""Traffic statistics by API, decode status, latency and client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.report.columns import connection_keys, count_rows, cut_texts, first_integer, integers
from mockraft.spark_replay.report.events import TrafficEvents
from mockraft.spark_replay.report.heartbeats import Heartbeats
from mockraft.spark_replay.report.sketches import DistinctKeys, LogHistogram, Tally, TimeBins, keep_first

UNKNOWN_API = -1
MESSAGE_COLUMNS = [
    *("conn_id", "incarnation", "client", "client_port", "server", "server_port", "frame_no", "is_response"),
    *("api_key", "api_version", "correlation_id", "client_id", "ts_last_ns", "packet_last", "size", "truncated"),
    *("after_gap", "pair_status", "request_frame_no", "latency_ns", "decode_status", "error_offset", "error"),
    *("roundtrip", "first_diff_offset", "unknown_tags", "body"),
]
"""The columns of MESSAGES used by `Traffic`."""
FORWARDED_COLUMNS = ["api_key", "client_id", "client_host", "principal", "is_response", "body"]
"""The columns of FORWARDED used by `Traffic`."""
_EXAMPLES_MAX = 40
_COVERAGE = ["api_key", "api_version", "is_response", "decode_status", "roundtrip", "pair_status"]
_EXAMPLE = ["conn_id", "incarnation", "frame_no", "is_response", "api_key", "api_version", "client", "client_port"]
_EXAMPLE += ["server", "server_port", "ts_last_ns", "packet_last", "size", "decode_status", "error_offset", "error"]
_EXAMPLE += ["first_diff_offset"]


Group = tuple[int, int, bool, str]
"""API, version, is_response and decode status: one frame of each group that failed is kept as an example."""


def known_api(api_key: int) -> int:
    """Return the key, or UNKNOWN_API if Kafka has no name for it."""
    return api_key if api_key in in_use().api_names else UNKNOWN_API


class Traffic:
    """Sums over MESSAGES, CONN_EVENTS and FILE_EVENTS, whose batches may come in any order."""

    def __init__(self) -> None:
        self.coverage: Tally[tuple[int, int, bool, str, bool | None, str]] = Tally()
        self.bytes = 0
        self.truncated = 0
        self.after_gap = 0
        self.unknown_tags = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.connections = DistinctKeys()
        self.servers: Tally[tuple[str, int]] = Tally(200)
        self.clients: Tally[tuple[str | None, str]] = Tally()
        self.forwarded: Tally[tuple[int, str | None, str | None, str | None]] = Tally(200)
        """Requests that brokers forwarded, by API and client: id, host and principal."""
        self.errors: Tally[tuple[int, bool, int]] = Tally()
        """Error codes by API, those of forwarded requests apart."""
        self.latencies: dict[int, LogHistogram] = {}
        self.requests: dict[int, TimeBins] = {}
        self.examples: dict[Group, dict[str, Any]] = {}
        self.heartbeats = Heartbeats()
        self.events = TrafficEvents()
        self.file_events: Tally[tuple[str, str, str | None]] = Tally()

    def add_messages(self, batch: pa.RecordBatch) -> None:
        """Add rows of MESSAGES, preferably in order within a connection."""
        if not batch.num_rows:
            return
        batch = cut_texts(batch.select(MESSAGE_COLUMNS), "client_id", "error", "client", "server")
        for row in count_rows(batch, _COVERAGE, ("size",)):
            key = known_api(row["api_key"])
            version = row["api_version"] if key >= 0 else -1
            outcome = row["is_response"], row["decode_status"], row["roundtrip"], row["pair_status"]
            self.coverage.add((key, version, *outcome), row["rows"])
            self.bytes += row["size_sum"]
        self.truncated += pc.sum(batch.column("truncated").cast(pa.int64())).as_py() or 0
        self.after_gap += pc.sum(batch.column("after_gap").cast(pa.int64())).as_py() or 0
        tags = pc.fill_null(pc.list_value_length(batch.column("unknown_tags")), 0)
        self.unknown_tags += pc.sum(pc.greater(tags, 0).cast(pa.int64())).as_py()
        self._span(batch)
        self._connections(batch)
        self._speed(batch)
        self._errors(batch, is_forwarded=False)
        self._examples(batch)
        self.heartbeats.add(batch)
        self.events.add_messages(batch)

    def add_forwarded(self, batch: pa.RecordBatch) -> None:
        """Add rows of FORWARDED: the requests of clients, and the errors that they got."""
        batch = cut_texts(batch.select(FORWARDED_COLUMNS), "client_id", "client_host", "principal")
        requests = batch.filter(pc.invert(batch.column("is_response")))
        for row in count_rows(requests, ["api_key", "client_id", "client_host", "principal"]):
            client = row["client_id"], row["client_host"], row["principal"]
            self.forwarded.add((known_api(row["api_key"]), *client), row["rows"])
        self._errors(batch, is_forwarded=True)

    def add_file_events(self, batch: pa.RecordBatch) -> None:
        """Add rows of FILE_EVENTS."""
        for row in cut_texts(batch, "detail", "file").to_pylist():
            self.file_events.add((row["kind"], row["file"].rsplit("/", 1)[-1], row["detail"]), row["count"] or 1)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return self.coverage.total

    def _span(self, batch: pa.RecordBatch) -> None:
        bounds = pc.min_max(batch.column("ts_last_ns")).as_py()
        first_ns, last_ns = bounds["min"], bounds["max"]
        if first_ns is not None:
            self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
            self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def _connections(self, batch: pa.RecordBatch) -> None:
        keys = connection_keys(batch)
        self.connections.add(keys)
        self.events.connections.add(keys)
        for row in count_rows(batch, ["server", "server_port"]):
            self.servers.add((row["server"], row["server_port"]), row["rows"])
        requests = batch.filter(pc.invert(batch.column("is_response")))
        for row in count_rows(requests, ["client_id", "client"]):
            self.clients.add((row["client_id"], row["client"]), row["rows"])

    def _speed(self, batch: pa.RecordBatch) -> None:
        keys, times = integers(batch, "api_key", UNKNOWN_API), integers(batch, "ts_last_ns")
        is_response = batch.column("is_response").to_numpy(zero_copy_only=False)
        timed = pc.is_valid(batch.column("latency_ns")).to_numpy(zero_copy_only=False) & is_response
        latencies = integers(batch, "latency_ns")
        for key in np.unique(keys).tolist():
            requests, answered = (keys == key) & ~is_response, (keys == key) & timed
            if requests.any():
                self.requests.setdefault(known_api(key), TimeBins()).add(times[requests])
            if answered.any():
                self.latencies.setdefault(known_api(key), LogHistogram()).add(latencies[answered])

    def _errors(self, batch: pa.RecordBatch, *, is_forwarded: bool) -> None:
        answers = batch.filter(batch.column("is_response"))
        codes = first_integer(answers.column("body"), r'"errorCode":\s*(?P<n>-?[1-9]\d{0,4})\b')
        coded = pa.record_batch({"api_key": answers.column("api_key"), "code": codes}).filter(pc.is_valid(codes))
        for row in count_rows(coded, ["api_key", "code"]):
            self.errors.add((known_api(row["api_key"]), is_forwarded, row["code"]), row["rows"])

    def _examples(self, batch: pa.RecordBatch) -> None:
        unread = pc.not_equal(batch.column("decode_status"), "ok")
        parted = pc.fill_null(pc.invert(batch.column("roundtrip")), False)
        wrong = batch.filter(pc.or_(unread, parted)).select(_EXAMPLE)
        for row in wrong.slice(0, 1_000).to_pylist():
            group = (known_api(row["api_key"]), row["api_version"], row["is_response"], row["decode_status"])
            keep_first(self.examples, group, row, ("ts_last_ns",), _EXAMPLES_MAX)
