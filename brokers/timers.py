"""Named timers in one heap: setting a timer replaces the earlier one of its name."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

NEVER_MS: Final = float("inf")

Call = Callable[[], None]


class Timers:
    """Timers by name. Replaced and cancelled ones stay in the heap until their time, which costs less than removal."""

    __slots__ = ("_calls", "_heap", "_made")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._calls: dict[str, tuple[int, Call]] = {}
        self._made = 0

    def set(self, name: str, due_ms: float, call: Call) -> None:
        """Set the timer of this name."""
        self._made += 1
        self._calls[name] = (self._made, call)
        heapq.heappush(self._heap, (due_ms, self._made, name))

    def cancel(self, name: str) -> None:
        """Cancel the timer of this name, if it is set."""
        self._calls.pop(name, None)

    def clear(self) -> None:
        """Cancel every timer."""
        self._heap.clear()
        self._calls.clear()

    @property
    def next_ms(self) -> float:
        """The time of the earliest timer, NEVER_MS without any."""
        heap = self._heap
        while heap:
            due_ms, number, name = heap[0]
            call = self._calls.get(name)
            if call is not None and call[0] == number:
                return due_ms
            heapq.heappop(heap)
        return NEVER_MS

    def take_due(self, now_ms: float) -> list[tuple[int, str]]:
        """Remove the due timers from the heap and return their keys for :meth:`take`, in order."""
        due = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            _, number, name = heapq.heappop(heap)
            due.append((number, name))
        return due

    def take(self, number: int, name: str) -> Call | None:
        """Remove a due timer and return its call; None when it was cancelled or replaced since."""
        found = self._calls.get(name)
        if found is None or found[0] != number:
            return None
        del self._calls[name]
        return found[1]
