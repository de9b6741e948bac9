"""Bytes of one direction to frames: four bytes of length followed by that many bytes, repeatedly.

After a loss (a gap, an impossible length, a start midway) a response is plausible if it carries the id of an earlier
request, so the server's bytes wait until all requests of the same chunk have been read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mockraft.spark_replay import walks
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.streams import headers
from mockraft.spark_replay.streams.connections import Connection, Direction
from mockraft.spark_replay.streams.frame_columns import FrameBuffer, Pieces, Stretch

_QUEUED_BYTES_MAX = 8 << 20
_TAIL_BYTES_MAX = 256 << 20
_HEAD_BYTES = headers.REQUEST.size
_PROOF_BYTES = headers.REQUEST_START.size + headers.CLIENT_ID_BYTES_MAX
ReportEvent = Callable[[Connection, Direction, str, int, int, str], None]


class Rest(NamedTuple):
    """Bytes of a direction with their segments; positions are those in the buffer, view[0] is at `base`."""

    view: memoryview
    base: int
    pieces: Pieces
    holes: list[tuple[int, int]]

    def bytes(self, at: int, end: int) -> bytes:
        """Return some of the bytes."""
        return bytes(self.view[at - self.base : end - self.base])

    def copy(self, at: int, end: int) -> Stretch:
        """Return a copy of some of the bytes."""
        first = max(int(np.searchsorted(self.pieces.start, at, "right")) - 1, 0)
        last = int(np.searchsorted(self.pieces.start, end, "left"))
        start = np.maximum(self.pieces.start[first:last] - at, 0)
        shift = self.base - at
        holes = [(max(low + shift, 0), min(high + shift, end - at)) for low, high in self.holes]
        return Stretch(
            self.bytes(at, end),
            Pieces(start, self.pieces.ts_ns[first:last], self.pieces.offset[first:last]),
            [(low, high) for low, high in holes if low < high],
        )

    def segment_after(self, at: int, end: int) -> int:
        """Return the start of the next segment after `at`; `end` if there is none."""
        index = int(np.searchsorted(self.pieces.start, at, "right"))
        return min(int(self.pieces.start[index]), end) if index < len(self.pieces.start) else end

    def time(self, at: int) -> int:
        """Return the time at which the byte at `at` could be read."""
        return int(self.pieces.ts_ns[max(int(np.searchsorted(self.pieces.start, at, "right")) - 1, 0)])


def whole(stretch: Stretch, base: int) -> Rest:
    """Return a stretch whose bytes are at `base` in the buffer."""
    pieces = stretch.pieces._replace(start=stretch.pieces.start + base)
    return Rest(memoryview(stretch.data), base, pieces, stretch.holes)


class FrameReader:
    """Reads stretches of bytes in order and adds the frames found to a buffer."""

    def __init__(self, buffer: FrameBuffer, frame_bytes_max: int, resyncs: bool, report_event: ReportEvent) -> None:
        self.buffer = buffer
        self.frame_bytes_max = frame_bytes_max
        self.resyncs = resyncs
        self.report_event = report_event
        # Bytes of half-read frames, over all connections.
        self.tail_bytes = 0

    def read_stretch(self, connection: Connection, direction: Direction, stretch: Stretch, settles: bool) -> None:
        """Read the next bytes of a direction, which are in no batch."""
        base = self.buffer.add(stretch)
        self.read(connection, direction, whole(stretch, base), base, base + len(stretch.data), settles)

    def read(
        self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int, settles: bool = False
    ) -> None:
        """Read the next bytes of a direction; `settles`: all requests that precede them have been read."""
        while at < end:
            if direction.is_dead or (direction.is_lost and not self.resyncs):
                direction.skipped_bytes += end - at
                return
            if self._must_wait(connection, direction, settles):
                self._queue(connection, direction, rest.copy(at, end))
                return
            if direction.is_lost:
                found = self._find(connection, direction, rest, at, end)
                direction.skipped_bytes += found - at
                at = found
                if at == end:
                    return
                direction.is_lost, direction.after_gap = False, True
                connection.is_kafka = True
            if connection.is_kafka is None and not self._prove(connection, direction, rest, at, end):
                return
            if direction.tail:
                at = self._finish_tail(connection, direction, rest, at, end)
            else:
                at = self._walk(connection, direction, rest, at, end)

    def settle(self, connection: Connection, direction: Direction) -> None:
        """Read the postponed bytes, now that the chunk is complete."""
        queue, direction.queue, direction.queued_bytes = direction.queue, [], 0
        for stretch in queue:
            if stretch is None:
                self.lose(direction)
            else:
                self.read_stretch(connection, direction, stretch, settles=True)

    def gap(self, direction: Direction) -> int:
        """Handle missing bytes; return how many bytes of a half-read frame are dropped."""
        if direction.queue:
            direction.queue.append(None)
            return 0
        return self.lose(direction)

    def forget_tail(self, direction: Direction) -> int:
        """Drop the half-read frame; return its number of bytes."""
        size, direction.tail, direction.tail_bytes, direction.tail_need = direction.tail_bytes, [], 0, 0
        self.tail_bytes -= size
        direction.skipped_bytes += size
        return size

    def lose(self, direction: Direction) -> int:
        """Search for frames from the next segment on; return how many bytes of a half-read frame are dropped."""
        direction.is_lost, direction.is_whole = True, False
        return self.forget_tail(direction)

    def close(self, connection: Connection, direction: Direction, kind: str, ts_ns: int, detail: str) -> None:
        """Stop reading a connection, in both directions."""
        connection.is_opaque = kind == "tls"
        connection.is_kafka = False
        for each in connection.sides:
            each.is_dead = True
            each.skipped_bytes += each.queued_bytes
            each.queue, each.queued_bytes = [], 0
            self.forget_tail(each)
        self.report_event(connection, direction, kind, ts_ns, 0, detail)

    def _must_wait(self, connection: Connection, direction: Direction, settles: bool) -> bool:
        if not connection.is_oriented or (connection.is_kafka is None and direction.is_response):
            return True
        return not settles and direction.is_response and (direction.is_lost or bool(direction.queue))

    def _queue(self, connection: Connection, direction: Direction, stretch: Stretch) -> None:
        direction.queue.append(stretch)
        direction.queued_bytes += len(stretch.data)
        if direction.queued_bytes > _QUEUED_BYTES_MAX and connection.is_oriented and connection.is_kafka is None:
            detail = "the server sends first: no request was seen"
            self.close(connection, direction, "not_kafka", int(stretch.pieces.ts_ns[0]), detail)

    def _prove(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> bool:
        """Return True if a stream starts with a request; keeps its bytes if there are too few to decide."""
        head = b"".join(each.data for each in direction.tail) + rest.bytes(at, min(end, at + _PROOF_BYTES))
        verdict = self._starts_with_request(head)
        if verdict:
            connection.is_kafka = True
            return True
        if verdict is None:
            self._keep(connection, direction, rest, at, end)
        elif headers.is_tls(head):
            self.close(connection, direction, "tls", rest.time(at), "")
        else:
            self.close(connection, direction, "not_kafka", rest.time(at), "the first bytes are not a request")
        return False

    def _starts_with_request(self, head: bytes) -> bool | None:
        if len(head) < 4:
            return None
        (length,) = headers.LENGTH.unpack_from(head)
        if not 10 <= length <= self.frame_bytes_max:
            return False
        if len(head) < headers.REQUEST_START.size:
            return None
        name_bytes = headers.REQUEST_START.unpack_from(head)[4]
        if headers.REQUEST_START.size + name_bytes > len(head) and name_bytes <= headers.CLIENT_ID_BYTES_MAX:
            return None
        return headers.is_plausible_request(head[: 4 + length], self.frame_bytes_max)

    def _keep(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> None:
        """Keep the start of a frame."""
        direction.tail.append(rest.copy(at, end))
        direction.tail_bytes += end - at
        self.tail_bytes += end - at
        if self.tail_bytes > _TAIL_BYTES_MAX:
            size = self.lose(direction)
            detail = f"half-read frames of all connections exceed {_TAIL_BYTES_MAX} bytes"
            self.report_event(connection, direction, "oversized", rest.time(at), size, detail)

    def _finish_tail(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Complete the half-read frame; return the start of the next one."""
        if not direction.tail_need:
            head = b"".join(each.data for each in direction.tail[:_HEAD_BYTES])[:_HEAD_BYTES]
            head += rest.bytes(at, min(end, at + _HEAD_BYTES - len(head)))
            if len(head) >= 4:
                (length,) = headers.LENGTH.unpack_from(head)
                if not self._is_possible(direction, head, length):
                    self._desync(connection, direction, rest, at, head)
                    return at
                if len(head) == _HEAD_BYTES or direction.is_response:
                    direction.tail_need = 4 + length
        size = direction.tail_need - direction.tail_bytes
        if not direction.tail_need or size > end - at:
            self._keep(connection, direction, rest, at, end)
            return end
        frame = _joined([*direction.tail, rest.copy(at, at + size)])
        direction.tail, direction.tail_need = [], 0
        self.tail_bytes -= direction.tail_bytes
        direction.tail_bytes = 0
        base = self.buffer.add(frame)
        self._found(connection, direction, np.array([base, base + len(frame.data)]), frame.data, 0)
        if not direction.is_response and _is_sasl(frame.data):
            return self._hand_over(connection, direction, rest, at + size, end)
        return at + size

    def _is_possible(self, direction: Direction, head: bytes, length: int) -> bool:
        if direction.is_response:
            return walks.RESPONSE_BYTES_MIN <= length <= self.frame_bytes_max
        if len(head) >= _HEAD_BYTES:
            return headers.is_possible_request(head, self.frame_bytes_max)
        return walks.REQUEST_BYTES_MIN <= length <= self.frame_bytes_max

    def _walk(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Read all whole frames; return the position reached."""
        base = rest.base
        walk = walks.responses if direction.is_response else walks.requests
        state, bounds = walk(rest.view, at - base, end - base, self.frame_bytes_max)
        after = int(bounds[-1]) + base
        if len(bounds) > 1:
            self._found(connection, direction, bounds + base if base else bounds, rest.view, int(bounds[-2]))
        if state == walks.INCOMPLETE:
            if after < end:
                self._keep(connection, direction, rest, after, end)
            return end
        if state == walks.SASL:
            return self._hand_over(connection, direction, rest, after, end)
        self._desync(connection, direction, rest, after, rest.bytes(after, min(after + _HEAD_BYTES, end)))
        return rest.segment_after(after, end)

    def _found(
        self, connection: Connection, direction: Direction, bounds: Array, view: bytes | memoryview, last: int
    ) -> None:
        count = len(bounds) - 1
        if direction.is_response:
            direction.last_id = headers.RESPONSE.unpack_from(view, last)[1]
        self.buffer.add_frames(connection.uid, direction.is_response, bounds, direction.frames, direction.after_gap)
        direction.frames += count
        direction.after_gap = False

    def _desync(self, connection: Connection, direction: Direction, rest: Rest, at: int, head: bytes) -> None:
        if not direction.frames and headers.is_tls(head):
            self.close(connection, direction, "tls", rest.time(at), "")
            return
        self.lose(direction)
        # SASL tokens are not frames, so this is no loss of synchronisation.
        if not connection.is_opaque:
            self.report_event(
                connection, direction, "desync", rest.time(at), 0, f"not the start of a frame: {head.hex(' ')}"
            )

    def _hand_over(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Stop reading after SaslHandshake v0: the client sends raw tokens."""
        connection.is_opaque = direction.is_dead = True
        direction.skipped_bytes += end - at
        self.report_event(connection, direction, "sasl", rest.time(at - 1), 0, "SaslHandshake v0: raw tokens follow")
        return end

    def _find(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Return the start of the first segment that starts with a plausible frame; `end` if there is none."""
        base = rest.base
        if not direction.frames and not direction.skipped_bytes and headers.is_tls(rest.bytes(at, at + 2)):
            self.close(connection, direction, "tls", rest.time(at), "starts in the middle of a connection")
            return end
        for start, stop, ts_ns in self._candidates(direction.is_response, rest, at, end):
            data = rest.view[start - base : stop - base]
            if direction.is_response:
                length, number = headers.RESPONSE.unpack_from(data)
                following = data[4 + length : 8 + length]
                is_one = number in connection.open_ids(ts_ns) and (
                    len(following) < 4
                    or walks.RESPONSE_BYTES_MIN <= headers.LENGTH.unpack(following)[0] <= self.frame_bytes_max
                )
            else:
                is_one = headers.is_plausible_request(data, self.frame_bytes_max)
            if is_one:
                return start
        return end

    def _candidates(self, is_response: bool, rest: Rest, at: int, end: int) -> list[tuple[int, int, int]]:
        """Yield segments (start, end of the captured bytes, time) whose length may be that of a frame."""
        first = int(np.searchsorted(rest.pieces.start, at))
        start = rest.pieces.start[first:]
        start = start[: int(np.searchsorted(start, end))]
        stop = np.append(start[1:], end)
        if rest.holes:
            holes = np.array([low for low, _ in rest.holes], np.int64) + rest.base
            following = np.append(holes, end)[np.searchsorted(holes, start)]
            stop = np.minimum(stop, following)
        data = np.frombuffer(rest.view, np.uint8)
        found = headers.plausible_starts(data, start - rest.base, stop - rest.base, self.frame_bytes_max, is_response)
        times = rest.pieces.ts_ns[first:][found]
        return list(zip(start[found].tolist(), stop[found].tolist(), times.tolist(), strict=True))

    def orient(self, connection: Connection) -> bool:
        """Find out which side is the client: the first to send bytes that can only be a request. False: neither."""
        best: tuple[int, int, Direction] | None = None
        for direction in connection.sides:
            for stretch in direction.queue:
                if stretch is None:
                    continue
                rest = whole(stretch, 0)
                for start, stop, ts_ns in self._candidates(False, rest, 0, len(stretch.data)):
                    data = rest.view[start:stop]
                    if headers.REQUEST_START.unpack_from(data)[4] > 0 and headers.is_plausible_request(
                        data, self.frame_bytes_max
                    ):
                        found = (ts_ns, start, direction)
                        best = found if best is None or ts_ns < best[0] else best
                        break
        if best is None:
            for direction in connection.sides:
                direction.skipped_bytes += direction.queued_bytes
                direction.queue, direction.queued_bytes = [], 0
            return False
        connection.is_oriented = connection.is_kafka = True
        if best[2].is_response:
            connection.swap_sides()
        return True


def _joined(stretches: list[Stretch]) -> Stretch:
    base = 0
    starts, holes = [], []
    for each in stretches:
        starts.append(each.pieces.start + base)
        holes += [(base + low, base + high) for low, high in each.holes]
        base += len(each.data)
    times = np.concatenate([each.pieces.ts_ns for each in stretches])
    offsets = np.concatenate([each.pieces.offset for each in stretches])
    return Stretch(b"".join(each.data for each in stretches), Pieces(np.concatenate(starts), times, offsets), holes)


def _is_sasl(frame: bytes) -> bool:
    _, key, version, _ = headers.REQUEST.unpack_from(frame)
    return (key, version) == (walks.SASL_HANDSHAKE, 0)
