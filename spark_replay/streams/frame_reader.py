"""Bytes of one direction to frames: four bytes of length followed by that many bytes, repeatedly.

A direction is in sync, or it is lost and searches for its next frame (`alignment`). Bytes that are missing inside a
frame do not lose it, since the frame's length says where the next one starts. While a server's direction is lost its
bytes wait until all requests before them have been read, because responses are recognised by their requests' ids.

Every byte is part of a frame, or counted in an event: `skipped`, `unfinished`, `oversized`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mockraft.spark_replay import walks
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.streams import headers
from mockraft.spark_replay.streams.alignment import Found, Window, first_request, first_response
from mockraft.spark_replay.streams.connections import Connection, Direction, Gap, Hole
from mockraft.spark_replay.streams.frame_columns import FrameBuffer, Pieces, Stretch, joined

_TAIL_BYTES_MAX = 256 << 20
_HEAD_BYTES = headers.REQUEST.size
# What the gathers of `FrameBuffer` read at the start of a frame.
_GATHERED_BYTES = 4 + headers.REQUEST_START.size
_DESYNCS_MAX = 256
_LATE = "starts in the middle of a connection"
UNPROVEN_BYTES_MAX = 4 << 20
"""Bytes of a side after which a connection without a request is not Kafka."""

ReportEvent = Callable[[Connection, Direction, str, int, int, str], None]


class Rest(NamedTuple):
    """Bytes of a direction with their segments; positions are those in the buffer, view[0] is at `base`."""

    view: memoryview
    base: int
    pieces: Pieces

    def bytes(self, at: int, end: int) -> bytes:
        """Return some of the bytes."""
        return bytes(self.view[at - self.base : end - self.base])

    def copy(self, at: int, end: int) -> Stretch:
        """Return a copy of some of the bytes."""
        return Stretch(self.bytes(at, end), self.pieces.between(at, end))

    def window(self, at: int, end: int, is_mid: bool, is_last: bool) -> Window:
        """Return some of the bytes to search; `is_mid`: they begin inside a segment, though `pieces` does not tell."""
        first = max(int(self.pieces.start.searchsorted(at, "right")) - 1, 0)
        last = int(self.pieces.start.searchsorted(end, "left"))
        starts = self.pieces.start[first:last] - self.base
        if is_mid:
            starts[0] = -1
        return Window(self.view, at - self.base, end - self.base, starts, self.pieces.ts_ns[first:last], is_last)


def whole(stretch: Stretch, base: int) -> Rest:
    """Return a stretch whose bytes are at `base` in the buffer."""
    return Rest(memoryview(stretch.data), base, stretch.pieces._replace(start=stretch.pieces.start + base))


class FrameReader:
    """Reads stretches of bytes in order and adds the frames found to a buffer."""

    def __init__(self, buffer: FrameBuffer, frame_bytes_max: int, report_event: ReportEvent) -> None:
        self.buffer = buffer
        self.frame_bytes_max = frame_bytes_max
        self.report_event = report_event
        # Returns what takes over the streams of a connection with TLS from its client's first bytes on.
        self.decrypt: Callable[[Connection, bytes], Callable[[Stretch], None] | None] | None = None
        # Bytes held of half-read frames, over all connections.
        self.tail_bytes = 0

    def read_stretch(self, connection: Connection, direction: Direction, stretch: Stretch) -> None:
        """Read the next bytes of a direction, which are in no batch."""
        base = self.buffer.add(stretch)
        self.read(connection, direction, whole(stretch, base), base, base + len(stretch.data))

    def read(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> None:
        """Read the next bytes of a direction."""
        while at < end:
            if direction.is_dead:
                direction.skip(end - at, rest.pieces.time(at))
                return
            if self._must_wait(connection, direction):
                direction.queue.append(rest.copy(at, end))
                direction.queued_bytes += end - at
                self._check_unproven(connection, direction)
                return
            if direction.ahead:
                size = min(direction.ahead, end - at)
                direction.ahead -= size
                direction.skip(size, rest.pieces.time(at))
                at += size
            elif direction.is_lost:
                rest, at, end = self._search(connection, direction, rest, at, end)
            elif connection.is_kafka is None and not self._prove(connection, direction, rest, at, end):
                return
            elif direction.tail:
                at = self._finish_tail(connection, direction, rest, at, end)
            else:
                at = self._walk(connection, direction, rest, at, end)

    def hole(self, connection: Connection, direction: Direction, hole: Hole) -> None:
        """Handle bytes that were sent but not captured."""
        if not direction.is_dead and self._must_wait(connection, direction):
            direction.queue.append(hole)
            return
        if connection.is_kafka is None:
            # The captured start of the first request has to do.
            direction.is_lost = True
        self.end_search(connection, direction)
        inside = min(self._left(direction), hole.size)
        if inside and direction.tail:
            self._cut_tail(direction, hole)
            direction.tail_bytes += inside
            if direction.tail_bytes == direction.tail_need:
                self._end_frame(connection, direction)
        else:
            self._skip_tail(direction)
            direction.ahead -= inside
            direction.skip(inside, hole.ts_ns)
        if inside < hole.size:
            direction.skip(hole.size - inside, hole.ts_ns)
            direction.lose()

    def gap(self, connection: Connection, direction: Direction, size: int) -> None:
        """Handle bytes that are missing in the capture."""
        if direction.queue:
            direction.queue.append(Gap(size))
            return
        self.end_search(connection, direction)
        left = self._left(direction)
        self._skip_tail(direction)
        direction.ahead = max(left - size, 0)
        direction.is_whole, direction.after_gap = False, True
        if left < size:
            direction.lose()

    def settle(self, connection: Connection, direction: Direction) -> None:
        """Read the postponed bytes: all requests that precede them have been read."""
        queue, direction.queue, direction.queued_bytes = direction.queue, [], 0
        direction.is_settling = True
        for each in queue:
            if isinstance(each, Stretch):
                self.read_stretch(connection, direction, each)
            elif isinstance(each, Hole):
                self.hole(connection, direction, each)
            else:
                self.gap(connection, direction, each.size)
        direction.is_settling = False

    def end_search(self, connection: Connection, direction: Direction) -> None:
        """Decide where a frame begins in the last bytes, which nothing follows."""
        if not direction.is_lost or not direction.tail:
            return
        stretch = joined(self._take_tail(direction))
        was_settling = direction.is_settling
        direction.is_ending = direction.is_settling = True
        self.read_stretch(connection, direction, stretch)
        direction.is_ending, direction.is_settling = False, was_settling

    def drop_tail(self, direction: Direction) -> int:
        """Drop the half-read frame; return its number of bytes."""
        size = direction.tail_bytes
        self._take_tail(direction)
        return size

    def close(self, connection: Connection, direction: Direction, kind: str, ts_ns: int, detail: str) -> None:
        """Stop reading a connection, in both directions."""
        connection.is_opaque = kind == "tls"
        connection.is_kafka = False
        for each in connection.sides:
            each.is_dead = True
            self._skip_tail(each)
            each.skip_queue()
        self.report_event(connection, direction, kind, ts_ns, 0, detail)

    def orient(self, connection: Connection, is_last: bool) -> bool:
        """Find out which side is the client: the first to send bytes that can only be a request. False: not known."""
        best: tuple[int, Direction] | None = None
        for direction in connection.sides:
            since = self._first_request_ns(direction, is_last)
            if since is not None and (best is None or since < best[0]):
                best = since, direction
        if best is not None:
            connection.is_oriented = connection.is_kafka = True
            if best[1].is_response:
                connection.swap_sides()
        elif is_last or max(direction.queued_bytes for direction in connection.sides) > UNPROVEN_BYTES_MAX:
            of_tls = next((each for each in connection.sides if _begins_with_tls(each)), None)
            if of_tls:
                self.close(connection, of_tls, "tls", connection.last_ns, _LATE)
            elif is_last:
                for direction in connection.sides:
                    direction.skip_queue()
            else:
                self.close(connection, connection.client, "not_kafka", connection.last_ns, "no request was seen")
        return best is not None

    def _first_request_ns(self, direction: Direction, is_last: bool) -> int | None:
        island: list[Stretch] = []
        size = 0
        for each in [*direction.queue, Gap(0)]:
            if isinstance(each, Stretch):
                if size < UNPROVEN_BYTES_MAX:
                    island.append(each)
                size += len(each.data)
            elif island:
                stretch = joined(island)
                rest = whole(stretch, 0)
                ends = is_last or each is not direction.queue[-1]
                window = rest.window(0, min(len(stretch.data), UNPROVEN_BYTES_MAX), False, ends and bool(each.size))
                found = first_request(window, self.frame_bytes_max, is_named=True)
                if found.at is not None:
                    return rest.pieces.time(found.at)
                island = []
        return None

    def _skip_tail(self, direction: Direction) -> None:
        if direction.tail:
            since = int(direction.tail[0].pieces.ts_ns[0])
            direction.skip(self.drop_tail(direction), since)

    def _take_tail(self, direction: Direction) -> list[Stretch]:
        tail = direction.tail
        self.tail_bytes -= sum(len(each.data) for each in tail)
        direction.tail, direction.tail_bytes, direction.tail_need, direction.tail_head = [], 0, 0, None
        return tail

    def _must_wait(self, connection: Connection, direction: Direction) -> bool:
        if not connection.is_oriented or (connection.is_kafka is None and direction.is_response):
            return True
        return not direction.is_settling and (bool(direction.queue) or (direction.is_response and direction.is_lost))

    def _check_unproven(self, connection: Connection, direction: Direction) -> None:
        if direction.queued_bytes > UNPROVEN_BYTES_MAX and connection.is_oriented and connection.is_kafka is None:
            detail = "the server sends first: no request was seen"
            self.close(connection, direction, "not_kafka", direction.ts_ns, detail)

    def _prove(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> bool:
        """Return True if a stream starts with a request; keeps its bytes if there are too few to decide."""
        head = b"".join(each.data for each in direction.tail) + rest.bytes(at, min(end, at + headers.PROOF_BYTES_MAX))
        verdict = self._starts_with_request(head)
        if verdict:
            connection.is_kafka = True
            return True
        if verdict is None:
            self._keep(connection, direction, rest, at, end)
            return False
        if headers.is_tls(head) and self._decrypts(connection, direction, rest.copy(at, end)):
            return False
        # The bytes that are no request are skipped with the rest.
        direction.skip(end - at, rest.pieces.time(at))
        if headers.is_tls(head):
            self.close(connection, direction, "tls", rest.pieces.time(at), "")
        else:
            self.close(connection, direction, "not_kafka", rest.pieces.time(at), "the first bytes are not a request")
        return False

    def _starts_with_request(self, head: bytes) -> bool | None:
        if len(head) < 4:
            return None
        (length,) = headers.LENGTH.unpack_from(head)
        if not 10 <= length <= self.frame_bytes_max:
            return False
        verdict = headers.proven_request(head, self.frame_bytes_max)
        return verdict if isinstance(verdict, bool) else None

    def _keep(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> bool:
        """Keep the start of a frame; return False if that was too much, and all of it was dropped."""
        direction.tail.append(rest.copy(at, end))
        direction.tail_bytes += end - at
        self.tail_bytes += end - at
        if self.tail_bytes <= _TAIL_BYTES_MAX:
            return True
        size = self.drop_tail(direction)
        direction.lose()
        detail = f"half-read frames of all connections exceed {_TAIL_BYTES_MAX} bytes"
        self.report_event(connection, direction, "oversized", rest.pieces.time(at), size, detail)
        return False

    def _search(
        self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int
    ) -> tuple[Rest, int, int]:
        """Search for a frame; return its start in the bytes that have been searched, or the end, and these bytes."""
        is_mid, direction.tail_is_mid = direction.tail_is_mid, False
        if direction.tail:
            if not self._keep(connection, direction, rest, at, end):
                return rest, end, end
            if direction.tail_bytes < direction.tail_need:
                direction.tail_is_mid = is_mid
                return rest, end, end
            stretch = joined(self._take_tail(direction))
            at = self.buffer.add(stretch)
            rest, end = whole(stretch, at), at + len(stretch.data)
        elif not direction.frames and not direction.skipped_bytes and headers.is_tls(rest.bytes(at, at + 2)):
            direction.skip(end - at, rest.pieces.time(at))
            self.close(connection, direction, "tls", rest.pieces.time(at), _LATE)
            return rest, end, end
        window = rest.window(at, end, is_mid, direction.is_ending)
        found = self._find(connection, direction, window)
        base = rest.base
        direction.skip(found.rest + base - at, rest.pieces.time(at))
        if found.at is not None:
            direction.is_lost = False
            connection.is_kafka = True
            return rest, found.at + base, end
        if found.rest + base < end:
            direction.tail_is_mid = found.rest not in window.starts
            direction.tail_need = found.needed - found.rest
            self._keep(connection, direction, rest, found.rest + base, end)
        return rest, end, end

    def _find(self, connection: Connection, direction: Direction, window: Window) -> Found:
        if direction.is_response:
            return first_response(window, self.frame_bytes_max, connection.open.since())
        return first_request(window, self.frame_bytes_max)

    def _left(self, direction: Direction) -> int:
        """Return how many bytes the frame still has that is read or skipped; 0 if there is none or they are unknown."""
        if direction.is_lost or direction.is_dead:
            return 0
        if direction.tail and not direction.tail_need:
            head = b"".join(each.data for each in direction.tail[:_HEAD_BYTES])[:_HEAD_BYTES]
            if len(head) >= 4:
                (length,) = headers.LENGTH.unpack_from(head)
                if self._is_possible(direction, head, length):
                    direction.tail_need = 4 + length
        return direction.ahead or max(direction.tail_need - direction.tail_bytes, 0)

    def _finish_tail(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Complete the half-read frame; return the start of the next one."""
        if not direction.tail_need:
            head = b"".join(each.data for each in direction.tail[:_HEAD_BYTES])[:_HEAD_BYTES]
            head += rest.bytes(at, min(end, at + _HEAD_BYTES - len(head)))
            if len(head) >= 4:
                (length,) = headers.LENGTH.unpack_from(head)
                if not self._is_possible(direction, head, length):
                    return self._desync(connection, direction, rest, at, end, head)
                if len(head) == _HEAD_BYTES or direction.is_response:
                    direction.tail_need = 4 + length
        size = min(direction.tail_need - direction.tail_bytes, end - at) if direction.tail_need else end - at
        if direction.tail_head is None:
            if not self._keep(connection, direction, rest, at, at + size):
                return at + size
        else:
            direction.tail.append(_placed(rest.pieces.between(at, at + size), direction.tail_head))
            direction.tail_bytes += size
        if direction.tail_bytes == direction.tail_need and self._end_frame(connection, direction):
            return self._hand_over(connection, direction, rest, at + size, end)
        return at + size

    def _cut_tail(self, direction: Direction, hole: Hole) -> None:
        """Keep the header of the half-read frame, and the times and places of its segments."""
        pieces = Pieces(*(np.array([each], np.int64) for each in (0, hole.ts_ns, hole.offset)))
        if direction.tail_head is None:
            frame = joined(direction.tail)
            head = frame.data[: headers.PROOF_BYTES_MAX]
            self.tail_bytes += max(len(head), _GATHERED_BYTES) - len(frame.data)
            direction.tail_head = len(head)
            start = np.minimum(frame.pieces.start, len(head) - 1)
            # Padded for the gathers of `FrameBuffer`.
            direction.tail = [Stretch(head.ljust(_GATHERED_BYTES, b"\0"), frame.pieces._replace(start=start))]
        direction.tail.append(_placed(pieces, direction.tail_head))

    def _end_frame(self, connection: Connection, direction: Direction) -> bool:
        """Add the frame that is whole now; return True if it is SaslHandshake v0."""
        size, head = direction.tail_need - 4, direction.tail_head
        tail = self._take_tail(direction)
        if head is None:
            frame = joined(tail)
            end = len(frame.data)
        else:
            columns = [np.concatenate(each) for each in zip(*(each.pieces for each in tail), strict=True)]
            # The captured bytes of a segment and its hole are one.
            is_new = np.diff(columns[2], prepend=-1) != 0
            frame, end = Stretch(tail[0].data, Pieces(*(each[is_new] for each in columns))), head
        base = self.buffer.add(frame)
        self._found(connection, direction, np.array([base, base + end]), memoryview(frame.data), base)
        if head is not None:
            self.buffer.cut_last(size)
        return not direction.is_response and _is_sasl(frame.data)

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
            self._found(connection, direction, bounds + base if base else bounds, rest.view, base)
        if state == walks.INCOMPLETE:
            if after < end:
                self._keep(connection, direction, rest, after, end)
            return end
        if state == walks.SASL:
            return self._hand_over(connection, direction, rest, after, end)
        return self._desync(connection, direction, rest, after, end, rest.bytes(after, min(after + _HEAD_BYTES, end)))

    def _found(
        self, connection: Connection, direction: Direction, bounds: Array, view: bytes | memoryview, base: int
    ) -> None:
        """Add frames: `bounds` are positions in the buffer, and view[0] is at `base`."""
        count = len(bounds) - 1
        if direction.skipped_bytes:
            self.report_skipped(connection, direction)
        if direction.is_settling and direction.is_response:
            ids = [headers.RESPONSE.unpack_from(view, at - base)[1] for at in bounds[:-1].tolist()]
            connection.open.answer_now(ids)
        self.buffer.add_frames(connection.uid, direction.is_response, bounds, direction.frames, direction.after_gap)
        direction.frames += count
        direction.after_gap = False

    def report_skipped(self, connection: Connection, direction: Direction) -> None:
        """Report the bytes that were part of no frame."""
        size, direction.skipped_bytes = direction.skipped_bytes, 0
        self.report_event(connection, direction, "skipped", direction.skipped_ns, size, "")

    def _desync(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int, head: bytes) -> int:
        """Handle bytes that are no frame; return where reading continues."""
        ts_ns = rest.pieces.time(at)
        if not direction.frames and headers.is_tls(head):
            if self._decrypts(connection, direction, rest.copy(at, end)):
                return end
            self.close(connection, direction, "tls", ts_ns, "")
            return at
        self._skip_tail(direction)
        direction.lose()
        direction.desyncs += 1
        # SASL tokens are not frames, so this is no loss of synchronisation.
        if not connection.is_opaque:
            self.report_event(connection, direction, "desync", ts_ns, 0, f"not the start of a frame: {head.hex(' ')}")
        if direction.desyncs == _DESYNCS_MAX:
            direction.is_dead = True
            detail = f"{_DESYNCS_MAX} times the bytes after a frame were none: the rest is not read"
            self.report_event(connection, direction, "given_up", ts_ns, 0, detail)
        return at

    def _decrypts(self, connection: Connection, direction: Direction, more: Stretch) -> bool:
        """Decrypt a connection from its client's first bytes on, if there are secrets."""
        if self.decrypt is None or connection.tls is not None or direction.is_response:
            return False
        first = [*direction.tail, more]
        start = self.decrypt(connection, b"".join(each.data for each in first))
        if start is not None:
            self._take_tail(direction)
            start(joined(first))
        return start is not None

    def _hand_over(self, connection: Connection, direction: Direction, rest: Rest, at: int, end: int) -> int:
        """Stop reading after SaslHandshake v0: the client sends raw tokens."""
        connection.is_opaque = direction.is_dead = True
        direction.skip(end - at, rest.pieces.time(at))
        self.report_event(
            connection, direction, "sasl", rest.pieces.time(at - 1), 0, "SaslHandshake v0: raw tokens follow"
        )
        return end


def _placed(pieces: Pieces, head: int) -> Stretch:
    """Return segments of a frame of which only the first `head` bytes are kept: all later ones are at its last byte."""
    return Stretch(b"", pieces._replace(start=np.minimum(pieces.start, 0) + head - 1))


def _begins_with_tls(direction: Direction) -> bool:
    first = next(iter(direction.queue), None)
    return isinstance(first, Stretch) and not direction.skipped_bytes and headers.is_tls(first.data)


def _is_sasl(frame: bytes) -> bool:
    _, key, version, _ = headers.REQUEST.unpack_from(frame)
    return (key, version) == (walks.SASL_HANDSHAKE, 0)
