"""Named timers: setting a timer replaces the earlier one of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter

from mockraft.kafka_api.parked import NEVER_MS

Call = Callable[[], None]
_DUE_MS = itemgetter(0)


class Timers:
    """Timers by name. A broker has few, so that a look at all of them costs less than a heap of them.

    `next_ms` is the time to look for due ones: that of the earliest timer, or earlier when that was replaced or
    cancelled, which saves the search for the next. NEVER_MS without any.
    """

    __slots__ = ("_timers", "next_ms")

    def __init__(self) -> None:
        self._timers: dict[object, tuple[float, object, Call]] = {}
        self.next_ms: float = NEVER_MS

    def set(self, name: object, due_ms: float, call: Call) -> None:
        """Set the timer of this name."""
        self._timers[name] = (due_ms, name, call)
        if due_ms < self.next_ms:
            self.next_ms = due_ms

    def cancel(self, name: object) -> None:
        """Cancel the timer of this name, if it is set."""
        self._timers.pop(name, None)

    def clear(self) -> None:
        """Cancel every timer."""
        self._timers.clear()
        self.next_ms = NEVER_MS

    def take_due(self, now_ms: float) -> Iterator[Call]:
        """Remove the due timers one by one, in order, without those that are cancelled or set meanwhile."""
        for timer in sorted([each for each in self._timers.values() if each[0] <= now_ms], key=_DUE_MS):
            _, name, call = timer
            if self._timers.get(name) is timer:
                del self._timers[name]
                yield call
        self.next_ms = min(map(_DUE_MS, self._timers.values()), default=NEVER_MS)
