"""Build packets from known traffic: Kafka frames, TCP segments, packets. All pure functions.

    said = [request(1), response(1), request(2, bytes(5000)), response(2)]
    segments = conversation(said, segment_bytes=1448)
    path.write_bytes(pcap(packets(segments, SLL2), SLL2))

What happens to the segments on their way is a function between the two: `cut`, `mixed`, `repeated`, `overlapped`,
`moved` (sequence numbers), or what lists do by themselves (a loss is a `del`). Times are nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from itertools import pairwise
from random import Random
from struct import pack
from typing import NamedTuple

from .capture_bytes import C_HDLC, ETHERNET, LOOP, NFLOG, NULL, PPP, PPP_WITH_FRAMING, SLL, SLL2, Packet

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
PORT = 9093
START_NS = 1_700_000_000_000_000_000


class Flow(NamedTuple):
    """The endpoints of a connection; IPv6 addresses make IPv6 packets."""

    client: str = "10.0.0.1"
    client_port: int = 40_000
    server: str = "10.0.0.2"
    server_port: int = PORT


FLOW = Flow()
FLOW_6 = Flow("fd00::1", 40_000, "fd00::2")


class Said(NamedTuple):
    """One Kafka frame without its four-byte length, and its sender."""

    from_client: bool
    frame: bytes

    @property
    def data(self) -> bytes:
        return len(self.frame).to_bytes(4) + self.frame


class Segment(NamedTuple):
    flow: Flow
    from_client: bool
    time_ns: int
    seq: int
    ack: int
    flags: int
    payload: bytes


def request(
    correlation_id: int, body: bytes = b"", api_key: int = 63, version: int = 1, client_id: bytes | None = b"a"
) -> Said:
    """A request whose header is right; from header version 2 on (as with the default API) tags follow it."""
    name = b"\xff\xff" if client_id is None else len(client_id).to_bytes(2) + client_id
    return Said(True, pack(">hhi", api_key, version, correlation_id) + name + b"\0" + body)


def response(correlation_id: int, body: bytes = b"\0body") -> Said:
    return Said(False, pack(">i", correlation_id) + body)


def exchanges(count: int, rng: Random | None = None, bytes_max: int = 300) -> list[Said]:
    """Requests and their responses, one after the other, ids from 1 (0 may be a padding), bodies of any size."""
    rng = rng or Random(count)
    said = []
    for number in range(1, count + 1):
        said += [
            request(number, rng.randbytes(rng.randrange(bytes_max + 1))),
            response(number, rng.randbytes(rng.randrange(bytes_max + 1))),
        ]
    return said


def conversation(
    said: Iterable[Said],
    flow: Flow = FLOW,
    *,
    segment_bytes: int = 1448,
    isns: tuple[int, int] = (1_000, 500_000),
    start_ns: int = START_NS,
    step_ns: int = 1_000_000,
    opens: bool = True,
    closes: bool = False,
    acks: bool = False,
) -> list[Segment]:
    """The segments of one connection; each frame begins one. `acks`: each frame is acknowledged by an empty segment."""
    sequences = [isns[0], isns[1]]
    segments: list[Segment] = []

    def send(from_client: bool, flags: int, payload: bytes = b"") -> None:
        mine, other = (0, 1) if from_client else (1, 0)
        segments.append(
            Segment(
                flow,
                from_client,
                start_ns + len(segments) * step_ns,
                sequences[mine] & 0xFFFFFFFF,
                sequences[other] & 0xFFFFFFFF if flags & ACK else 0,
                flags,
                payload,
            )
        )
        sequences[mine] += len(payload) + bool(flags & (SYN | FIN))

    if opens:
        send(True, SYN)
        send(False, SYN | ACK)
        send(True, ACK)
    else:
        sequences = [sequences[0] + 1, sequences[1] + 1]
    for each in said:
        data, from_client = each.data, each.from_client
        for at in range(0, len(data), segment_bytes):
            send(from_client, PSH | ACK, data[at : at + segment_bytes])
        if acks:
            send(not from_client, ACK)
    if closes:
        send(True, FIN | ACK)
        send(False, FIN | ACK)
        send(True, ACK)
    return segments


def cut(segments: Iterable[Segment], rng: Random, pieces_max: int = 4) -> list[Segment]:
    """Every payload in one to `pieces_max` segments of any size."""
    out = []
    for each in segments:
        inner = range(1, len(each.payload))
        places = sorted(rng.sample(inner, min(len(inner), rng.randrange(pieces_max))))
        for start, end in pairwise([0, *places, len(each.payload)]):
            last = end == len(each.payload)
            flags = each.flags if last else each.flags & ~(FIN | RST)
            out.append(each._replace(seq=each.seq + start & 0xFFFFFFFF, payload=each.payload[start:end], flags=flags))
    return timed(out)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Neighbours of one direction as one segment, so that frames begin anywhere inside it."""
    out: list[Segment] = []
    for each in segments:
        last = out[-1] if out else None
        if (
            last is not None
            and last.payload
            and each.payload
            and (last.flow, last.from_client) == (each.flow, each.from_client)
            and (last.seq + len(last.payload)) & 0xFFFFFFFF == each.seq
        ):
            out[-1] = last._replace(payload=last.payload + each.payload, flags=last.flags | each.flags)
        else:
            out.append(each)
    return out


def mixed(segments: Sequence[Segment], rng: Random, distance: int) -> list[Segment]:
    """Another order, each about `distance` from its place at most; SYNs stay where they are, times rise again."""
    keyed = sorted(
        range(len(segments)), key=lambda index: -1 if segments[index].flags & SYN else index + rng.random() * distance
    )
    return timed([segments[index] for index in keyed])


def repeated(segments: Sequence[Segment], rng: Random, share: float = 1.0, distance: int = 5) -> list[Segment]:
    """A `share` of the segments once more, at most `distance` places later."""
    out = list(segments)
    for index in range(len(segments) - 1, -1, -1):
        if segments[index].payload and rng.random() < share:
            out.insert(min(len(out), index + 1 + rng.randrange(distance)), segments[index])
    return timed(out)


def overlapped(
    segments: Sequence[Segment], rng: Random, share: float = 0.5, other_bytes: bool = False
) -> list[Segment]:
    """Retransmissions that begin inside the segment before and end inside their own; `other_bytes`: all bytes differ.

    None reaches beyond what was sent before it, so that the copy captured first is always the true one.
    """
    out: list[Segment] = []
    for index, each in enumerate(segments):
        out.append(each)
        if not each.payload or rng.random() >= share:
            continue
        previous = next(
            (
                before
                for before in reversed(segments[:index])
                if before.payload
                and (before.flow, before.from_client) == (each.flow, each.from_client)
                and (before.seq + len(before.payload)) & 0xFFFFFFFF == each.seq
            ),
            None,
        )
        more = previous.payload[-rng.randrange(1, len(previous.payload) + 1) :] if previous else b""
        data = (more + each.payload)[: len(more) + rng.randrange(1, len(each.payload) + 1)]
        if other_bytes:
            data = bytes(byte ^ 0x55 for byte in data)
        out.append(each._replace(seq=each.seq - len(more) & 0xFFFFFFFF, payload=data))
    return timed(out)


def with_keep_alives(segments: Sequence[Segment]) -> list[Segment]:
    """After each segment with bytes its sender asks whether the other is there: one byte, or none, one back."""
    out = []
    for number, each in enumerate(segments):
        out.append(each)
        if each.payload:
            seq = each.seq + len(each.payload) - 1 & 0xFFFFFFFF
            out.append(each._replace(seq=seq, payload=b"\0" * (number % 2), flags=ACK))
    return timed(out)


def moved(segments: Iterable[Segment], client_by: int, server_by: int) -> list[Segment]:
    """The same conversation with other sequence numbers: so it can be made to wrap anywhere."""
    out = []
    for each in segments:
        mine, other = (client_by, server_by) if each.from_client else (server_by, client_by)
        ack = each.ack + other & 0xFFFFFFFF if each.flags & ACK else 0
        out.append(each._replace(seq=each.seq + mine & 0xFFFFFFFF, ack=ack))
    return out


def timed(segments: Iterable[Segment], start_ns: int | None = None, step_ns: int = 1_000_000) -> list[Segment]:
    """Times that rise in the order of the list, from the least there is unless told."""
    segments = list(segments)
    first = min((each.time_ns for each in segments), default=0) if start_ns is None else start_ns
    return [each._replace(time_ns=first + number * step_ns) for number, each in enumerate(segments)]


def tcp(segment: Segment, options: bytes = b"") -> bytes:
    """TCP header (checksum 0) and payload."""
    flow = segment.flow
    ports = (flow.client_port, flow.server_port)
    ports = ports if segment.from_client else ports[::-1]
    words = 5 + len(options) // 4
    head = pack(">HHIIBBHHH", *ports, segment.seq, segment.ack, words << 4, segment.flags, 64_000, 0, 0)
    return head + options + segment.payload


@lru_cache
def _packed(address: str) -> bytes:
    return ip_address(address).packed


def ip(
    segment: Segment,
    body: bytes | None = None,
    *,
    options: bytes = b"",
    extensions: bytes = b"",
    protocol: int = 6,
    length_zero: bool = False,
    fragment: int = 0,
) -> bytes:
    """IPv4 (with `options`) or IPv6 (behind `extensions`, `protocol` being the first one's number) around `body`.

    `length_zero`: as a network card that cuts packets up later leaves it (TSO); `fragment`: IPv4's flags and offset.
    """
    body = tcp(segment) if body is None else body
    flow = segment.flow
    addresses = [_packed(flow.client), _packed(flow.server)]
    pair = b"".join(addresses if segment.from_client else addresses[::-1])
    if len(pair) == 32:
        size = 0 if length_zero else len(extensions) + len(body)
        return pack(">IHBB", 0x60000000, size, protocol, 64) + pair + extensions + body
    words = 5 + len(options) // 4
    size = 0 if length_zero else words * 4 + len(body)
    return pack(">BBHHHBBH", 0x40 | words, 0, size, 1, fragment, 64, protocol, 0) + pair + options + body


HOP_BY_HOP_AND_ROUTING = b"\x2b\x00" + bytes(6) + b"\x06\x01" + bytes(14)
"""Two IPv6 extension headers before TCP; the protocol of the first is 0."""


def link(packet: bytes, link_type: int = ETHERNET, vlans: Sequence[int] = (), order: str = "<") -> bytes:
    """The IP packet in its link layer; `vlans` from the outside in (two: QinQ), `order` is that of NULL's family."""
    is_6 = packet[0] >> 4 == 6
    ether_type = b"\x86\xdd" if is_6 else b"\x08\x00"
    if link_type == ETHERNET:
        tags = b""
        for number, vlan in enumerate(vlans):
            kind = 0x88A8 if number == 0 and len(vlans) > 1 else 0x8100
            tags += pack(">HH", kind, vlan)
        return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01" + tags + ether_type + packet
    if link_type == SLL:
        return pack(">HHH8s", 0, 772, 6, b"") + ether_type + packet
    if link_type == SLL2:
        return ether_type + pack(">HIHBB8s", 0, 1, 772, 0, 6, b"") + packet
    if link_type in (PPP, PPP_WITH_FRAMING):
        return ppp(packet)
    if link_type == NFLOG:
        return nflog(packet, order)
    if link_type == C_HDLC:
        return b"\x0f\0" + ether_type + packet
    if link_type in (NULL, LOOP):
        family = 30 if is_6 else 2
        return pack(f"{'>' if link_type == LOOP else order}I", family) + packet
    return packet


def ppp(packet: bytes, *, address: bytes = b"\xff\x03") -> bytes:
    """The IP packet in PPP; without `address` and control, as PPPoE has it."""
    return address + (b"\x00\x57" if packet[0] >> 4 == 6 else b"\x00\x21") + packet


def mpls(packet: bytes, *, labels: int = 2) -> bytes:
    """The IP packet, or Ethernet frame, behind labels."""
    return b"\x00\x01\x00\x40" * (labels - 1) + b"\x00\x02\x01\x40" + packet


def in_frame(ether_type: int, payload: bytes) -> bytes:
    """An Ethernet frame."""
    return link(b"\x45")[:12] + pack(">H", ether_type) + payload


def nflog(packet: bytes, order: str = "<") -> bytes:
    """The IP packet as netfilter logs it: a field before the payload."""
    fields = pack(f"{order}HH", 6, 10) + b"x\0\0\0" + pack(f"{order}HH", 4 + len(packet), 9) + packet
    return pack(">BBH", 10 if packet[0] >> 4 == 6 else 2, 0, 5) + fields


def _outer(protocol: int, payload: bytes, flow: Flow) -> bytes:
    return link(ip(Segment(flow, True, 0, 0, 0, 0, b""), payload, protocol=protocol))


def _udp(port: int, payload: bytes) -> bytes:
    return pack(">HHHH", 50_000, port, 8 + len(payload), 0) + payload


def _gre(ether_type: int, payload: bytes, fields: bytes = b"", flags: int = 0) -> bytes:
    return pack(">HH", flags, ether_type) + fields + payload


OUTER, OUTER_6 = Flow("192.0.2.1", 0, "192.0.2.2"), Flow("2001:db8::1", 0, "2001:db8::2")
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "VXLAN": lambda packet: _outer(17, _udp(4789, b"\x08\0\0\0\0\0\x07\0" + link(packet)), OUTER),
    "VXLAN over IPv6": lambda packet: _outer(17, _udp(4789, b"\x08\0\0\0\0\0\x07\0" + link(packet)), OUTER_6),
    "VXLAN with VLAN": lambda packet: _outer(17, _udp(4789, bytes((8, *bytes(7))) + link(packet, vlans=[0])), OUTER),
    "VXLAN-GPE": lambda packet: _outer(17, _udp(4790, b"\x0c\0\0\3\0\0\7\0" + link(packet)), OUTER),
    "MPLS in UDP": lambda packet: _outer(17, _udp(6635, mpls(packet)), OUTER),
    "Geneve": lambda packet: _outer(17, _udp(6081, b"\x01\0\x65\x58\0\0\x07\0" + bytes(4) + link(packet)), OUTER),
    "GRE": lambda packet: _outer(47, _gre(0x86DD if packet[0] >> 4 == 6 else 0x800, packet), OUTER),
    "GRE with key": lambda packet: _outer(47, _gre(0x6558, link(packet), bytes(8), 0x3000), OUTER),
    "ERSPAN": lambda packet: _outer(47, _gre(0x88BE, b"\x10\0" + bytes(6) + link(packet), bytes(4), 0x1000), OUTER),
    "IP in IP": lambda packet: _outer(41 if packet[0] >> 4 == 6 else 4, packet, OUTER),
    "MPLS": lambda packet: in_frame(0x8847, mpls(packet)),
    "Ethernet over MPLS": lambda packet: in_frame(0x8847, mpls(bytes(4) + link(packet))),
    "PPPoE": lambda packet: in_frame(0x8864, pack(">BBHH", 0x11, 0, 1, 2 + len(packet)) + ppp(packet, address=b"")),
}
"""Each wraps an IP packet as a frame of Ethernet."""


def packets(
    segments: Iterable[Segment],
    link_type: int = ETHERNET,
    *,
    vlans: Sequence[int] = (),
    snaplen: int = 262_144,
    length_zero: bool = False,
    padded: bool = False,
    around: Callable[[Segment], bytes] | None = None,
) -> list[Packet]:
    """A packet a segment. `padded`: short ones filled up to 60 bytes; `around` makes the IP packet itself."""
    out = []
    for each in segments:
        inner = around(each) if around else ip(each, length_zero=length_zero)
        data = link(inner, link_type, vlans)
        if padded:
            data = data.ljust(60, b"\x55")
        out.append(Packet(each.time_ns, data[:snaplen], len(data)))
    return out


def fragmented(packet: bytes, size: int, number: int = 1) -> list[bytes]:
    """An IP packet as fragments with `size` bytes (a multiple of 8) and this id, each in a frame."""
    is_6 = packet[0] >> 4 == 6
    head, body = (packet[:40], packet[40:]) if is_6 else (packet[:20], packet[20:])
    found = []
    for at in range(0, len(body), size):
        piece, has_more = body[at : at + size], at + size < len(body)
        if is_6:
            own = pack(">BBHI", head[6], 0, at | has_more, number)
            whole = head[:4] + (8 + len(piece)).to_bytes(2) + b"\x2c" + head[7:] + own + piece
        else:
            place = pack(">HHH", 20 + len(piece), number, at // 8 | has_more << 13)
            whole = head[:2] + place + head[8:] + piece
        found.append(link(whole))
    return found
