"""Capture files, as tcpdump and Wireshark write them, down to TCP segments.

What is not TCP is counted and skipped.
Classic pcap in both byte orders, micro- and nanoseconds; pcapng (`pcapng_packets`). Ethernet (with up to two VLAN
tags), BSD loopback, raw IP and Linux cooked captures; IPv4 and IPv6 with extension headers. IP fragments are counted,
not put together.
Source: the pcap file format (draft-ietf-opsawg-pcap), the tcpdump.org link types, RFC 791, 8200 and 9293.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from os import PathLike
from typing import IO, NamedTuple

from mockraft.spark_replay.pcapng_packets import (
    CAPTURED_BYTES_MAX,
    SECTION_MAGIC,
    CaptureError,
    Packet,
    read_pcapng_packets,
)

SYN, RST, FIN, ACK = 0x02, 0x04, 0x01, 0x10


def _pcap_headers(order: str) -> tuple[struct.Struct, struct.Struct]:
    """The file's header after its magic (the link type) and a record's (seconds, fraction, captured, original)."""
    return struct.Struct(f"{order}16xI"), struct.Struct(f"{order}IIII")


_LITTLE, _BIG = _pcap_headers("<"), _pcap_headers(">")
# The magic's four bytes: byte order and what one unit of a timestamp's fraction is, in nanoseconds.
_MAGICS: dict[bytes, tuple[tuple[struct.Struct, struct.Struct], int]] = {
    b"\xd4\xc3\xb2\xa1": (_LITTLE, 1000),
    b"\xa1\xb2\xc3\xd4": (_BIG, 1000),
    b"\x4d\x3c\xb2\xa1": (_LITTLE, 1),
    b"\xa1\xb2\x3c\x4d": (_BIG, 1),
}

_IPV4, _IPV6, _VLAN_TYPES = 0x0800, 0x86DD, (0x8100, 0x88A8)
_ETHERNET = struct.Struct(">12xH")
_VLAN = struct.Struct(">2xH")
_COOKED = struct.Struct(">14xH")
_COOKED_2 = struct.Struct(">H18x")
_IPV4_HEADER = struct.Struct(
    ">BxH2xHxB2x4s4s"
)  # version and words, total bytes, fragment, protocol, source, destination
_IPV6_HEADER = struct.Struct(">4xHBx16s16s")  # payload bytes, protocol, source, destination
_EXTENSION_HEADER = struct.Struct(">BB")
_TCP_HEADER = struct.Struct(">HHI4xBB6x")  # ports, sequence number, words, flags
_MORE_FRAGMENTS_OR_OFFSET = 0x3FFF
_TCP, _FRAGMENT_EXTENSION = 6, 44
_EXTENSIONS = (0, 43, _FRAGMENT_EXTENSION, 60)


class Endpoint(NamedTuple):
    """An address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Segment(NamedTuple):
    """One TCP segment. `cut_bytes` is how much of the payload the capture left out (its snaplen)."""

    packet_number: int
    time_ns: int
    source: Endpoint
    destination: Endpoint
    seq: int
    flags: int
    payload: bytes
    cut_bytes: int


def read_packets(file: IO[bytes]) -> Iterator[Packet]:
    """The packets of an open pcap or pcapng file, one at a time.

    CaptureError for a file that is neither and for a record that cannot be one; a file that ends inside its last
    record (a capture that was killed) just ends.
    """
    magic = file.read(4)
    if magic == SECTION_MAGIC:
        yield from read_pcapng_packets(file)
        return
    if magic not in _MAGICS:
        raise CaptureError(f"not a pcap or pcapng file: it starts with {magic.hex(' ') or 'nothing'}")
    (file_header, record_header), fraction_ns = _MAGICS[magic]
    try:
        link_type = file_header.unpack(file.read(file_header.size))[0] & 0xFFFF
    except struct.error:
        raise CaptureError("the file ends inside its header") from None
    offset = 4 + file_header.size
    size = record_header.size
    number = 0
    while len(head := file.read(size)) == size:
        number += 1
        seconds, fraction, captured_bytes, original_bytes = record_header.unpack(head)
        if captured_bytes > CAPTURED_BYTES_MAX:
            raise CaptureError(f"packet {number} at offset {offset} says it holds {captured_bytes} bytes")
        data = file.read(captured_bytes)
        if len(data) < captured_bytes:
            return
        yield Packet(number, seconds * 1_000_000_000 + fraction * fraction_ns, link_type, data, original_bytes)
        offset += size + len(data)


def read_segments(path: str | PathLike[str], skipped: Counter[str] | None = None) -> Iterator[Segment]:
    """The TCP segments of a capture file, in its order. `skipped` counts other packets by what they were."""
    reasons: Counter[str] = Counter() if skipped is None else skipped
    with open(path, "rb") as file:
        for packet in read_packets(file):
            try:
                segment = _segment(packet)
            except struct.error:
                segment = "cut inside a header"
            if isinstance(segment, str):
                reasons[segment] += 1
            else:
                yield segment


def _segment(packet: Packet) -> Segment | str:
    """The packet's TCP segment, or what it is instead."""
    network = _network(packet)
    if isinstance(network, str):
        return network
    source, destination, data, payload_bytes = network
    source_port, destination_port, seq, words, flags = _TCP_HEADER.unpack_from(data)
    header_bytes = (words >> 4) * 4
    payload_bytes -= header_bytes
    if header_bytes < _TCP_HEADER.size or payload_bytes < 0:
        return "bad TCP header"
    payload = data[header_bytes : header_bytes + payload_bytes]
    return Segment(
        packet.number,
        packet.time_ns,
        Endpoint(_address_text(source), source_port),
        Endpoint(_address_text(destination), destination_port),
        seq,
        flags,
        payload,
        payload_bytes - len(payload),
    )


def _network(packet: Packet) -> tuple[bytes, bytes, bytes, int] | str:
    """Source, destination, the captured bytes from the TCP header on, and how many there were originally."""
    ip_type, start = _link(packet)
    data = packet.data[start:]
    original_bytes = packet.original_bytes - start
    if ip_type == _IPV4:
        return _ipv4(data, original_bytes)
    if ip_type == _IPV6:
        return _ipv6(data, original_bytes)
    return f"link type {packet.link_type} is not known" if ip_type < 0 else f"not IP (ether type 0x{ip_type:04x})"


def _link(packet: Packet) -> tuple[int, int]:
    """The ether type of what the link layer carries (-1: not known), and where it starts."""
    data = packet.data
    match packet.link_type:
        case 1:
            (ip_type,), start = _ETHERNET.unpack_from(data), _ETHERNET.size
        case 113:
            (ip_type,), start = _COOKED.unpack_from(data), _COOKED.size
        case 276:
            (ip_type,), start = _COOKED_2.unpack_from(data), _COOKED_2.size
        case 0 | 108:
            # The address family, in the capturing machine's byte order: 2 is IPv4, every system has its own IPv6.
            return (_IPV4 if 2 in (data[0], data[3]) else _IPV6) if len(data) >= 4 else -1, 4
        case 12 | 14 | 101:
            return (_IPV6 if data[:1] >= b"\x60" else _IPV4), 0
        case _:
            return -1, 0
    while ip_type in _VLAN_TYPES:
        (ip_type,) = _VLAN.unpack_from(data, start)
        start += _VLAN.size
    return ip_type, start


def _ipv4(data: bytes, original_bytes: int) -> tuple[bytes, bytes, bytes, int] | str:
    head, total_bytes, fragment, protocol, source, destination = _IPV4_HEADER.unpack_from(data)
    if protocol != _TCP:
        return "not TCP"
    if fragment & _MORE_FRAGMENTS_OR_OFFSET:
        return "IP fragment"
    header_bytes = (head & 0x0F) * 4
    # Length 0: the network card cuts the packet up later (TSO). Otherwise what follows is Ethernet padding.
    total_bytes = total_bytes or original_bytes
    if header_bytes < _IPV4_HEADER.size or total_bytes < header_bytes:
        return "bad IP header"
    return source, destination, data[header_bytes:total_bytes], total_bytes - header_bytes


def _ipv6(data: bytes, original_bytes: int) -> tuple[bytes, bytes, bytes, int] | str:
    payload_bytes, protocol, source, destination = _IPV6_HEADER.unpack_from(data)
    start = _IPV6_HEADER.size
    end = start + payload_bytes if payload_bytes else original_bytes
    while protocol in _EXTENSIONS:
        if protocol == _FRAGMENT_EXTENSION:
            return "IP fragment"
        protocol, words = _EXTENSION_HEADER.unpack_from(data, start)
        start += 8 * (words + 1)
    if protocol != _TCP:
        return "not TCP"
    return source, destination, data[start:end], end - start


@lru_cache(1024)
def _address_text(packed: bytes) -> str:
    return str(ip_address(packed))
