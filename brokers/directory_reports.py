"""Reports of replicas' directories to the controller (Kafka's AssignmentsManager, whose queue is in assignments)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mockraft.brokers.assignments import Assignments, ReplicaKey
from mockraft.brokers.core import Core
from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse

_log = logging.getLogger(__name__)


class DirectoryReports:
    """Sends `assignments` when they are due, one request at a time; `on_progress` is called after each."""

    def __init__(self, core: Core, assignments: Assignments, on_progress: Callable[[], None]) -> None:
        self._core = core
        self._assignments = assignments
        self._on_progress = on_progress
        self.channel = core.channel("directory-assignments")

    def assign(
        self, key: ReplicaKey, directory_id: bytes, reason: str, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Report that a replica is in this directory; `on_accepted` is called on confirmation."""
        _log.debug("broker %d: assigns %s-%d: %s", self._core.config.broker_id, key[0].hex(), key[1], reason)
        self._assignments.add(key, directory_id, self._core.kernel.now_ms, on_accepted)
        self._schedule()

    def _schedule(self) -> None:
        due_ms, kernel = self._assignments.due_ms, self._core.kernel
        if due_ms is not None:
            kernel.after("assignments", due_ms - kernel.now_ms, self._send)

    def _send(self) -> None:
        core = self._core
        registration = core.view.registration
        epoch = registration.broker_epoch if registration else -1
        request = self._assignments.take(core.config.broker_id, epoch, core.view.replicas)
        if request is None:
            self._continue()
            return
        _log.info("broker %d: QueuedReplicaToDirAssignments=%d", core.config.broker_id, self._assignments.queued)
        self.channel.send(lambda _: request, self._answered, self._failed)

    def _answered(self, response: AssignReplicasToDirsResponse) -> None:
        self._assignments.answered(response, self._core.kernel.now_ms)
        if response.error_code != error_codes.NONE:
            self._core.refusals[error_codes.name(response.error_code)] += 1
        self._continue()

    def _failed(self, error: Exception) -> None:
        self._core.count_refusal(error)
        self._assignments.failed(self._core.kernel.now_ms)
        self._continue()

    def _continue(self) -> None:
        self._schedule()
        self._on_progress()
