"""A pcap file as a ring buffer would have written it, and as one that was damaged."""

from __future__ import annotations

import os
from pathlib import Path
from struct import pack_into, unpack_from


def ring_files(source: Path, folder: Path, count: int) -> list[Path]:
    """The packets of `source` (little-endian) in `count` files of `folder`, old, a second apart.

    They are named so that sorting mixes them up.
    """
    data = source.read_bytes()
    cuts, at = [24], 24
    while at < len(data):
        if at >= len(data) * len(cuts) // count:
            cuts.append(at)
        at += 16 + unpack_from("<I", data, at + 8)[0]
    folder.mkdir(exist_ok=True)
    files = []
    for number, (start, end) in enumerate(zip(cuts, [*cuts[1:], at], strict=True)):
        files.append(folder / f"ring_{count - number}.pcap{number}")
        files[-1].write_bytes(data[:24] + data[start:end])
        os.utime(files[-1], (1_000_000_000 + number, 1_000_000_000 + number))
    return files


def damaged(source: Path, target: Path, at: int, size: int) -> Path:
    """`source` with `size` bytes at `at` that can be no record's header."""
    data = bytearray(source.read_bytes())
    data[at : at + size] = b"\xff" * size
    target.write_bytes(data)
    return target


def a_day_later(source: Path, target: Path) -> Path:
    """`source` (little-endian, Ethernet, IPv4) with each packet a day later, between other ports of the clients."""
    data, at = bytearray(source.read_bytes()), 24
    while at < len(data):
        seconds, _, size = unpack_from("<III", data, at)
        pack_into("<I", data, at, seconds + 86_400)
        tcp = at + 16 + 14 + 4 * (data[at + 16 + 14] & 0xF)
        for end in (tcp, tcp + 2):
            (port,) = unpack_from(">H", data, end)
            pack_into(">H", data, end, port if port == 19093 else port ^ 0x2000)
        at += 16 + size
    target.write_bytes(data)
    return target
