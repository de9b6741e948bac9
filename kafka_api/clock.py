"""Clocks of controllers and simulated brokers: the machine's time, or virtual time that only a test advances."""

import heapq
import math
from asyncio import AbstractEventLoop
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Final, Protocol

from mockraft.kafka_api.options import check_option


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call; no effect if it has already run."""


class Clock(Protocol):
    """Clock of an asyncio server; times are milliseconds since the epoch."""

    def now_ms(self) -> int:
        """Current time; never decreases."""

    def now_us(self) -> int:
        """Current time in microseconds; for measuring, as requests see `now_ms`."""

    def call_at(self, loop: AbstractEventLoop, when_ms: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call at this time."""


class RealClock:
    """The machine's clock: wall time at the start plus monotonic time, so clock steps expire no session."""

    def __init__(self) -> None:
        self._epoch_ns = time_ns() - monotonic_ns()

    def now_ms(self) -> int:
        """Return the current time."""
        return (self._epoch_ns + monotonic_ns()) // 1_000_000

    def now_us(self) -> int:
        """Return the current time in microseconds."""
        return (self._epoch_ns + monotonic_ns()) // 1_000

    def call_at(self, loop: AbstractEventLoop, when_ms: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call on the event loop."""
        return loop.call_later(max(0, when_ms - self.now_ms()) / 1000, callback)


REAL_CLOCK: Final = RealClock()


class _VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


VIRTUAL_START_MS: Final = 1_700_000_000_000


class VirtualClock:
    """A clock that moves only by `advance`, which runs scheduled calls in order, each at its time."""

    def __init__(self, now_ms: int = VIRTUAL_START_MS) -> None:
        self._now_ms = now_ms
        self._timers: list[tuple[int, int, _VirtualTimer]] = []
        self._timers_made = 0

    def now_ms(self) -> int:
        """Return the current time."""
        return self._now_ms

    def now_us(self) -> int:
        """Return the current time in microseconds; nothing takes less than a step of the clock."""
        return self._now_ms * 1_000

    def call_at(self, loop: AbstractEventLoop, when_ms: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call for `advance`; a time in the past runs at the next `advance`."""
        timer = _VirtualTimer(callback)
        self._timers_made += 1
        heapq.heappush(self._timers, (math.ceil(when_ms), self._timers_made, timer))
        return timer

    def advance(self, ms: int) -> None:
        """Advance the clock by this many milliseconds. TypeError if it is no integer, ValueError if it is negative."""
        check_option("ms", ms, int)
        if ms < 0:
            raise ValueError(f"ms={ms}: the clock cannot go back")
        end_ms = self._now_ms + ms
        while self._timers and self._timers[0][0] <= end_ms:
            when_ms, _, timer = heapq.heappop(self._timers)
            self._now_ms = max(self._now_ms, when_ms)
            if timer.callback is not None:
                timer.callback()
        self._now_ms = end_ms
