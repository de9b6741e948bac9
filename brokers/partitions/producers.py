"""The state of a partition's idempotent producers (Kafka's `ProducerStateManager`, KIP-98).

A batch written before gets the same response again; one too early or from an older epoch is refused.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from mockraft.brokers.log_dirs.batch_headers import BatchHeader
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.wire import error_codes

BATCHES_KEPT = 5
"""Maximum number of requests that a producer may have in flight."""
PRODUCERS_MAX = 10_000
"""Per partition; the one that was idle longest is dropped first."""
_SEQUENCES = 1 << 31


class _Written(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[_Written] = deque(maxlen=BATCHES_KEPT)


class Producers:
    """The producers of one partition by id, each with its epoch and its last batches."""

    def __init__(self) -> None:
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: BatchHeader) -> tuple[int, int] | None:
        """Return (offset, timestamp) of an earlier write of this batch, None when it is new and may be appended.

        LogError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER. An unknown (or expired) producer may start with
        any sequence, as in Kafka.
        """
        producer = self._producers.get(header.producer_id)
        if header.producer_id < 0 or producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            raise LogError(
                error_codes.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, which is smaller than the last"
                f" seen epoch {producer.epoch}",
            )
        first = header.base_sequence
        last = _after(first, header.last_offset - header.base_offset)
        if header.producer_epoch == producer.epoch:
            for written in producer.batches:
                if (written.first_sequence, written.last_sequence) == (first, last):
                    return written.base_offset, written.max_timestamp_ms
        expected = 0
        if header.producer_epoch == producer.epoch and producer.batches:
            expected = _after(producer.batches[-1].last_sequence, 1)
        if first != expected and (producer.batches or header.producer_epoch != producer.epoch):
            raise LogError(
                error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: {first} (incoming seq. number),"
                f" {expected - 1} (current end sequence number)",
            )
        return None

    def written(self, header: BatchHeader) -> None:
        """Record an appended batch, with the offsets of its header."""
        if header.producer_id < 0 or header.base_sequence < 0:
            return
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        last = _after(header.base_sequence, header.last_offset - header.base_offset)
        producer.batches.append(
            _Written(header.base_sequence, last, header.base_offset, header.last_offset, header.max_timestamp_ms)
        )
        self._producers.move_to_end(header.producer_id)
        if len(self._producers) > PRODUCERS_MAX:
            self._producers.popitem(last=False)

    def truncate(self, end_offset: int) -> None:
        """Drop the batches beyond the log's new end."""
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[-1].last_offset >= end_offset:
                producer.batches.pop()
            if not producer.batches:
                del self._producers[producer_id]


def _after(sequence: int, count: int) -> int:
    """Return the sequence that many later; it continues at 0 after the largest int32."""
    return (sequence + count) % _SEQUENCES
