"""One direction of one connection under toxics: bytes go in, and come out when they are due, in order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.stubs.faults.fault import End, Fault, Item, Toxic

DUE_ITEMS_MAX = 1024
"""Maximum number of pieces that come out at once; the rest is due at the same time and comes with the next call."""


class Pipe:
    """A queue of bytes: `push` and `close` take what one side sends, `due` returns what the other side gets by now.

    `held_bytes` went in and have not come out. After an End nothing comes out any more; `ended_by` is the fault that
    made it, None if the sending side closed.
    """

    __slots__ = ("_at_once", "_close_ms", "_entries", "_head", "_toxics", "ended", "ended_by", "held_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.ended = False
        self.ended_by: Fault | None = None
        self._toxics: tuple[Toxic, ...] = ()
        self._entries: deque[tuple[Iterator[Item], int]] = deque()
        self._head: Item | None = None
        self._at_once = 0
        self._close_ms: float | None = None

    @property
    def holds(self) -> bool:
        """True if bytes, or the end, are still to come out."""
        return not self.ended and bool(self._entries or self._head is not None or self._close_ms is not None)

    @property
    def is_idle(self) -> bool:
        """True if it holds nothing and changes nothing."""
        return not self._toxics and not self.holds

    def apply(self, toxics: Sequence[Toxic]) -> bool:
        """Set the toxics that work from now on, in order; return False if a removed one has swallowed bytes.

        When a toxic is removed, what it holds is due at once.
        """
        gone = [toxic for toxic in self._toxics if toxic not in toxics]
        self._toxics = tuple(toxics)
        if gone:
            self._at_once = len(self._entries)
            if self._head is not None and self._head[1] is End.CLOSE:
                self._head = (0.0, End.CLOSE)
        return not any(toxic.lost for toxic in gone)

    def push(self, data: bytes, now_ms: int) -> None:
        """Take bytes from the sending side."""
        if self.ended or self._close_ms is not None:
            return
        items: Iterator[Item] = iter(((float(now_ms), data),))
        for toxic in self._toxics:
            items = self._through(toxic, items)
        self._entries.append((items, len(data)))
        self.held_bytes += len(data)

    def close(self, now_ms: int) -> None:
        """Take the sending side's close: End.CLOSE comes out after all its bytes."""
        self._close_ms = float(now_ms)

    def due(self, now_ms: int) -> list[bytes | End]:
        """Return what comes out by now; an End is the last."""
        out: list[bytes | End] = []
        while not self.ended and len(out) < DUE_ITEMS_MAX:
            item = self._next()
            if item is None or (item[0] > now_ms and not self._at_once):
                break
            self._head = None
            self._emit(item[1], out)
        for toxic in self._toxics:
            end = toxic.end()
            if end is not None and end[0] <= now_ms and not self.ended:
                toxic.fault.met += 1
                self.ended_by = toxic.fault
                self._emit(end[1], out)
        return out

    def next_ms(self) -> int:
        """When to call `due` again; NEVER_MS when nothing is on its way."""
        if self.ended:
            return NEVER_MS
        item = self._next()
        times = [end[0] for toxic in self._toxics if (end := toxic.end()) is not None]
        if item is not None:
            times.append(0 if self._at_once else item[0])
        return math.ceil(min(times)) if times else NEVER_MS

    def _emit(self, item: bytes | End, out: list[bytes | End]) -> None:
        out.append(item)
        if isinstance(item, End):
            self.ended = True
            self._entries.clear()
            self.held_bytes = 0
        elif self._entries:
            # A duplicate takes more out than went in.
            items, held = self._entries[0]
            taken = min(held, len(item))
            self._entries[0] = (items, held - taken)
            self.held_bytes -= taken

    def _next(self) -> Item | None:
        """The next item to come out, whenever that is."""
        while self._head is None and self._entries:
            items, held = self._entries[0]
            self._head = next(items, None)
            if self._head is None:
                self._entries.popleft()
                self.held_bytes -= held
                self._at_once = max(0, self._at_once - 1)
        if self._head is None and self._close_ms is not None:
            at_ms, self._close_ms = self._close_ms, None
            for toxic in self._toxics:
                at_ms = toxic.close(at_ms)
            self._head = (at_ms, End.CLOSE)
        return self._head

    def _through(self, toxic: Toxic, items: Iterator[Item]) -> Iterator[Item]:
        for at_ms, item in items:
            if isinstance(item, End):
                yield toxic.close(at_ms), item
                return
            for piece in toxic.data(at_ms, item):
                if isinstance(piece[1], End):
                    self.ended_by = toxic.fault
                yield piece
