"""Time for a controller: the machine's, or a test's that stands still until it is moved."""

import heapq
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later and may be taken back."""

    def cancel(self) -> None:
        """Take the call back; without effect once it was made."""


class Clock(Protocol):
    """What the shell needs of time; milliseconds since the epoch."""

    def now_ms(self) -> int:
        """The time now; it never goes back."""

    def call_at(self, loop: AbstractEventLoop, when_ms: int, callback: Callable[[], None]) -> Timer:
        """Call once that time has come."""


class RealClock:
    """The machine's time at its start, moved on by its monotonic clock: steps of the wall clock expire no session."""

    def __init__(self) -> None:
        self._epoch_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """The time now."""
        return (self._epoch_ns + time.monotonic_ns()) // 1_000_000

    def call_at(self, loop: AbstractEventLoop, when_ms: int, callback: Callable[[], None]) -> Timer:
        """Call by the loop's own timer."""
        return loop.call_later(max(0, when_ms - self.now_ms()) / 1000, callback)


class _VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """A clock that moves only by `advance`; what is due on the way is called at its time, in order."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._timers: list[tuple[int, int, _VirtualTimer]] = []
        self._timers_made = 0

    def now_ms(self) -> int:
        """The time now."""
        return self._now_ms

    def call_at(self, loop: AbstractEventLoop, when_ms: int, callback: Callable[[], None]) -> Timer:
        """Call when `advance` comes by that time; a time that is past waits for the next `advance`."""
        timer = _VirtualTimer(callback)
        self._timers_made += 1
        heapq.heappush(self._timers, (when_ms, self._timers_made, timer))
        return timer

    def advance(self, ms: int) -> None:
        """Move on by so many milliseconds."""
        end_ms = self._now_ms + ms
        while self._timers and self._timers[0][0] <= end_ms:
            when_ms, _, timer = heapq.heappop(self._timers)
            self._now_ms = max(self._now_ms, when_ms)
            if timer.callback is not None:
                timer.callback()
        self._now_ms = end_ms
