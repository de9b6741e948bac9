"""TCP segments to the bytes each side sent, in order: retransmissions dropped, reordering undone, gaps told.

One pass over the segments; what a connection holds back is bounded. A connection is a pair of endpoints between one
SYN and the next (`incarnation` counts them: ports are used again). Which side is the server is known from the SYN, from
`server_ports`, or else taken to be the side with the lower port.
Source: RFC 9293; sequence numbers are compared in the 32-bit circle and unwrapped.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mockraft.spark_replay.captures import ACK, FIN, RST, SYN, Endpoint, Segment

# How much may wait for a missing segment before it is given up as not captured.
HELD_BYTES_MAX = 8 << 20
HELD_SEGMENTS_MAX = 10_000


class Connection(NamedTuple):
    """Who talks to whom, and the how-manieth connection between these two endpoints it is."""

    client: Endpoint
    server: Endpoint
    incarnation: int


class Chunk(NamedTuple):
    """Bytes that directly follow the last chunk's, unless `gap_bytes` are missing between (-1: a start midway)."""

    connection: Connection
    from_client: bool
    packet_number: int
    time_ns: int
    data: bytes
    gap_bytes: int
    is_end: bool


class _Direction:
    """What one side sends."""

    def __init__(self, connection: Connection, from_client: bool) -> None:
        self.connection = connection
        self.from_client = from_client
        self.syn_seq: int | None = None
        self.next_seq: int | None = None
        self.gap_bytes = 0
        self.held: list[tuple[int, int, Segment]] = []
        self.held_bytes = 0

    def receive(self, segment: Segment) -> Iterator[Chunk]:
        start = segment.seq
        if segment.flags & SYN:
            start = (segment.seq + 1) & 0xFFFFFFFF
            if self.syn_seq is None:
                self.syn_seq = segment.seq
                self.next_seq = start
        elif self.next_seq is None:
            self.next_seq, self.gap_bytes = start, -1
        else:
            start = self.next_seq + ((segment.seq - self.next_seq + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        if segment.payload or segment.flags & (FIN | RST):
            heapq.heappush(self.held, (start, segment.packet_number, segment))
            self.held_bytes += len(segment.payload)
        yield from self.release(segment.time_ns)
        while self.held_bytes > HELD_BYTES_MAX or len(self.held) > HELD_SEGMENTS_MAX:
            self.skip()
            yield from self.release(segment.time_ns)

    def release(self, time_ns: int) -> Iterator[Chunk]:
        while self.held and self.next_seq is not None and self.held[0][0] <= self.next_seq:
            start, _, segment = heapq.heappop(self.held)
            self.held_bytes -= len(segment.payload)
            # The first copy of a byte wins: a retransmission adds only what is new.
            data = segment.payload[self.next_seq - start :]
            is_end = bool(segment.flags & (FIN | RST))
            if data or is_end:
                # In-order time: a chunk that waited for another counts from when it could be read.
                yield Chunk(
                    self.connection,
                    self.from_client,
                    segment.packet_number,
                    max(time_ns, segment.time_ns),
                    data,
                    self.gap_bytes,
                    is_end,
                )
                self.gap_bytes = 0
            self.next_seq += len(data) + (1 if segment.flags & FIN else 0)
            if segment.cut_bytes:
                self.gap_bytes += segment.cut_bytes
                self.next_seq = max(self.next_seq, start + len(segment.payload) + segment.cut_bytes)

    def skip(self) -> None:
        """Give up what is missing before the first held segment."""
        if self.held and self.next_seq is not None:
            self.gap_bytes += self.held[0][0] - self.next_seq
            self.next_seq = self.held[0][0]

    def finish(self) -> Iterator[Chunk]:
        while self.held:
            self.skip()
            yield from self.release(0)


def reassemble(segments: Iterable[Segment], server_ports: Collection[int] = ()) -> Iterator[Chunk]:
    """The bytes of every connection in order. `server_ports`, if any, leaves out connections to other ports."""
    connections: dict[tuple[Endpoint, Endpoint], tuple[_Direction, _Direction]] = {}
    incarnations: dict[tuple[Endpoint, Endpoint], int] = {}
    for segment in segments:
        if server_ports and segment.source.port not in server_ports and segment.destination.port not in server_ports:
            continue
        key = min((segment.source, segment.destination), (segment.destination, segment.source))
        directions = connections.get(key)
        if directions is None or _opens_anew(segment, directions):
            if directions is not None:
                yield from _finish(directions)
            incarnations[key] = incarnations.get(key, 0) + 1
            connections[key] = directions = _open(segment, incarnations[key], server_ports)
        from_client = segment.source == directions[0].connection.client
        yield from directions[0 if from_client else 1].receive(segment)
    for directions in connections.values():
        yield from _finish(directions)


def _opens_anew(segment: Segment, directions: tuple[_Direction, _Direction]) -> bool:
    """A SYN that is not a retransmission of the one already seen."""
    if segment.flags & (SYN | ACK) != SYN:
        return False
    client = directions[0]
    return segment.source != client.connection.client or segment.seq != client.syn_seq


def _open(segment: Segment, incarnation: int, server_ports: Collection[int]) -> tuple[_Direction, _Direction]:
    client, server = segment.source, segment.destination
    if segment.flags & SYN:
        turned = bool(segment.flags & ACK)
    elif (client.port in server_ports) != (server.port in server_ports):
        turned = client.port in server_ports
    else:
        turned = client.port < server.port
    connection = Connection(server, client, incarnation) if turned else Connection(client, server, incarnation)
    return _Direction(connection, True), _Direction(connection, False)


def _finish(directions: tuple[_Direction, _Direction]) -> Iterator[Chunk]:
    for direction in directions:
        yield from direction.finish()
