"""Kafka frames out of TCP streams, and each response with the request it answers.

A frame is four bytes of length and that many bytes. After a gap, or where a capture starts midway, frames are looked
for again at the next segment that starts with a believable one. Kafka answers in order, but pairing is by correlation
id, so that a lost response does not shift the rest.
"""

from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator
from os import PathLike
from struct import Struct
from typing import NamedTuple

from mockraft.spark_replay.captures import read_segments
from mockraft.spark_replay.tcp_streams import Chunk, Connection, reassemble
from mockraft.wire import messages
from mockraft.wire.connection import FRAME_BYTES_MAX
from mockraft.wire.errors import WireError

_LENGTH = Struct(">i")
_REQUEST = Struct(">hhi")
_REQUEST_START = Struct(">hhih")
_TLS_HANDSHAKE = b"\x16\x03"
_CLIENT_ID_BYTES_MAX = 1024


class Frame(NamedTuple):
    """One request or response without its length; `number` counts from 0 on its side of the connection."""

    connection: Connection
    from_client: bool
    number: int
    first_packet: int
    last_packet: int
    first_time_ns: int
    last_time_ns: int
    data: bytes
    after_gap: bool

    @property
    def correlation_id(self) -> int:
        """The id that a response shares with its request."""
        return int(_LENGTH.unpack_from(self.data, 4 if self.from_client else 0)[0])


class Exchange(NamedTuple):
    """A request and its response; either is None where the capture lacks it (or the request wants none: acks 0)."""

    request: Frame | None
    response: Frame | None
    api_key: int
    api_version: int
    correlation_id: int


class ConnectionStatus(NamedTuple):
    """What became of a connection's bytes: how many are in no frame (gaps, starts midway), and whether it is TLS."""

    connection: Connection
    skipped_bytes: int
    is_opaque: bool


class _Side:
    """One side of one connection: chunks in, frames out. Costs each byte once, however it was cut into packets."""

    def __init__(self, open_ids: Container[int] | None) -> None:
        # Only responses look at the open requests: their header has nothing else to be recognised by.
        self.open_ids = open_ids
        self.buffer = bytearray()
        self.read_bytes = 0
        # Where in the stream each packet's bytes end, for the packets that the buffer still holds.
        self.packets: deque[tuple[int, int, int]] = deque()
        self.frames = 0
        self.is_lost = False
        self.after_gap = False
        self.is_opaque = False
        self.skipped_bytes = 0

    def receive(self, chunk: Chunk) -> Iterator[Frame]:
        if chunk.gap_bytes:
            self.lose()
        if self.is_lost:
            self.is_lost = not _starts_a_frame(chunk.data, self.open_ids)
        if not self.frames and not self.buffer and chunk.data.startswith(_TLS_HANDSHAKE):
            self.is_opaque = True
        if self.is_lost or self.is_opaque:
            self.skipped_bytes += len(chunk.data)
            return
        self.buffer += chunk.data
        self.packets.append((self.read_bytes + len(self.buffer), chunk.packet_number, chunk.time_ns))
        while (frame := self.next_frame(chunk.connection, chunk.from_client)) is not None:
            yield frame

    def next_frame(self, connection: Connection, from_client: bool) -> Frame | None:
        if len(self.buffer) < 4:
            return None
        (length,) = _LENGTH.unpack_from(self.buffer)
        if not (8 if from_client else 4) <= length <= FRAME_BYTES_MAX:
            self.lose()
            return None
        end = 4 + length
        if len(self.buffer) < end:
            return None
        data = bytes(memoryview(self.buffer)[4:end])
        del self.buffer[:end]
        self.read_bytes += end
        first = self.packets[0]
        while self.packets[0][0] < self.read_bytes:
            self.packets.popleft()
        last = self.packets[0]
        if last[0] == self.read_bytes:
            self.packets.popleft()
        frame = Frame(connection, from_client, self.frames, first[1], last[1], first[2], last[2], data, self.after_gap)
        self.frames += 1
        self.after_gap = False
        return frame

    def lose(self) -> None:
        """Drop what is half read, and look for a frame again from the next packet on."""
        self.skipped_bytes += len(self.buffer)
        self.read_bytes += len(self.buffer)
        self.buffer.clear()
        self.packets.clear()
        self.is_lost = self.after_gap = True


class _Pairing:
    """Both sides of one connection and the requests that have no response yet."""

    def __init__(self) -> None:
        self.requests: dict[int, Frame] = {}
        self.responses: dict[int, Frame] = {}
        self.client = _Side(None)
        self.server = _Side(self.requests)

    def receive(self, chunk: Chunk) -> Iterator[Exchange]:
        for frame in (self.client if chunk.from_client else self.server).receive(chunk):
            mine, others = (self.requests, self.responses) if frame.from_client else (self.responses, self.requests)
            correlation_id = frame.correlation_id
            other = others.pop(correlation_id, None)
            if other is not None:
                yield _exchange(frame, other) if frame.from_client else _exchange(other, frame)
                continue
            if correlation_id in mine:
                yield _alone(mine.pop(correlation_id))
            mine[correlation_id] = frame

    def finish(self) -> Iterator[Exchange]:
        for frame in (*self.requests.values(), *self.responses.values()):
            yield _alone(frame)


def pair_exchanges(chunks: Iterable[Chunk], statuses: list[ConnectionStatus] | None = None) -> Iterator[Exchange]:
    """The exchanges of all connections, each when its response is complete; those with one side only come last.

    `statuses`, if given, is filled at the end with what could not be read of each connection.
    """
    pairings: dict[Connection, _Pairing] = {}
    for chunk in chunks:
        pairing = pairings.get(chunk.connection)
        if pairing is None:
            pairing = pairings[chunk.connection] = _Pairing()
        yield from pairing.receive(chunk)
    for connection, pairing in pairings.items():
        yield from pairing.finish()
        if statuses is not None:
            sides = (pairing.client, pairing.server)
            # What is left in a buffer is a frame that the capture ends in.
            skipped_bytes = sum(side.skipped_bytes + len(side.buffer) for side in sides)
            statuses.append(ConnectionStatus(connection, skipped_bytes, any(side.is_opaque for side in sides)))


def read_exchanges(path: str | PathLike[str], server_ports: Collection[int] = ()) -> Iterator[Exchange]:
    """The Kafka exchanges of a capture file; `server_ports`, if any, limits them to connections to these ports."""
    return pair_exchanges(reassemble(read_segments(path), server_ports))


def _exchange(request: Frame, response: Frame) -> Exchange:
    api_key, api_version, correlation_id = _REQUEST.unpack_from(request.data)
    return Exchange(request, response, api_key, api_version, correlation_id)


def _alone(frame: Frame) -> Exchange:
    if not frame.from_client:
        return Exchange(None, frame, -1, -1, frame.correlation_id)
    return Exchange(frame, None, *_REQUEST.unpack_from(frame.data))


def _starts_a_frame(data: bytes, open_ids: Container[int] | None) -> bool:
    """Whether a packet that starts with `data` is likely to start a request or, with `open_ids`, a response to one."""
    if len(data) < 14 if open_ids is None else len(data) < 8:
        return False
    (length,) = _LENGTH.unpack_from(data)
    if not 4 <= length <= FRAME_BYTES_MAX:
        return False
    if open_ids is not None:
        return bool(_LENGTH.unpack_from(data, 4)[0] in open_ids)
    api_key, api_version, _, client_id_bytes = _REQUEST_START.unpack_from(data, 4)
    try:
        request = messages.request(api_key)
    except WireError:
        return False
    known = range(request.min_version, request.max_version + 1)
    return api_version in known and -1 <= int(client_id_bytes) <= min(_CLIENT_ID_BYTES_MAX, length - 10)
