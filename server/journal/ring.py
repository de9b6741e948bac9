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

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.bytes_held = self.dropped = 0
        self._entries: deque[tuple[Any, int]] = deque()

    def append(self, entry: Entry, size: int) -> None:
        """Add an entry, and drop the oldest beyond the limits."""
        entries = self._entries
        entries.append((entry, size))
        self.bytes_held += size
        while len(entries) > self.entries_max or (self.bytes_held > self.bytes_max and len(entries) > 1):
            self.bytes_held -= entries.popleft()[1]
            self.dropped += 1

    def clear(self) -> None:
        """Remove all entries, and count anew."""
        self._entries.clear()
        self.bytes_held = self.dropped = 0

    def entries(self) -> tuple[Any, ...]:
        """Return the entries, oldest first."""
        return tuple(entry for entry, _ in tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)


def new_ring(entries_max: int, bytes_max: int) -> PureRing | _repeats.Ring:
    """Return a ring of the codec's path."""
    if codec_path.path == "pure":
        return PureRing(entries_max, bytes_max)
    from mockraft_speed import _repeats

    return _repeats.Ring(entries_max, bytes_max)
