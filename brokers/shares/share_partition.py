"""A share group's state of one partition, as its leader keeps it (SharePartition); time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final, NamedTuple

from mockraft.brokers.partitions.producers import Ended
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.record_batch import BatchHeader


@unique
class Acknowledgement(IntEnum):
    """Kafka's AcknowledgeType, and 0 for an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


BATCH_OPTIMIZED: Final = 0
"""The acquire mode that ends with a whole batch of the log; the other one ends with the last record wanted."""


class ShareSettings(NamedTuple):
    """Configs of a group for the records that it acquires."""

    lock_ms: int
    deliveries_max: int
    locks_max: int
    read_committed: bool


class Wanted(NamedTuple):
    """A member's wish to acquire: at most `records_max`, in ranges of about `batch_size`."""

    member_id: str
    records_max: int
    batch_size: int
    mode: int = BATCH_OPTIMIZED


class Acquired(NamedTuple):
    """Records that a member has acquired, with the number of their deliveries."""

    first: int
    last: int
    deliveries: int


class AcknowledgedRange(NamedTuple):
    """Offsets from `first` to `last`, with one type for all or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def each(self) -> Iterator[tuple[int, Acknowledgement]]:
        """Return each offset with its type."""
        for at, offset in enumerate(range(self.first, self.last + 1)):
            yield offset, Acknowledgement(self.types[at] if len(self.types) > 1 else self.types[0])


@dataclass(slots=True)
class _Record:
    """A record between the start offset and the end; without a member it is available, or done."""

    member_id: str = ""
    deliveries: int = 0
    lock_end_ms: int = NEVER_MS
    is_done: bool = False

    @property
    def is_available(self) -> bool:
        """True if a member may acquire it."""
        return not self.member_id and not self.is_done

    def acquire(self, member_id: str, lock_end_ms: int) -> None:
        """Lock it for a member."""
        self.member_id, self.lock_end_ms = member_id, lock_end_ms
        self.deliveries += 1

    def release(self, deliveries_max: int) -> None:
        """Make it available again, or archive it after its last delivery."""
        self.member_id, self.lock_end_ms = "", NEVER_MS
        self.is_done = self.deliveries >= deliveries_max

    def end(self) -> None:
        """Never deliver it again."""
        self.member_id, self.lock_end_ms, self.is_done = "", NEVER_MS, True


@dataclass(slots=True)
class SharePartition:
    """The records from `start_offset` to `end_offset` (exclusive) were acquired at least once, or are gaps.

    `next_tick_ms` is the time of the next `tick`, or earlier.
    """

    start_offset: int
    end_offset: int = field(init=False)
    next_tick_ms: int = field(default=NEVER_MS, init=False)
    _records: dict[int, _Record] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.end_offset = self.start_offset

    def next_offset(self, settings: ShareSettings, log_start_offset: int) -> int | None:
        """Return the first offset to acquire; None while members have as many records as they may."""
        if log_start_offset > self.start_offset:
            self.end_offset = max(self.end_offset, log_start_offset)
            self._start_at(log_start_offset)
        available = (offset for offset, each in self._records.items() if each.is_available)
        return next(available, self.end_offset if self._room(settings) > 0 else None)

    def acquire(
        self,
        wanted: Wanted,
        batches: Iterable[BatchHeader],
        aborted: Sequence[Ended],
        settings: ShareSettings,
        now_ms: int,
    ) -> list[Acquired]:
        """Acquire records of these batches of the log, which begin at `next_offset`, for a member."""
        found: list[Acquired] = []
        room = self._room(settings)
        records_max = min(wanted.records_max, room) if room > 0 else wanted.records_max
        count = in_range = 0
        for batch in batches:
            if count >= records_max:
                break
            if in_range >= wanted.batch_size:
                in_range = 0
            is_aborted = settings.read_committed and _is_aborted(batch, aborted)
            for offset in range(max(batch.base_offset, self.start_offset), batch.last_offset + 1):
                if count >= records_max and wanted.mode != BATCH_OPTIMIZED:
                    break
                record = self._reached(offset, may_extend=room > 0)
                if record is None or not record.is_available:
                    continue
                if is_aborted:
                    record.end()
                    continue
                record.acquire(wanted.member_id, now_ms + settings.lock_ms)
                if in_range and found[-1].last == offset - 1 and found[-1].deliveries == record.deliveries:
                    found[-1] = found[-1]._replace(last=offset)
                else:
                    found.append(Acquired(offset, offset, record.deliveries))
                count, in_range = count + 1, in_range + 1
        self.next_tick_ms = min(self.next_tick_ms, now_ms + settings.lock_ms)
        self._advance()
        return found

    def acknowledge(
        self, member_id: str, ranges: Iterable[AcknowledgedRange], settings: ShareSettings, now_ms: int
    ) -> None:
        """Acknowledge all of these records or, with ApiError, none. What was done before is ignored."""
        changes: dict[int, tuple[_Record, Acknowledgement]] = {}
        lock_end_ms = now_ms + settings.lock_ms
        for each in ranges:
            if self._records and each.last >= self.end_offset:
                raise ApiError(error_codes.INVALID_REQUEST, _PAST_THE_END)
            for offset, kind in each.each():
                record = self._records.get(offset)
                if offset < self.start_offset:
                    continue
                if record is None or not record.member_id or offset in changes:
                    raise ApiError(error_codes.INVALID_RECORD_STATE, _NOT_ACQUIRED)
                if record.member_id != member_id:
                    raise ApiError(error_codes.INVALID_RECORD_STATE, _NOT_THE_OWNER)
                changes[offset] = record, kind
        for record, kind in changes.values():
            if kind is Acknowledgement.RELEASE:
                record.release(settings.deliveries_max)
            elif kind is Acknowledgement.RENEW:
                record.lock_end_ms = lock_end_ms
                self.next_tick_ms = min(self.next_tick_ms, lock_end_ms)
            else:
                record.end()
        self._advance()

    def release(self, member_id: str, settings: ShareSettings) -> bool:
        """Release all records of a member whose session ends; return True if there were any."""
        return self._release([each for each in self._records.values() if each.member_id == member_id], settings)

    def tick(self, now_ms: int, settings: ShareSettings) -> bool:
        """Release records whose lock has ended; return True if there were any."""
        has_released = self._release([each for each in self._records.values() if now_ms >= each.lock_end_ms], settings)
        self.next_tick_ms = min((each.lock_end_ms for each in self._records.values()), default=NEVER_MS)
        return has_released

    @property
    def done_count(self) -> int:
        """The number of records that are done, though one below them is not."""
        return sum(each.is_done for each in self._records.values())

    # Internals.

    def _release(self, records: list[_Record], settings: ShareSettings) -> bool:
        for each in records:
            each.release(settings.deliveries_max)
        self._advance()
        return bool(records)

    def _room(self, settings: ShareSettings) -> int:
        return settings.locks_max - (self.end_offset - self.start_offset)

    def _reached(self, offset: int, *, may_extend: bool) -> _Record | None:
        """Return the record of an offset, perhaps a new one; offsets that the log has jumped over are done."""
        if offset >= self.end_offset and may_extend:
            self._records.update((gap, _Record(is_done=True)) for gap in range(self.end_offset, offset))
            self._records[offset] = _Record()
            self.end_offset = offset + 1
        return self._records.get(offset)

    def _advance(self) -> None:
        offset = next((offset for offset, each in self._records.items() if not each.is_done), self.end_offset)
        self._start_at(offset)

    def _start_at(self, offset: int) -> None:
        for each in range(self.start_offset, offset):
            self._records.pop(each, None)
        self.start_offset = offset


_PAST_THE_END: Final = "Batch record not found. The last offset in request is past acquired records."
_NOT_ACQUIRED: Final = "The offset cannot be acknowledged. The offset is not acquired."
_NOT_THE_OWNER: Final = "Member is not the owner of offset"


def _is_aborted(batch: BatchHeader, aborted: Sequence[Ended]) -> bool:
    return any(
        batch.is_transactional
        and not batch.is_control
        and each.producer_id == batch.producer_id
        and each.first_offset <= batch.base_offset <= each.last_offset
        for each in aborted
    )
