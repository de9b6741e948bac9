"""The part of a metadata log that a source has, and the state that its records define at any point."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mockraft.server.controller.image import Image
from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.records.snapshot_header_record import SnapshotHeaderRecord

_APPLY_ERRORS = (LookupError, ValueError)
_OFFSET = re.compile(r"-?[0-9]{1,18}")


class SourceError(ValueError):
    """Raised for a source without a metadata log, or without the point asked for; the message names it."""


class Logged(NamedTuple):
    """A metadata record of the log. Those of a snapshot all have its last contained offset."""

    offset: int
    epoch: int
    timestamp_ms: int
    record: Any
    version: int = 0


@dataclass(frozen=True)
class Moment:
    """The state after all records below `id.end_offset`; `timestamp_ms` is that of the last one."""

    id: SnapshotId
    timestamp_ms: int
    image: Image

    @property
    def point(self) -> str:
        """The offset and time, as text."""
        time = f" ({time_text(self.timestamp_ms)})" if self.timestamp_ms else ""
        return f"offset {self.id.end_offset - 1}{time}"


Point = str | int | Moment | None
"""A state of a history: an offset, a time, the state itself, or None for the last one."""


@dataclass(frozen=True)
class History:
    """A snapshot, or None, and the batches after it in order. `notes` are lines about what the source lacks.

    `cluster_id` is "" and `directory` empty where the source does not have them. `directory` are the properties in
    meta.properties.
    """

    source: Path
    snapshot: Snapshot | None
    batches: list[StoredBatch]
    cluster_id: str = ""
    directory: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def start_offset(self) -> int:
        """Offset of the first state that the history has."""
        return self.snapshot.id.end_offset if self.snapshot is not None else 0

    @property
    def first_offset(self) -> int:
        """Offset of the first state, as `moment` takes it."""
        return max(self.start_offset - 1, 0)

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        return self.batches[-1].header.last_offset + 1 if self.batches else self.start_offset

    def records(self) -> Iterator[Logged]:
        """Yield the metadata records in order. WireError for a record of a newer Kafka."""
        if self.snapshot is not None:
            snapshot_id, timestamp_ms = self.snapshot.id, last_contained_ms(self.snapshot)
            for at in self.snapshot.records():
                yield Logged(max(snapshot_id.end_offset - 1, 0), snapshot_id.epoch, timestamp_ms, *at)
        for header, data in self.batches:
            yield from records_of(header, data)

    def around(self, moment: Moment) -> tuple[int, int] | None:
        """Return the first and last offset of the batch inside which a moment is, a state that no broker had.

        None for other moments, and for the first one.
        """
        if moment.id.end_offset <= self.first_offset + 1:
            return None
        for header, _ in self.batches:
            if header.base_offset < moment.id.end_offset <= header.last_offset:
                return None if moment.image.open_transaction is not None else (header.base_offset, header.last_offset)
        return None

    def moment(self, point: Point = None) -> Moment:
        """Return the state at a point; None is the end, and a state of this history is itself.

        A number is an offset: the state after that record, or counted from the end if negative (-1: all). A text may
        also be a time, `2026-11-26T02:00:00Z` (without a zone: UTC): the state after the last record up to then.
        SourceError for a point that the history does not have.
        """
        if isinstance(point, Moment):
            return point
        end_offset = self.end_of(point)
        image, last = Image(), Logged(-1, self.snapshot.id.epoch if self.snapshot is not None else 0, 0, None)
        try:
            for logged in self.records():
                if logged.offset >= end_offset:
                    break
                image.apply(logged.record, logged.offset)
                last = logged
        except (WireError, *_APPLY_ERRORS) as error:
            about = str(error) if isinstance(error, WireError) else f"{type(error).__name__}: {error}"
            note = f"after offset {last.offset} a record cannot be applied ({about}): the state ends there"
            if note not in self.notes:
                self.notes.append(note)
            end_offset = last.offset + 1
        return Moment(SnapshotId(end_offset, last.epoch), last.timestamp_ms, image)

    def moments(self, *points: Point) -> list[Moment]:
        """Return the states at several points, as `moment`."""
        return [self.moment(point) for point in points]

    def end_of(self, point: Point) -> int:
        """Return the end offset of the state at a point. SourceError."""
        if point is None:
            return self.end_offset
        if isinstance(point, Moment):
            return point.id.end_offset
        text = str(point).strip()
        if _OFFSET.fullmatch(text):
            offset = int(text)
            end_offset = offset + 1 + (self.end_offset if offset < 0 else 0)
        else:
            end_offset = self._end_at(_milliseconds(text))
        if not self.start_offset <= end_offset <= self.end_offset:
            has = f"the records {self.start_offset} to {self.end_offset - 1}"
            if self.snapshot is not None:
                has = f"a snapshot of all up to {self.start_offset - 1}, and the records to {self.end_offset - 1}"
            raise SourceError(f"{self.source}: there is no state at {text}; it has {has}")
        return end_offset

    def _end_at(self, time_ms: int) -> int:
        is_after = self.snapshot is not None and last_contained_ms(self.snapshot) <= time_ms
        end_offset = self.start_offset if is_after else -1
        for header, _ in self.batches:
            if header.max_timestamp_ms > time_ms:
                break
            end_offset = header.last_offset + 1
        return end_offset


def records_of(header: BatchHeader, data: bytes) -> Iterator[Logged]:
    """Yield the metadata records of a batch. WireError for a record of a newer Kafka."""
    if header.is_control:
        return
    batch = record_batch.read_batch(data, header)
    for number, (_, value) in enumerate(batch.records):
        at = metadata_log_frame.decode(value or b"")
        yield Logged(batch.base_offset + number, batch.leader_epoch, batch.timestamps_ms[number], *at)


def is_whole(found: Snapshot, name: str, notes: list[str]) -> bool:
    """Return True if all batches of a snapshot can be read; otherwise note under this name that it is left out."""
    try:
        for _ in found.batches():
            pass
    except WireError as error:
        notes.append(f"{name} is left out: {error}")
        return False
    return True


def longest(
    snapshots: Iterable[Snapshot], batches: Mapping[int, StoredBatch]
) -> tuple[Snapshot | None, list[StoredBatch]]:
    """Return the snapshot from which the batches, by base offset, lead furthest without a gap, and these batches.

    Of several that lead equally far it is the oldest, for the longest history; None is the beginning of the log.
    """
    ends: dict[int, int] = {}
    for offset in sorted(batches, reverse=True):
        end = batches[offset].header.last_offset + 1
        ends[offset] = ends.get(end, end)
    best: Snapshot | None = None
    at = best_end = 0
    for each in (None, *sorted(snapshots, key=lambda each: each.id)):
        start = each.id.end_offset if each is not None else 0
        end = ends.get(start, start)
        if end > best_end or (best is None and end == best_end == 0):
            best, at, best_end = each, start, end
    found = []
    while (batch := batches.get(at)) is not None:
        found.append(batch)
        at = batch.header.last_offset + 1
    return best, found


def time_text(timestamp_ms: int) -> str:
    """Return a time as `--at` takes it; a record may have one beyond the year 9999."""
    try:
        found = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms after 1970"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def last_contained_ms(snapshot: Snapshot) -> int:
    """Return the time of the last record before a snapshot; 0 if it is not known."""
    for batch in snapshot.batches():
        value = batch.records[0][1]
        return SnapshotHeaderRecord.read(value or b"", 0).last_contained_log_timestamp
    return 0


def _milliseconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SourceError(f"{text!r} is neither an offset nor a time such as 2026-11-26T02:00:00Z") from None
    return round((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)
