"""The segment files of the metadata log: `<20-digit base offset>.log`, batch after batch, byte for byte as fetched.

Source: Kafka's UnifiedLog and LogSegment. No index files are written: Kafka rebuilds missing ones. An append is in the
operating system's page cache before it returns, so that killing the process loses nothing; with `fsync` it is on the
disk, and so is all that was recovered before the first append, which a killed process may have left in the cache. A
batch left unfinished at the end by a crash is cut off at the next start.

Several segments are deleted one after the other, so a crash can leave any of them. From the end of the log they are
deleted newest first, each synced: what is left is a shorter log. From its start, a snapshot covers them, and the next
start drops what does not reach the segments after it.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mockraft.files.given_files import SEGMENT_BYTES_MAX, read_file
from mockraft.files.private_files import FILE_MODE, sync_directory
from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.controller.log import limits
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import BatchHeader

_LOGGER = logging.getLogger(__name__)
_SEGMENT_NAME = re.compile(r"(\d{20})\.log")
_MAGIC_POSITION = 16


class StoredBatch(NamedTuple):
    """One batch found in a segment: its header, with positions within `data`, and all its bytes."""

    header: BatchHeader
    data: bytes


class _UnconnectedError(DataDirError):
    """Raised for a segment whose records do not reach the segment after it."""


class LogStorage:
    """The segments of one log, the last of which takes appends. `segments` are base offsets, in order."""

    def __init__(self, path: Path, *, segment_bytes_max: int, fsync: bool, segment_ms_max: int = NEVER_MS) -> None:
        """Open the log in `path`; nothing is read or created yet."""
        self.path = path
        self.segments = sorted(
            int(match[1]) for file in path.iterdir() if (match := _SEGMENT_NAME.fullmatch(file.name))
        )
        self._segment_bytes_max = segment_bytes_max
        self._segment_ms_max = segment_ms_max
        self._fsync = fsync
        self._file = -1
        self._size = 0
        self._opened: tuple[int, int] = (0, 0)
        self._sizes: dict[int, int] = {}
        """Those of the segments before the last one."""
        self._first_ms: dict[int, int] = {}
        """Latest time in the first batch of each segment."""
        self._failure: str | None = None

    @property
    def start_offset(self) -> int:
        """Base offset of the first segment, 0 when there is none."""
        return self.segments[0] if self.segments else 0

    def recover(self, covered_offset: int = 0) -> list[StoredBatch]:
        """Return every batch of every segment, in order; an unfinished one at the very end is cut off the file.

        `covered_offset` is the end of the newest snapshot. A segment that does not reach the one after it is deleted
        with all before it if that begins there or before: a crash interrupted their deletion.

        DataDirError on damage before the end, on gaps, on decreasing offsets and epochs, and on numbers at their limit:
        cutting there would lose acknowledged records.
        """
        found: list[StoredBatch] = []
        for base_offset, following in [*itertools.zip_longest(self.segments, self.segments[1:])]:
            try:
                self._read_segment(base_offset, following, found)
            except _UnconnectedError as error:
                if following is None or following > covered_offset:
                    raise
                _LOGGER.warning("%s; it is deleted with those before it: a snapshot covers them", error)
                found.clear()
                self.delete_before(following)
                sync_directory(self.path)
        return found

    def open_for_append(self, end_offset: int) -> None:
        """Append to the last segment from now on; without one, create one that begins at `end_offset`."""
        if self.segments:
            self._open(self.segments[-1])
            if self._fsync:
                # Only the last segment can be unsynced: `_create` syncs the one before it first.
                os.fsync(self._file)
                sync_directory(self.path)
        else:
            self._create(end_offset)

    def append(self, data: bytes, base_offset: int) -> None:
        """Write one batch. StorageError on failure: the file is then as it was before."""
        if self._failure is not None:
            raise StorageError(self._failure)
        if (reason := self._loss(self.segments[-1])) is not None:
            raise StorageError(f"{reason}; the records were refused")
        try:
            latest_ms = record_batch.read_sparse_header(data, 0, check_crc=False).max_timestamp_ms
            if self._size and (
                self._size + len(data) > self._segment_bytes_max
                or latest_ms - self._first_ms.get(self.segments[-1], latest_ms) > self._segment_ms_max
            ):
                self._create(base_offset)
            if not self._size:
                self._first_ms[self.segments[-1]] = latest_ms
            self._write(data)
        except OSError as error:
            path = self._segment_path(self.segments[-1])
            message = f"{path}: cannot be written: {error}; the records were refused"
            self._undo(message)
            raise StorageError(message) from error
        self._size += len(data)

    def loss(self) -> str | None:
        """Return why the next start would not find the log as it is, or could not write to it; None if it would.

        A file that is open takes appends after it was deleted or moved, too.
        """
        if self._file < 0:
            return None
        reason = next(filter(None, map(self._loss, self.segments)), None)
        paths = (self.path, self._segment_path(self.segments[-1]))
        return reason or next((f"{path}: is read-only now" for path in paths if not os.access(path, os.W_OK)), None)

    def roll(self, base_offset: int) -> None:
        """Begin a new segment, unless the current one is empty. OSError when it cannot be created."""
        if self._size:
            self._create(base_offset)

    def delete_before(self, offset: int) -> None:
        """Delete segments whose records are all below `offset`, which a snapshot covers; the last segment stays."""
        while len(self.segments) > 1 and self.segments[1] <= offset:
            for suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex"):
                (self.path / f"{self.segments[0]:020d}{suffix}").unlink(missing_ok=True)
            del self.segments[0]

    def segment_end(self, offset: int) -> int | None:
        """Return the start of the segment after the one that contains `offset`; None when that is the last one."""
        return next((base for base in self.segments[1:] if base > offset), None)

    def truncate(self, end_offset: int, cut_bytes: int) -> None:
        """Truncate the log: delete later segments, and the last `cut_bytes` of the one that contains `end_offset`.

        StorageError on failure.
        """
        try:
            self._delete_after(end_offset)
            if self._file < 0:
                self._open(self.segments[-1])
            os.ftruncate(self._file, self._size - cut_bytes)
            self._size -= cut_bytes
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be cut back to {end_offset}: {error}") from error

    def restart_at(self, offset: int) -> None:
        """Restart at the end of a snapshot that is on the disk, without the segments so far; OSError.

        After a crash at any moment the log is the old one, shortened at most, or begins at `offset`. Kafka's
        UnifiedLog.truncateFullyAndStartAt renames the old segments, and its next start takes gaps for granted.
        """
        sync_directory(self.path)  # of what a killed process deleted
        self._delete_after(offset)
        self._create(offset)
        os.fsync(self._file)
        self.segments = sorted({*self.segments})
        self.delete_before(offset)
        # The old records must not come back below new ones, which may be of another epoch.
        sync_directory(self.path)
        self._failure = None

    def close(self) -> None:
        """Flush the last segment to the disk and close it."""
        if self._file >= 0:
            os.fsync(self._file)
            self._release()

    def _delete_after(self, offset: int) -> None:
        """Delete segments that begin after `offset`, newest first; the first segment stays."""
        while len(self.segments) > 1 and self.segments[-1] > offset:
            self._release()
            self._segment_path(self.segments[-1]).unlink()
            del self.segments[-1]
            sync_directory(self.path)

    def _read_segment(self, base_offset: int, following: int | None, found: list[StoredBatch]) -> None:
        """Append the batches of a segment to `found`; `following` is the base offset of the one after it."""
        path = self._segment_path(base_offset)
        self._sizes[base_offset] = path.stat().st_size
        if reason := limits.refusal(offset=base_offset):
            raise DataDirError(f"{path}: {reason}")
        expected, epoch = base_offset, found[-1].header.leader_epoch if found else 0
        for header, data in _read_batches(path, following is None):
            if header.base_offset != expected:
                raise DataDirError(
                    f"{path}: batch at {header.position} has base offset {header.base_offset}, expected {expected}"
                )
            # The CRC does not cover the epoch.
            if reason := limits.refusal(epoch=header.leader_epoch):
                raise DataDirError(f"{path}: batch at {header.position}: {reason}")
            if header.leader_epoch < epoch:
                before = f"leader epoch {header.leader_epoch}, after epoch {epoch}"
                raise DataDirError(f"{path}: batch at {header.position} has {before}")
            if expected == base_offset:
                self._first_ms[base_offset] = header.max_timestamp_ms
            epoch = header.leader_epoch
            expected = header.last_offset + 1
            found.append(StoredBatch(header._replace(position=0, end=len(data)), data))
        if following not in (None, expected):
            raise _UnconnectedError(f"{path}: ends at {expected}, but the segment after it begins at {following}")

    def _loss(self, base_offset: int) -> str | None:
        """Return what happened to a segment's file, None if it is there as it was written."""
        path = self._segment_path(base_offset)
        is_last = base_offset == self.segments[-1]
        size = self._size if is_last else self._sizes[base_offset]
        try:
            found = os.stat(path)
        except OSError as error:
            return f"{path}: is lost: {error.strerror}"
        if is_last and (found.st_dev, found.st_ino) != self._opened:
            return f"{path}: is lost: another file has its name"
        return None if found.st_size == size else f"{path}: has {found.st_size} bytes, but {size} were written"

    def _segment_path(self, base_offset: int) -> Path:
        return self.path / f"{base_offset:020d}.log"

    def _create(self, base_offset: int) -> None:
        if self._file >= 0:
            os.fsync(self._file)
        path = self._segment_path(base_offset)
        created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            sync_directory(self.path)
        except OSError:
            os.close(created)
            path.unlink()
            raise
        if self._file >= 0:
            self._sizes[self.segments[-1]] = self._size
        self._release()
        self._use(created)
        self.segments.append(base_offset)

    def _open(self, base_offset: int) -> None:
        self._use(os.open(self._segment_path(base_offset), os.O_RDWR | os.O_CLOEXEC))

    def _use(self, file: int) -> None:
        found = os.fstat(file)
        self._file, self._size, self._opened = file, found.st_size, (found.st_dev, found.st_ino)

    def _write(self, data: bytes) -> None:
        written = os.pwrite(self._file, data, self._size)
        while written < len(data):
            written += os.pwrite(self._file, memoryview(data)[written:], self._size + written)
        if self._fsync:
            try:
                os.fsync(self._file)
            except OSError as error:
                # After a failed fsync the page cache is undefined: do not use this file any more.
                self._failure = f"{self._segment_path(self.segments[-1])}: a sync failed before: {error}; restart"
                raise

    def _undo(self, message: str) -> None:
        try:
            os.ftruncate(self._file, self._size)
        except OSError as error:
            self._failure = f"{message}; and cannot be cut back to {self._size} bytes: {error}; restart"

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _read_batches(path: Path, is_last: bool) -> Iterator[tuple[BatchHeader, bytes]]:
    data = read_file(path, SEGMENT_BYTES_MAX)
    position = 0
    while position < len(data):
        try:
            header = record_batch.read_header(data, position)
        except WireError as error:
            _cut_tail(path, data, position, error, is_last)
            return
        yield header, data[position : header.end]
        position = header.end


def _cut_tail(path: Path, data: bytes, position: int, error: WireError, is_last: bool) -> None:
    after = _next_valid_batch(data, position + 1)
    if not is_last or after is not None:
        where = f"there is a valid batch after it, at {after}" if after is not None else "there are segments after it"
        raise (_UnconnectedError if after is None else DataDirError)(
            f"{path}: damaged at byte {position} ({error}), and {where}: cutting the log here would lose records"
            " that were acknowledged; restore the file, or begin with an empty data dir and fresh brokers"
        )
    _LOGGER.warning(
        "%s: dropped %d bytes at %d, a batch that was never finished (%s)", path, len(data) - position, position, error
    )
    os.truncate(path, position)


def _next_valid_batch(data: bytes, start: int) -> int | None:
    """Return the position of the first whole, valid batch from `start` on; candidates match the magic byte."""
    found = data.find(record_batch.MAGIC, start + _MAGIC_POSITION)
    while found >= 0:
        try:
            return record_batch.read_header(data, found - _MAGIC_POSITION).position
        except WireError:
            found = data.find(record_batch.MAGIC, found + 1)
    return None
