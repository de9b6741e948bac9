"""The ring of a journal: its newest entries, bounded in number and in bytes.

With mockraft-speed it is a type in C that also holds repeated exchanges in a short form, and makes them when they are
read: see `mockraft.server.repeats`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mockraft.wire import codec_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from mockraft.server.journal.exchange import Exchange
    from mockraft.server.journal.journal import Entry
    from mockraft_speed import _repeats


class PureRing:
    """Entries with their sizes, oldest first; at least one stays, whatever its size.

    `bytes_held` is the sum of the sizes, `dropped` the number of entries that were dropped for the limits.
    """

    make: Callable[..., Exchange] | None = None
    """Makes an exchange of the items of a record."""

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.bytes_held = self.dropped = 0
        # Each behind its size; a record is longer than an entry, and its last item is its number.
        self._entries: deque[tuple[Any, ...]] = deque()
        self._made: dict[int, Exchange] = {}

    def append(self, entry: Entry, size: int) -> None:
        """Add an entry, and drop the oldest beyond the limits."""
        self.extend([(size, entry)])

    def extend(self, sized: list[tuple[Any, ...]]) -> None:
        """Add entries behind their sizes, or the items of records."""
        entries, made, entries_max, bytes_max = self._entries, self._made, self.entries_max, self.bytes_max
        held = self.bytes_held
        entries.extend(sized)
        for each in sized:
            held += each[0]
        before = len(entries)
        while len(entries) > entries_max or (held > bytes_max and len(entries) > 1):
            dropped = entries.popleft()
            held -= dropped[0]
            if made:
                made.pop(dropped[-1], None)
        self.dropped += before - len(entries)
        self.bytes_held = held

    def clear(self) -> None:
        """Remove all entries, and count anew."""
        self._entries.clear()
        self._made.clear()
        self.bytes_held = self.dropped = 0

    def entries(self) -> tuple[Any, ...]:
        """Return the entries, oldest first."""
        return tuple(map(self._entry, tuple(self._entries)))

    def _entry(self, sized: tuple[Any, ...]) -> Any:
        if len(sized) == 2 or self.make is None:
            return sized[1]
        number = sized[-1]
        # Of threads that read at the same time the first one makes it.
        return self._made.get(number) or self._made.setdefault(number, self.make(*sized[1:]))

    def __len__(self) -> int:
        return len(self._entries)


def new_ring(entries_max: int, bytes_max: int) -> PureRing | _repeats.Ring:
    """Return a ring of the codec's path."""
    if codec_path.path == "pure":
        return PureRing(entries_max, bytes_max)
    from mockraft_speed import _repeats

    return _repeats.Ring(entries_max, bytes_max)
