"""Packets out of pcapng files: any number of sections and interfaces, in both byte orders and every time resolution.

Source: draft-ietf-opsawg-pcapng. Blocks that hold no packets are skipped; simple packet blocks have no time (0).
"""

import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
CAPTURED_BYTES_MAX = 1 << 26
_BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_RESOLUTION, _TIME_OFFSET, _MICROSECONDS = 9, 14, 6


class CaptureError(ValueError):
    """A capture file that cannot be read: what is wrong, and at which offset of the file."""


class Packet(NamedTuple):
    """One record of the file: its number (from 1, as Wireshark counts), time, link-layer bytes and original length."""

    number: int
    time_ns: int
    link_type: int
    data: bytes
    original_bytes: int


class _Interface(NamedTuple):
    link_type: int
    snaplen: int
    ticks_per_s: int
    offset_s: int

    def time_ns(self, high: int, low: int) -> int:
        return ((high << 32 | low) * 1_000_000_000) // self.ticks_per_s + self.offset_s * 1_000_000_000


class _Section:
    """What a section's blocks share: their byte order and interfaces."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.packet = struct.Struct(f"{order}IIIII")
        self.old_packet = struct.Struct(f"{order}HHIIII")
        self.interfaces: list[_Interface] = []

    def add_interface(self, body: bytes) -> None:
        link_type, snaplen = struct.unpack_from(f"{self.order}HxxI", body)
        ticks_per_s, offset_s, at = 10**_MICROSECONDS, 0, 8
        while at + 4 <= len(body):
            code, size = struct.unpack_from(f"{self.order}HH", body, at)
            value = body[at + 4 : at + 4 + size]
            if code == _RESOLUTION and value:
                ticks_per_s = (2 if value[0] & 0x80 else 10) ** (value[0] & 0x7F)
            elif code == _TIME_OFFSET and len(value) == 8:
                (offset_s,) = struct.unpack(f"{self.order}q", value)
            at += 4 + size + -size % 4
        self.interfaces.append(_Interface(link_type, snaplen, ticks_per_s, offset_s))

    def read_packet(self, block_type: int, body: bytes, number: int) -> Packet:
        """A packet block's packet; IndexError for an interface that the section has not, struct.error when cut."""
        if block_type == _SIMPLE_PACKET:
            interface = self.interfaces[0]
            (original_bytes,) = struct.unpack_from(f"{self.order}I", body)
            size = min(original_bytes, interface.snaplen or original_bytes)
            return Packet(number, 0, interface.link_type, body[4 : 4 + size], original_bytes)
        if block_type == _PACKET:
            index, high, low, size, original_bytes = self.packet.unpack_from(body)
        else:
            index, _, high, low, size, original_bytes = self.old_packet.unpack_from(body)
        interface = self.interfaces[index]
        data = body[20 : 20 + size]
        return Packet(number, interface.time_ns(high, low), interface.link_type, data, original_bytes)


def read_pcapng_packets(file: IO[bytes]) -> Iterator[Packet]:
    """The packets of an open pcapng file of which the first four bytes were read.

    CaptureError for what cannot be a block; a file that ends inside its last block (a capture that was killed) ends.
    """
    offset = number = 0
    section = _Section("<")
    head = SECTION_MAGIC + file.read(4)
    while len(head) == 8:
        extra = b""
        if head[:4] == SECTION_MAGIC:
            extra = file.read(4)
            if len(extra) < 4:
                return
            if extra not in _BYTE_ORDERS:
                raise CaptureError(f"the section at offset {offset} has no byte order: {extra.hex(' ')}")
            section = _Section(_BYTE_ORDERS[extra])
        block_type, size = struct.unpack(f"{section.order}II", head)
        if size < 12 or size % 4 or size > CAPTURED_BYTES_MAX:
            raise CaptureError(f"the block at offset {offset} says that it is {size} bytes long")
        body = extra + file.read(size - 8 - len(extra))
        if len(body) < size - 8:
            return
        (size_again,) = struct.unpack(f"{section.order}I", body[-4:])
        if size_again != size:
            raise CaptureError(
                f"the block at offset {offset} is {size} bytes long at its start, {size_again} at its end"
            )
        try:
            if block_type == _INTERFACE:
                section.add_interface(body[:-4])
            elif block_type in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                number += 1
                yield section.read_packet(block_type, body[:-4], number)
        except (IndexError, struct.error):
            raise CaptureError(f"the block at offset {offset} cannot be read") from None
        offset += size
        head = file.read(8)
