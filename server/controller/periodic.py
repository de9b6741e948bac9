"""Periodic work (Kafka's PeriodicTask, PeriodicTaskControlManager): each run is an ordinary operation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.brokers.heartbeat import fence_one_stale_broker
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.security.delegation_tokens import remove_expired_tokens
from mockraft.server.controller.topics.leader_elections import balance_leaders, elect_unclean_leaders
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.no_op_record import NoOpRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


FAILURES_MAX = 3

_log = logging.getLogger("mockraft.controller")


@dataclass(slots=True)
class PeriodicTask:
    """One task: `run(controller, now_ms)` returns True to run again at once.

    `is_unfinished(controller)` is True if it is to run again at the next tick, after waiting requests.
    """

    name: str
    interval_ms: int
    run: Callable[[ControllerContext, int], ControllerResult[bool]]
    is_unfinished: Callable[[ControllerContext], bool] = lambda _: False
    due_ms: int = 0
    failures: int = 0
    """Times that it raised in a row."""


class Periodic:
    """The tasks and their due times. A late tick catches up on nothing: the next run is one interval from now."""

    def __init__(self, tasks: list[PeriodicTask], now_ms: int) -> None:
        self.tasks = tasks
        for task in tasks:
            task.due_ms = now_ms + task.interval_ms
        self._next_due_ms = min(task.due_ms for task in tasks)

    def tick(self, controller: ControllerContext, now_ms: int) -> None:
        """Run due tasks, in the order of the list. A task whose records cannot be written waits for its next turn."""
        due = [task for task in self.tasks if task.due_ms <= now_ms]
        for task in due:
            task.due_ms = now_ms + task.interval_ms
            try:
                task.failures += 1
                while controller.commit(task.run(controller, now_ms), now_ms):
                    pass
                task.failures = 0
                if task.is_unfinished(controller):
                    task.due_ms = now_ms
            except ApiError as refusal:
                task.failures = 0
                # The log has reported a failed write, once for all tasks.
                if controller.log.failure is None:
                    _log.error("periodic task %s: %s", task.name, refusal.message)
            finally:
                self._next_due_ms = min(task.due_ms for task in self.tasks)

    @property
    def failure(self) -> str | None:
        """Reason why periodic work cannot continue: a task that raised several times in a row. None if all is well."""
        broken = (task for task in self.tasks if task.failures >= FAILURES_MAX)
        return next((f"periodic task {task.name} raised {task.failures} times in a row" for task in broken), None)

    def next_due_ms(self) -> int:
        """Due time of the next task."""
        return self._next_due_ms


_STALE_CHECKS_PER_SESSION = 8


def periodic_tasks(config: ControllerConfig) -> list[PeriodicTask]:
    """Return the tasks of a controller with this configuration, in the order in which they run when due together."""
    tasks = [
        PeriodicTask(
            "fence stale brokers",
            max(1, config.session_timeout_ms // _STALE_CHECKS_PER_SESSION),
            fence_one_stale_broker,
            is_unfinished=lambda controller: controller.fenced_in_steps is not None,
        )
    ]
    if config.metadata_max_idle_interval_ms > 0:
        tasks.append(PeriodicTask("no-op record", config.metadata_max_idle_interval_ms, write_no_op))
    if config.auto_leader_rebalance_enable:
        interval_ms = config.leader_imbalance_check_interval_seconds * 1000
        tasks.append(PeriodicTask("balance leaders", interval_ms, balance_leaders))
    tasks.append(
        PeriodicTask("elect unclean leaders", config.unclean_leader_election_interval_ms, elect_unclean_leaders)
    )
    check_interval_ms = config.delegation_token_expiry_check_interval_ms
    tasks.append(PeriodicTask("remove expired delegation tokens", check_interval_ms, remove_expired_tokens))
    return tasks


def write_no_op(controller: ControllerContext, now_ms: int) -> ControllerResult[bool]:
    """Write a record without content, so that offsets move and a lost connection shows (KIP-835)."""
    has_record = controller.has(Behaviour.NO_OP_RECORDS)
    return ControllerResult([RecordAt(NoOpRecord(), 0)] if has_record else [], False)
