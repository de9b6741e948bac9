"""Parse link, IP and TCP headers of many packets at once.

Packets that are not whole TCP segments are counted and left out. IP fragments are counted, not reassembled. Source: the
tcpdump.org link types, IEEE 802.1Q and 802.1ad, RFC 791, 8200 and 9293.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.chunks import Longs, Mask, PacketColumns, gather, gather_u16
from mockraft.spark_replay.formats.file_events import FileEvents

NULL, ETHERNET, LOOP, LINUX_SLL, LINUX_SLL2 = 0, 1, 108, 113, 276
RAW_LINKS, IPV4_LINK, IPV6_LINK = (12, 14, 101), 228, 229
_IPV4, _IPV6, _VLAN_TYPES = 0x0800, 0x86DD, (0x8100, 0x88A8, 0x9100)
_UNKNOWN_LINK, _CUT = -1, -2
# Offset of the ether type, and length of the header.
_TYPED_LINKS = {ETHERNET: (12, 14), LINUX_SLL: (14, 16), LINUX_SLL2: (0, 20)}
_KNOWN_LINKS = (*_TYPED_LINKS, NULL, LOOP, *RAW_LINKS, IPV4_LINK, IPV6_LINK)
# AF_INET6 of Linux, Windows, NetBSD, FreeBSD and Darwin.
_IPV6_FAMILIES = (10, 23, 24, 28, 30)
_TCP, _FRAGMENT, _EXTENSIONS = 6, 44, (0, 43, 60)
_FRAGMENT_MASK = 0x3FFF


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


def parse_tcp(packets: PacketColumns, ports: tuple[int, ...], events: FileEvents) -> TcpColumns:
    """Return the TCP segments among `packets`; of `ports` only, if any are given."""
    ether_type, start, vlan = _links(packets)
    parts = []
    for version, read in ((_IPV4, _ipv4), (_IPV6, _ipv6)):
        index = np.flatnonzero(ether_type == version)
        if len(index):
            parts.append(read(packets, index, start[index], events))
    _count_other(packets, ether_type, events)
    if not parts:
        parts = [_ipv4(packets, np.zeros(0, np.int64), np.zeros(0, np.int64), events)]
    network = parts[0] if len(parts) == 1 else _merged(parts)
    return _tcp(packets, network, vlan, ports, events)


def _links(packets: PacketColumns) -> tuple[Longs, Longs, npt.NDArray[np.int32]]:
    """Return per packet the ether type of the link's payload (below 0: none), its offset, and the VLAN."""
    count = len(packets.start)
    ether_type = np.full(count, _UNKNOWN_LINK, np.int64)
    start = packets.start.copy()
    vlan = np.zeros(count, np.int32)
    if not count:
        return ether_type, start, vlan
    links = packets.link_type
    if (links == links[0]).all():
        _link(packets, int(links[0]), slice(None), ether_type, start)
    else:
        for link in np.intersect1d(links, _KNOWN_LINKS).tolist():
            _link(packets, link, np.flatnonzero(links == link), ether_type, start)
    _tags(packets, ether_type, start, vlan)
    return ether_type, start, vlan


def _link(packets: PacketColumns, link: int, chosen: Longs | slice, ether_type: Longs, start: Longs) -> None:
    buffer, at = packets.buffer, packets.start[chosen]
    captured = packets.captured[chosen]
    if link in _TYPED_LINKS:
        type_at, header_bytes = _TYPED_LINKS[link]
        ether_type[chosen] = np.where(captured >= header_bytes, gather_u16(buffer, at + type_at), _CUT)
        start[chosen] = at + header_bytes
    elif link in (NULL, LOOP):
        # The address family in the capturing machine's byte order: 2 is IPv4, every system has its own IPv6.
        family = gather_u16(buffer, at) | gather_u16(buffer, at + 2)
        family = np.where(family > 0xFF, family >> 8, family)
        types = np.where(family == 2, _IPV4, np.where(np.isin(family, _IPV6_FAMILIES), _IPV6, 0))
        ether_type[chosen] = np.where(captured >= 4, types, _CUT)
        start[chosen] = at + 4
    elif link in (*RAW_LINKS, IPV4_LINK, IPV6_LINK):
        version = buffer[at] >> 4
        types = np.where(version == 6, _IPV6, np.where(version == 4, _IPV4, 0))
        ether_type[chosen] = np.where(captured >= 1, types, _CUT)


def _tags(packets: PacketColumns, ether_type: Longs, start: Longs, vlan: npt.NDArray[np.int32]) -> None:
    """Skip VLAN tags; of two, the outer one counts 4096 times in `vlan`."""
    if (ether_type == _IPV4).all():
        return
    for _ in range(4):
        tagged = np.flatnonzero(np.isin(ether_type, _VLAN_TYPES))
        if not len(tagged):
            return
        at = start[tagged]
        whole = at + 4 <= packets.start[tagged] + packets.captured[tagged]
        tag = gather_u16(packets.buffer, np.where(whole, at, 0))
        vlan[tagged] = (vlan[tagged] << 12 | tag & 0xFFF) & 0xFFFFFF
        ether_type[tagged] = np.where(whole, gather_u16(packets.buffer, np.where(whole, at + 2, 0)), _CUT)
        start[tagged] = at + 4


def _count_other(packets: PacketColumns, ether_type: Longs, events: FileEvents) -> None:
    other = (ether_type != _IPV4) & (ether_type != _IPV6)
    if not other.any():
        return
    _leave_out(packets, np.flatnonzero(ether_type == _CUT), events, "cut_header", "link")
    unknown = packets.where(ether_type == _UNKNOWN_LINK)
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


def _room(packets: PacketColumns, index: Longs, start: Longs, size: int) -> Mask:
    return start + size <= packets.start[index] + packets.captured[index]


def _ipv4(packets: PacketColumns, index: Longs, start: Longs, events: FileEvents) -> _Network:
    whole = _chosen(packets, index, _room(packets, index, start, 20), events, "cut_header", "IP")
    if not whole.all():
        index, start = index[whole], start[whole]
    head = gather(packets.buffer, start, _IPV4_LAYOUT)
    is_tcp = _chosen(packets, index, head["protocol"] == _TCP, events, "not_tcp", "not TCP")
    is_whole = _chosen(packets, index, (head["fragment"] & _FRAGMENT_MASK == 0) | ~is_tcp, events, "fragments", "")
    is_whole &= is_tcp
    if not is_whole.all():
        index, start, head = index[is_whole], start[is_whole], head[is_whole]
    header_bytes = (head["words"].astype(np.int64) & 0x0F) * 4
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


def _ipv6(packets: PacketColumns, index: Longs, start: Longs, events: FileEvents) -> _Network:
    whole = _chosen(packets, index, _room(packets, index, start, 40), events, "cut_header", "IP")
    index, start = index[whole], start[whole]
    head = gather(packets.buffer, start, _IPV6_LAYOUT)
    payload = head["payload"].astype(np.int64)
    end = np.where(payload == 0, packets.start[index] + packets.original[index], start + 40 + payload)
    protocol = head["protocol"].astype(np.int64)
    at = start + 40
    cut = np.zeros(len(index), np.bool_)
    while len(more := np.flatnonzero(np.isin(protocol, _EXTENSIONS) & ~cut)):
        fits = _room(packets, index[more], at[more], 2)
        cut[more[~fits]] = True
        more = more[fits]
        protocol[more] = packets.buffer[at[more]]
        at[more] += 8 * (packets.buffer[at[more] + 1].astype(np.int64) + 1)
    keep = _chosen(packets, index, ~cut, events, "cut_header", "IP")
    is_whole = protocol != _FRAGMENT
    keep &= _chosen(packets, index, is_whole | ~keep, events, "fragments", "")
    keep &= _chosen(packets, index, (protocol == _TCP) | ~keep, events, "not_tcp", "not TCP")
    keep &= _chosen(packets, index, (at <= end) | ~keep, events, "bad_header", "IP")
    addresses = np.concatenate([head["source"], head["destination"]], axis=1).astype(np.uint64)
    return _Network(index[keep], at[keep], (end - at)[keep], addresses[keep])


def _merged(parts: list[_Network]) -> _Network:
    index = np.concatenate([part.packet for part in parts])
    order = np.argsort(index, kind="stable")
    columns = (np.concatenate(columns)[order] for columns in zip(*parts, strict=True))
    return _Network(*columns)


def _tcp(
    packets: PacketColumns, network: _Network, vlan: npt.NDArray[np.int32], ports: tuple[int, ...], events: FileEvents
) -> TcpColumns:
    index, start, length, addresses = network
    whole = _chosen(packets, index, _room(packets, index, start, 20), events, "cut_header", "TCP")
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
    captured = np.clip(chosen.start + chosen.captured - start, 0, length)
    return TcpColumns(
        chosen,
        vlan[index],
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
