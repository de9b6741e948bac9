"""State of a connection and its two directions between runs, and reassembly in TCP order.

A run that does not continue the stream waits, in a heap by its start, until the missing bytes arrive or are given up.
One more than 1 GiB away from the stream's position belongs to another connection: its bytes are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, no_rows, of_values
from mockraft.spark_replay.schemas import CONN_EVENTS
from mockraft.spark_replay.streams.frame_columns import Stretch
from mockraft.spark_replay.streams.overlaps import first_copies
from mockraft.spark_replay.streams.pairing import ConnectionNames

_HALF, _MASK = 1 << 31, 0xFFFFFFFF
STRAY_BYTES = 1 << 30
# After a close, late packets belong to the connection for the usual length of TIME_WAIT.
LATE_NS = 60_000_000_000
_SYN_DISTANCE_MAX = 1 << 16
# Requests of a connection that wait for responses; a client has few in flight, so more are those of a one-way capture.
_OPEN_REQUESTS_MAX = 1 << 16
_PENDING_REQUESTS = 1024
_ROWS_MAX = 8192
# What an object takes that waits, besides its bytes.
_WAITING_BYTES = 512
_Row = tuple[int, int, str, int, str, int, int, int, str, int, str]


class Hole(NamedTuple):
    """Bytes that were sent, but cut off by the snaplen, with the time and the offset of their packet."""

    size: int
    ts_ns: int
    offset: int


class Gap(NamedTuple):
    """Bytes that are not in the capture."""

    size: int


class Waiting(NamedTuple):
    """Bytes [start, end) of a stream, which came as number `arrival`."""

    start: int
    arrival: int
    end: int
    ts_ns: int
    content: Stretch | Hole

    @property
    def cost(self) -> int:
        """Return what it takes while it waits."""
        return _WAITING_BYTES + (len(self.content.data) if isinstance(self.content, Stretch) else 0)


@dataclass(slots=True, eq=False)
class Direction:
    """One side's stream: the position, what waits for missing bytes, and the half-read frame."""

    is_response: bool
    syn_seq: int | None = None
    next_seq: int | None = None
    base: int = 0
    fin: int | None = None
    waiting: list[Waiting] = field(default_factory=list)
    waiting_cost: int = 0
    # Latest time so far: bytes become readable when all earlier ones have arrived.
    ts_ns: int = 0
    frames: int = 0
    desyncs: int = 0
    # Bytes to skip up to the next frame, after a gap inside one.
    ahead: int = 0
    is_lost: bool = False
    is_dead: bool = False
    is_settling: bool = False
    is_ending: bool = False
    after_gap: bool = False
    is_whole: bool = True
    # The half-read frame, or while the direction is lost, bytes that cannot be judged yet.
    tail: list[Stretch] = field(default_factory=list)
    tail_bytes: int = 0
    # Size of that frame including its length, 0 until it is known to be possible; or bytes needed to judge.
    tail_need: int = 0
    # Captured bytes at the start of a frame of which others were not captured; the others are not kept.
    tail_head: int | None = None
    tail_is_mid: bool = False
    # What is postponed until the other direction has been read.
    queue: list[Stretch | Hole | Gap] = field(default_factory=list)
    queued_bytes: int = 0
    dup_bytes: int = 0
    hole_bytes: int = 0
    skipped_bytes: int = 0
    skipped_ns: int = 0

    @property
    def queued_cost(self) -> int:
        """Return what the queue takes."""
        return self.queued_bytes + _WAITING_BYTES * len(self.queue)

    def unwrapped(self, seq: int) -> int:
        """Return the position in the stream of a 32-bit sequence number."""
        assert self.next_seq is not None
        return self.next_seq + ((seq - self.next_seq + _HALF) & _MASK) - _HALF

    def skip(self, size: int, ts_ns: int) -> None:
        """Count bytes that are part of no frame."""
        if size:
            if not self.skipped_bytes:
                self.skipped_ns = ts_ns
            self.skipped_bytes += size

    def skip_queue(self) -> None:
        """Skip the postponed bytes."""
        for each in self.queue:
            if isinstance(each, Stretch):
                self.skip(len(each.data), int(each.pieces.ts_ns[0]))
            elif isinstance(each, Hole):
                self.skip(each.size, each.ts_ns)
        self.queue, self.queued_bytes = [], 0

    def lose(self) -> None:
        """Search for frames from here on."""
        self.is_lost, self.is_whole, self.after_gap, self.tail_is_mid = True, False, True, False

    def released(self) -> Iterator[Stretch | Hole]:
        """Return what can be read now, in order; of bytes that came twice, those that came first."""
        assert self.next_seq is not None
        reach = start = self.next_seq
        found: list[Waiting] = []
        size = 0
        while self.waiting and self.waiting[0].start <= reach:
            each = heappop(self.waiting)
            self.waiting_cost -= each.cost
            found.append(each)
            size += each.end - each.start
            reach = max(reach, each.end)
        self.dup_bytes += size - (reach - start)
        self.next_seq = reach
        for index, begin, end in first_copies([(each.start, each.end, each.arrival) for each in found], start):
            each = found[index]
            if isinstance(each.content, Hole):
                self.hole_bytes += end - begin
                yield each.content._replace(size=end - begin)
            elif (begin, end) == (each.start, each.end):
                yield each.content
            else:
                yield each.content.cut(begin - each.start, end - each.start)

    def in_time(self, stretch: Stretch) -> Stretch:
        """Return a stretch with the times at which its bytes could be read."""
        times = np.maximum(np.maximum.accumulate(stretch.pieces.ts_ns), self.ts_ns)
        self.ts_ns = int(times[-1])
        return stretch._replace(pieces=stretch.pieces._replace(ts_ns=times))


class OpenRequests:
    """The requests of a connection that have no response so far, by correlation id.

    Requests and responses are noted as columns. They are matched one by one only where responses are missing.
    """

    __slots__ = ("_answered", "_asked", "_count", "_count_max", "_early", "_since")

    def __init__(self) -> None:
        self._asked: list[tuple[Array, Array]] = []
        self._answered: list[Array] = []
        self._count, self._count_max, self._early = 0, _PENDING_REQUESTS, 0
        self._since: dict[int, list[int]] = {}

    def ask(self, ids: Array, ts_ns: Array) -> None:
        """Note requests."""
        self._asked.append((ids.copy(), ts_ns.copy()))
        self._count += len(ids)
        if self._count > self._count_max:
            self._match()
            if self._since or sum(len(each) for each in self._answered) > _PENDING_REQUESTS // 2:
                self.since()
            self._count_max = max(_PENDING_REQUESTS, 2 * self._count)

    def answer(self, ids: Array) -> None:
        """Note responses, but those that `answer_now` has noted."""
        early = min(self._early, len(ids))
        self._early -= early
        self._answered.append(ids[early:].copy())

    def answer_now(self, ids: Sequence[int]) -> None:
        """Note responses that `answer` will be called for later."""
        self.since()
        self._early += len(ids)
        for each in ids:
            self._answer(each)

    def since(self) -> Mapping[int, list[int]]:
        """Return the times of the open requests by their ids."""
        self._match()
        for ids, times in self._asked:
            for number, since in zip(ids.tolist(), times.tolist(), strict=True):
                self._since.setdefault(number, []).append(since)
        for ids in self._answered:
            for number in ids.tolist():
                self._answer(number)
        self._asked, self._answered, self._count = [], [], 0
        while len(self._since) > _OPEN_REQUESTS_MAX:
            del self._since[next(iter(self._since))]
        return self._since

    def _match(self) -> None:
        """Forget requests and responses that have the same ids in the same order."""
        if self._since or not self._asked:
            return
        ids, times = (np.concatenate(columns) for columns in zip(*self._asked, strict=True))
        answered = np.concatenate(self._answered) if self._answered else ids[:0]
        count = min(len(ids), len(answered))
        if not np.array_equal(ids[:count], answered[:count]):
            count = 0
        first = max(count, len(ids) - _OPEN_REQUESTS_MAX)
        self._asked, self._answered = [(ids[first:], times[first:])], [answered[count:]]
        self._count = len(ids) - first

    def _answer(self, number: int) -> None:
        times = self._since.get(number)
        if times is not None:
            del times[0]
            if not times:
                del self._since[number]


@dataclass(slots=True, eq=False)
class Connection:
    """One incarnation of a connection."""

    uid: int
    names: ConnectionNames
    is_oriented: bool
    # None until the first request is seen, if no port identifies Kafka.
    is_kafka: bool | None
    client: Direction = field(default_factory=lambda: Direction(False))
    server: Direction = field(default_factory=lambda: Direction(True))
    is_opaque: bool = False
    chunk: tuple[str, int] | None = None
    fins: int = 0
    closed_ns: int | None = None
    last_ns: int = 0
    # What both sides' take in the totals of all connections.
    waiting_cost: int = 0
    queued_cost: int = 0
    # Postponed bytes when a client was last searched for in them.
    searched_bytes: int = 0
    open: OpenRequests = field(default_factory=OpenRequests)
    # Its `TlsConnection`, if its records are opened.
    tls: object | None = None

    @property
    def sides(self) -> tuple[Direction, Direction]:
        """Both directions, the client's first."""
        return self.client, self.server

    def swap_sides(self) -> None:
        """Swap client and server."""
        names = self.names
        self.names = ConnectionNames(
            names.conn_id, names.incarnation, names.server, names.server_port, names.client, names.client_port
        )
        self.client, self.server = self.server, self.client
        self.client.is_response, self.server.is_response = False, True

    def is_another(self, direction: Direction, other: Direction, seq: int, answers: bool) -> bool:
        """Return True if a SYN opens another connection."""
        if direction.syn_seq is not None:
            return direction.syn_seq != seq
        if self.closed_ns is not None:
            return True
        if direction.next_seq is None:
            return not answers and other.syn_seq is None and other.next_seq is not None
        return not 0 <= ((direction.base - seq) & _MASK) <= _SYN_DISTANCE_MAX


class Incarnations:
    """Number of connections between each pair of endpoints, for those that ended last: between half of `kept` and all.

    Two plain dicts take half the memory of an OrderedDict.
    """

    def __init__(self, kept: int) -> None:
        self._half = kept // 2
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def take(self, conn_id: int) -> int:
        """Return and forget the number of the last incarnation, 0 for none."""
        old = self._old.pop(conn_id, 0)
        return self._new.pop(conn_id, old)

    def keep(self, conn_id: int, incarnation: int) -> None:
        """Remember the number of an incarnation that ended."""
        self._new[conn_id] = incarnation
        if len(self._new) >= self._half:
            self._old, self._new = self._new, {}


class ConnEvents:
    """A buffer of event rows; kept as Arrow columns, so that millions of them stay small."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, row: _Row) -> None:
        """Add one row, with the columns of `schemas.CONN_EVENTS`."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS_MAX:
            self._pack()

    def add_batch(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        self._pack()
        self._batches.append(rows)

    def take(self) -> pa.RecordBatch:
        """Return all rows so far and clear the buffer."""
        self._pack()
        table = pa.Table.from_batches(self._batches, schema=CONN_EVENTS).combine_chunks()
        self._batches = []
        return table.to_batches()[0] if table.num_rows else no_rows(CONN_EVENTS)

    def _pack(self) -> None:
        if self._rows:
            columns = [
                of_values(values, field.type)
                for values, field in zip(zip(*self._rows, strict=True), CONN_EVENTS, strict=True)
            ]
            self._batches.append(pa.RecordBatch.from_arrays(columns, schema=CONN_EVENTS))
            self._rows = []
