"""ISR changes on their way to the controller (Kafka's `AlterPartitionManager`, KIP-497, KIP-903).

Sans-IO: the shell asks :meth:`IsrChanges.take` for the next request, sends it and gives the answer to
:meth:`IsrChanges.answered`. One request is in flight; each partition has at most one change on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.partitions.partition import CommittedIsr, IsrChange
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)

RETRY_MS = 50

Answered: TypeAlias = Callable[[IsrChange, CommittedIsr | int], None]
"""What is told of a change: what the controller committed, or its error code."""


class _Waiting(NamedTuple):
    change: IsrChange
    tell: Answered


class IsrChanges:
    """The changes that the controller has not answered yet, by (topic id, partition).

    A change that is not answered, or in an answer with an error for the whole request, is sent again.
    """

    def __init__(self) -> None:
        self._waiting: dict[ReplicaKey, _Waiting] = {}
        self._in_flight: dict[ReplicaKey, _Waiting] | None = None

    @property
    def is_due(self) -> bool:
        """Whether :meth:`take` has something to give."""
        return bool(self._waiting) and self._in_flight is None

    def add(self, key: ReplicaKey, change: IsrChange, tell: Answered) -> None:
        """Send this change; OPERATION_NOT_ATTEMPTED is told at once when another one of the partition is on its way."""
        if key in self._waiting:
            tell(change, error_codes.OPERATION_NOT_ATTEMPTED)
        else:
            self._waiting[key] = _Waiting(change, tell)

    def take(self, broker_id: int, broker_epoch: int, version: int) -> AlterPartitionRequest | None:
        """All that waits as one request of this version, the same again while it is in flight; None when nothing is."""
        if self._in_flight is None:
            self._in_flight = dict(self._waiting)
        if not self._in_flight:
            self._in_flight = None
            return None
        topics: dict[bytes, list[PartitionData]] = {}
        for (topic_id, partition), (change, _) in self._in_flight.items():
            asked = PartitionData(
                partition_index=partition,
                leader_epoch=change.leader_epoch,
                partition_epoch=change.partition_epoch,
            )
            if version >= 3:
                asked.new_isr_with_epochs = [
                    BrokerState(broker_id=replica, broker_epoch=epoch) for replica, epoch in change.isr_with_epochs
                ]
            else:
                asked.new_isr = [replica for replica, _ in change.isr_with_epochs]
            topics.setdefault(topic_id, []).append(asked)
        return AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            topics=[TopicData(topic_id=topic_id, partitions=asked) for topic_id, asked in topics.items()],
        )

    def answered(self, response: Any) -> int:
        """Tell each change of the request what came of it; how many ms to wait before the next :meth:`take`."""
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
                # Gone before it is told: the answer may make it propose the next one.
                del self._waiting[key]
                if answer.error_code == error_codes.NONE:
                    isr = CommittedIsr(answer.leader_epoch, answer.partition_epoch, tuple(answer.isr))
                    waiting.tell(waiting.change, isr)
                else:
                    # Kafka asks again at once, which is a storm when the controller stays of its opinion.
                    wait_ms = RETRY_MS
                    waiting.tell(waiting.change, answer.error_code)
        return wait_ms

    def failed(self) -> int:
        """No usable answer came; how many ms to wait before the next :meth:`take`."""
        self._in_flight = None
        return RETRY_MS
