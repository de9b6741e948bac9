"""Intervals between each broker's heartbeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.report.columns import first_integer, integers
from mockraft.spark_replay.report.sketches import LogHistogram, TimeBins
from mockraft.wire import api_keys

BROKERS_MAX = 2_000
_SPELLS_MAX = 10_000
_GAPS_MAX = 10
_BINS_MAX = 256


class Gap(NamedTuple):
    """A period without a heartbeat, by its length and end."""

    interval_ns: int
    until_ns: int


class BrokerHeartbeats:
    """One broker's heartbeats. A spell is the first to the last heartbeat of one connection."""

    def __init__(self) -> None:
        self.count = 0
        self.intervals = LogHistogram()
        self.longest = TimeBins(_BINS_MAX, of_largest=True)
        self.gaps: list[Gap] = []
        self.spells: dict[tuple[int, int], tuple[int, int]] = {}

    def beat(self, connection: tuple[int, int], times_ns: np.ndarray) -> None:
        """Add heartbeats of one connection, sorted by time."""
        self.count += len(times_ns)
        self._intervals(np.diff(times_ns), times_ns[1:])
        self._spell(connection, (int(times_ns[0]), int(times_ns[-1])))

    def merge(self, other: BrokerHeartbeats) -> None:
        """Add heartbeats of the same broker from another sum."""
        self.count += other.count
        self.intervals.merge(other.intervals)
        self.longest.merge(other.longest)
        self._keep(other.gaps)
        for connection, spell in other.spells.items():
            self._spell(connection, spell)

    def joined(self) -> BrokerHeartbeats:
        """Return a copy that includes the intervals from each connection's last heartbeat to the next one's first."""
        joined = BrokerHeartbeats()
        joined.merge(self)
        until = None
        for first, last in sorted(self.spells.values()):
            if until is not None and first > until:
                joined._intervals(np.array([first - until]), np.array([first]))
            until = last if until is None else max(until, last)
        return joined

    def _spell(self, connection: tuple[int, int], spell: tuple[int, int]) -> None:
        had = self.spells.get(connection)
        if had is None:
            if len(self.spells) < _SPELLS_MAX:
                self.spells[connection] = spell
            return
        early, late = sorted([had, spell])
        if late[0] > early[1]:
            self._intervals(np.array([late[0] - early[1]]), np.array([late[0]]))
        self.spells[connection] = (early[0], max(early[1], late[1]))

    def _intervals(self, intervals_ns: np.ndarray, until_ns: np.ndarray) -> None:
        self.intervals.add(intervals_ns)
        self.longest.add(until_ns, intervals_ns)
        largest = np.argsort(-intervals_ns)[:_GAPS_MAX].tolist()
        self._keep([Gap(int(intervals_ns[at]), int(until_ns[at])) for at in largest])

    def _keep(self, gaps: list[Gap]) -> None:
        self.gaps = sorted([*self.gaps, *gaps], reverse=True)[:_GAPS_MAX]


class Heartbeats:
    """The heartbeats by broker id; those of brokers beyond BROKERS_MAX are only counted."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerHeartbeats] = {}
        self.others = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the heartbeats among rows of MESSAGES."""
        is_one = pc.and_(
            pc.equal(batch.column("api_key"), api_keys.BROKER_HEARTBEAT), pc.invert(batch.column("is_response"))
        )
        beats = batch.filter(is_one)
        if not beats.num_rows:
            return
        brokers = pc.coalesce(broker_ids(beats), -1).to_numpy(zero_copy_only=False)
        connections, incarnations = integers(beats, "conn_id"), integers(beats, "incarnation")
        times = integers(beats, "ts_last_ns")
        order = np.lexsort((times, incarnations, connections, brokers))
        keys = np.stack([brokers, connections, incarnations])[:, order]
        starts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
        for part in np.split(order, starts):
            at = part[0]
            broker, connection = int(brokers[at]), (int(connections[at]), int(incarnations[at]))
            if broker in self.brokers or len(self.brokers) < BROKERS_MAX:
                self.brokers.setdefault(broker, BrokerHeartbeats()).beat(connection, times[part])
            else:
                self.others += len(part)


def broker_ids(batch: pa.RecordBatch) -> pa.Array:
    """Return the broker of each request: from its body, or from its client id, which brokers derive from their id."""
    by_body = first_integer(batch.column("body"), r'"brokerId":\s*(?P<n>\d{1,10})\b')
    return pc.coalesce(by_body, first_integer(batch.column("client_id"), r"^(?P<n>\d{1,10})$"))
