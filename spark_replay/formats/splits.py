"""Plan where to cut a large capture file so that its parts, read separately, are exactly the whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from typing import Literal

import numpy as np
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.file_events import FileEvents
from mockraft.spark_replay.formats.file_headers import Order
from mockraft.spark_replay.formats.packet_sources import Split, open_packets, read_header
from mockraft.spark_replay.formats.pcapng_blocks import INTERFACE, SECTION, PcapngBlocks
from mockraft.spark_replay.formats.sync import BlockSync, Chain, RecordSync

SplitIndex = Literal["auto", "exact", "off"]
SPLIT_BYTES = 64 << 20
_PLAN_CHUNK_BYTES = 4 << 20
_FIRST_CHUNK_BYTES = 1 << 18
_INTERFACE_BYTES_MAX = 1 << 12


def plan_splits(
    path: str | PathLike[str], split_bytes: int = SPLIT_BYTES, split_index: SplitIndex = "auto"
) -> list[Split]:
    """Return the splits of a capture file, each of about `split_bytes`; a compressed file is one split.

    `exact` walks the whole file (about as fast as reading it) and numbers the packets. `off` looks only around the
    cuts. `auto` does so too, but also searches a pcapng file for sections and interfaces that begin within it, and
    walks the file if there are any, unless the file is remote. Raises CaptureError for a file that is not a capture; a
    compressed one is not looked into.
    """
    whole = Split(os.fspath(path), first_packet_no=1 if split_index == "exact" else 0)
    if split_bytes < 1:
        raise ValueError(f"split_bytes must be positive, not {split_bytes}")
    with CaptureFile(path) as file:
        if file.size is None:
            return [whole]
        header, _ = read_header(file)
        if file.size <= split_bytes:
            return [whole]
        if split_index == "exact":
            return _walked(file, whole, split_bytes)
        if header is not None:
            sync = RecordSync(file, header)
            cuts = _cuts(sync, 0, file.size, split_bytes)
            return _between(whole, [Split(whole.path, cut, first_packet_no=0) for cut in cuts])
        return _pcapng(file, whole, split_bytes, split_index)


def packet_numbers(path: str | PathLike[str], file_offsets: Iterable[int]) -> list[int]:
    """Return the numbers (from 1, as Wireshark counts) of the packets whose records start at these offsets; 0: none."""
    wanted = np.array(list(file_offsets), np.int64)
    found = np.zeros(len(wanted), np.int64)
    with CaptureFile(path) as file:
        events = FileEvents(file.path, None, "skip")
        for packets in open_packets(file, Split(os.fspath(path)), events, _PLAN_CHUNK_BYTES):
            if len(packets.number):
                at = np.minimum(np.searchsorted(packets.file_offset, wanted), len(packets.number) - 1)
                found = np.where(packets.file_offset[at] == wanted, packets.number[at], found)
    return [int(number) for number in found]


def _between(first: Split, later: list[Split]) -> list[Split]:
    splits = [first, *later]
    return [split._replace(end=after.start) for split, after in zip(splits, later, strict=False)] + splits[-1:]


def _cuts(sync: Chain, after: int, size: int, split_bytes: int) -> list[int]:
    cuts: list[int] = []
    for offset in range(split_bytes, size, split_bytes):
        if offset <= (cuts[-1] if cuts else after):
            continue
        cut = sync.find(offset, min(offset + split_bytes, size))
        if cut is not None:
            cuts.append(cut)
    return cuts


def _walked(file: CaptureFile, whole: Split, split_bytes: int) -> list[Split]:
    later: list[Split] = []
    next_cut = split_bytes
    packets = open_packets(file, whole, FileEvents(file.path, None, "skip"), _PLAN_CHUNK_BYTES)
    for found in packets:
        while len(found.number) and found.file_offset[-1] >= next_cut:
            which = int(np.searchsorted(found.file_offset, next_cut))
            start = int(found.file_offset[which])
            split = Split(whole.path, start, first_packet_no=int(found.number[which]))
            if isinstance(packets, PcapngBlocks):
                known = int(np.searchsorted(packets.interfaces_at, start))
                split = split._replace(order=packets.order, interfaces=tuple(packets.interfaces[:known]))
            later.append(split)
            next_cut = (start // split_bytes + 1) * split_bytes
    return _between(whole, later)


def _pcapng(file: CaptureFile, whole: Split, split_bytes: int, split_index: SplitIndex) -> list[Split]:
    first_packet_at = 0
    blocks = open_packets(file, whole, FileEvents(file.path, None, "skip"), _FIRST_CHUNK_BYTES)
    assert isinstance(blocks, PcapngBlocks)
    for packets in blocks:
        if len(packets.file_offset):
            first_packet_at = int(packets.file_offset[0])
            break
    known = int(np.searchsorted(blocks.interfaces_at, first_packet_at))
    section = blocks.order, tuple(blocks.interfaces[:known])
    # In a bucket the search would read every byte twice. Without it, a split that ends in another section than it was
    # planned with raises SplitDesyncError.
    if split_index == "auto" and not file.is_remote and _changes(file, first_packet_at, blocks.order):
        return _walked(file, whole._replace(first_packet_no=1), split_bytes)
    cuts = _cuts(BlockSync(file, blocks.order), first_packet_at, file.size or 0, split_bytes)
    later = [Split(whole.path, cut, None, 0, *section, section) for cut in cuts]
    first = whole._replace(section_at_end=section) if later else whole
    return _between(first, later)


def _changes(file: CaptureFile, start: int, order: Order) -> bool:
    """Return True if anything behind `start` may be the header of a section or of an interface."""
    file.seek(start)
    data = bytearray(_PLAN_CHUNK_BYTES)
    while count := file.read_into(memoryview(data)):
        words = np.frombuffer(data, f"{order}u4", count // 4)
        if (words == SECTION).any():
            return True
        at = np.flatnonzero(words[:-1] == INTERFACE)
        sizes = words[at + 1].astype(np.int64)
        is_size = (sizes >= 20) & (sizes <= _INTERFACE_BYTES_MAX) & (sizes % 4 == 0)
        at, tails, sizes = at[is_size], (at + (sizes >> 2) - 1)[is_size], sizes[is_size]
        is_seen = tails < len(words)
        # A header may also cross into the next part of the file.
        if not is_seen.all() or (words[tails] == sizes).any() or words[-1] == INTERFACE:
            return True
    return False
