"""Join fragments of IP packets: each packet when the last one missing comes, whatever their order.

As Kafka's hosts fit TCP to the path, fragments are mostly of tunnels, whose headers make packets too long. They are
few, so they are joined one by one. Source: RFC 791 and 8200.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from mockraft.spark_replay.formats.chunks import PADDING_BYTES, Bytes, PacketColumns
from mockraft.spark_replay.formats.file_events import FileEvents
from mockraft.spark_replay.formats.links import IPV4, IPV6, Payloads

KEPT_NS = 30_000_000_000
"""Time after which the other fragments of a packet are no longer waited for: ids are used again."""
KEPT_MAX = 1024
"""Number of packets of which some fragments have come."""
_PACKET_BYTES_MAX = 0xFFFF
_MORE = {IPV4: 0x2000, IPV6: 0x0001}


class Fragment(NamedTuple):
    """A fragment: a key equal for those of one packet, its place and bytes, and the header of the whole packet."""

    key: bytes
    header: bytes
    place: int
    is_last: bool
    data: bytes


@dataclass(slots=True)
class _Packet:
    """The fragments of one packet so far; the first one was in the file at `file_offset`."""

    file_offset: int
    ts_ns: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    fragments: int = 0
    bytes_here: int = 0
    size: int = -1

    def whole(self) -> bytes | None:
        """Return the bytes, if there are all of them and none twice."""
        if self.bytes_here != self.size:
            return None
        data = bytearray()
        for place, piece in sorted(self.pieces.items()):
            if place != len(data):
                return None
            data += piece
        return bytes(data)


class Fragments:
    """The fragments of a file that wait for others. Those of packets that are never whole are counted."""

    def __init__(self, events: FileEvents) -> None:
        self._events = events
        self._open: OrderedDict[bytes, _Packet] = OrderedDict()
        self._joined: list[tuple[int, int, bytes]] = []

    def add(self, packets: PacketColumns, number: int, ether_type: int, fragment: Fragment | None) -> None:
        """Add the fragment in a packet of the chunk; None if it was not captured as a whole."""
        offset, ts_ns = int(packets.file_offset[number]), int(packets.ts_ns[number])
        if fragment is None:
            self._events.count("fragments", offset, 1)
            return
        found = self._open.get(fragment.key)
        if found is None or abs(ts_ns - found.ts_ns) > KEPT_NS:
            self._forget(fragment.key)
            found = self._open[fragment.key] = _Packet(offset, ts_ns)
            if len(self._open) > KEPT_MAX:
                self._forget(next(iter(self._open)))
        found.fragments += 1
        if fragment.place not in found.pieces:
            found.pieces[fragment.place] = fragment.data
            found.bytes_here += len(fragment.data)
        if fragment.is_last:
            found.size = fragment.place + len(fragment.data)
        data = found.whole()
        if data is not None and len(data) <= _PACKET_BYTES_MAX - len(fragment.header):
            del self._open[fragment.key]
            self._joined.append((number, ether_type, _with_length(fragment.header, ether_type, len(data)) + data))
        elif found.bytes_here >= (found.size if found.size >= 0 else _PACKET_BYTES_MAX):
            self._forget(fragment.key)  # they overlap, or are too many

    def take(self, buffer: Bytes, payloads: Payloads) -> Bytes:
        """Return a buffer with the packets that are whole now, and set the `payloads` of their last fragments."""
        if not self._joined:
            return buffer
        at = len(buffer)
        for number, ether_type, data in self._joined:
            payloads.ether_type[number], payloads.start[number], payloads.end[number] = ether_type, at, at + len(data)
            at += len(data)
        joined = np.frombuffer(b"".join(data for _, _, data in self._joined) + bytes(PADDING_BYTES), np.uint8)
        self._joined = []
        return np.concatenate([buffer, joined])

    def finish(self) -> None:
        """Count the fragments that still wait."""
        while self._open:
            self._forget(next(iter(self._open)))

    def _forget(self, key: bytes) -> None:
        found = self._open.pop(key, None)
        if found is not None:
            self._events.count("fragments", found.file_offset, found.fragments)


def of_ipv4(buffer: Bytes, start: int, end: int) -> Fragment | None:
    """Return the fragment in the IPv4 packet at `start`."""
    head = buffer[start : start + 20].tobytes()
    begin, stop = start + (head[0] & 0x0F) * 4, start + int.from_bytes(head[2:4])
    place = int.from_bytes(head[6:8])
    if not start + 20 <= begin < stop <= end:
        return None
    key = head[4:6] + head[9:10] + head[12:20]
    data = buffer[begin:stop].tobytes()
    header = b"\x45" + head[1:6] + bytes(2) + head[8:]
    return Fragment(key, header, (place & 0x1FFF) * 8, not place & _MORE[IPV4], data)


def of_ipv6(buffer: Bytes, start: int, fragment_at: int, end: int) -> Fragment | None:
    """Return the fragment in the IPv6 packet at `start` whose fragment header is at `fragment_at`."""
    head, own = buffer[start : start + 40].tobytes(), buffer[fragment_at : fragment_at + 8].tobytes()
    begin, stop = fragment_at + 8, start + 40 + int.from_bytes(head[4:6])
    if not begin < stop <= end:
        return None
    place = int.from_bytes(own[2:4])
    header = head[:6] + own[:1] + head[7:]
    data = buffer[begin:stop].tobytes()
    return Fragment(own[4:8] + head[8:40], header, place & 0xFFF8, not place & _MORE[IPV6], data)


def _with_length(header: bytes, ether_type: int, size: int) -> bytes:
    if ether_type == IPV4:
        return header[:2] + (len(header) + size).to_bytes(2) + header[4:]
    return header[:4] + size.to_bytes(2) + header[6:]
