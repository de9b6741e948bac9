"""The segment files of the metadata log: `<20-digit base offset>.log`, batch after batch, byte for byte as fetched.

Source: Kafka's UnifiedLog and LogSegment. No index files are written: Kafka rebuilds missing ones. An append is in the
operating system's page cache before it returns, so that killing the process loses nothing; with `fsync` it is on the
disk, and so is all that was recovered before the first append, which a killed process may have left in the cache. A
batch left unfinished at the end by a crash is cut off at the next start.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mockraft.server.controller.log import limits
from mockraft.server.controller.log.data_dir import DataDirError, StorageError, sync_directory
from mockraft.serving.private_files import FILE_MODE
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


class LogStorage:
    """The segments of one log, the last of which takes appends. `segments` are base offsets, in order."""

    def __init__(self, path: Path, *, segment_bytes_max: int, fsync: bool) -> None:
        """Open the log in `path`; nothing is read or created yet."""
        self.path = path
        self.segments = sorted(
            int(match[1]) for file in path.iterdir() if (match := _SEGMENT_NAME.fullmatch(file.name))
        )
        self._segment_bytes_max = segment_bytes_max
        self._fsync = fsync
        self._file = -1
        self._size = 0
        self._failure: str | None = None

    def recover(self) -> Iterator[StoredBatch]:
        """Return every batch of every segment, in order; an unfinished one at the very end is cut off the file.

        DataDirError on damage before the end, on gaps, on decreasing offsets and epochs, and on numbers at their limit:
        cutting there would lose acknowledged records.
        """
        expected: int | None = None
        epoch = 0
        for base_offset in self.segments:
            path = self._segment_path(base_offset)
            is_last = base_offset == self.segments[-1]
            if reason := limits.refusal(offset=base_offset):
                raise DataDirError(f"{path}: {reason}")
            if expected is not None and base_offset != expected:
                raise DataDirError(f"{path}: begins at {base_offset}, but the segment before it ends at {expected}")
            expected = base_offset
            for header, data in _read_segment(path, is_last):
                if header.base_offset != expected:
                    raise DataDirError(
                        f"{path}: batch at {header.position} has base offset {header.base_offset}, expected {expected}"
                    )
                # The CRC does not cover the epoch.
                if reason := limits.refusal(epoch=header.leader_epoch):
                    raise DataDirError(f"{path}: batch at {header.position}: {reason}")
                if header.leader_epoch < epoch:
                    found = f"leader epoch {header.leader_epoch}, after epoch {epoch}"
                    raise DataDirError(f"{path}: batch at {header.position} has {found}")
                epoch = header.leader_epoch
                expected = header.last_offset + 1
                yield StoredBatch(header._replace(position=0, end=len(data)), data)

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
        try:
            if self._size and self._size + len(data) > self._segment_bytes_max:
                self._create(base_offset)
            self._write(data)
        except OSError as error:
            path = self._segment_path(self.segments[-1])
            message = f"{path}: cannot be written: {error}; the records were refused"
            self._undo(message)
            raise StorageError(message) from error
        self._size += len(data)

    def roll(self, base_offset: int) -> None:
        """Begin a new segment, unless the current one is empty. OSError when it cannot be created."""
        if self._size:
            self._create(base_offset)

    def delete_before(self, offset: int) -> None:
        """Delete segments whose records are all below `offset`; the last segment stays."""
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
            while len(self.segments) > 1 and self.segments[-1] > end_offset:
                self._release()
                self._segment_path(self.segments[-1]).unlink()
                del self.segments[-1]
            if self._file < 0:
                self._open(self.segments[-1])
            os.ftruncate(self._file, self._size - cut_bytes)
            self._size -= cut_bytes
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be cut back to {end_offset}: {error}") from error

    def restart_at(self, offset: int) -> None:
        """Delete all segments and restart at `offset` (UnifiedLog.truncateFullyAndStartAt)."""
        self._create(offset)
        self.segments = [*(base for base in self.segments if base != offset), offset]
        self.delete_before(offset)

    def close(self) -> None:
        """Flush the last segment to the disk and close it."""
        if self._file >= 0:
            os.fsync(self._file)
            self._release()

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
        self._release()
        self._file, self._size = created, 0
        self.segments.append(base_offset)

    def _open(self, base_offset: int) -> None:
        self._file = os.open(self._segment_path(base_offset), os.O_RDWR | os.O_CLOEXEC)
        self._size = os.lseek(self._file, 0, os.SEEK_END)

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


def _read_segment(path: Path, is_last: bool) -> Iterator[tuple[BatchHeader, bytes]]:
    data = path.read_bytes()
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
        raise DataDirError(
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
