"""State of a connection and its two directions between runs, and reassembly in TCP order.

A run that does not continue the stream is held, in pieces, until the missing bytes arrive. For bytes captured twice the
first copy counts. A piece more than 1 GiB away from the stream's position belongs to another connection: it is dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.streams.frame_columns import Pieces, Stretch
from mockraft.spark_replay.streams.pairing import ConnectionNames

_HALF, _MASK = 1 << 31, 0xFFFFFFFF
STRAY_BYTES = 1 << 30
# After a close, late packets belong to the connection for the usual length of TIME_WAIT.
LATE_NS = 60_000_000_000
_SYN_DISTANCE_MAX = 1 << 16
_REQUESTS_KEPT = 1024


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


class Direction:
    """One side's stream: the position, the pieces held for missing bytes, and the half-read frame."""

    __slots__ = (
        "after_gap",
        "base",
        "conflict_bytes",
        "dup_bytes",
        "fin",
        "frames",
        "held",
        "held_bytes",
        "hole_bytes",
        "is_dead",
        "is_lost",
        "is_response",
        "is_whole",
        "last_id",
        "next_seq",
        "queue",
        "queued_bytes",
        "skipped_bytes",
        "syn_seq",
        "tail",
        "tail_bytes",
        "tail_need",
        "ts_ns",
    )

    def __init__(self, is_response: bool) -> None:
        self.is_response = is_response
        self.syn_seq: int | None = None
        self.next_seq: int | None = None
        self.base = 0
        self.fin: int | None = None
        self.held: list[Piece] = []
        self.held_bytes = 0
        # Latest time so far: bytes become readable when all earlier ones have arrived.
        self.ts_ns = 0
        self.frames = 0
        self.last_id: int | None = None
        self.is_lost = self.is_dead = self.after_gap = False
        self.is_whole = True
        self.tail: list[Stretch] = []
        self.tail_bytes = 0
        # Size of that frame including its length, 0 until it is known to be possible.
        self.tail_need = 0
        # Stretches postponed until the other direction has been read; None is a gap.
        self.queue: list[Stretch | None] = []
        self.queued_bytes = 0
        self.dup_bytes = self.conflict_bytes = self.hole_bytes = self.skipped_bytes = 0

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
        for begin, end in self._free(max(piece.start, self.next_seq), piece.end):
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

    def _free(self, begin: int, end: int) -> list[tuple[int, int]]:
        free = []
        at = max(bisect_right(self.held, begin, key=_start) - 1, 0)
        while begin < end and at < len(self.held) and self.held[at].start < end:
            held = self.held[at]
            if held.start > begin:
                free.append((begin, held.start))
            begin = max(begin, held.end)
            at += 1
        if begin < end:
            free.append((begin, end))
        return free

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


class Connection:
    """One incarnation of a connection."""

    __slots__ = (
        "chunk",
        "client",
        "closed_ns",
        "fins",
        "is_kafka",
        "is_opaque",
        "is_oriented",
        "last_ns",
        "names",
        "recent",
        "recent_count",
        "server",
        "uid",
    )

    def __init__(self, uid: int, names: ConnectionNames, is_oriented: bool, is_kafka: bool | None) -> None:
        self.uid = uid
        self.names = names
        self.client = Direction(False)
        self.server = Direction(True)
        self.is_oriented = is_oriented
        # None until the first request is seen, if no port identifies Kafka.
        self.is_kafka = is_kafka
        self.is_opaque = False
        self.chunk: tuple[str, int] | None = None
        self.fins = 0
        self.closed_ns: int | None = None
        self.last_ns = 0
        # A list: an empty deque is ten times as large, and there may be 100,000 connections.
        self.recent: list[tuple[Array, Array]] = []
        self.recent_count = 0

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
