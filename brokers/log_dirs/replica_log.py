"""The log of one replica in Kafka's own files (Kafka's `UnifiedLog`, `LogLoader`): `<topic>-<partition>/`.

Segments of record batches (magic 2), `partition.metadata` and `leader-epoch-checkpoint`. Kafka's index files are not
written: a broker rebuilds them. Records are stored as received, compressed or not.
"""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, TypeVar

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.batch_headers import check_offsets, read_headers, stamp
from mockraft.brokers.log_dirs.checkpoints import LeaderEpochs
from mockraft.brokers.log_dirs.errors import LogClosedError, LogError
from mockraft.brokers.log_dirs.produced_batches import DEFAULT_CONFIG, LogConfig, check_produced, read_produced
from mockraft.brokers.log_dirs.record_times import times
from mockraft.brokers.log_dirs.segment_files import SegmentFiles
from mockraft.wire import error_codes
from mockraft.wire.record_batch import BatchHeader

P = ParamSpec("P")
R = TypeVar("R")

ROLLED_BYTES = 1 << 20
"""A segment of this size is rolled when the log's start is raised into it; that keeps logs of coordinators short."""


def _on_disk(method: Callable[Concatenate[ReplicaLog, P], R]) -> Callable[Concatenate[ReplicaLog, P], R]:
    """Convert a disk error with `failed`; an error after `close` becomes LogClosedError."""

    @functools.wraps(method)
    def guarded(self: ReplicaLog, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self.is_closed:
                raise LogClosedError(errno.EBADF, "the log is closed", f"{self._disk.root}/{self.dir_name}")
            return method(self, *args, **kwargs)
        except OSError as error:
            raise self.failed(error) from error

    return guarded


class ReplicaLog:
    """An open log. Offsets are those of records; `end_offset` is the offset of the next record (Kafka's LEO).

    Every method may raise the result of `failed` for an OSError (the error itself by default; `Logs` makes it a
    StorageError). A failed append changes nothing, a failed truncation may have truncated partly. Everything below
    `recovery_point` is known to be on the disk.
    """

    __slots__ = (
        "_disk",
        "_epochs",
        "_files",
        "_high_watermark",
        "config",
        "end_offset",
        "failed",
        "is_closed",
        "recovery_point",
        "start_offset",
    )

    def __init__(
        self,
        disk: Disk,
        dir_name: str,
        config: LogConfig = DEFAULT_CONFIG,
        *,
        start_offset: int = 0,
        recovery_point: int = 0,
        was_closed: bool = False,
    ) -> None:
        """Open the directory of a log, creating it if needed.

        `start_offset` and `recovery_point` come from the checkpoints. Without `was_closed` every batch from the
        recovery point on is checked, and the log is truncated at the first invalid one.
        """
        self._disk = disk
        self._files = SegmentFiles(disk, dir_name)
        self.config = config
        self.failed: Callable[[OSError], Exception] = lambda error: error
        self.is_closed = False
        if not disk.exists(dir_name):
            disk.make_dir(dir_name)
        self._epochs = LeaderEpochs(disk, dir_name)
        self._files.load(recovery_point, was_closed, self._seen)
        if start_offset > self._files.last.next_offset:
            self._files.restart(start_offset)
        self.end_offset = self._files.last.next_offset
        self.start_offset = max(start_offset, self._files.segments[0].base_offset)
        self.recovery_point = self.end_offset if was_closed else min(recovery_point, self.end_offset)
        self._high_watermark = self.start_offset
        self._epochs.truncate_from_end(dir_name, self.end_offset)
        self._epochs.truncate_from_start(dir_name, self.start_offset)

    @property
    def dir_name(self) -> str:
        """The directory, relative to the root of the disk."""
        return self._files.dir_name

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read, exclusive; assigned values are clamped to the log's start and end."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._high_watermark = max(self.start_offset, min(offset, self.end_offset))

    @property
    def size_bytes(self) -> int:
        """Number of bytes of all segments."""
        return sum(segment.size_bytes for segment in self._files.segments)

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """The (epoch, start offset) pairs of the log, ascending."""
        return self._epochs.entries

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last record; None when there is none."""
        return self._epochs.latest

    @property
    def starts_in_segment(self) -> bool:
        """True if the log starts after the first record of its first file: only a checkpoint records the start then."""
        return self.start_offset > self._files.segments[0].base_offset

    # Writing.

    @_on_disk
    def assign_epoch(self, epoch: int) -> None:
        """Start this epoch at the log's end; does nothing when it is not newer than the latest."""
        if self._epochs.latest is None or epoch > self._epochs.latest:
            self._epochs.assign(self.dir_name, epoch, self.end_offset)

    @_on_disk
    def append_as_leader(self, records: bytes, leader_epoch: int, now_ms: int) -> tuple[int, int]:
        """Append a producer's batches with offsets and the epoch; return the first offset and the end offset.

        LogError: CORRUPT_MESSAGE for invalid batches, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD,
        INVALID_TIMESTAMP.
        """
        headers = read_produced(records)
        if not headers:
            raise LogError(error_codes.INVALID_RECORD, "no record batch to append")
        for header in headers:
            check_produced(records, header, self.config, now_ms)
        if len(headers) > 1 and any(header.is_compressed for header in headers):
            raise LogError(error_codes.INVALID_RECORD, "Compressed outer record has more than one batch")
        append_time_ms = now_ms if self.config.is_log_append_time else None
        return self._append_new(records[: headers[-1].end], headers, leader_epoch, append_time_ms)

    @_on_disk
    def append_state(self, records: bytes, leader_epoch: int) -> tuple[int, int]:
        """Append one batch of a coordinator or a transaction marker, which clients may not write, as the leader."""
        return self._append_new(records, read_headers(records), leader_epoch, None)

    def _append_new(
        self, records: bytes, headers: list[BatchHeader], leader_epoch: int, append_time_ms: int | None
    ) -> tuple[int, int]:
        data = bytearray(records)
        base = offset = self.end_offset
        stamped = []
        for header in headers:
            stamped.append(stamp(data, header, offset, leader_epoch, append_time_ms))
            offset = stamped[-1].last_offset + 1
        self._append(bytes(data), stamped)
        return base, offset

    @_on_disk
    def append_as_follower(self, records: bytes) -> None:
        """Append the leader's batches unchanged. LogError when one is invalid or its offset is below the log's end."""
        headers = read_headers(records)
        expected = self.end_offset
        for header in headers:
            check_offsets(header)
            if header.base_offset < expected:
                raise LogError(
                    error_codes.INVALID_RECORD,
                    f"{self.dir_name}: a batch at offset {header.base_offset}, but the log goes on at {expected}",
                )
            expected = header.last_offset + 1
        if headers:
            self._append(records, headers)

    def _append(self, data: bytes, headers: list[BatchHeader]) -> None:
        if len(data) > self.config.segment_bytes:
            raise LogError(
                error_codes.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {len(data)} bytes in append to partition {self.dir_name}, which exceeds the"
                f" maximum configured segment size of {self.config.segment_bytes}.",
            )
        for header in headers:
            self._seen(header)
        self._files.append(data, headers, self.config.segment_bytes)
        self.end_offset = self._files.last.next_offset

    # Reading.

    @_on_disk
    def read(self, offset: int, bytes_max: int, up_to_offset: int | None = None, *, at_least_one: bool = True) -> bytes:
        """Return whole batches of one segment from the one that contains `offset` on, all below `up_to_offset`.

        At most `bytes_max` bytes, but one batch of any size unless `at_least_one` is off; empty at the end. LogError:
        OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE where the file is damaged.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise LogError(
                error_codes.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.dir_name}, but we only have log segments"
                f" from offset {self.start_offset} up to {self.end_offset}.",
            )
        limit = self.end_offset if up_to_offset is None else up_to_offset
        if offset >= limit:
            return b""
        for segment, first in self._files.batches(offset):
            if first.last_offset >= limit or (first.end - first.position > bytes_max and not at_least_one):
                break
            return self._files.read(segment, first, bytes_max, limit)
        return b""

    @_on_disk
    def batches(self, offset: int) -> list[BatchHeader]:
        """Return the headers from the batch that contains `offset` on, each at its position in its segment."""
        return [header for _, header in self._files.batches(offset)]

    @_on_disk
    def replay(self, offset: int, seen: Callable[[BatchHeader, bytes], None]) -> None:
        """Call `seen` with each batch from `offset` on; the bytes are those of a control batch, empty for others."""
        for segment, header in self._files.batches(max(offset, self.start_offset)):
            seen(header, self._files.bytes_of(segment, header) if header.is_control else b"")

    @_on_disk
    def offset_for_timestamp(self, ms: int) -> tuple[int, int] | None:
        """Return the first record of this time or later, as (offset, timestamp); None when there is none.

        Compressed otherwise than by gzip: the first record of its batch, with the batch's largest timestamp.
        """
        for segment in self._files.segments:
            segment.load(self._disk, self.dir_name)
            if segment.max_timestamp_ms < ms:
                continue
            for header in segment.batches_from(self._disk, self.dir_name, self.start_offset):
                if header.max_timestamp_ms >= ms:
                    for offset, time_ms in times(self._files.bytes_of(segment, header), header, self.start_offset):
                        if time_ms >= ms:
                            return offset, time_ms
        return None

    @_on_disk
    def max_timestamp(self) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record with the largest timestamp; None without timestamps."""
        latest = max((header.max_timestamp_ms for header in self.batches(self.start_offset)), default=-1)
        return None if latest < 0 else self.offset_for_timestamp(latest)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` and its end offset; (-1, -1) when `epoch` is newer than all."""
        return self._epochs.end_of(epoch, self.end_offset)

    # Truncation.

    @_on_disk
    def truncate_to(self, offset: int) -> None:
        """Truncate the log so that it ends at `offset` at most: a batch that extends beyond it is removed whole."""
        if offset >= self.end_offset:
            # An epoch without records is dropped as well, otherwise followers would diverge for ever.
            self._epochs.truncate_from_end(self.dir_name, self.end_offset)
        elif offset <= self._files.segments[0].base_offset:
            self._start_anew(offset)
        else:
            with self._cutting():
                end_offset = self._files.cut(offset)
            if end_offset < self.start_offset:
                self._start_anew(offset)
            else:
                self._ends_at(end_offset)

    @_on_disk
    def truncate_fully_at(self, offset: int) -> None:
        """Delete everything and continue at `offset`."""
        self._start_anew(offset)

    @_on_disk
    def advance_start_offset(self, offset: int) -> None:
        """Raise the log start offset (DeleteRecords, retention) and delete the segments wholly below it.

        The active segment is one of them next time, if it has grown large.
        """
        if offset > self._high_watermark:
            raise LogError(
                error_codes.OFFSET_OUT_OF_RANGE,
                f"{self.dir_name}: cannot start at {offset}, the high watermark is {self._high_watermark}",
            )
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        with self._cutting():
            self._files.delete_before(offset)
            last = self._files.last
            if last.base_offset < offset and last.size_bytes >= ROLLED_BYTES:
                self._files.roll()
        self._epochs.truncate_from_start(self.dir_name, offset)

    @_on_disk
    def retain(self, now_ms: int) -> None:
        """Delete the oldest segments when the log is too large or they are too old (UnifiedLog.deleteOldSegments).

        Only segments below the high watermark are deleted; the active segment is deleted too when it is too old.
        """
        config = self.config
        if config.retention_bytes < 0 and config.retention_ms < 0:
            return
        offset = self._files.retained_from(config.retention_bytes, config.retention_ms, self._high_watermark, now_ms)
        if offset <= self.start_offset:
            return
        if offset == self.end_offset:
            self._files.roll()
        self.advance_start_offset(offset)

    def _start_anew(self, offset: int) -> None:
        with self._cutting():
            self._files.restart(offset)
        self.start_offset = offset
        self._ends_at(offset)
        self._epochs.clear(self.dir_name)

    @contextlib.contextmanager
    def _cutting(self) -> Iterator[None]:
        """Change the segments; after a disk error in between, adopt what is left as the log."""
        try:
            yield
        except OSError:
            first, self.end_offset = self._files.segments[0].base_offset, self._files.last.next_offset
            self.start_offset = min(max(self.start_offset, first), self.end_offset)
            self.recovery_point = min(self.recovery_point, self.end_offset)
            self.high_watermark = self._high_watermark
            raise

    def _ends_at(self, offset: int) -> None:
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = self._high_watermark
        self._epochs.truncate_from_end(self.dir_name, offset)

    # Files.

    @_on_disk
    def flush(self) -> None:
        """Force all appended data to the disk."""
        self._files.flush(self.recovery_point)
        self.recovery_point = self.end_offset

    @_on_disk
    def rename(self, dir_name: str) -> None:
        """Rename the directory."""
        self._disk.rename(self.dir_name, dir_name)
        self._files.dir_name = dir_name

    @_on_disk
    def remove(self) -> None:
        """Delete the directory; the log is closed."""
        self._disk.remove(self.dir_name)
        self.is_closed = True

    def close(self) -> None:
        """Close the log without flushing; no further calls are allowed."""
        self.is_closed = True

    def _seen(self, header: BatchHeader) -> None:
        if self._epochs.latest is None or header.leader_epoch > self._epochs.latest:
            self._epochs.assign(self.dir_name, header.leader_epoch, header.base_offset)
