"""Which replica lies in which directory, told to the controller in batches (Kafka's `AssignmentsManager`, KIP-858).

Sans-IO: the shell asks :meth:`Assignments.due_ms`, sends what :meth:`Assignments.take` gives and reports the answer.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

ASSIGNMENTS_PER_REQUEST_MAX = 2250
BACKOFF_MS = 100
BACKOFF_MAX_MS = 10_000

ReplicaKey = tuple[bytes, int]


class Assignments:
    """The queue of (topic id, partition) → directory uuid that the controller does not know yet.

    One request is in flight at a time; what fails goes back into the queue unless a newer assignment is there.
    """

    def __init__(self) -> None:
        self._ready: dict[ReplicaKey, bytes] = {}
        self._in_flight: dict[ReplicaKey, bytes] = {}
        self._due_ms: float | None = None
        self._failures = 0

    @property
    def queued(self) -> int:
        """Kafka's metric QueuedReplicaToDirAssignments: waiting and in flight."""
        return len(self._ready) + len(self._in_flight)

    @property
    def due_ms(self) -> float | None:
        """When to call :meth:`take`; None while there is nothing to send or a request is in flight."""
        return self._due_ms if self._ready and not self._in_flight else None

    def add(self, key: ReplicaKey, directory_id: bytes, now_ms: float) -> None:
        """Queue one assignment; it replaces an older one for the same replica."""
        self._ready[key] = directory_id
        self._schedule(now_ms)

    def take(self, broker_id: int, broker_epoch: int, still_here: Container[ReplicaKey]) -> Any | None:
        """The next request; None when none of the queued replicas is still on this broker."""
        if self._in_flight:
            return None
        self._due_ms = None
        while self._ready and len(self._in_flight) < ASSIGNMENTS_PER_REQUEST_MAX:
            key = next(iter(self._ready))
            directory_id = self._ready.pop(key)
            if key in still_here:
                self._in_flight[key] = directory_id
        return _request(broker_id, broker_epoch, self._in_flight) if self._in_flight else None

    def answered(self, response: Any, now_ms: float) -> None:
        """Take in the response: what it confirms is done, the rest is queued again."""
        if response.error_code != error_codes.NONE:
            self.failed(now_ms)
            return
        self._failures = 0
        sent, self._in_flight = self._in_flight, {}
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    if partition.error_code == error_codes.NONE:
                        sent.pop((topic.topic_id, partition.partition_index), None)
        self._put_back(sent, now_ms)

    def failed(self, now_ms: float) -> None:
        """No usable answer: everything in flight is queued again, and later each time."""
        self._failures += 1
        sent, self._in_flight = self._in_flight, {}
        self._put_back(sent, now_ms)

    def _put_back(self, sent: dict[ReplicaKey, bytes], now_ms: float) -> None:
        for key, directory_id in sent.items():
            self._ready.setdefault(key, directory_id)
        if self._ready:
            self._schedule(now_ms)

    def _schedule(self, now_ms: float) -> None:
        wait_ms = BACKOFF_MS
        if self._failures:
            wait_ms = min(BACKOFF_MS * 2 ** min(self._failures, 10), BACKOFF_MAX_MS)
        elif len(self._ready) > ASSIGNMENTS_PER_REQUEST_MAX and not self._in_flight:
            wait_ms = 0
        due_ms = now_ms + wait_ms
        self._due_ms = due_ms if self._due_ms is None else min(self._due_ms, due_ms)


def _request(broker_id: int, broker_epoch: int, assignments: dict[ReplicaKey, bytes]) -> AssignReplicasToDirsRequest:
    tree: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, partition), directory_id in assignments.items():
        tree.setdefault(directory_id, {}).setdefault(topic_id, []).append(partition)
    directories = [
        DirectoryData(
            id=directory_id,
            topics=[
                TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=index) for index in partitions])
                for topic_id, partitions in topics.items()
            ],
        )
        for directory_id, topics in tree.items()
    ]
    return AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=broker_epoch, directories=directories)
