"""Single events: brokers that register or are fenced, new leaders, faults of connections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.report.columns import count_rows, cut_texts, first_integer, integers
from mockraft.spark_replay.report.heartbeats import broker_ids
from mockraft.spark_replay.report.sketches import Tally, TimeBins
from mockraft.wire import api_keys

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LOUD = frozenset(["gap", "desync", "conflict", "midstream", "tls", "sasl", "hole", "oversized", "rst"])
"""The kinds of CONN_EVENTS listed one by one; the others are counted."""
DISPLAY_NAMES = {
    "rst": "reset",
    "midstream": "began before capture",
    "hole": "cut by snaplen",
    "tls": "TLS",
    "sasl": "SASL",
}
"""Display names of kinds; the others are shown as they are."""
_LISTED_MAX = 200
_STATES_MAX = 20_000
_EPOCHS_MAX = 2_000

Connection = tuple[int, int]


class TrafficEvent(NamedTuple):
    """One event; `who` is a broker, a node or a connection."""

    at_ns: int
    kind: str
    who: str
    detail: str


class TrafficEvents:
    """The first events of each kind, their number, and when they occurred."""

    def __init__(self) -> None:
        self.counts: Tally[str] = Tally(200)
        self.bytes: Tally[str] = Tally(200)
        self.bins: dict[str, TimeBins] = {}
        self.first: dict[str, list[TrafficEvent]] = {}
        # A connection's broker, and the start of its current fenced state in heartbeat responses.
        self._brokers: dict[Connection, int] = {}
        self._states: dict[Connection, list[tuple[int, bool]]] = {}
        # The first appearance of each quorum epoch, and its leader if known.
        self._epochs: dict[int, tuple[int, int | None]] = {}

    def add_messages(self, batch: pa.RecordBatch) -> None:
        """Add the events found in rows of MESSAGES."""
        keys = batch.column("api_key")
        is_response = batch.column("is_response")
        self._registrations(batch.filter(pc.and_(pc.equal(keys, api_keys.BROKER_REGISTRATION), pc.invert(is_response))))
        self._fencing(batch.filter(pc.equal(keys, api_keys.BROKER_HEARTBEAT)))
        self._leaders(batch.filter(pc.equal(keys, api_keys.FETCH)))

    def add_conn_events(self, batch: pa.RecordBatch) -> None:
        """Add rows of CONN_EVENTS."""
        for row in count_rows(batch, ["kind"], ("bytes",)):
            self.counts.add(row["kind"], row["rows"])
            self.bytes.add(row["kind"], row["bytes_sum"] or 0)
        loud = cut_texts(
            batch.filter(pc.is_in(batch.column("kind"), pa.array(sorted(LOUD)))), "client", "server", "detail"
        )
        times, kinds = integers(loud, "ts_ns"), np.asarray(loud.column("kind").to_pylist(), dtype=object)
        for kind in set(kinds.tolist()):
            self.bins.setdefault(kind, TimeBins(512)).add(times[kinds == kind])
        for row in loud.slice(0, 2 * _LISTED_MAX).to_pylist():
            bytes_ = f"{row['bytes']:,} bytes" if row["bytes"] else ""
            detail = " ".join(part for part in (bytes_, row["detail"] or "") if part)
            ends = [f"{row['client']}:{row['client_port']}", f"{row['server']}:{row['server_port']}"]
            who = " → ".join(ends if not row["dir"] else ends[::-1])
            self._list(TrafficEvent(row["ts_ns"], row["kind"], who, detail))

    def listed(self) -> list[TrafficEvent]:
        """Return the kept events in the order of time."""
        kept = [each for listed in self.first.values() for each in listed]
        return sorted([*kept, *self._fencing_changes(), *self._failovers()])

    def _list(self, event: TrafficEvent) -> None:
        listed = self.first.setdefault(event.kind, [])
        if len(listed) < _LISTED_MAX:
            listed.append(event)
        elif event < (latest := max(listed)):
            listed[listed.index(latest)] = event

    def _registrations(self, batch: pa.RecordBatch) -> None:
        for broker, at_ns in zip(broker_ids(batch).to_pylist(), integers(batch, "ts_last_ns").tolist(), strict=True):
            self.counts.add("registered")
            self._list(TrafficEvent(at_ns, "registered", f"broker {broker}", ""))

    def _fencing(self, batch: pa.RecordBatch) -> None:
        requests = batch.filter(pc.invert(batch.column("is_response")))
        ids = broker_ids(requests).to_pylist()
        for connection, broker in zip(_connections(requests), ids, strict=True):
            if broker is not None and len(self._brokers) < _STATES_MAX:
                self._brokers[connection] = broker
        answered = batch.filter(batch.column("is_response"))
        fenced = pc.match_substring_regex(answered.column("body"), r'"isFenced":\s*true').to_pylist()
        refused = pc.match_substring_regex(answered.column("body"), r'"errorCode":\s*-?[1-9]').to_pylist()
        rows = zip(_connections(answered), integers(answered, "ts_last_ns").tolist(), fenced, refused, strict=True)
        for connection, at_ns, is_fenced, is_error in rows:
            if is_fenced is not None and not is_error:
                self._state(connection, [(at_ns, is_fenced)])

    def _state(self, connection: Connection, states: list[tuple[int, bool]]) -> None:
        had = self._states.get(connection)
        if had is None:
            if len(self._states) < _STATES_MAX:
                self._states[connection] = states
        else:
            ordered = had + states if states[0] >= had[-1] else sorted(had + states)
            self._states[connection] = _changes(ordered, keep_last=True)[:_LISTED_MAX]

    def _fencing_changes(self) -> list[TrafficEvent]:
        of_broker: dict[int, list[tuple[int, bool]]] = {}
        for connection, states in self._states.items():
            of_broker.setdefault(self._brokers.get(connection, -1), []).extend(states)
        return [
            TrafficEvent(at_ns, "fenced" if is_fenced else "unfenced", f"broker {broker}", "")
            for broker, states in of_broker.items()
            for at_ns, is_fenced in _changes(sorted(states))[1:]
        ]

    def _leaders(self, batch: pa.RecordBatch) -> None:
        bodies = batch.column("body")
        of_metadata = batch.filter(pc.fill_null(pc.match_substring(bodies, METADATA_TOPIC_ID), False))
        bodies = of_metadata.column("body")
        stated = first_integer(bodies, r'"leaderEpoch":\s*(?P<n>\d{1,9})\b')
        epochs = pc.coalesce(stated, first_integer(bodies, r'"currentLeaderEpoch":\s*(?P<n>\d{1,9})\b'))
        leaders = pc.if_else(pc.is_valid(stated), first_integer(bodies, r'"leaderId":\s*(?P<n>\d{1,9})\b'), None)
        seen = pa.record_batch({"epoch": epochs, "leader": leaders, "at_ns": of_metadata.column("ts_last_ns")})
        grouped = pa.Table.from_batches([seen]).group_by(["epoch", "leader"]).aggregate([("at_ns", "min")])
        for row in grouped.to_pylist():
            if row["epoch"]:
                self._epoch(row["epoch"], row["at_ns_min"], row["leader"])

    def _epoch(self, epoch: int, at_ns: int, leader: int | None) -> None:
        had = self._epochs.get(epoch)
        if had is not None:
            self._epochs[epoch] = (min(had[0], at_ns), had[1] if had[1] is not None else leader)
        elif len(self._epochs) < _EPOCHS_MAX:
            self._epochs[epoch] = (at_ns, leader)

    def _failovers(self) -> list[TrafficEvent]:
        found = []
        for epoch in sorted(self._epochs)[1:]:
            at_ns, leader = self._epochs[epoch]
            who = "the quorum" if leader is None else f"node {leader}"
            found.append(TrafficEvent(at_ns, "new leader", who, f"epoch {epoch}"))
        return found


def _connections(batch: pa.RecordBatch) -> list[Connection]:
    return list(zip(integers(batch, "conn_id").tolist(), integers(batch, "incarnation").tolist(), strict=True))


def _changes(states: list[tuple[int, bool]], *, keep_last: bool = False) -> list[tuple[int, bool]]:
    """Return the states that differ from the previous one, and the last one to compare later rows with."""
    kept = [state for at, state in enumerate(states) if at == 0 or states[at - 1][1] != state[1]]
    return [*kept, states[-1]] if keep_last and kept[-1] != states[-1] else kept
