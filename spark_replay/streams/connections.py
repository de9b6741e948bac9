"""State of a connection and its two directions between runs, and reassembly in TCP order.

A run that does not continue the stream is held, in pieces, until the missing bytes arrive. A piece more than 1 GiB away
from the stream's position belongs to another connection: it is dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, no_rows, of_values
from mockraft.spark_replay.schemas import CONN_EVENTS
from mockraft.spark_replay.streams.frame_columns import Pieces, Stretch
from mockraft.spark_replay.streams.overlaps import uncovered
from mockraft.spark_replay.streams.pairing import ConnectionNames

_HALF, _MASK = 1 << 31, 0xFFFFFFFF
STRAY_BYTES = 1 << 30
# After a close, late packets belong to the connection for the usual length of TIME_WAIT.
LATE_NS = 60_000_000_000
_SYN_DISTANCE_MAX = 1 << 16
_REQUESTS_KEPT = 1024
_ROWS_MAX = 8192
_Row = tuple[int, int, str, int, str, int, int, int, str, int, str]


class Piece(NamedTuple):
    """A segment's bytes in their stream; up to `end`, including bytes that were not captured."""

    start: int
    end: int
    data: bytes
    ts_ns: int
    offset: int

    def cut(self, begin: int, end: int) -> Piece:
        """Return the part from `begin` to `end`."""
        return Piece(begin, end, self.data[begin - self.start : end - self.start], self.ts_ns, self.offset)


@dataclass(slots=True, eq=False)
class Direction:
    """One side's stream: the position, the pieces held for missing bytes, and the half-read frame."""

    is_response: bool
    syn_seq: int | None = None
    next_seq: int | None = None
    base: int = 0
    fin: int | None = None
    held: list[Piece] = field(default_factory=list)
    held_bytes: int = 0
    # Latest time so far: bytes become readable when all earlier ones have arrived.
    ts_ns: int = 0
    frames: int = 0
    last_id: int | None = None
    is_lost: bool = False
    is_dead: bool = False
    after_gap: bool = False
    is_whole: bool = True
    tail: list[Stretch] = field(default_factory=list)
    tail_bytes: int = 0
    # Size of that frame including its length, 0 until it is known to be possible.
    tail_need: int = 0
    # Stretches postponed until the other direction has been read; None is a gap.
    queue: list[Stretch | None] = field(default_factory=list)
    queued_bytes: int = 0
    dup_bytes: int = 0
    conflict_bytes: int = 0
    hole_bytes: int = 0
    skipped_bytes: int = 0

    def unwrapped(self, seq: int) -> int:
        """Return the position in the stream of a 32-bit sequence number."""
        assert self.next_seq is not None
        return self.next_seq + ((seq - self.next_seq + _HALF) & _MASK) - _HALF

    def insert(self, piece: Piece) -> list[Piece]:
        """Insert a piece; return the pieces that can be read now, in order."""
        assert self.next_seq is not None
        if abs(piece.start - self.next_seq) > STRAY_BYTES:
            self.dup_bytes += piece.end - piece.start
            return []
        used = 0
        ready: list[Piece] = []
        for begin, end in uncovered(self.held, max(piece.start, self.next_seq), piece.end):
            part = piece.cut(begin, end)
            used += end - begin
            if begin == self.next_seq:
                self.next_seq = end
                ready.append(part)
            else:
                self.held.insert(bisect_right(self.held, part.start, key=_start), part)
                self.held_bytes += len(part.data)
        self.dup_bytes += piece.end - piece.start - used
        if ready and self.held:
            ready += self.release()
            ready.sort(key=_start)
        return ready

    def release(self) -> list[Piece]:
        """Return the held pieces that follow now."""
        count = 0
        for piece in self.held:
            if piece.start != self.next_seq:
                break
            self.next_seq = piece.end
            self.held_bytes -= len(piece.data)
            count += 1
        ready = self.held[:count]
        del self.held[:count]
        return ready

    def skip(self) -> int:
        """Give up the missing bytes before the first held piece; return their number."""
        assert self.next_seq is not None
        missing = self.held[0].start - self.next_seq
        self.next_seq = self.held[0].start
        return missing

    def stretch(self, pieces: list[Piece]) -> Stretch:
        """Join consecutive pieces; zeros stand for bytes that were not captured."""
        starts, times, holes, parts, at = [], [], [], [], 0
        for piece in pieces:
            starts.append(at)
            self.ts_ns = max(self.ts_ns, piece.ts_ns)
            times.append(self.ts_ns)
            parts.append(piece.data)
            missing = piece.end - piece.start - len(piece.data)
            if missing:
                parts.append(bytes(missing))
                holes.append((at + len(piece.data), at + len(piece.data) + missing))
                self.hole_bytes += missing
            at += piece.end - piece.start
        offsets = np.array([piece.offset for piece in pieces], np.int64)
        return Stretch(b"".join(parts), Pieces(np.array(starts, np.int64), np.array(times, np.int64), offsets), holes)


def _start(piece: Piece) -> int:
    return piece.start


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
    # A list: an empty deque is ten times as large, and there may be 100,000 connections.
    recent: list[tuple[Array, Array]] = field(default_factory=list)
    recent_count: int = 0

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

    def remember(self, ids: Array, ts_ns: Array) -> None:
        """Remember requests, to recognise their responses."""
        self.recent.append((ids.copy(), ts_ns.copy()))
        self.recent_count += len(ids)
        while self.recent_count - len(self.recent[0][0]) >= _REQUESTS_KEPT:
            self.recent_count -= len(self.recent.pop(0)[0])

    def open_ids(self, ts_ns: int) -> set[int]:
        """Return the correlation ids of requests up to a time that follow the last answered one."""
        last = self.server.last_id
        found: set[int] = set()
        for ids, times in self.recent:
            found.update(ids[times <= ts_ns].tolist())
        return found if last is None else {each for each in found if 0 < ((each - last) & _MASK) < _HALF}

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
