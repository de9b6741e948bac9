"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`, whole in memory or a file of the data dir.

Source: Kafka's RecordsSnapshotWriter and Snapshots. A snapshot is batches with offsets that start at 0 again: a
control batch [SnapshotHeader, KRaftVersion, Voters], data batches framed as in the log, a control batch
[SnapshotFooter]; all batches carry the epoch of the snapshot's id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from mockraft.files.given_files import SNAPSHOT_BYTES_MAX, open_file
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.record_batch import Batch
from mockraft.wire.records.snapshot_footer_record import SnapshotFooterRecord
from mockraft.wire.records.snapshot_header_record import SnapshotHeaderRecord

SUFFIX = ".checkpoint"
PARTIAL_SUFFIX = ".checkpoint.part"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BATCH_BYTES = 1 << 20
_BATCH_RECORDS = 10_000
_STEP_RECORDS = 500
_HEAD_BYTES_MAX = 1 << 16

T = TypeVar("T")


class EpochEndOffset(NamedTuple):
    """Point where a follower's log diverges: the largest common epoch and its end offset here."""

    epoch: int
    end_offset: int


class SnapshotId(NamedTuple):
    """Id of a snapshot: it covers all records below `end_offset`, the last of which has `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Kafka's name of the snapshot's file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


BOOTSTRAP = SnapshotId(0, 0)
"""The id of the snapshot that `kafka-storage format --standalone` writes; it is never served to followers."""


def parse_file_name(name: str) -> SnapshotId | None:
    """Return the id in a snapshot's file name; None for any other file."""
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


class Snapshot:
    """A complete snapshot. `size` is in bytes."""

    __slots__ = ("_data", "_last_contained_ms", "_path", "id", "size")

    def __init__(self, snapshot_id: SnapshotId, content: bytes | Path) -> None:
        self.id = snapshot_id
        self._path = content if isinstance(content, Path) else None
        self._data = b"" if isinstance(content, Path) else content
        self._last_contained_ms: int | None = None
        self.size = content.stat().st_size if isinstance(content, Path) else len(content)

    def read(self, position: int, bytes_max: int) -> bytes:
        """Read up to `bytes_max` bytes from `position`, not aligned to batches. OSError if the file is gone."""
        if self._path is None:
            return self._data[position : position + bytes_max]
        with open_file(self._path) as file:
            return os.pread(file.fileno(), bytes_max, position)

    def batches(self) -> Iterator[Batch]:
        """Return all batches. WireError when one is damaged or the snapshot lacks its header or footer."""
        batch = None
        try:
            if self.size > SNAPSHOT_BYTES_MAX:
                raise WireError(f"has more than {SNAPSHOT_BYTES_MAX:,} bytes")
            for batch in record_batch.read_batches(self.read(0, self.size)):
                if batch.base_offset == 0 and _first_control_type(batch) != record_batch.SNAPSHOT_HEADER:
                    raise WireError("does not begin with a SnapshotHeader")
                yield batch
            if batch is None or _first_control_type(batch) != record_batch.SNAPSHOT_FOOTER:
                raise WireError("does not end with a SnapshotFooter")
        except WireError as error:
            name = self.id.file_name if self._path is None else self._path.name
            raise WireError(f"snapshot {name}: {error}") from error

    def records(self, decode: Callable[[bytes], RecordAt] = metadata_log_frame.decode) -> Iterator[RecordAt]:
        """Return the metadata records, in order. WireError as `batches`."""
        return records_of(self.batches(), decode)

    def last_contained_ms(self) -> int:
        """Return the time of the last record that it covers, from its header. OSError, WireError."""
        if self._last_contained_ms is None:
            head = next(record_batch.read_batches(self.read(0, _HEAD_BYTES_MAX), allow_partial_tail=True), None)
            if head is None or _first_control_type(head) != record_batch.SNAPSHOT_HEADER:
                raise WireError(f"snapshot {self.id.file_name}: does not begin with a SnapshotHeader")
            header = SnapshotHeaderRecord.read(head.records[0][1] or b"", 0)
            self._last_contained_ms = header.last_contained_log_timestamp
        return self._last_contained_ms

    def delete(self) -> None:
        """Delete the file, if any."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def records_of(
    batches: Iterable[Batch], decode: Callable[[bytes], RecordAt] = metadata_log_frame.decode
) -> Iterator[RecordAt]:
    """Return the metadata records in batches, in order. Raises WireError for a record of a newer Kafka."""
    for batch in batches:
        if not batch.is_control:
            for _, value in batch.records:
                yield decode(value or b"")


def encode(
    snapshot_id: SnapshotId,
    records: Iterable[RecordAt],
    *,
    voters: Sequence[tuple[bytes, bytes]],
    last_contained_log_timestamp_ms: int,
    now_ms: int,
    encode_record: Callable[[Message, int], bytes] = metadata_log_frame.encode,
) -> Iterator[bytes]:
    """Return the batches of a snapshot; `voters` are the control records with kraft.version and the voter set.

    Between them b"" comes every few milliseconds of work, at which the writer may pause; a small image has none.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_log_timestamp_ms)
    head = [(record_batch.control_key(record_batch.SNAPSHOT_HEADER), header.write(0)), *voters]
    at = {"leader_epoch": snapshot_id.epoch, "timestamp_ms": now_ms}
    yield record_batch.encode_control(head, base_offset=0, **at)
    offset = len(head)
    for values in _in_batches(records, encode_record):
        if len(values) >= _STEP_RECORDS or not values:
            yield b""
        if not values:
            continue
        yield record_batch.encode(values, base_offset=offset, **at)
        offset += len(values)
    footer = (record_batch.control_key(record_batch.SNAPSHOT_FOOTER), SnapshotFooterRecord(version=0).write(0))
    yield record_batch.encode_control([footer], base_offset=offset, **at)


def in_memory(snapshot_id: SnapshotId, batches: Iterable[bytes]) -> Generator[None, None, Snapshot]:
    """Keep a snapshot in memory, with a pause at each empty one of `batches`."""
    kept = []
    for batch in batches:
        if batch:
            kept.append(batch)
        else:
            yield
    return Snapshot(snapshot_id, b"".join(kept))


def completed(steps: Generator[None, None, T]) -> T:
    """Do what is done in steps without a pause, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _in_batches(records: Iterable[RecordAt], encode_record: Callable[[Message, int], bytes]) -> Iterator[list[bytes]]:
    """Yield the values of each batch, and between them an empty list before every 500th record."""
    values: list[bytes] = []
    size = 0
    for number, (record, version) in enumerate(records, 1):
        if not number % _STEP_RECORDS:
            yield []
        value = encode_record(record, version)
        if values and (size + len(value) > _BATCH_BYTES or len(values) == _BATCH_RECORDS):
            yield values
            values, size = [], 0
        values.append(value)
        size += len(value)
    if values:
        yield values


def _first_control_type(batch: Batch) -> int | None:
    return record_batch.control_type(batch.records[0][0]) if batch.is_control else None
