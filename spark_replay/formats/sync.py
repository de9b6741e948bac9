"""Find the first certain record of a pcap file, or block of a pcapng file, at or behind any offset.

The result depends on the file and the offset alone, so two neighbouring splits that search from the same offset find
the same place. A header is accepted if it starts a chain of headers; if there are two chains (a capture inside a
payload), both are followed until they meet or one breaks, so the result is on the file's own chain.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.file_headers import (
    CAPTURED_BYTES_MAX,
    PCAP_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    SNAPLEN_MAX,
    Order,
    PcapHeader,
)

CHAIN_RECORDS = 40
_WINDOW_BYTES = 1 << 18
_PAGE_BYTES, _PAGES_MAX = 1 << 16, 32
_FOLLOWED_MAX = 20_000
_BLOCK_HEADERS_BYTES = 64
# Timestamps further from the file's first record are valid, but not used to find a start.
_SECONDS_MAX = 5 * 366 * 86_400


class _Pages:
    """Serve small reads at many nearby offsets from few reads of the file."""

    def __init__(self, file: CaptureFile) -> None:
        self.file = file
        self.size = file.size or 0
        self.pages: dict[int, bytes] = {}

    def at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes (a few); less at the end of the file."""
        number, start = divmod(offset, _PAGE_BYTES)
        found = self._page(number)[start : start + size]
        return found if len(found) == size else found + self._page(number + 1)[: size - len(found)]

    def _page(self, number: int) -> bytes:
        page = self.pages.get(number)
        if page is None:
            if len(self.pages) >= _PAGES_MAX:
                del self.pages[next(iter(self.pages))]
            page = self.pages[number] = self.file.read_at(number * _PAGE_BYTES, _PAGE_BYTES)
        return page


class Chain(ABC):
    """The chain of records in a file of one format; records start at multiples of `alignment`."""

    record_bytes_max: int
    first_at = 0
    alignment = 1

    def __init__(self, file: CaptureFile) -> None:
        self.pages = _Pages(file)
        self.size = self.pages.size

    def find(self, offset: int, end: int) -> int | None:
        """Return the first certain record at or behind `offset` and before `end`; None if there is none.

        Every chain that comes from before `offset` is followed, since the file's own is among them.
        """
        offset += -offset % self.alignment
        passed: set[int] = set()
        heads: dict[int, int] = {}
        start = max(offset - self.record_bytes_max, self.first_at)
        for candidate in self.candidates(start, offset - start):
            at: int | None = candidate
            if at in passed or not _holds(self, at):
                continue
            while at is not None and at < offset and at not in passed:
                passed.add(at)
                at = self.follow(at)
            if at is not None and at >= offset:
                heads[at] = at
        sure = _last_standing(self, heads) if heads else self.resume(offset, end)
        return sure if sure is None or sure < end else None

    def resume(self, offset: int, end: int | None) -> int | None:
        """Return the first certain record behind damage, where no chain comes from before `offset`."""
        at = offset + -offset % self.alignment
        end = self.size if end is None else end
        while at < end:
            for candidate in self.candidates(at, min(_WINDOW_BYTES, end - at)):
                if _holds(self, candidate):
                    sure = _first_shared(self, candidate)
                    return sure if sure is None or sure < end else None
            at += _WINDOW_BYTES
        return None

    @abstractmethod
    def candidates(self, offset: int, size: int) -> Iterator[int]:
        """Yield offsets in a part of the file at which a record may start."""

    @abstractmethod
    def follow(self, offset: int) -> int | None:
        """Return the start of the next record if one starts at `offset`; None if none can.

        The end of the file follows itself.
        """


def _holds(chain: Chain, offset: int | None) -> bool:
    for _ in range(CHAIN_RECORDS):
        if offset is None:
            return False
        following = chain.follow(offset)
        if following == offset:
            return True
        offset = following
    return offset is not None


def _first_shared(chain: Chain, first: int) -> int | None:
    """Return `first`, or if another chain starts within the next record, the place where only one chain remains."""
    end = first + chain.record_bytes_max
    chain_at: dict[int, int] = {}
    heads: list[int | None] = []
    sure: list[int] = []
    for candidate in (first, *chain.candidates(first + 1, end - first - 1)):
        if candidate in chain_at or not _holds(chain, candidate):
            continue
        at: int | None = candidate
        while at is not None and at < end and at not in chain_at:
            chain_at[at] = len(heads)
            following = chain.follow(at)
            if following == at:
                break
            at = following
        joined = None if at is None or at < candidate else chain_at.get(at)
        if at is not None and joined is not None and joined != len(heads):
            # Two chains meet: they are certain only from here on.
            sure[joined] = max(sure[joined], at)
            at = None
        heads.append(at)
        sure.append(candidate)
    return _last_standing(chain, {at: sure[which] for which, at in enumerate(heads) if at is not None})


def _last_standing(chain: Chain, heads: dict[int, int]) -> int | None:
    """Follow every chain (its head, and the offset from which it is certain) until one remains."""
    for _ in range(_FOLLOWED_MAX):
        if len(heads) <= 1:
            return next(iter(heads.values()), None)
        at = min(heads)
        sure = heads.pop(at)
        following = chain.follow(at)
        if following is None or following == at:
            continue
        heads[following] = following if following in heads else sure
    return None


class RecordSync(Chain):
    """Records of a pcap file."""

    record_bytes_max = RECORD_HEADER_BYTES + SNAPLEN_MAX
    first_at = PCAP_HEADER_BYTES

    def __init__(self, file: CaptureFile, header: PcapHeader) -> None:
        super().__init__(file)
        self.header = header
        self.numbers = struct.Struct(f"{header.order}IIII")
        first = self.pages.at(PCAP_HEADER_BYTES, RECORD_HEADER_BYTES)
        self.seconds = self.numbers.unpack(first)[0] if len(first) == RECORD_HEADER_BYTES else 0

    def candidates(self, offset: int, size: int) -> Iterator[int]:
        """Yield offsets at which four numbers are plausible for a record."""
        data = np.frombuffer(self.pages.file.read_at(offset, size + RECORD_HEADER_BYTES - 1), np.uint8)
        count = len(data) - RECORD_HEADER_BYTES + 1
        if count <= 0:
            return
        seconds, fraction, captured, original = (
            np.ndarray((count,), f"{self.header.order}u4", data, at, (1,)) for at in (0, 4, 8, 12)
        )
        at = np.flatnonzero((captured > 0) & (captured <= self.header.captured_bytes_max))
        at = at[(captured[at] <= original[at]) & (fraction[at] < 1_000_000_000 // self.header.fraction_ns)]
        at = at[np.abs(seconds[at].astype(np.int64) - self.seconds) < _SECONDS_MAX]
        yield from (at + offset).tolist()

    def follow(self, offset: int) -> int | None:
        """Return the start of the next record."""
        if offset == self.size:
            return offset
        head = self.pages.at(offset, RECORD_HEADER_BYTES)
        if len(head) < RECORD_HEADER_BYTES:
            return None
        seconds, fraction, captured, original = self.numbers.unpack(head)
        if (
            captured > min(original, self.header.captured_bytes_max)
            or (not captured) + (not seconds) + (fraction >= 1_000_000_000 // self.header.fraction_ns) > 1
            or abs(seconds - self.seconds) >= _SECONDS_MAX
            or offset + RECORD_HEADER_BYTES + captured > self.size
        ):
            return None
        following: int = offset + RECORD_HEADER_BYTES + captured
        return following


class BlockSync(Chain):
    """Blocks of one pcapng section."""

    record_bytes_max = SNAPLEN_MAX + _BLOCK_HEADERS_BYTES
    alignment = 4

    def __init__(self, file: CaptureFile, order: Order) -> None:
        super().__init__(file)
        self.order = order

    def candidates(self, offset: int, size: int) -> Iterator[int]:
        """Yield aligned offsets with a length that is repeated at the block's end."""
        offset += -offset % 4
        data = self.pages.file.read_at(offset, size + 8)
        words = np.frombuffer(data[: len(data) // 4 * 4], f"{self.order}u4")
        sizes = words[1:]
        at = np.flatnonzero((sizes >= 12) & (sizes <= self.record_bytes_max) & (sizes % 4 == 0))
        tails = at + (sizes[at] >> 2) - 1
        is_inside = tails < len(words)
        is_equal = words[np.where(is_inside, tails, 0)] == sizes[at]
        yield from (at[is_equal | ~is_inside] * 4 + offset).tolist()

    def follow(self, offset: int) -> int | None:
        """Return the start of the next block."""
        if offset == self.size:
            return offset
        size_bytes = self.pages.at(offset + 4, 4)
        size = int.from_bytes(size_bytes, "little" if self.order == "<" else "big")
        if len(size_bytes) < 4 or size < 12 or size % 4 or size > CAPTURED_BYTES_MAX or offset + size > self.size:
            return None
        return offset + size if self.pages.at(offset + size - 4, 4) == size_bytes else None
