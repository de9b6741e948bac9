"""Time slices for work on many replicas, so that the event loop stays responsive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

SLICE_MS = 50


class TimeSlice:
    """One time slice, from now on: it lasts for at least one piece of work, and for `SLICE_MS`."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker
        self._over_s: float | None = None

    def has_time(self) -> bool:
        """Return True if another piece of work fits."""
        now_s = asyncio.get_running_loop().time()
        if self._over_s is None:
            self._over_s = now_s + SLICE_MS / 1000
            return True
        return now_s < self._over_s

    def continue_later(self, name: str, go_on: Callable[[], None]) -> None:
        """Schedule `go_on` in a later slice, once for each name; not after the broker has ended."""

        async def again() -> None:
            go_on()

        if not self._broker.stopped.is_set():
            self._broker.set_timer(name, 0, self._broker.start_task, again)
