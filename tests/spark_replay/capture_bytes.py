"""Build capture files from packets, byte by byte: pcap and pcapng in every supported form. All pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack
from typing import NamedTuple

NULL, ETHERNET, RAW, LOOP, SLL, SLL2 = 0, 1, 101, 108, 113, 276
PPP, PPP_WITH_FRAMING, C_HDLC, NFLOG = 9, 50, 104, 239
_SECTION, _INTERFACE, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 3, 6


class Packet(NamedTuple):
    """One packet of a file; `original_bytes` is its length before a snaplen (None: the same)."""

    time_ns: int
    data: bytes
    original_bytes: int | None = None


def pcap(
    packets: Iterable[Packet],
    link_type: int = ETHERNET,
    *,
    order: str = "<",
    nanoseconds: bool = False,
    snaplen: int = 262_144,
) -> bytes:
    unit_ns = 1 if nanoseconds else 1000
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)]
    for time_ns, data, original_bytes in packets:
        seconds, rest_ns = divmod(time_ns, 1_000_000_000)
        original = len(data) if original_bytes is None else original_bytes
        out.append(pack(f"{order}IIII", seconds, rest_ns // unit_ns, len(data), original) + data)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = pack(f"{order}I", 12 + len(body))
    return pack(f"{order}I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    return block(_SECTION, pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    link_type: int = ETHERNET, *, order: str = "<", snaplen: int = 0, resolution: int = 6, offset_s: int = 0
) -> bytes:
    """A pcapng interface; `resolution` as if_tsresol: a power of ten, with the highest bit one of two."""
    options = pack(f"{order}HHB3x", 9, 1, resolution)
    if offset_s:
        options += pack(f"{order}HHq", 14, 8, offset_s)
    return block(_INTERFACE, pack(f"{order}HHI", link_type, 0, snaplen) + options + bytes(4), order)


def pcapng(
    packets: Sequence[Packet],
    link_type: int = ETHERNET,
    *,
    order: str = "<",
    resolution: int = 6,
    offset_s: int = 0,
    sections: int = 1,
    unknown_blocks: bool = False,
    simple: bool = False,
) -> bytes:
    """A pcapng file: the packets in `sections` sections, each with one interface.

    `simple`: simple packet blocks, which have no time. `unknown_blocks`: one of no known kind before every packet.
    """
    per_s = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    share = max(1, -(-len(packets) // sections))
    out = []
    for start in range(0, max(len(packets), 1), share):
        out += [section(order), interface(link_type, order=order, resolution=resolution, offset_s=offset_s)]
        for time_ns, data, original_bytes in packets[start : start + share]:
            if unknown_blocks:
                out.append(block(0x0BAD, data[:7], order))
            original = len(data) if original_bytes is None else original_bytes
            if simple:
                out.append(block(_SIMPLE_PACKET, pack(f"{order}I", original) + data, order))
                continue
            ticks = (time_ns - offset_s * 1_000_000_000) * per_s // 1_000_000_000
            head = pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), original)
            out.append(block(_PACKET, head + data, order))
    return b"".join(out)
