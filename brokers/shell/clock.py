"""The clock of simulated brokers: the machine's, or one that only a test moves."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call; no effect if it has already run."""


class Clock(Protocol):
    """A clock in milliseconds since the epoch that never goes back; also the time of records."""

    def now_ms(self) -> float:
        """Return the current time."""

    def call_at(self, loop: AbstractEventLoop, when_ms: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call at this time."""


class MachineClock:
    """The machine's clock: wall time at the start plus monotonic time, which is the time of asyncio's loops."""

    def __init__(self) -> None:
        self._epoch_s = time.time() - time.monotonic()

    def now_ms(self) -> float:
        """Return the current time."""
        return (self._epoch_s + time.monotonic()) * 1000

    def call_at(self, loop: AbstractEventLoop, when_ms: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call on the event loop."""
        return loop.call_at(when_ms / 1000 - self._epoch_s, callback)
