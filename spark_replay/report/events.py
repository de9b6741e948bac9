"""Single events: brokers that register or are fenced, new leaders, changes of topics, faults of connections.

They are taken from responses and from the metadata log, never from requests, which may be refused. A broker's
registration is found in both by its epoch. Of a broker that the log mentions, the log has all times at which it was
fenced; of another one the responses to its heartbeats have them.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.report.columns import connection_keys, count_rows, cut_texts, first_integer, integers
from mockraft.spark_replay.report.heartbeats import broker_ids
from mockraft.spark_replay.report.log_events import LogEvents, together
from mockraft.spark_replay.report.sketches import DistinctKeys, Tally, TimeBins
from mockraft.wire import api_keys, uuids
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

_METADATA_TOPIC_ID = uuids.text_of(CLUSTER_METADATA_ID)
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
EVER = (0, 1 << 62)
_NO_ERROR = r'"errorCode":\s*0\b'
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
        self.connections = DistinctKeys()
        self._resets: dict[tuple[str, str], tuple[int, int, int]] = {}
        self.log = LogEvents()
        # The first registrations that were accepted: when, on which connection, and with which epoch.
        self._registered: list[tuple[int, Connection, int]] = []
        # A connection's broker, and the start of its current fenced state in heartbeat responses.
        self._brokers: dict[Connection, int] = {}
        self._states: dict[Connection, list[tuple[int, bool]]] = {}
        # The first appearance of each quorum epoch, and its leader if known.
        self._epochs: dict[int, tuple[int, int | None]] = {}

    def add_messages(self, batch: pa.RecordBatch) -> None:
        """Add the events found in rows of MESSAGES."""
        keys = batch.column("api_key")
        is_response = batch.column("is_response")
        registrations = pc.equal(keys, api_keys.BROKER_REGISTRATION)
        heartbeats = pc.equal(keys, api_keys.BROKER_HEARTBEAT)
        self._senders(batch.filter(pc.and_(pc.or_(registrations, heartbeats), pc.invert(is_response))))
        self._registrations(batch.filter(pc.and_(registrations, is_response)))
        self._fencing(batch.filter(pc.and_(heartbeats, is_response)))
        self._leaders(batch.filter(pc.and_(pc.equal(keys, api_keys.FETCH), is_response)))

    def add_conn_events(self, batch: pa.RecordBatch) -> None:
        """Add rows of CONN_EVENTS."""
        self.connections.add(connection_keys(batch))
        # A connection is opened by its client's SYN; the server's is the answer.
        answered = pc.and_(pc.equal(batch.column("kind"), "syn"), pc.equal(batch.column("dir"), 1))
        batch = batch.filter(pc.invert(answered))
        for row in count_rows(batch, ["kind"], ("bytes",)):
            self.counts.add(row["kind"], row["rows"])
            self.bytes.add(row["kind"], row["bytes_sum"] or 0)
        loud = cut_texts(
            batch.filter(pc.is_in(batch.column("kind"), pa.array(sorted(LOUD)))), "client", "server", "detail"
        )
        self._add_resets(loud.filter(pc.equal(loud.column("kind"), "rst")))
        times, kinds = integers(loud, "ts_ns"), np.asarray(loud.column("kind").to_pylist(), dtype=object)
        for kind in set(kinds.tolist()):
            self.bins.setdefault(kind, TimeBins(512)).add(times[kinds == kind])
        for row in loud.slice(0, 2 * _LISTED_MAX).to_pylist():
            bytes_ = f"{row['bytes']:,} bytes" if row["bytes"] else ""
            detail = " ".join(part for part in (bytes_, row["detail"] or "") if part)
            ends = [f"{row['client']}:{row['client_port']}", f"{row['server']}:{row['server_port']}"]
            who = " → ".join(ends if not row["dir"] else ends[::-1])
            self._list(TrafficEvent(row["ts_ns"], row["kind"], who, detail))

    def listed(self, span_ns: tuple[int, int] = EVER) -> list[TrafficEvent]:
        """Return the first events of each kind in the order of time; of the log's those in the capture's time."""
        kept = [each for listed in self.first.values() for each in listed]
        counts: Counter[str] = Counter()
        for each in sorted(self.happened(span_ns)):
            counts[each.kind] += 1
            if counts[each.kind] <= _LISTED_MAX:
                kept.append(each)
        return sorted(kept)

    def happened(self, span_ns: tuple[int, int] = EVER) -> list[TrafficEvent]:
        """Return everything found in responses, and in the log in the capture's time: it has older records too."""
        logged = self.log.events(span_ns)
        answered = {epoch for _, _, epoch in self._registered}
        in_log = {f"broker {each.broker}" for each in logged if each.kind in ("fenced", "unfenced")}
        found = [
            TrafficEvent(at_ns, "registered", self._name_of(connection), "")
            for at_ns, connection, _ in self._registered
        ]
        found += [each for each in self._fencing_changes() if each.who not in in_log]
        found += self._failovers(span_ns)
        more = [each for each in logged if self.log.broker_epochs.get(each.offset) not in answered]
        return [*found, *(TrafficEvent(*row) for row in together(more))]

    def resets(self) -> list[tuple[str, str, int, int, int]]:
        """Return sender, receiver, number, and first and last time of resets, most first; ports of clients left out."""
        rows = [(*ends, *found) for ends, found in self._resets.items()]
        return sorted(rows, key=lambda row: (-row[2], row))

    def _list(self, event: TrafficEvent) -> None:
        listed = self.first.setdefault(event.kind, [])
        if len(listed) < _LISTED_MAX:
            listed.append(event)
        elif event < (latest := max(listed)):
            listed[listed.index(latest)] = event

    def _add_resets(self, batch: pa.RecordBatch) -> None:
        ends = ["client", "server", "server_port", "dir"]
        table = pa.Table.from_batches([batch]).group_by(ends)
        for row in table.aggregate([("ts_ns", "count"), ("ts_ns", "min"), ("ts_ns", "max")]).to_pylist():
            pair = (row["client"], f"{row['server']}:{row['server_port']}")
            key = pair[::-1] if row["dir"] else pair
            if key in self._resets or len(self._resets) < _LISTED_MAX:
                count, first_ns, last_ns = self._resets.get(key, (0, row["ts_ns_min"], row["ts_ns_max"]))
                bounds = min(first_ns, row["ts_ns_min"]), max(last_ns, row["ts_ns_max"])
                self._resets[key] = (count + row["ts_ns_count"], *bounds)

    def _senders(self, requests: pa.RecordBatch) -> None:
        """Remember which broker a connection is of: responses do not name it."""
        for connection, broker in zip(_connections(requests), broker_ids(requests).to_pylist(), strict=True):
            if broker is not None and len(self._brokers) < _STATES_MAX:
                self._brokers[connection] = broker

    def _name_of(self, connection: Connection) -> str:
        broker = self._brokers.get(connection)
        return "unknown broker" if broker is None else f"broker {broker}"

    def _registrations(self, answered: pa.RecordBatch) -> None:
        accepted = answered.filter(pc.fill_null(pc.match_substring_regex(answered.column("body"), _NO_ERROR), False))
        if not accepted.num_rows:
            return
        self.counts.add("registered", accepted.num_rows)
        epochs = first_integer(accepted.column("body"), r'"brokerEpoch":\s*(?P<n>\d{1,18})\b').to_pylist()
        rows = zip(integers(accepted, "ts_last_ns").tolist(), _connections(accepted), epochs, strict=True)
        self._registered = sorted([*self._registered, *rows])[:_LISTED_MAX]

    def _fencing(self, answered: pa.RecordBatch) -> None:
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
        of_metadata = batch.filter(pc.fill_null(pc.match_substring(bodies, _METADATA_TOPIC_ID), False))
        bodies = of_metadata.column("body")
        epochs = first_integer(bodies, r'"leaderEpoch":\s*(?P<n>\d{1,9})\b')
        leaders = first_integer(bodies, r'"leaderId":\s*(?P<n>\d{1,9})\b')
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

    def _failovers(self, span_ns: tuple[int, int]) -> list[TrafficEvent]:
        """Return the elections after that of the first known epoch, each when it was recorded or first answered."""
        epochs = dict(self._epochs)
        for epoch, (at_ns, leader) in self.log.leaders.items():
            epochs[epoch] = (min(at_ns, epochs.get(epoch, (at_ns, leader))[0]), leader)
        found = []
        for epoch in sorted(epochs)[1:]:
            at_ns, leader_id = epochs[epoch]
            who = "the quorum" if leader_id is None else f"node {leader_id}"
            if span_ns[0] <= at_ns <= span_ns[1]:
                found.append(TrafficEvent(at_ns, "new leader", who, f"epoch {epoch}"))
        return found


def _connections(batch: pa.RecordBatch) -> list[Connection]:
    return list(zip(integers(batch, "conn_id").tolist(), integers(batch, "incarnation").tolist(), strict=True))


def _changes(states: list[tuple[int, bool]], *, keep_last: bool = False) -> list[tuple[int, bool]]:
    """Return the states that differ from the previous one, and the last one to compare later rows with."""
    kept = [state for at, state in enumerate(states) if at == 0 or states[at - 1][1] != state[1]]
    return [*kept, states[-1]] if keep_last and kept[-1] != states[-1] else kept
