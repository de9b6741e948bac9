"""ISR changes in flight to the controller (Kafka's `AlterPartitionManager`, KIP-497, KIP-903).

Sans-IO: the caller sends the request of :meth:`IsrChanges.take` and passes the response to :meth:`IsrChanges.answered`.
One request is in flight; each partition has at most one pending change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.partitions.partition import CommittedIsr, IsrChange
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.messages.alter_partition_response import AlterPartitionResponse

RETRY_MS = 50

Answered: TypeAlias = Callable[[IsrChange, CommittedIsr | int], None]
"""Callback with the result of a change: the committed ISR, or an error code."""


class _Waiting(NamedTuple):
    change: IsrChange
    on_answer: Answered


class IsrChanges:
    """The changes without a response, by (topic id, partition).

    A change is sent again after no response or a response with a top-level error.
    """

    def __init__(self) -> None:
        self._waiting: dict[ReplicaKey, _Waiting] = {}
        self._in_flight: dict[ReplicaKey, _Waiting] | None = None

    @property
    def is_due(self) -> bool:
        """True if :meth:`take` has a request."""
        return bool(self._waiting) and self._in_flight is None

    def add(self, key: ReplicaKey, change: IsrChange, on_answer: Answered) -> None:
        """Queue this change; OPERATION_NOT_ATTEMPTED is reported at once when the partition has a pending one."""
        if key in self._waiting:
            on_answer(change, error_codes.OPERATION_NOT_ATTEMPTED)
        else:
            self._waiting[key] = _Waiting(change, on_answer)

    def take(self, broker_id: int, broker_epoch: int, version: int) -> AlterPartitionRequest | None:
        """Return the waiting changes as one request, the same while it is in flight; None without changes."""
        if self._in_flight is None:
            self._in_flight = dict(self._waiting)
        if not self._in_flight:
            self._in_flight = None
            return None
        topics: dict[bytes, list[PartitionData]] = {}
        for (topic_id, partition), (change, _) in self._in_flight.items():
            data = PartitionData(
                partition_index=partition, leader_epoch=change.leader_epoch, partition_epoch=change.partition_epoch
            )
            if version >= 3:
                data.new_isr_with_epochs = [
                    BrokerState(broker_id=replica, broker_epoch=epoch) for replica, epoch in change.isr_with_epochs
                ]
            else:
                data.new_isr = [replica for replica, _ in change.isr_with_epochs]
            topics.setdefault(topic_id, []).append(data)
        return AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            topics=[TopicData(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
        )

    def answered(self, response: AlterPartitionResponse) -> int:
        """Report each change's result; return the ms to wait before the next :meth:`take`."""
        sent, self._in_flight = self._in_flight or {}, None
        if response.error_code != error_codes.NONE:
            return RETRY_MS
        wait_ms = 0
        for topic in response.topics:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                waiting = sent.get(key)
                if waiting is None or self._waiting.get(key) is not waiting:
                    continue
                # Removed before the callback, which may propose the next change.
                del self._waiting[key]
                if answer.error_code == error_codes.NONE:
                    isr = CommittedIsr(answer.leader_epoch, answer.partition_epoch, tuple(answer.isr))
                    waiting.on_answer(waiting.change, isr)
                else:
                    # Kafka retries at once, which floods a controller that keeps refusing.
                    wait_ms = RETRY_MS
                    waiting.on_answer(waiting.change, answer.error_code)
        return wait_ms

    def failed(self) -> int:
        """Handle a missing or unusable response; return the ms to wait before the next :meth:`take`."""
        self._in_flight = None
        return RETRY_MS
