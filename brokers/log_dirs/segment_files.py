"""The segment files of one log, the last of which is active (Kafka's `LogSegments`, `LogLoader`)."""

from __future__ import annotations

import contextlib
import logging
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import zip_longest

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.batch_headers import CorruptBatchError, read_header, scan
from mockraft.wire.record_batch import HEADER_BYTES, BatchHeader

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


_LOGGER = logging.getLogger(__name__)
_SEGMENT_NAME = re.compile(r"(\d{20})\.log")
_OFFSET_RANGE_MAX = (1 << 31) - 1


class SegmentFiles:
    """The segments of the log in `dir_name`, by base offset. All methods may raise OSError.

    There is always at least one, if only in memory: its file is created as soon as that is possible.
    """

    __slots__ = ("_disk", "_fresh", "_has_new_names", "dir_name", "segments")

    def __init__(self, disk: Disk, dir_name: str) -> None:
        self._disk = disk
        self.dir_name = dir_name
        self.segments: list[Segment] = []
        # Segments created or changed by us: Kafka's files beside them have been deleted.
        self._fresh: set[int] = set()
        self._has_new_names = True

    @property
    def last(self) -> Segment:
        """The active segment."""
        return self.segments[-1]

    def load(self, recovery_point: int, was_closed: bool, seen: Callable[[BatchHeader], None]) -> None:
        """Find the segments, and check those that may be incomplete; `seen` is called for each batch of them."""
        found = (_SEGMENT_NAME.fullmatch(name) for name in self._disk.names(self.dir_name))
        bases = sorted(int(match[1]) for match in found if match)
        for base_offset, next_base in zip_longest(bases, bases[1:]):
            segment = Segment(base_offset)
            size_bytes = self._disk.size(self._path(segment))
            if not size_bytes and next_base is not None:
                # Left by an unfinished roll.
                self._drop_file(segment.file_name)
                continue
            self.segments.append(segment)
            if next_base is not None and (was_closed or next_base <= recovery_point):
                segment.size_bytes, segment.next_offset = size_bytes, next_base
            elif not self._recover(segment, size_bytes, not was_closed, seen):
                # As in Kafka: segments after an invalid batch were not flushed either.
                for later in bases[bases.index(base_offset) + 1 :]:
                    self._drop_file(f"{later:020d}.log")
                break
        if not self.segments:
            self._begin(0)

    def _recover(self, segment: Segment, size_bytes: int, check_crc: bool, seen: Callable[[BatchHeader], None]) -> bool:
        """Index every batch of a segment; truncate it at the first invalid one and return False then."""
        path = self._path(segment)
        try:
            for header in scan(self._disk, path, check_crc=check_crc):
                if header.base_offset < segment.next_offset:
                    message = f"batch at {header.position}: offset {header.base_offset} after {segment.next_offset - 1}"
                    raise CorruptBatchError(message, header.position)
                segment.add(header)
                seen(header)
        except CorruptBatchError as error:
            _LOGGER.warning("%s/%s: cut by %d bytes: %s", self._disk.root, path, size_bytes - segment.size_bytes, error)
            self._touch(segment)
            self._disk.truncate(path, segment.size_bytes)
            return False
        return True

    def append(self, data: bytes, headers: list[BatchHeader], segment_bytes_max: int) -> None:
        """Append batches, in a new segment when the active one is full."""
        segment = self.last
        is_full = segment.size_bytes + len(data) > segment_bytes_max
        is_wide = headers[-1].last_offset - segment.base_offset > _OFFSET_RANGE_MAX
        if segment.size_bytes and (is_full or is_wide):
            self._disk.sync(self._path(segment))
            self._append_to_new(data, headers)
        else:
            segment.load(self._disk, self.dir_name)
            self._append_to_last(data, headers)

    def _append_to_new(self, data: bytes, headers: list[BatchHeader]) -> None:
        try:
            self.segments.append(Segment(headers[0].base_offset))
            self._has_new_names = True
            self._append_to_last(data, headers)
        except OSError:
            # There may be a gap before it: the next append need not continue there.
            segment = self.segments.pop()
            with contextlib.suppress(OSError):
                self._drop_file(segment.file_name)
            raise

    def _append_to_last(self, data: bytes, headers: list[BatchHeader]) -> None:
        segment = self.last
        self._touch(segment)
        shift = segment.size_bytes
        self._disk.append(self._path(segment), data)
        for header in headers:
            segment.add(header._replace(position=header.position + shift, end=header.end + shift))

    def batches(self, offset: int) -> Iterator[tuple[Segment, BatchHeader]]:
        """Yield the batch that contains `offset`, else the next, and all that follow, each with its segment."""
        for segment in self.segments[self._index(offset) :]:
            for header in segment.batches_from(self._disk, self.dir_name, offset):
                yield segment, header

    def read(self, segment: Segment, first: BatchHeader, bytes_max: int, limit: int) -> bytes:
        """Return a segment's whole batches from `first` on, below `limit`: one, or at most `bytes_max` bytes."""
        size = max(first.end - first.position, min(bytes_max, segment.size_bytes - first.position))
        data = self._disk.read(self._path(segment), first.position, size)
        end = 0
        while len(data) - end >= HEADER_BYTES:
            header = read_header(data, end, check_crc=False)
            if header.end > len(data) or header.last_offset >= limit:
                break
            end = header.end
        return data[:end]

    def bytes_of(self, segment: Segment, header: BatchHeader) -> bytes:
        """Return all bytes of one batch."""
        return self._disk.read(self._path(segment), header.position, header.end - header.position)

    def cut(self, offset: int) -> int:
        """Truncate from the batch that contains `offset` on; return the new end of the log."""
        index = self._index(offset)
        segment = self.segments[index]
        segment.load(self._disk, self.dir_name)
        position, next_offset = segment.size_bytes, segment.base_offset
        for header in segment.batches_from(self._disk, self.dir_name, segment.floor(offset)):
            if header.last_offset >= offset:
                position = header.position
                break
            next_offset = header.last_offset + 1
        self._delete(self.segments[:index:-1])
        self._touch(segment)
        self._forget_producers(next_offset)
        self._disk.truncate(self._path(segment), position)
        segment.cut(position, next_offset)
        return next_offset

    def restart(self, offset: int) -> None:
        """Delete all and start a segment at `offset`."""
        self._delete(self.segments[::-1])
        self._forget_producers(-1)
        self.segments.clear()
        self._begin(offset)

    def delete_before(self, offset: int) -> None:
        """Delete the segments of which every record is below `offset`; the last one stays."""
        self._delete(self.segments[: self._index(offset)])

    def retained_from(self, retention_bytes: int, retention_ms: int, high_watermark: int, now_ms: int) -> int:
        """Return the start offset that retention by size and age requires (limits below 0: none)."""
        offset = self.segments[0].base_offset
        spare_bytes = sum(segment.size_bytes for segment in self.segments) - retention_bytes
        for segment, following in zip_longest(self.segments, self.segments[1:]):
            end_offset = segment.next_offset if following is None else following.base_offset
            segment.load(self._disk, self.dir_name)
            is_old = retention_ms >= 0 and 0 <= segment.max_timestamp_ms < now_ms - retention_ms
            is_much = retention_bytes >= 0 and spare_bytes >= segment.size_bytes
            if not segment.size_bytes or end_offset > high_watermark or not (is_old or is_much):
                break
            offset = end_offset
            spare_bytes -= segment.size_bytes
        return offset

    def roll(self) -> None:
        """Start a new segment, unless the last one is empty."""
        if self.last.size_bytes:
            self._disk.sync(self._path(self.last))
            self._begin(self.last.next_offset)

    def flush(self, recovery_point: int) -> None:
        """Force everything from `recovery_point` on to the disk, and the names of new files."""
        for segment in self.segments:
            if segment.size_bytes and segment.next_offset > recovery_point:
                self._disk.sync(self._path(segment))
        if self._has_new_names:
            self._disk.sync(self.dir_name)
            self._disk.sync("")
            self._has_new_names = False

    def _index(self, offset: int) -> int:
        return max(bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    def _path(self, segment: Segment) -> str:
        return f"{self.dir_name}/{segment.file_name}"

    def _begin(self, base_offset: int) -> None:
        segment = Segment(base_offset)
        self.segments.append(segment)
        self._has_new_names = True
        self._disk.append(self._path(segment), b"")
        self._fresh.add(base_offset)

    def _delete(self, segments: list[Segment]) -> None:
        """Delete segments in this order, which leaves no gap when it is interrupted."""
        for segment in segments:
            self._touch(segment)
            self._drop_file(segment.file_name)
            self._fresh.discard(segment.base_offset)
            if len(self.segments) > 1:
                self.segments.remove(segment)
            else:
                self.segments[:] = [Segment(segment.base_offset)]

    def _touch(self, segment: Segment) -> None:
        """Delete Kafka's indexes of a segment before it is changed: they have to be rebuilt."""
        if segment.base_offset not in self._fresh:
            for suffix in INDEX_SUFFIXES:
                self._drop_file(f"{segment.base_offset:020d}{suffix}")
            self._fresh.add(segment.base_offset)

    def _forget_producers(self, offset: int) -> None:
        """Delete Kafka's snapshots of producer state beyond an offset at which the log was truncated."""
        for name in self._disk.names(self.dir_name):
            if name.endswith(".snapshot") and name[:20].isdigit() and int(name[:20]) > offset:
                self._drop_file(name)

    def _drop_file(self, name: str) -> None:
        if self._disk.exists(f"{self.dir_name}/{name}"):
            self._disk.remove(f"{self.dir_name}/{name}")
