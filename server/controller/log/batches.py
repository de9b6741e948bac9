"""The batches of the log in memory: indexed by offset, counted and joined without copying their bytes.

Source: Kafka's LogSegment, OffsetIndex and LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

_JOINED_MAX = 16


class LogBatches:
    """Consecutive batches. `end_offset` is the offset of the next record, `appended_bytes` counts all appends."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.appended_bytes = 0
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, its first offset held), ascending."""
        self._bases: list[int] = []
        self._batches: list[bytes] = []
        self._ends: list[int] = []  # appended_bytes after each batch: a span is measured by bisection
        self._joined: dict[tuple[int, int], bytes] = {}

    @property
    def held_bytes(self) -> int:
        """Size of the batches still held."""
        return self.appended_bytes - self._bytes_before(0)

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the last batch, 0 when none is held."""
        return self.epochs[-1][0] if self.epochs else 0

    def add(self, data: bytes, base_offset: int, count: int, leader_epoch: int) -> bool:
        """Append a batch of `count` records; return True if it is the first of its epoch."""
        self.appended_bytes += len(data)
        self._bases.append(base_offset)
        self._batches.append(data)
        self._ends.append(self.appended_bytes)
        self.end_offset = base_offset + count
        if self.epochs and self.epochs[-1][0] == leader_epoch:
            return False
        self.epochs.append((leader_epoch, base_offset))
        return True

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Return whole batches from the one that contains `offset`: at least one, as many as fit; b"" at the end."""
        if offset >= self.end_offset:
            return b""
        index = self._index_of(offset)
        stop = max(bisect_right(self._ends, self._bytes_before(index) + bytes_max), index + 1)
        if stop == index + 1:
            return self._batches[index]
        joined = self._joined.get((index, stop))
        if joined is None:
            # Every follower fetches the same few spans; a full one never changes, the last one not until the
            # next append.
            if len(self._joined) == _JOINED_MAX:
                del self._joined[next(iter(self._joined))]
            joined = self._joined[index, stop] = b"".join(self._batches[index:stop])
        return joined

    def base_offset_of(self, offset: int) -> int:
        """Return the base offset of the batch that contains `offset`; the end is its own."""
        return offset if offset >= self.end_offset else self._bases[self._index_of(offset)]

    def since(self, offset: int) -> Iterator[bytes]:
        """Return each batch from the one that contains `offset` on."""
        for index in range(self._index_of(offset), len(self._batches)):
            yield self._batches[index]

    def bytes_since(self, offset: int) -> int:
        """Return the size of the batches from the one that begins at `offset` on."""
        return self.appended_bytes - self._bytes_before(bisect_left(self._bases, offset))

    def drop_before(self, offset: int) -> None:
        """Drop the batches below the one that contains `offset`."""
        index = bisect_left(self._bases, offset) if offset >= self.end_offset else self._index_of(offset)
        del self._bases[:index], self._batches[:index], self._ends[:index]
        self._joined.clear()
        start = self._bases[0] if self._bases else offset
        kept = bisect_right(self.epochs, start, key=lambda entry: entry[1])
        if kept:
            self.epochs[:kept] = [(self.epochs[kept - 1][0], start)]

    def truncate(self, end_offset: int) -> None:
        """Drop the batch that begins at `end_offset`, if any, and all after it."""
        index = bisect_left(self._bases, end_offset)
        if index < len(self._bases):
            self.end_offset = self._bases[index]
            self.appended_bytes = self._bytes_before(index)
        del self._bases[index:], self._batches[index:], self._ends[index:]
        self._joined.clear()
        while self.epochs and self.epochs[-1][1] >= self.end_offset:
            del self.epochs[-1]

    def restart_at(self, offset: int) -> None:
        """Drop all; the next batch begins at `offset`."""
        self.end_offset = offset
        self.epochs.clear()
        del self._bases[:], self._batches[:], self._ends[:]
        self._joined.clear()

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Return (largest epoch held that is not above `epoch`, its end offset); None if all are below `epoch`.

        `epoch` itself if all held are above it (LeaderEpochFileCache.endOffsetFor).
        """
        if self.epochs and self.epochs[-1][0] == epoch:
            return epoch, self.end_offset
        higher = bisect_right(self.epochs, epoch, key=lambda entry: entry[0])
        if higher == len(self.epochs):
            return None
        return self.epochs[higher - 1][0] if higher else epoch, self.epochs[higher][1]

    def _index_of(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def _bytes_before(self, index: int) -> int:
        """Return appended_bytes before the batch at `index`."""
        if index < len(self._ends):
            return self._ends[index] - len(self._batches[index])
        return self.appended_bytes
