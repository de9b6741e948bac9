"""One segment of a log: `<20-digit base offset>.log`, batch after batch (Kafka's `LogSegment`)."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from mockraft.brokers.log_dirs.batch_headers import BatchHeader, scan
from mockraft.brokers.log_dirs.disk import Disk

INDEX_INTERVAL_BYTES = 4096
SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
"""What Kafka writes beside a segment, and makes again when it is not there."""


class Segment:
    """What is known of one segment file. Offsets are looked up in a sparse index, kept in memory only.

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
        """Its file in the directory of the log."""
        return f"{self.base_offset:020d}{SUFFIX}"

    @property
    def is_indexed(self) -> bool:
        """Whether every batch was seen."""
        return self._indexed_bytes >= self.size_bytes

    def add(self, header: BatchHeader) -> None:
        """Take note of the batch that follows."""
        last = self._positions[-1] if self._positions else -INDEX_INTERVAL_BYTES
        if header.position - last >= INDEX_INTERVAL_BYTES:
            self._offsets.append(header.base_offset)
            self._positions.append(header.position)
        self._indexed_bytes = header.end
        self.size_bytes = max(self.size_bytes, header.end)
        self.next_offset = header.last_offset + 1
        self.max_timestamp_ms = max(self.max_timestamp_ms, header.max_timestamp_ms)

    def load(self, disk: Disk, dir_name: str) -> None:
        """See every batch that was not seen yet. OSError; CorruptBatchError where the file is no log."""
        if not self.is_indexed:
            for header in scan(disk, f"{dir_name}/{self.file_name}", self._indexed_bytes, check_crc=False):
                self.add(header)

    def batches_from(self, disk: Disk, dir_name: str, offset: int) -> Iterator[BatchHeader]:
        """The headers of the batch that holds `offset` (else the first after it) and of all that follow."""
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
        """The offset of an indexed batch that begins before `offset`, or the first of all."""
        index = bisect_left(self._offsets, offset) - 1
        return self._offsets[index] if index >= 0 else self.base_offset

    def cut(self, position: int, next_offset: int) -> None:
        """Forget all from this byte on; the batch before it ends at `next_offset`."""
        kept = bisect_right(self._positions, position - 1)
        del self._positions[kept:]
        del self._offsets[kept:]
        self.size_bytes = self._indexed_bytes = position
        self.next_offset = next_offset
