"""Parse IP and TCP headers of many packets at once, also of packets inside tunnels.

Packets that are not whole TCP segments are counted and left out. Source: RFC 791, 8200 and 9293.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.chunks import Longs, Mask, PacketColumns, gather, gather_u16
from mockraft.spark_replay.formats.file_events import FileEvents
from mockraft.spark_replay.formats.fragments import Fragments, of_ipv4, of_ipv6
from mockraft.spark_replay.formats.links import CUT, DONE, IPV4, IPV6, UNKNOWN_LINK, Payloads, payloads_of, unwrap
from mockraft.spark_replay.formats.tunnels import enter

_TCP, _FRAGMENT = 6, 44
# Hop-by-hop options, routing, destination options, mobility, HIP, shim6.
_EXTENSIONS = (0, 43, 60, 135, 139, 140)
_FRAGMENT_MASK, _IPV6_FRAGMENT_MASK = 0x3FFF, 0xFFF9
_TUNNELS_MAX, _EXTENSIONS_MAX = 4, 12


def _layout(*lines: str) -> np.dtype[np.void]:
    """Return the fields of a header, each with its numpy type."""
    return np.dtype([tuple(field.split()) for line in lines for field in line.split(",")])


_IPV4_LAYOUT = _layout(
    "words u1, service u1, total >u2, id >u2, fragment >u2, ttl u1, protocol u1, checksum >u2",
    "source >u4, destination >u4",
)
_IPV6_LAYOUT = _layout("version >u4, payload >u2, protocol u1, hops u1, source 2>u8, destination 2>u8")
_TCP_LAYOUT = _layout("sport >u2, dport >u2, seq >u4, ack >u4, words u1, flags u1, rest V6")


class TcpColumns(NamedTuple):
    """TCP segments of one chunk in file order. Addresses are two 64-bit halves; the upper half of IPv4 is -1."""

    packets: PacketColumns
    vlan: npt.NDArray[np.int32]
    addresses: npt.NDArray[np.uint64]
    sport: npt.NDArray[np.int32]
    dport: npt.NDArray[np.int32]
    seq: Longs
    ack: Longs
    flags: npt.NDArray[np.uint8]
    start: Longs
    captured: Longs
    length: Longs


class _Network(NamedTuple):
    """IP packets that carry TCP: the offset of the TCP header, and the number of TCP bytes on the wire."""

    packet: Longs
    start: Longs
    length: Longs
    addresses: npt.NDArray[np.uint64]


def parse_tcp(packets: PacketColumns, ports: tuple[int, ...], fragments: Fragments, events: FileEvents) -> TcpColumns:
    """Return the TCP segments among `packets`; of `ports` only, if any are given."""
    payloads = payloads_of(packets)
    parts = [_Network(*(np.zeros(0, np.int64),) * 3, np.zeros((0, 4), np.uint64))]
    for _ in range(_TUNNELS_MAX + 1):
        indexes = [np.flatnonzero(payloads.ether_type == version) for version in (IPV4, IPV6)]
        if sum(map(len, indexes)) < len(packets.start):
            _count_other(packets, payloads.ether_type, events)
        payloads.ether_type.fill(DONE)
        for index, read in zip(indexes, (_ipv4, _ipv6), strict=True):
            if len(index):
                parts.append(read(packets, index, payloads, fragments, events))
        packets = packets._replace(buffer=fragments.take(packets.buffer, payloads))
        if payloads.ether_type.max(initial=DONE) == DONE:
            break
        unwrap(packets, payloads)
    else:
        deepest = np.flatnonzero(payloads.ether_type != DONE)
        _leave_out(packets, deepest, events, "not_tcp", f"in more than {_TUNNELS_MAX} tunnels")
    network = parts[-1] if len(parts) <= 2 else _merged(parts)
    return _tcp(packets, network, payloads, ports, events)


def _count_other(packets: PacketColumns, ether_type: Longs, events: FileEvents) -> None:
    other = (ether_type != IPV4) & (ether_type != IPV6) & (ether_type != DONE)
    _leave_out(packets, np.flatnonzero(ether_type == CUT), events, "cut_header", "link")
    unknown = packets.where(ether_type == UNKNOWN_LINK)
    links, first, counts = np.unique(unknown.link_type, return_index=True, return_counts=True)
    for link, offset, number in zip(links, unknown.file_offset[first], counts, strict=True):
        events.count("unknown_link", int(offset), int(number), f"link type {link}")
    _leave_out(packets, np.flatnonzero(other & (ether_type >= 0)), events, "not_tcp", "not IP")


def _leave_out(packets: PacketColumns, index: Longs, events: FileEvents, kind: str, detail: str) -> None:
    if len(index):
        events.count(kind, int(packets.file_offset[index[0]]), len(index), detail)


def _chosen(packets: PacketColumns, index: Longs, good: Mask, events: FileEvents, kind: str, detail: str) -> Mask:
    """Return `good` after counting the others."""
    if not good.all():
        _leave_out(packets, index[~good], events, kind, detail)
    return good


def _ipv4(
    packets: PacketColumns, index: Longs, payloads: Payloads, fragments: Fragments, events: FileEvents
) -> _Network:
    start = payloads.start[index]
    whole = _chosen(packets, index, start + 20 <= payloads.end[index], events, "cut_header", "IP")
    if not whole.all():
        index, start = index[whole], start[whole]
    head = gather(packets.buffer, start, _IPV4_LAYOUT)
    is_whole = head["fragment"] & _FRAGMENT_MASK == 0
    if not is_whole.all():
        for number, at in zip(index[~is_whole].tolist(), start[~is_whole].tolist(), strict=True):
            found = of_ipv4(packets.buffer, at, int(payloads.end[number]))
            fragments.add(packets, number, IPV4, found)
        index, start, head = index[is_whole], start[is_whole], head[is_whole]
    header_bytes = (head["words"].astype(np.int64) & 0x0F) * 4
    is_tcp = _tcp_among(packets, _IpPayloads(index, head["protocol"], start + header_bytes), payloads, events)
    if not is_tcp.all():
        index, start, head, header_bytes = index[is_tcp], start[is_tcp], head[is_tcp], header_bytes[is_tcp]
    total = head["total"].astype(np.int64)
    # Length 0: the packet is segmented later by the network adapter (TSO). Otherwise the rest is Ethernet padding.
    total = np.where(total == 0, packets.original[index] - (start - packets.start[index]), total)
    good = _chosen(packets, index, (header_bytes >= 20) & (total >= header_bytes), events, "bad_header", "IP")
    start += header_bytes
    total -= header_bytes
    if not good.all():
        index, start, total, head = index[good], start[good], total[good], head[good]
    addresses = np.full((len(index), 4), 0xFFFFFFFFFFFFFFFF, np.uint64)
    addresses[:, 1] = head["source"]
    addresses[:, 3] = head["destination"]
    return _Network(index, start, total, addresses)


def _ipv6(
    packets: PacketColumns, index: Longs, payloads: Payloads, fragments: Fragments, events: FileEvents
) -> _Network:
    start = payloads.start[index]
    whole = _chosen(packets, index, start + 40 <= payloads.end[index], events, "cut_header", "IP")
    index, start = index[whole], start[whole]
    head = gather(packets.buffer, start, _IPV6_LAYOUT)
    payload = head["payload"].astype(np.int64)
    end = np.where(payload == 0, packets.start[index] + packets.original[index], start + 40 + payload)
    protocol = head["protocol"].astype(np.int64)
    at = start + 40
    cut = np.zeros(len(index), np.bool_)
    more = np.arange(len(index))
    for _ in range(_EXTENSIONS_MAX):
        more = more[_is_extension(packets, protocol[more], at[more])]
        fits = at[more] + 2 <= payloads.end[index[more]]
        cut[more[~fits]] = True
        more = more[fits]
        if not len(more):
            break
        protocol[more] = packets.buffer[at[more]]
        at[more] += 8 * (packets.buffer[at[more] + 1].astype(np.int64) + 1)
    keep = np.flatnonzero(_chosen(packets, index, ~cut, events, "cut_header", "IP"))
    is_whole = protocol[keep] != _FRAGMENT
    for each in keep[~is_whole].tolist():
        number = int(index[each])
        found = of_ipv6(packets.buffer, int(start[each]), int(at[each]), int(payloads.end[number]))
        fragments.add(packets, number, IPV6, found)
    keep = keep[is_whole]
    keep = keep[_tcp_among(packets, _IpPayloads(index[keep], protocol[keep], at[keep]), payloads, events)]
    keep = keep[_chosen(packets, index[keep], at[keep] <= end[keep], events, "bad_header", "IP")]
    addresses = np.concatenate([head["source"], head["destination"]], axis=1).astype(np.uint64)
    return _Network(index[keep], at[keep], (end - at)[keep], addresses[keep])


def _is_extension(packets: PacketColumns, protocol: Longs, at: Longs) -> Mask:
    """Return which protocols are headers before the payload: also that of a fragment without other fragments."""
    found: Mask = np.isin(protocol, _EXTENSIONS)
    if (fragment := protocol == _FRAGMENT).any():
        place = gather_u16(packets.buffer, np.minimum(at, len(packets.buffer) - 4) + 2)
        found |= fragment & (place & _IPV6_FRAGMENT_MASK == 0)
    return found


class _IpPayloads(NamedTuple):
    """Payloads of whole IP packets: the protocol, and where it begins."""

    packet: Longs
    protocol: Longs
    start: Longs


def _tcp_among(packets: PacketColumns, ip: _IpPayloads, payloads: Payloads, events: FileEvents) -> Mask:
    """Return which carry a TCP segment. Tunnels among the others become `payloads`; the rest is counted."""
    is_tcp: Mask = ip.protocol == _TCP
    if not is_tcp.all():
        others = np.flatnonzero(~is_tcp)
        is_tunnel = enter(packets.buffer, ip.packet[others], ip.protocol[others], ip.start[others], payloads)
        _leave_out(packets, ip.packet[others[~is_tunnel]], events, "not_tcp", "not TCP")
    return is_tcp


def _merged(parts: list[_Network]) -> _Network:
    index = np.concatenate([part.packet for part in parts])
    order = np.argsort(index, kind="stable")
    columns = (np.concatenate(columns)[order] for columns in zip(*parts, strict=True))
    return _Network(*columns)


def _tcp(
    packets: PacketColumns, network: _Network, payloads: Payloads, ports: tuple[int, ...], events: FileEvents
) -> TcpColumns:
    index, start, length, addresses = network
    whole = _chosen(packets, index, start + 20 <= payloads.end[index], events, "cut_header", "TCP")
    if not whole.all():
        index, start, length, addresses = index[whole], start[whole], length[whole], addresses[whole]
    head = gather(packets.buffer, start, _TCP_LAYOUT)
    if ports:
        wanted = np.zeros(len(index), np.bool_)
        for side in (head["sport"], head["dport"]):
            for port in ports:
                wanted |= side == port
        if not wanted.all():
            index, start, length, addresses = index[wanted], start[wanted], length[wanted], addresses[wanted]
            head = head[wanted]
    header_bytes = (head["words"].astype(np.int64) >> 4) << 2
    good = _chosen(packets, index, (header_bytes >= 20) & (header_bytes <= length), events, "bad_header", "TCP")
    if not good.all():
        index, start, length, addresses = index[good], start[good], length[good], addresses[good]
        head, header_bytes = head[good], header_bytes[good]
    chosen = packets if len(index) == len(packets.start) else packets.where(index)
    start = start + header_bytes
    length = length - header_bytes
    captured = np.clip(payloads.end[index] - start, 0, length)
    return TcpColumns(
        chosen,
        payloads.vlan[index],
        addresses,
        head["sport"].astype(np.int32),
        head["dport"].astype(np.int32),
        head["seq"].astype(np.int64),
        head["ack"].astype(np.int64),
        head["flags"].copy(),
        start,
        captured,
        length,
    )
