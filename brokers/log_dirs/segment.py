"""One segment of a log: `<20-digit base offset>.log`, batch after batch (Kafka's `LogSegment`)."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.batch_headers import scan
from mockraft.wire.record_batch import BatchHeader

INDEX_INTERVAL_BYTES = 4096
SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
"""The files that Kafka writes beside a segment, and rebuilds when they are missing."""


class Segment:
    """The known state of one segment file, with a sparse offset index in memory only.

    `size_bytes` counts whole batches; `next_offset` follows the last of them. A segment that was closed cleanly is
    indexed when it is first read.
    """

    __slots__ = (
        "_indexed_bytes",
        "_offsets",
        "_positions",
        "base_offset",
        "max_timestamp_ms",
        "next_offset",
        "size_bytes",
    )

    def __init__(self, base_offset: int, size_bytes: int = 0) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.next_offset = base_offset
        self.max_timestamp_ms = -1
        self._offsets = array("q")
        self._positions = array("q")
        self._indexed_bytes = 0

    @property
    def file_name(self) -> str:
        """The name of its file in the directory of the log."""
        return f"{self.base_offset:020d}{SUFFIX}"

    @property
    def is_indexed(self) -> bool:
        """True if every batch is indexed."""
        return self._indexed_bytes >= self.size_bytes

    def add(self, header: BatchHeader) -> None:
        """Index the batch that follows."""
        last = self._positions[-1] if self._positions else -INDEX_INTERVAL_BYTES
        if header.position - last >= INDEX_INTERVAL_BYTES:
            self._offsets.append(header.base_offset)
            self._positions.append(header.position)
        self._indexed_bytes = header.end
        self.size_bytes = max(self.size_bytes, header.end)
        self.next_offset = header.last_offset + 1
        self.max_timestamp_ms = max(self.max_timestamp_ms, header.max_timestamp_ms)

    def load(self, disk: Disk, dir_name: str) -> None:
        """Index the remaining batches. Raises OSError; CorruptBatchError for an invalid file."""
        if not self.is_indexed:
            for header in scan(disk, f"{dir_name}/{self.file_name}", self._indexed_bytes, check_crc=False):
                self.add(header)

    def batches_from(self, disk: Disk, dir_name: str, offset: int) -> Iterator[BatchHeader]:
        """Yield the headers of the batch that contains `offset` (else the first after it) and of all that follow."""
        self.load(disk, dir_name)
        if not self.size_bytes or offset >= self.next_offset:
            return
        index = bisect_right(self._offsets, offset) - 1
        start = self._positions[index] if index >= 0 else 0
        name = f"{dir_name}/{self.file_name}"
        for header in scan(disk, name, start, check_crc=False, chunk_bytes=2 * INDEX_INTERVAL_BYTES):
            if header.last_offset >= offset:
                yield header

    def floor(self, offset: int) -> int:
        """Return the position of an indexed batch that starts before `offset`, or of the first of all."""
        index = bisect_left(self._offsets, offset) - 1
        return self._offsets[index] if index >= 0 else self.base_offset

    def cut(self, position: int, next_offset: int) -> None:
        """Drop everything from this byte on; the batch before it ends at `next_offset`."""
        kept = bisect_right(self._positions, position - 1)
        del self._positions[kept:]
        del self._offsets[kept:]
        self.size_bytes = self._indexed_bytes = position
        self.next_offset = next_offset
