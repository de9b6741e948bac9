"""Periodic work (Kafka's PeriodicTask, PeriodicTaskControlManager): each run is an ordinary operation."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockraft.server.controller.result import ApiError, ControllerResult

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
    run: Callable[["ControllerContext", int], ControllerResult[bool]]
    is_unfinished: Callable[["ControllerContext"], bool] = lambda _: False
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

    def tick(self, controller: "ControllerContext", now_ms: int) -> None:
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
