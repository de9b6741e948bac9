"""A share group's state of one partition, as its leader keeps it (SharePartition); time is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
_ACQUIRED_MAX: Final = 10_000
"""Records of one batch that a fetch acquires: a small batch may have any number. Kafka acquires all of them."""


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

    def each(self, start_offset: int) -> Iterator[tuple[int, Acknowledgement]]:
        """Return each offset from the start offset on with its type."""
        for offset in range(max(self.first, start_offset), self.last + 1):
            yield offset, Acknowledgement(self.types[offset - self.first] if len(self.types) > 1 else self.types[0])


@dataclass(slots=True)
class _Record:
    """A record that is not done; without a member it is available."""

    member_id: str = ""
    deliveries: int = 0
    lock_end_ms: int = NEVER_MS

    def acquire(self, member_id: str, lock_end_ms: int) -> None:
        """Lock it for a member."""
        self.member_id, self.lock_end_ms = member_id, lock_end_ms
        self.deliveries += 1


@dataclass(slots=True, eq=False)
class SharePartition:
    """The records from `start_offset` to `end_offset` (exclusive) were acquired at least once, or are gaps.

    `_records` has those of them that are not done, in order. `next_tick_ms` is the time of the next `tick`, or earlier.
    `changes` counts what lets members acquire more; without any, nothing is lost with the partition's state.
    """

    start_offset: int
    changes: int = 0
    end_offset: int = field(init=False)
    next_tick_ms: int = field(default=NEVER_MS, init=False)
    _records: dict[int, _Record] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.end_offset = self.start_offset

    def next_offset(self, settings: ShareSettings, log_start_offset: int) -> int | None:
        """Return the first offset to acquire; None while members have as many records as they may."""
        if log_start_offset > self.start_offset:
            self.end_offset = max(self.end_offset, log_start_offset)
            for offset in [each for each in self._records if each < log_start_offset]:
                del self._records[offset]
            self._advance()
        available = (offset for offset, each in self._records.items() if not each.member_id)
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
            known_end = max(self.end_offset, batch.base_offset)
            end = min(batch.last_offset + 1, known_end + (_ACQUIRED_MAX if room > 0 else 0))
            for offset in range(max(batch.base_offset, self.start_offset), end):
                if count >= records_max and wanted.mode != BATCH_OPTIMIZED:
                    break
                record = self._reached(offset)
                if record is None or record.member_id:
                    continue
                if is_aborted:
                    del self._records[offset]
                    continue
                record.acquire(wanted.member_id, now_ms + settings.lock_ms)
                if in_range and found[-1].last == offset - 1 and found[-1].deliveries == record.deliveries:
                    found[-1] = found[-1]._replace(last=offset)
                else:
                    found.append(Acquired(offset, offset, record.deliveries))
                count, in_range = count + 1, in_range + 1
            if end <= batch.last_offset:
                break
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
            for offset, kind in each.each(self.start_offset):
                record = self._records.get(offset)
                if record is None or not record.member_id or offset in changes:
                    raise ApiError(error_codes.INVALID_RECORD_STATE, _NOT_ACQUIRED)
                if record.member_id != member_id:
                    raise ApiError(error_codes.INVALID_RECORD_STATE, _NOT_THE_OWNER)
                changes[offset] = record, kind
        for offset, (record, kind) in changes.items():
            if kind is Acknowledgement.RELEASE:
                self._release_one(offset, record, settings)
            elif kind is Acknowledgement.RENEW:
                record.lock_end_ms = lock_end_ms
            else:
                del self._records[offset]
        self._advance()
        self.changes += 1

    def release(self, member_id: str, settings: ShareSettings) -> bool:
        """Release all records of a member whose session ends; return True if there were any."""
        return self._release(settings, lambda each: each.member_id == member_id)

    def tick(self, now_ms: int, settings: ShareSettings) -> bool:
        """Release records whose lock has ended; return True if there were any."""
        has_released = self._release(settings, lambda each: now_ms >= each.lock_end_ms)
        self.next_tick_ms = min((each.lock_end_ms for each in self._records.values()), default=NEVER_MS)
        return has_released

    @property
    def done_count(self) -> int:
        """The number of records that are done, though one below them is not."""
        return self.end_offset - self.start_offset - len(self._records)

    # Internals.

    def _release(self, settings: ShareSettings, is_released: Callable[[_Record], bool]) -> bool:
        released = [(offset, each) for offset, each in self._records.items() if is_released(each)]
        for offset, each in released:
            self._release_one(offset, each, settings)
        self._advance()
        self.changes += bool(released)
        return bool(released)

    def _release_one(self, offset: int, record: _Record, settings: ShareSettings) -> None:
        """Make a record available again, or archive it after its last delivery."""
        record.member_id, record.lock_end_ms = "", NEVER_MS
        if record.deliveries >= settings.deliveries_max:
            del self._records[offset]

    def _room(self, settings: ShareSettings) -> int:
        return settings.locks_max - (self.end_offset - self.start_offset)

    def _reached(self, offset: int) -> _Record | None:
        """Return the record of an offset, perhaps a new one; offsets that the log has jumped over are done."""
        if offset >= self.end_offset:
            self._records[offset] = _Record()
            self.end_offset = offset + 1
        return self._records.get(offset)

    def _advance(self) -> None:
        self.start_offset = next(iter(self._records), self.end_offset)


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
