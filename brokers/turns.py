"""Work on many replicas, a turn of the event loop at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

TURN_MS = 50


class Turn:
    """One turn, from now on: it goes on for at least one piece of work, and for `TURN_MS`."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker
        self._over_s: float | None = None

    def goes_on(self) -> bool:
        """Whether to do another piece of work."""
        now_s = asyncio.get_running_loop().time()
        if self._over_s is None:
            self._over_s = now_s + TURN_MS / 1000
            return True
        return now_s < self._over_s

    def ends(self, name: str, go_on: Callable[[], None]) -> None:
        """Have `go_on` called in a later turn, once for each name; not when the broker is over."""

        async def again() -> None:
            go_on()

        if not self._broker.stopped.is_set():
            self._broker.set_timer(name, 0, self._broker.start_task, again)
