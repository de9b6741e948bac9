"""Writes pcapng, the capture format of Wireshark and tcpdump, with synthetic TCP packets around the bytes.

The bytes of a connection are known, its packets are not: each side's bytes are put into Ethernet, IP and TCP headers as
a capture on an idle network would have them (a handshake, no loss, no bare ACKs). Times are nanoseconds since 1970. IP
header checksums are correct; TCP checksums are 0 (not computed), as with checksum offload of a network interface.
Source: draft-ietf-opsawg-pcapng (section header, interface description, enhanced packet), RFC 791, 8200 and 9293.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from typing import BinaryIO

SEGMENT_BYTES_MAX = 65_000
"""Maximum payload of one packet: the IP length field has 16 bits; longer data is split."""

_FIN, _SYN, _RST, _PSH, _ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_ETHERNET_LINK, _NANOSECONDS = 1, 9
_SECTION = struct.Struct("<IIIHHq")
_INTERFACE = struct.Struct("<IIHHI")
_PACKET = struct.Struct("<IIIIIII")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_TCP = struct.Struct(">HHIIBBHHH")
_LENGTH = struct.Struct("<I")
_SEQUENCE_STEP = 64_009
_ETHERNET = (b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02")  # to the server, to the client


class CapturedConnection:
    """One connection in the file: its addresses, and each side's next sequence number."""

    __slots__ = ("addresses", "ports", "sequences")

    def __init__(self, client: tuple[str, int], server: tuple[str, int], sequence_start: int) -> None:
        addresses = [ipaddress.ip_address(host.partition("%")[0]) for host, _ in (client, server)]
        if addresses[0].version != addresses[1].version:
            addresses = [_as_ipv6(address) for address in addresses]
        self.addresses = (addresses[0].packed, addresses[1].packed)
        self.ports = (client[1], server[1])
        self.sequences = [sequence_start, sequence_start]


class PcapngWriter:
    """A pcapng file of connections, written to `file` incrementally; each block with one write.

    `application` is the writer's name, as Wireshark shows it in the file's properties. Errors of `file` are passed on.
    """

    def __init__(self, file: BinaryIO, application: str = "mockraft") -> None:
        self._file = file
        self.bytes_written = 0
        self._flows = 0
        name = application.encode()
        options = struct.pack("<HH", 4, len(name)) + name + bytes(-len(name) % 4) + bytes(4)
        size = _SECTION.size + len(options) + 4
        section = _SECTION.pack(0x0A0D0D0A, size, 0x1A2B3C4D, 1, 0, -1) + options + _LENGTH.pack(size)
        options = struct.pack("<HHB3xI", 9, 1, _NANOSECONDS, 0)
        size = _INTERFACE.size + len(options) + 4
        self._write(section + _INTERFACE.pack(1, size, _ETHERNET_LINK, 0, 0) + options + _LENGTH.pack(size))

    def connect(self, client: tuple[str, int], server: tuple[str, int], time_ns: int) -> CapturedConnection:
        """Add a connection between two (address, port), with its handshake. ValueError if one is not an IP."""
        # Each starts elsewhere: a SYN with a number seen before would be one sent twice.
        self._flows += 1
        flow = CapturedConnection(client, server, self._flows * _SEQUENCE_STEP & 0xFFFFFFFF)
        self._packets(((flow, 0, _SYN, b""), (flow, 1, _SYN | _ACK, b""), (flow, 0, _ACK, b"")), time_ns)
        return flow

    def send(self, flow: CapturedConnection, from_client: bool, data: bytes, time_ns: int) -> int:
        """Write bytes that one side sent; return the file offset of their first packet."""
        offset = self.bytes_written
        side = 0 if from_client else 1
        ends = range(0, len(data), SEGMENT_BYTES_MAX)
        self._packets([(flow, side, _PSH | _ACK, data[at : at + SEGMENT_BYTES_MAX]) for at in ends], time_ns)
        return offset

    def close(self, flow: CapturedConnection, time_ns: int, *, reset: bool = False) -> None:
        """End a connection: FIN from both sides, or RST from the server."""
        if reset:
            self._packets(((flow, 1, _RST | _ACK, b""),), time_ns)
        else:
            self._packets(((flow, 0, _FIN | _ACK, b""), (flow, 1, _FIN | _ACK, b""), (flow, 0, _ACK, b"")), time_ns)

    def _packets(self, packets: Sequence[tuple[CapturedConnection, int, int, bytes]], time_ns: int) -> None:
        self._write(b"".join(_packet_block(*packet, time_ns) for packet in packets))

    def _write(self, blocks: bytes) -> None:
        self._file.write(blocks)
        self.bytes_written += len(blocks)


def _packet_block(flow: CapturedConnection, side: int, flags: int, payload: bytes, time_ns: int) -> bytes:
    sequence, acknowledged = flow.sequences[side], flow.sequences[1 - side]
    source, destination = flow.addresses[side], flow.addresses[1 - side]
    if not flags & _ACK:
        acknowledged = 0
    ports = flow.ports[side], flow.ports[1 - side]
    tcp = _TCP.pack(*ports, sequence, acknowledged, 5 << 4, flags, 65_535, 0, 0)
    flow.sequences[side] = (sequence + len(payload) + (1 if flags & (_SYN | _FIN) else 0)) & 0xFFFFFFFF
    if len(source) == 4:
        ether_type = b"\x08\x00"
        head = _IPV4.pack(0x45, 0, 40 + len(payload), 0, 0x4000, 64, 6, 0, source, destination)
        ip = head[:10] + _checksum(head) + head[12:]
    else:
        ether_type = b"\x86\xdd"
        ip = _IPV6.pack(6 << 28, 20 + len(payload), 6, 64, source, destination)
    size = 14 + len(ip) + len(tcp) + len(payload)
    padding = -size % 4
    block_bytes = _PACKET.size + size + padding + 4
    head = _PACKET.pack(6, block_bytes, 0, time_ns >> 32, time_ns & 0xFFFFFFFF, size, size)
    return b"".join((head, _ETHERNET[side], ether_type, ip, tcp, payload, bytes(padding), _LENGTH.pack(block_bytes)))


def _checksum(header: bytes) -> bytes:
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return int(~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2)


def _as_ipv6(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv6Address):
        return address
    return ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
