"""Find the IP packet behind the headers of the link: of the link type, VLAN tags, MPLS labels, PPPoE, PPP.

Ether types are the common language: a link type begins with some header whose payload has one, and the header of each
type that is not IP (`_WRAPPERS`) has another. Source: the tcpdump.org link types, IEEE 802.1Q and 802.1ad, RFC 1661,
2516 and 3032.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.chunks import Bytes, Longs, PacketColumns, gather_u16

IPV4, IPV6, BRIDGED, PPP, MPLS = 0x0800, 0x86DD, 0x6558, 0x880B, (0x8847, 0x8848)
"""Ether types of IP, of an Ethernet frame, of PPP without PPPoE, and of MPLS labels."""
UNKNOWN_LINK, CUT, DONE = -1, -2, -3
"""In place of an ether type: no known link type, a header that was cut off, a packet that was read."""

_PPPOE, _VLANS = 0x8864, (0x8100, 0x88A8, 0x9100)
_HEADERS_MAX = 12
_NULL, _ETHERNET, _LOOP, _RAW, _NFLOG = 0, 1, 108, (12, 14, 101, 228, 229), 239
# Offset of the ether type, and length of the header.
_TYPED_LINKS = {_ETHERNET: (12, 14), 113: (14, 16), 276: (0, 20), 104: (2, 4)}
# Links that begin with the header of an ether type.
_LINKS_OF_TYPE = {9: PPP, 50: PPP, 51: _PPPOE, 219: MPLS[0]}
_KNOWN_LINKS = (*_TYPED_LINKS, *_LINKS_OF_TYPE, _NULL, _LOOP, *_RAW, _NFLOG)
# AF_INET6 of Linux, Windows, NetBSD, FreeBSD and Darwin.
_IPV6_FAMILIES = (10, 23, 24, 28, 30)
_NFLOG_PAYLOAD, _NFLOG_FIELDS_MAX = 9, 32
_PPP_TYPES = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS[0], 0x0283: MPLS[1]}


class Payloads(NamedTuple):
    """Per packet the ether type of its payload (below 0: none), where that begins and the packet ends, and the VLAN.

    Of two VLAN tags the outer one counts 4096 times.
    """

    ether_type: Longs
    start: Longs
    end: Longs
    vlan: npt.NDArray[np.int32]


def payloads_of(packets: PacketColumns) -> Payloads:
    """Return the payloads of the links of `packets`."""
    count = len(packets.start)
    ether_type, start = np.full(count, UNKNOWN_LINK, np.int64), packets.start.copy()
    payloads = Payloads(ether_type, start, packets.start + packets.captured, np.zeros(count, np.int32))
    if not count:
        return payloads
    links = packets.link_type
    if (links == links[0]).all():
        _link(packets, int(links[0]), slice(None), ether_type, start)
    else:
        for link in np.intersect1d(links, _KNOWN_LINKS).tolist():
            _link(packets, link, np.flatnonzero(links == link), ether_type, start)
    unwrap(packets, payloads)
    return payloads


def unwrap(packets: PacketColumns, payloads: Payloads) -> None:
    """Pass headers until each payload is IP, or of no known type."""
    ether_type, start, end, vlan = payloads
    if (ether_type == IPV4).all():
        return
    for _ in range(_HEADERS_MAX):
        wrapped = np.flatnonzero(np.isin(ether_type, _WRAPPED))
        if not len(wrapped):
            return
        for kind in np.unique(ether_type[wrapped]).tolist():
            index = wrapped[ether_type[wrapped] == kind]
            at = start[index]
            inner, size = _WRAPPERS[kind](packets.buffer, at)
            is_whole = at + size <= end[index]
            if kind in _VLANS:
                tag = np.where(is_whole, gather_u16(packets.buffer, at), 0)
                vlan[index] = (vlan[index] << 12 | tag & 0xFFF) & 0xFFFFFF
            ether_type[index] = np.where(is_whole, inner, CUT)
            start[index] = at + size


def _link(packets: PacketColumns, link: int, chosen: Longs | slice, ether_type: Longs, start: Longs) -> None:
    buffer, at = packets.buffer, packets.start[chosen]
    captured = packets.captured[chosen]
    if link in _TYPED_LINKS:
        type_at, header_bytes = _TYPED_LINKS[link]
        ether_type[chosen] = np.where(captured >= header_bytes, gather_u16(buffer, at + type_at), CUT)
        start[chosen] = at + header_bytes
    elif link in _LINKS_OF_TYPE:
        ether_type[chosen] = _LINKS_OF_TYPE[link]
    elif link in (_NULL, _LOOP):
        # The address family in the capturing machine's byte order: 2 is IPv4, every system has its own IPv6.
        family = gather_u16(buffer, at) | gather_u16(buffer, at + 2)
        family = np.where(family > 0xFF, family >> 8, family)
        types = np.where(family == 2, IPV4, np.where(np.isin(family, _IPV6_FAMILIES), IPV6, 0))
        ether_type[chosen] = np.where(captured >= 4, types, CUT)
        start[chosen] = at + 4
    elif link in _RAW:
        ether_type[chosen] = np.where(captured >= 1, _of_version(buffer, at), CUT)
    elif link == _NFLOG:
        found, is_whole = _nflog_payload(buffer, at, at + captured)
        ether_type[chosen] = np.where(is_whole, _of_version(buffer, found), CUT)
        start[chosen] = found


def _of_version(buffer: Bytes, at: Longs) -> Longs:
    """Return the ether type of IP packets by their version; 0 for another."""
    version = buffer[at] >> 4
    return np.where(version == 6, IPV6, np.where(version == 4, IPV4, 0))


def _nflog_payload(buffer: Bytes, at: Longs, end: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """Return where the payloads of NFLOG packets begin, and which have one.

    Fields follow a header of four bytes: length and type, in the byte order of the capturing machine, and a value that
    is padded to four bytes.
    """
    at = at + 4
    first = np.minimum(at, end)
    is_big = (buffer[first + 1] > 0) & (buffer[first] == 0)

    def number(distance: int) -> Longs:
        read = gather_u16(buffer, np.minimum(at, end) + distance)
        swapped: Longs = np.where(is_big, read, read >> 8 | (read & 0xFF) << 8)
        return swapped

    for _ in range(_NFLOG_FIELDS_MAX):
        size = number(0)
        is_payload = (number(2) == _NFLOG_PAYLOAD) & (at + 4 < end)
        passes = ~is_payload & (at + 4 < end) & (size >= 4)
        if not passes.any():
            break
        at = np.where(passes, at + (size + 3 & ~3), at)
    return np.where(is_payload, at + 4, end), is_payload


def _vlan(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    return gather_u16(buffer, at + 2), np.full(len(at), 4)


def _bridged(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    return gather_u16(buffer, at + 12), np.full(len(at), 14)


def _mpls(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    """Return what follows a label: another one, IP, or a control word (0) and an Ethernet frame."""
    is_last = buffer[at + 2] & 1 == 1
    is_ethernet = is_last & (buffer[at + 4] >> 4 == 0)
    inner = np.where(is_ethernet, BRIDGED, np.where(is_last, _of_version(buffer, at + 4), MPLS[0]))
    return inner, np.where(is_ethernet, 8, 4)


def _pppoe(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    return np.full(len(at), PPP), np.full(len(at), 6)


def _ppp(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    """Return what follows the protocol, which has one byte if that is odd; address and control may come before."""
    skipped = np.where(gather_u16(buffer, at) == 0xFF03, 2, 0)
    is_short = buffer[at + skipped] & 1 == 1
    protocol = np.where(is_short, buffer[at + skipped], gather_u16(buffer, at + skipped))
    inner = np.zeros(len(at), np.int64)
    for number, kind in _PPP_TYPES.items():
        inner[protocol == number] = kind
    return inner, skipped + np.where(is_short, 1, 2)


_WRAPPERS: dict[int, Callable[[Bytes, Longs], tuple[Longs, Longs]]] = {
    **dict.fromkeys(_VLANS, _vlan),
    **dict.fromkeys(MPLS, _mpls),
    BRIDGED: _bridged,
    _PPPOE: _pppoe,
    PPP: _ppp,
}
"""A function for each ether type that is a header: from offsets to the ether types behind it and its sizes."""

_WRAPPED = (*_WRAPPERS,)
