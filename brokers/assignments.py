"""The queue of assignments of replicas to directories, which the controller gets in batches (KIP-858).

Sans-IO: the caller (`DirectoryReports`) checks `Assignments.due_ms`, sends the request of `take` and reports the
response.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from mockraft.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse

ASSIGNMENTS_PER_REQUEST_MAX = 2250
BACKOFF_MS = 100
BACKOFF_MAX_MS = 10_000

ReplicaKey = tuple[bytes, int]


class Assignment(NamedTuple):
    """The directory (uuid) of a replica, and the callback for the controller's confirmation."""

    directory_id: bytes
    on_accepted: Callable[[], None] | None = None


class Assignments:
    """A queue of (topic id, partition) → directory uuid that the controller has not confirmed yet.

    At most one request is in flight. A failed assignment is queued again unless the replica has a newer one.
    """

    def __init__(self) -> None:
        self._ready: dict[ReplicaKey, Assignment] = {}
        self._in_flight: dict[ReplicaKey, Assignment] = {}
        self._due_ms: float | None = None
        self._failures = 0

    @property
    def queued(self) -> int:
        """Kafka's metric QueuedReplicaToDirAssignments: waiting and in flight."""
        return len(self._ready) + len(self._in_flight)

    @property
    def due_ms(self) -> float | None:
        """Return the time to call :meth:`take`; None while there is nothing to send or a request is in flight."""
        return self._due_ms if self._ready and not self._in_flight else None

    def add(
        self, key: ReplicaKey, directory_id: bytes, now_ms: float, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Queue one assignment; it replaces an unsent older one for the same replica.

        `on_accepted` is called when the controller has confirmed exactly this assignment.
        """
        self._ready[key] = Assignment(directory_id, on_accepted)
        self._schedule(now_ms)

    def take(
        self, broker_id: int, broker_epoch: int, still_here: Container[ReplicaKey]
    ) -> AssignReplicasToDirsRequest | None:
        """Return the next request; None when none of the queued replicas is on this broker any more."""
        if self._in_flight:
            return None
        self._due_ms = None
        while self._ready and len(self._in_flight) < ASSIGNMENTS_PER_REQUEST_MAX:
            key = next(iter(self._ready))
            assignment = self._ready.pop(key)
            if key in still_here:
                self._in_flight[key] = assignment
        return _request(broker_id, broker_epoch, self._in_flight) if self._in_flight else None

    def answered(self, response: AssignReplicasToDirsResponse, now_ms: float) -> None:
        """Process the response: drop the confirmed assignments and queue the others again."""
        if response.error_code != error_codes.NONE:
            self.failed(now_ms)
            return
        self._failures = 0
        sent, self._in_flight = self._in_flight, {}
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    if partition.error_code == error_codes.NONE:
                        accepted = sent.pop((topic.topic_id, partition.partition_index), None)
                        if accepted is not None and accepted.on_accepted is not None:
                            accepted.on_accepted()
        self._put_back(sent, now_ms)

    def failed(self, now_ms: float) -> None:
        """Handle a missing or unusable response: queue everything in flight again, with a growing delay."""
        self._failures += 1
        sent, self._in_flight = self._in_flight, {}
        self._put_back(sent, now_ms)

    def _put_back(self, sent: Mapping[ReplicaKey, Assignment], now_ms: float) -> None:
        for key, assignment in sent.items():
            self._ready.setdefault(key, assignment)
        if self._due_ms is not None and self._due_ms <= now_ms:
            # Assignments queued meanwhile came due while nothing could be sent: restart their delay.
            self._due_ms = None
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


def _request(
    broker_id: int, broker_epoch: int, assignments: Mapping[ReplicaKey, Assignment]
) -> AssignReplicasToDirsRequest:
    tree: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, partition), (directory_id, _) in assignments.items():
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
