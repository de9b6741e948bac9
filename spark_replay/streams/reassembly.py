"""Join runs of many connections to streams and cut them into paired Kafka frames, in bounded memory.

Runs of one connection come in the order of their chunks; connections may be mixed (one machine, file order) or come one
after the other (a sorted partition): the frames are the same.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heappush
from sys import intern
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.key_logs import KeyLog
from mockraft.spark_replay.streams.connections import (
    LATE_NS,
    STRAY_BYTES,
    Connection,
    ConnEvents,
    Direction,
    Hole,
    Incarnations,
    Waiting,
)
from mockraft.spark_replay.streams.frame_columns import FrameBuffer, Stretch, joined
from mockraft.spark_replay.streams.frame_reader import UNPROVEN_BYTES_MAX, FrameReader, Rest
from mockraft.spark_replay.streams.pairing import ConnectionNames, Pairing
from mockraft.spark_replay.streams.run_rows import RunBatch, RunRow
from mockraft.spark_replay.streams.runs import BY_PORTS, FIN, RST, SYN
from mockraft.spark_replay.streams.tls import Decryption, side_of

_ADDED_BYTES_MAX = 16 << 20
# Ended connections keep their names until their frames are flushed.
_ENDED_MAX = 8192
_STRETCH_BYTES_MAX = 4 << 20
_HOLE_BYTES_MAX = 1 << 20


class Limits(NamedTuple):
    """Limits of what a reassembler keeps.

    `held_bytes_max` are the bytes of one direction that may wait for missing bytes before those are given up: more than
    a receive window has. `waiting_bytes_max` are the bytes that may wait of all connections, for missing bytes or for
    the other side; beyond it those of the longest idle connections are read as they are. As many may wait in frames for
    partners. Beyond
    `connections_max` open connections the longest idle one is ended. `incarnations_kept` is the number of connections
    that ended whose number is remembered.
    """

    held_bytes_max: int = 4 << 20
    connections_max: int = 100_000
    waiting_bytes_max: int = 64 << 20
    incarnations_kept: int = 1 << 20


LIMITS = Limits()


class Reassembler:
    """Joins runs to streams, and cuts streams into frames.

    Args:
        frame_bytes_max: longest frame; a larger length is an error in the stream.
        limits: what is kept at most.
        sorted_by_connection: the runs come one connection after the other, so each ends where the next one starts.
        key_log: secrets that decrypt TLS connections, as those in captures do (None: neither does).
    """

    def __init__(
        self,
        frame_bytes_max: int = 100 << 20,
        *,
        limits: Limits = LIMITS,
        sorted_by_connection: bool = False,
        key_log: KeyLog | None = None,
    ) -> None:
        self._held_bytes_max, self._connections_max, self._waiting_bytes_max, incarnations_kept = limits
        self._is_sorted = sorted_by_connection
        self._connections: OrderedDict[int, Connection] = OrderedDict()
        # Those with bytes that wait, the longest idle first.
        self._holding: OrderedDict[int, Connection] = OrderedDict()
        self._incarnations = Incarnations(incarnations_kept)
        self._uids: dict[int, Connection] = {}
        self._closing: deque[tuple[int, int, int]] = deque()
        self._next_uid = 0
        self._waiting_bytes = self._queued_bytes = self._arrivals = 0
        self._now_ns = 0
        self._ended: list[int] = []
        self._events = ConnEvents()
        self._pairing = Pairing(rows_max=200_000, bytes_max=self._waiting_bytes_max)
        self._buffer = FrameBuffer()
        self._reader = FrameReader(self._buffer, frame_bytes_max, self._report)
        self._decryption: Decryption | None = None
        if key_log is not None:
            self._decryption = Decryption(key_log, self._reader)
            self._reader.decrypt = self._decryption.starter

    def __getstate__(self) -> dict[str, object]:
        """Return the state between two calls of `receive`: without the last batch, of which nothing is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_batch", "_rest")}

    def receive(self, runs: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add runs (columns of `schemas.RUNS`); return rows of `schemas.FRAMES` whose partners are known now."""
        if not runs.num_rows:
            return
        batch = RunBatch(runs)
        self._batch, self._rest = batch, Rest(batch.view, 0, batch.pieces)
        self._buffer.start(batch.data, batch.pieces)
        self._now_ns = batch.last_ts_ns
        current = next(reversed(self._connections), None)
        refused = self._refuse(batch)
        for row in batch.rows(left_out=refused):
            if self._is_sorted and row.conn_id != current:
                if current is not None:
                    self._end_connection(current)
                    self._incarnations.take(current)
                current = row.conn_id
            self._take_run(row)
            if self._buffer.added_bytes > _ADDED_BYTES_MAX or len(self._ended) >= _ENDED_MAX:
                self._flush()
                yield from self._pairing.take()
        if not self._is_sorted:
            self._end_closed()
        self._flush()
        yield from self._pairing.take()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Return all rows whose partners are known, however few they are."""
        self._flush()
        yield from self._pairing.take(everything=True)

    def evict(self, detail: str) -> None:
        """End the connection that was idle for longest, with an event."""
        conn_id, connection = next(iter(self._connections.items()))
        self._report(connection, connection.client, "evicted", connection.last_ns, 0, detail)
        self._end_connection(conn_id)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End all connections; return all remaining rows."""
        for conn_id in list(self._connections):
            self._end_connection(conn_id)
            if self._buffer.added_bytes > _ADDED_BYTES_MAX:
                self._flush()
                yield from self._pairing.take()
        self._flush()
        yield from self._pairing.take(everything=True)

    def take_events(self) -> pa.RecordBatch:
        """Return the events since the last call, with the columns of `schemas.CONN_EVENTS`."""
        return self._events.take()

    @property
    def open_connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        """Number of bytes that what waits for missing bytes or for the other side takes."""
        return self._waiting_bytes + self._queued_bytes

    def _refuse(self, batch: RunBatch) -> Array:
        """Report refused connections, of which nothing else has to be known; return their rows."""
        rows: Array = batch.refused()
        if not rows.size:
            return rows
        ids, marks = batch.conn_ids[rows].tolist(), batch.marks[rows].tolist()
        is_new = np.array([each not in self._connections for each in ids])
        rows = rows[is_new]
        numbers = []
        for conn_id, mark, is_one in zip(ids, marks, is_new.tolist(), strict=True):
            if is_one:
                numbers.append(self._incarnations.take(conn_id) + (mark == SYN))
                self._incarnations.keep(conn_id, numbers[-1])
        if rows.size:
            self._events.add_batch(batch.mark_events(rows, np.array(numbers)))
        return rows

    def _take_run(self, row: RunRow) -> None:
        connection = self._connections.get(row.conn_id)
        chunk = (intern(row.file), row.first_ts_ns)
        if connection is not None:
            if connection.chunk != chunk:
                self._settle(connection)
            if connection.closed_ns is not None and not row.marks & SYN and self._begins_another(connection, row):
                self._end_connection(row.conn_id)
                connection = None
        if row.marks & SYN:
            connection = self._syn(connection, row)
        elif connection is None:
            connection = self._open(row)
        self._connections.move_to_end(row.conn_id)
        connection.chunk = chunk
        connection.last_ns = max(connection.last_ns, row.last_ts_ns)
        direction = _direction(connection, row)
        if row.marks:
            self._mark(connection, direction, row)
            return
        direction.dup_bytes += row.dup_bytes
        if row.conflict_bytes:
            detail = "retransmitted bytes differ; the first copy is used"
            self._report(connection, direction, "conflict", row.ts_ns, row.conflict_bytes, detail)
        next_seq = direction.next_seq
        if next_seq is None:
            next_seq = self._start_midway(connection, direction, row)
        for each in connection.sides:
            while each.waiting and row.ts_ns > each.waiting[0].ts_ns + LATE_NS:
                self._skip_gap(connection, each)
        if row.seq != next_seq & 0xFFFFFFFF or direction.waiting or row.has_holes or connection.tls:
            self._take_out_of_order(connection, direction, row)
        else:
            self._take_in_order(direction, row)
            self._reader.read(connection, direction, self._rest, row.at, row.end)
        if connection.waiting_cost or connection.queued_cost or direction.waiting or direction.queue:
            self._count_held(connection)
            self._make_room(connection)

    def _take_in_order(self, direction: Direction, row: RunRow) -> None:
        """Move on to the end of a run that continues the stream."""
        assert direction.next_seq is not None
        direction.next_seq += row.end - row.at
        if not row.is_in_time or row.ts_ns < direction.ts_ns:
            times = self._buffer.pieces.ts_ns[row.first_piece : row.end_piece]
            times[0] = max(int(times[0]), direction.ts_ns)
            np.maximum.accumulate(times, out=times)
            direction.ts_ns = int(times[-1])
        else:
            direction.ts_ns = row.last_ts_ns

    def _begins_another(self, connection: Connection, row: RunRow) -> bool:
        """Return True if a run after the end of a connection is one of another, whose SYN is not in the capture."""
        assert connection.closed_ns is not None
        if row.ts_ns > connection.closed_ns + LATE_NS:
            return True
        direction = _direction(connection, row)
        if row.marks or direction.next_seq is None:
            return False
        return abs(direction.unwrapped(row.seq) - direction.next_seq) > self._held_bytes_max

    def _open(self, row: RunRow) -> Connection:
        if len(self._connections) >= self._connections_max:
            self.evict(f"more than {self._connections_max} connections are open")
        incarnation = self._incarnations.take(row.conn_id) + 1
        ends = (intern(row.client), row.client_port, intern(row.server), row.server_port)
        names = ConnectionNames(row.conn_id, incarnation, *ends)
        is_known = bool(row.known_by & BY_PORTS)
        is_oriented = is_known or bool(row.marks & SYN)
        self._next_uid += 1
        connection = Connection(self._next_uid, names, is_oriented, True if is_known else None)
        self._connections[row.conn_id] = connection
        self._uids[connection.uid] = connection
        self._pairing.name(connection.uid, names)
        return connection

    def _syn(self, connection: Connection | None, row: RunRow) -> Connection:
        """Return the connection that a SYN belongs to."""
        if connection is not None:
            direction = _direction(connection, row)
            other = connection.server if direction is connection.client else connection.client
            # The SYN determines the row's direction; an earlier guess must agree with it.
            answers = row.direction == 1
            if direction.is_response != answers or connection.is_another(direction, other, row.seq, answers):
                self._end_connection(row.conn_id)
                connection = None
        if connection is None:
            connection = self._open(row)
        connection.is_oriented = True
        return connection

    def _mark(self, connection: Connection, direction: Direction, row: RunRow) -> None:
        """Handle a SYN, FIN or RST."""
        if row.marks & SYN:
            if direction.syn_seq is None:
                direction.syn_seq = row.seq
                self._report(connection, direction, "syn", row.ts_ns, 0, "")
                if direction.next_seq is None:
                    direction.next_seq = direction.base = row.seq
        elif row.marks & FIN:
            if direction.fin is None:
                self._report(connection, direction, "fin", row.ts_ns, 0, "")
                direction.fin = row.seq
                connection.fins += 1
        else:
            self._report(connection, direction, "rst", row.ts_ns, 0, "")
        if connection.closed_ns is None and (connection.fins == 2 or row.marks & RST):
            connection.closed_ns = row.ts_ns
            if not self._is_sorted:
                self._closing.append((row.ts_ns, connection.uid, row.conn_id))

    def _start_midway(self, connection: Connection, direction: Direction, row: RunRow) -> int:
        direction.next_seq = direction.base = row.seq
        direction.lose()
        self._report(connection, direction, "midstream", row.ts_ns, 0, "the start is not in the capture")
        return row.seq

    def _take_out_of_order(self, connection: Connection, direction: Direction, row: RunRow) -> None:
        """Handle a run that is out of order, repeats bytes or has holes."""
        assert direction.next_seq is not None
        start = direction.unwrapped(row.seq)
        for each in self._contents(row, start):
            if abs(each.start - direction.next_seq) > STRAY_BYTES:
                direction.skip(each.end - each.start, each.ts_ns)
                continue
            heappush(direction.waiting, each)
            direction.waiting_cost += each.cost
        self._release(connection, direction)
        while direction.waiting_cost > self._held_bytes_max:
            self._skip_gap(connection, direction)

    def _count_held(self, connection: Connection) -> None:
        """Count what waits of a connection, which is the one used last."""
        self._waiting_bytes -= connection.waiting_cost
        self._queued_bytes -= connection.queued_cost
        connection.waiting_cost = sum(each.waiting_cost for each in connection.sides)
        connection.queued_cost = sum(each.queued_cost for each in connection.sides)
        self._waiting_bytes += connection.waiting_cost
        self._queued_bytes += connection.queued_cost
        self._holding.pop(connection.uid, None)
        if connection.waiting_cost or connection.queued_cost:
            self._holding[connection.uid] = connection

    def _make_room(self, current: Connection) -> None:
        """While too much waits, read that of the longest idle connections as it is.

        What waits for the other side does so until its chunk has been read, which bounds it.
        """
        while self.held_bytes > self._waiting_bytes_max:
            connection = next(iter(self._holding.values()))
            is_over = connection.chunk != current.chunk
            if not is_over:
                if not connection.waiting_cost:
                    connection = current
                if self._waiting_bytes <= self._waiting_bytes_max or not connection.waiting_cost:
                    return
            self._skip_gaps(connection)
            if is_over:
                self._settle(connection, is_last=True)
                connection.searched_bytes = 0
                for each in connection.sides:
                    each.skip_queue()
            self._count_held(connection)

    def _contents(self, row: RunRow, start: int) -> Iterator[Waiting]:
        """Yield a run's bytes, and its holes, with their place in the stream."""
        self._arrivals += 1
        at = row.at
        for stop, size, ts_ns, offset in [*self._batch.holes(row), (row.end, 0, 0, 0)]:
            if at < stop:
                content = self._rest.copy(at, stop)
                yield Waiting(start, self._arrivals, start + stop - at, int(content.pieces.ts_ns[0]), content)
            start, at = start + stop - at, stop
            # A hole larger than a segment is a gap in the capture.
            if 0 < size <= _HOLE_BYTES_MAX:
                yield Waiting(start, self._arrivals, start + size, ts_ns, Hole(size, ts_ns, offset))
            start += size

    def _release(self, connection: Connection, direction: Direction) -> None:
        """Read what continues the stream."""
        parts: list[Stretch] = []
        size = 0
        for each in direction.released():
            if isinstance(each, Hole):
                self._read(connection, direction, parts)
                parts, size = [], 0
                self._reader_of(connection).hole(
                    connection, direction, each._replace(ts_ns=max(each.ts_ns, direction.ts_ns))
                )
                continue
            parts.append(each)
            size += len(each.data)
            if size >= _STRETCH_BYTES_MAX:
                self._read(connection, direction, parts)
                parts, size = [], 0
        self._read(connection, direction, parts)

    def _read(self, connection: Connection, direction: Direction, parts: list[Stretch]) -> None:
        if parts:
            self._reader_of(connection).read_stretch(connection, direction, direction.in_time(joined(parts)))

    def _reader_of(self, connection: Connection) -> FrameReader | Decryption:
        """Return what reads a connection's streams."""
        return self._reader if connection.tls is None or self._decryption is None else self._decryption

    def _skip_gap(self, connection: Connection, direction: Direction) -> None:
        """Give up the missing bytes before the first waiting ones."""
        assert direction.next_seq is not None
        first = direction.waiting[0]
        missing = first.start - direction.next_seq
        self._reader_of(connection).gap(connection, direction, missing)
        self._report(connection, direction, "gap", first.ts_ns, missing, "")
        direction.next_seq = first.start
        self._release(connection, direction)

    def _skip_gaps(self, connection: Connection) -> None:
        for direction in connection.sides:
            while direction.waiting:
                self._skip_gap(connection, direction)

    def _settle(self, connection: Connection, *, is_last: bool = False) -> None:
        """Read the bytes postponed until the chunk is complete, and until all requests before them are known."""
        client, server = connection.sides
        if not (client.queue or server.queue):
            return
        if not connection.is_oriented:
            # Search again only when twice as many bytes have come.
            size = client.queued_bytes + server.queued_bytes
            if not is_last and size < 2 * connection.searched_bytes:
                return
            connection.searched_bytes = size
            if not self._reader.orient(connection, is_last):
                return
            self._pairing.name(connection.uid, connection.names)
            client, server = connection.sides
        self._reader.settle(connection, client)
        if connection.is_kafka is None:
            return
        if server.queued_bytes > UNPROVEN_BYTES_MAX:
            while client.waiting:
                self._skip_gap(connection, client)
            is_last = True
        if is_last or not (client.waiting or (client.is_lost and client.tail)):
            self._flush()
            self._reader.settle(connection, server)

    def _end_closed(self) -> None:
        """End connections that were closed so long ago that no late packets can follow."""
        while self._closing and self._closing[0][0] + LATE_NS < self._now_ns:
            _, uid, conn_id = self._closing.popleft()
            connection = self._connections.get(conn_id)
            if connection is not None and connection.uid == uid:
                self._end_connection(conn_id)

    def _end_connection(self, conn_id: int) -> None:
        connection = self._connections.pop(conn_id, None)
        if connection is None:
            return
        self._settle(connection)
        self._skip_gaps(connection)
        self._settle(connection, is_last=True)
        client, server = connection.sides
        self._reader.end_search(connection, client)
        if server.is_lost and server.tail:
            self._flush()
            self._reader.end_search(connection, server)
        if connection.is_kafka is None and any(each.skipped_bytes + each.tail_bytes for each in connection.sides):
            self._report(connection, client, "not_kafka", connection.last_ns, 0, "no request was seen")
        for direction in connection.sides:
            self._report_totals(connection, direction)
        self._count_held(connection)
        self._pairing.end(connection.uid, client.is_whole and client.next_seq is not None, connection.is_opaque)
        self._ended.append(connection.uid)
        self._incarnations.keep(conn_id, connection.names.incarnation)

    def _report_totals(self, connection: Connection, direction: Direction) -> None:
        ts_ns = connection.last_ns
        if direction.fin is not None and direction.next_seq is not None:
            missing = direction.unwrapped(direction.fin) - direction.next_seq
            if 0 < missing < STRAY_BYTES:
                self._report(connection, direction, "gap", ts_ns, missing, "before its end")
        direction.skip_queue()
        if direction.skipped_bytes:
            self._reader.report_skipped(connection, direction)
        if direction.tail:
            size = self._reader.drop_tail(direction)
            self._report(connection, direction, "unfinished", ts_ns, size, "the capture ends inside a frame")
        sealed = 0 if connection.tls is None else side_of(connection, direction).sealed_bytes
        for kind, size in (("dup", direction.dup_bytes), ("hole", direction.hole_bytes), ("sealed", sealed)):
            if size:
                self._report(connection, direction, kind, ts_ns, size, "")

    def _flush(self) -> None:
        """Pass the frames found so far to pairing."""
        found = self._buffer.take()
        if found is not None:
            frames, stretches = found
            for uid, is_response, begin, end in stretches:
                ids = frames.correlation_id[begin:end]
                if is_response:
                    self._uids[uid].open.answer(ids)
                else:
                    waits = ~frames.acks0[begin:end]
                    self._uids[uid].open.ask(ids[waits], frames.ts_last_ns[begin:end][waits])
            self._pairing.receive(frames)
        for uid in self._ended:
            del self._uids[uid]
        self._ended.clear()

    def _report(
        self, connection: Connection, direction: Direction, kind: str, ts_ns: int, size: int, detail: str
    ) -> None:
        """Add a row of events."""
        self._events.add((*connection.names, int(direction.is_response), ts_ns, kind, size, detail))


def _direction(connection: Connection, row: RunRow) -> Direction:
    """Return the direction of a run's bytes; the run itself may be wrong about which side is the client."""
    agrees = (row.client_port, row.client) == (connection.names.client_port, connection.names.client)
    return connection.server if agrees == (row.direction == 1) else connection.client
