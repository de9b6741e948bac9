"""One direction of one connection under toxics: bytes go in, and come out when their time has come, in order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.stubs.faults.fault import Fault
from mockraft.server.stubs.faults.toxics import End, Item, Toxic

DUE_ITEMS_MAX = 1024
"""So many pieces come out at once; the rest is due at the same time and comes with the next call."""


class Pipe:
    """`push` and `close` put in what a side says, `due` gives what the other side gets by now.

    `held_bytes` are those that went in and have not come out. After an End nothing comes out any more; `ended_by` is
    the fault that made it, None where it was the side that speaks.
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
        """Whether something that went in, or the end, is still to come out."""
        return not self.ended and bool(self._entries or self._head is not None or self._close_ms is not None)

    @property
    def is_idle(self) -> bool:
        """Whether it holds nothing and changes nothing."""
        return not self._toxics and not self.holds

    def apply(self, toxics: Sequence[Toxic]) -> bool:
        """From now on these toxics work, in this order; False where one that went has swallowed bytes.

        When one goes, what is held is due at once.
        """
        gone = [toxic for toxic in self._toxics if toxic not in toxics]
        self._toxics = tuple(toxics)
        if gone:
            self._at_once = len(self._entries)
            if self._head is not None and self._head[1] is End.CLOSE:
                self._head = (0.0, End.CLOSE)
        return not any(toxic.lost for toxic in gone)

    def push(self, data: bytes, now_ms: int) -> None:
        """Bytes were said."""
        if self.ended or self._close_ms is not None:
            return
        items: Iterator[Item] = iter(((float(now_ms), data),))
        for toxic in self._toxics:
            items = self._through(toxic, items)
        self._entries.append((items, len(data)))
        self.held_bytes += len(data)

    def close(self, now_ms: int) -> None:
        """The side that speaks has closed: End.CLOSE comes out when all that it said has."""
        self._close_ms = float(now_ms)

    def due(self, now_ms: int) -> list[bytes | End]:
        """What comes out by now; an End is the last."""
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
        """When to ask for what is due again; NEVER_MS when nothing is on its way."""
        if self.ended:
            return NEVER_MS
        item = self._next()
        times = [end[0] for toxic in self._toxics if (end := toxic.end()) is not None]
        if item is not None:
            times.append(0 if self._at_once else item[0])
        return math.ceil(min(times)) if times else NEVER_MS

    def _emit(self, said: bytes | End, out: list[bytes | End]) -> None:
        out.append(said)
        if isinstance(said, End):
            self.ended = True
            self._entries.clear()
            self.held_bytes = 0
        elif self._entries:
            # A duplicate takes more out than went in.
            items, held = self._entries[0]
            taken = min(held, len(said))
            self._entries[0] = (items, held - taken)
            self.held_bytes -= taken

    def _next(self) -> Item | None:
        """What comes out next, whenever that is."""
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
        for at_ms, said in items:
            if isinstance(said, End):
                yield toxic.close(at_ms), said
                return
            for item in toxic.data(at_ms, said):
                if isinstance(item[1], End):
                    self.ended_by = toxic.fault
                yield item
