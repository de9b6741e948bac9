"""The state of a partition's producers (Kafka's `ProducerStateManager` and `ProducerAppendInfo`; KIP-98, KIP-890).

A batch written before gets the same response again; one too early or from an older epoch is refused. A transaction is
open from its first batch to the marker that ends it. The last stable offset is below every open transaction, and below
those whose marker is not replicated yet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.transaction_markers import Marker
from mockraft.brokers.partitions.partition import NO_EPOCH
from mockraft.wire import error_codes
from mockraft.wire.record_batch import BatchHeader

BATCHES_KEPT = 5
"""Maximum number of requests that a producer may have in flight."""
PRODUCERS_MAX = 10_000
"""Per partition; of those without an open transaction the one that was idle longest is dropped first."""
EPOCH_MAX = (1 << 15) - 1
_SEQUENCES = 1 << 31


class _Written(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class Ended(NamedTuple):
    """A transaction in this partition: its first offset, and the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Producer:
    """One producer; `transaction_start` is the first offset of its open transaction, None without one."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp_ms", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = NO_EPOCH
        self.timestamp_ms = -1
        self.transaction_start: int | None = None
        self.batches: deque[_Written] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record of this epoch, -1 before the first."""
        return self.batches[-1].last_sequence if self.batches else -1

    def reach(self, epoch: int, timestamp_ms: int) -> None:
        """Note the epoch of a batch: sequences of a new one begin at 0."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch
        self.timestamp_ms = timestamp_ms


@dataclass(slots=True, eq=False)
class Verification:
    """A verification with the transaction's coordinator (VerificationStateEntry): the transaction may begin with it.

    `lowest_sequence` is that of the first batch that was to be verified in this epoch: later ones must wait for it.
    """

    epoch: int
    lowest_sequence: int
    starts_at_zero: bool


class Producers:
    """The producers of one partition by id. `aborted` are its aborted transactions, in the order of their markers."""

    def __init__(self) -> None:
        self.aborted: list[Ended] = []
        self._verifications: dict[int, Verification] = {}
        self._producers: OrderedDict[int, Producer] = OrderedDict()
        # In the order of their first offsets.
        self._open: OrderedDict[int, int] = OrderedDict()
        self._ended: deque[Ended] = deque()

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._producers.items())

    def is_in_transaction(self, producer_id: int, epoch: int | None = None) -> bool:
        """Return True if the producer has an open transaction here, of this epoch if one is given."""
        return producer_id in self._open and epoch in (None, self._producers[producer_id].epoch)

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, starts_at_zero: bool = False
    ) -> Verification:
        """Return the guard of a verification with the coordinator; a marker makes it void.

        LogError: INVALID_PRODUCER_EPOCH.
        """
        if (producer := self._producers.get(producer_id)) is not None:
            _check_epoch(producer_id, epoch, producer)
        found = self._verifications.get(producer_id)
        if found is None:
            found = self._verifications[producer_id] = Verification(epoch, sequence, starts_at_zero)
            if len(self._verifications) > PRODUCERS_MAX:
                del self._verifications[next(iter(self._verifications))]
        elif epoch > found.epoch or (epoch == found.epoch and sequence < found.lowest_sequence):
            found.epoch, found.lowest_sequence = epoch, sequence
        return found

    def is_verified(self, producer_id: int, guard: Verification | None) -> bool:
        """Return True if no transaction of the producer has ended since the verification began."""
        return guard is not None and self._verifications.get(producer_id) is guard

    def check_epoch(self, header: BatchHeader) -> None:
        """Raise LogError (INVALID_PRODUCER_EPOCH) for a batch of an older epoch."""
        producer = self._producers.get(header.producer_id)
        if producer is not None:
            _check_epoch(header.producer_id, header.producer_epoch, producer)

    def first_unstable_offset(self, high_watermark: int) -> int:
        """Return the first offset of the earliest transaction that is open or whose marker is not replicated.

        The high watermark when there is none.
        """
        while self._ended and self._ended[0].last_offset < high_watermark:
            self._ended.popleft()
        first_open = next(iter(self._open.values()), high_watermark)
        return min(first_open, min((each.first_offset for each in self._ended), default=first_open))

    def check(self, header: BatchHeader, *, is_verified: bool = True) -> tuple[int, int] | None:
        """Return (offset, timestamp) of an earlier write of this batch, None when it is new and may be appended.

        LogError: INVALID_TXN_STATE for a transaction that begins without being verified, INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER. An unknown (or expired) producer may start with any sequence, as in Kafka, except
        in transactions of version 2, and with the lowest that was verified.
        """
        if header.producer_id < 0:
            return None
        producer = self._producers.get(header.producer_id)
        first = header.base_sequence
        last = _after(first, header.last_offset - header.base_offset)
        if producer is not None and header.producer_epoch == producer.epoch:
            for written in producer.batches:
                if (written.first_sequence, written.last_sequence) == (first, last):
                    return written.base_offset, written.max_timestamp_ms
        if producer is not None:
            _check_epoch(header.producer_id, header.producer_epoch, producer)
        is_open = self.is_in_transaction(header.producer_id, header.producer_epoch)
        if header.is_transactional and not is_verified and not is_open:
            raise LogError(error_codes.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        verification = self._verifications.get(header.producer_id)
        if verification is not None and producer is None and verification.starts_at_zero and first != 0:
            raise _out_of_order(header.producer_id, first, -1)
        if verification is not None and first > verification.lowest_sequence:
            raise _out_of_order(header.producer_id, first, verification.lowest_sequence)
        if producer is None:
            return None
        expected = 0
        if header.producer_epoch == producer.epoch and producer.batches:
            expected = _after(producer.last_sequence, 1)
        if first != expected:
            raise _out_of_order(header.producer_id, first, expected - 1)
        if producer.transaction_start is not None and not header.is_transactional:
            raise LogError(
                error_codes.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id}: its transaction is open",
            )
        return None

    def check_marker(self, marker: Marker) -> None:
        """Raise LogError for a marker of an older producer (INVALID_PRODUCER_EPOCH) or of an older coordinator.

        Also for one of the producer's own epoch that version 2 of transactions has raised (KIP-1228), unless it is
        written again.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            return
        is_again = producer.transaction_start is None or marker.producer_epoch == EPOCH_MAX
        is_above = marker.transaction_version >= 2 and not is_again
        _check_epoch(marker.producer_id, marker.producer_epoch, producer, is_above=is_above)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise LogError(
                error_codes.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {marker.producer_id}: {marker.coordinator_epoch} (zombie),"
                f" {producer.coordinator_epoch} (current)",
            )

    def written(self, header: BatchHeader, marker: Marker | None = None) -> None:
        """Record an appended batch, with the offsets of its header; `marker` is that of a control batch."""
        if marker is not None:
            self._end(header, marker)
            return
        if header.producer_id < 0 or header.base_sequence < 0:
            return
        producer = self._reached(header.producer_id, header.producer_epoch, header.max_timestamp_ms)
        last = _after(header.base_sequence, header.last_offset - header.base_offset)
        producer.batches.append(
            _Written(header.base_sequence, last, header.base_offset, header.last_offset, header.max_timestamp_ms)
        )
        if not header.is_transactional:
            return
        self._verifications.pop(header.producer_id, None)
        if producer.transaction_start is None:
            producer.transaction_start = self._open[header.producer_id] = header.base_offset

    def aborted_between(self, offset: int, end_offset: int) -> list[Ended]:
        """Return the aborted transactions that have a part in these offsets; `end_offset` is exclusive."""
        return [each for each in self.aborted[self._first_ended(offset) :] if each.first_offset < end_offset]

    def forget_before(self, offset: int) -> None:
        """Drop the aborted transactions that ended below the log's start."""
        del self.aborted[: self._first_ended(offset)]

    def _first_ended(self, offset: int) -> int:
        """Return the index of the first aborted transaction that ended at this offset or later."""
        return bisect_left(self.aborted, offset, key=lambda each: each.last_offset)

    def _end(self, header: BatchHeader, marker: Marker) -> None:
        producer = self._reached(marker.producer_id, marker.producer_epoch, header.max_timestamp_ms)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.transaction_start = None
        verification = self._verifications.get(marker.producer_id)
        # In version 2 the next transaction has the marker's epoch: its verification may have begun.
        if verification is None or not verification.starts_at_zero or verification.epoch != marker.producer_epoch:
            self._verifications.pop(marker.producer_id, None)
        first_offset = self._open.pop(marker.producer_id, None)
        if first_offset is not None:
            ended = Ended(marker.producer_id, first_offset, header.base_offset)
            self._ended.append(ended)
            if not marker.is_commit:
                self.aborted.append(ended)

    def _reached(self, producer_id: int, epoch: int, timestamp_ms: int) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(epoch)
        producer.reach(epoch, timestamp_ms)
        self._producers.move_to_end(producer_id)
        if len(self._producers) > PRODUCERS_MAX:
            idle = (each for each in self._producers if each not in self._open)
            if (oldest := next(idle, None)) is not None:
                del self._producers[oldest]
        return producer


def _check_epoch(producer_id: int, epoch: int, producer: Producer, *, is_above: bool = False) -> None:
    if epoch < producer.epoch or (is_above and epoch == producer.epoch):
        raise LogError(
            error_codes.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {producer.epoch}",
        )


def _out_of_order(producer_id: int, incoming: int, current: int) -> LogError:
    return LogError(
        error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {producer_id}: {incoming} (incoming seq. number),"
        f" {current} (current end sequence number)",
    )


def _after(sequence: int, count: int) -> int:
    """Return the sequence that many later; it continues at 0 after the largest int32."""
    return (sequence + count) % _SEQUENCES
