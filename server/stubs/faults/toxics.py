"""What happens to the bytes of one direction of one connection: toxiproxy's toxics and a few more, without sockets.

A toxic takes bytes with the time at which they come and gives bytes with the time at which they go on, both in
milliseconds. It is asked lazily and in order, so its state moves with the stream. Where chance decides, it is drawn
per place in the stream and not per chunk (latency, slicer and duplicate excepted, which are about chunks).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.chance import ToxicChance
    from mockraft.server.stubs.faults.fault import Fault

BANDWIDTH_STEPS_PER_SECOND = 50
PIECES_MAX = 4096
"""Of bytes that came at once, bandwidth makes no more pieces than that."""


class End(Enum):
    """How a direction ends."""

    CLOSE = "close"
    RESET = "reset"


Item = tuple[float, bytes | End]


class Toxic:
    """A fault at work on one direction of one connection since `began_ms`; this one lets everything pass."""

    __slots__ = ("_chance", "_last_ms", "fault", "lost")

    def __init__(self, fault: Fault, chance: ToxicChance, began_ms: int) -> None:
        self.fault = fault
        self.lost = False
        """Whether bytes of the stream are gone, so that it can never be whole again."""
        self._chance = chance
        self._last_ms = float(began_ms)

    @property
    def params(self) -> dict[str, Any]:
        """The fault's parameters as they are now: a ramp moves them."""
        return self.fault.params_now

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Bytes that came at a time."""
        yield at_ms, data

    def close(self, at_ms: float) -> float:
        """When the end of the stream goes on that came at a time."""
        return at_ms

    def end(self) -> tuple[float, End] | None:
        """When the toxic ends the connection by itself, and how."""
        return None


class Latency(Toxic):
    """Everything goes on `latency_ms` ± `jitter_ms` later, in order."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Later."""
        self.fault.met += 1
        yield self._later(at_ms), data

    def close(self, at_ms: float) -> float:
        """Later."""
        return self._later(at_ms)

    def _later(self, at_ms: float) -> float:
        jitter_ms = int(self.params["jitter_ms"])
        delay_ms = self.params["latency_ms"] + (self._chance.between(-jitter_ms, jitter_ms) if jitter_ms else 0)
        self._last_ms = max(self._last_ms, at_ms + max(0, delay_ms))
        return self._last_ms


class Bandwidth(Toxic):
    """`bytes_per_second` go on, as a slow line would carry them."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Piece by piece, each when its last byte is through."""
        self.fault.met += 1
        rate = self.params["bytes_per_second"]
        size = max(1, int(rate) // BANDWIDTH_STEPS_PER_SECOND, len(data) // PIECES_MAX)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self._last_ms = max(self._last_ms, at_ms) + len(piece) * 1000 / rate
            yield self._last_ms, piece


class Slicer(Toxic):
    """Pieces of `average_size` ± `size_variation` bytes, `delay_ms` apart."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Sliced."""
        self.fault.met += 1
        average, variation = self.params["average_size"], self.params["size_variation"]
        start = 0
        self._last_ms = max(self._last_ms, at_ms)
        while start < len(data):
            size = max(1, average + (self._chance.between(-variation, variation) if variation else 0))
            if start:
                self._last_ms += self.params["delay_ms"]
            yield self._last_ms, data[start : start + size]
            start += size


class HalfOpen(Toxic):
    """Everything is taken and nothing goes on; with `timeout_ms` the connection is closed after that."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Gone."""
        self.fault.met += 1
        self.lost = True
        yield from ()

    def end(self) -> tuple[float, End] | None:
        """After the timeout, if there is one."""
        timeout_ms = self.params["timeout_ms"]
        return (self._last_ms + timeout_ms, End.CLOSE) if timeout_ms else None


class ResetPeer(Toxic):
    """The connection is broken by a RST after `timeout_ms`; until then everything passes."""

    __slots__ = ()

    def end(self) -> tuple[float, End] | None:
        """After the timeout."""
        return self._last_ms + self.params["timeout_ms"], End.RESET


class Down(Toxic):
    """The connection is broken at once."""

    __slots__ = ()

    def end(self) -> tuple[float, End] | None:
        """Now."""
        return self._last_ms, End.RESET


class Counted(Toxic):
    """What lets so many `bytes` pass."""

    __slots__ = ("_passed",)

    def __init__(self, fault: Fault, chance: ToxicChance, began_ms: int) -> None:
        super().__init__(fault, chance, began_ms)
        self._passed = 0

    def _room_for(self, data: bytes) -> int:
        """How many of these bytes may pass."""
        room = max(0, self.params["bytes"] - self._passed)
        self._passed += len(data)
        return int(room)


class LimitData(Counted):
    """The connection is closed after `bytes`, in the middle of a frame where that is where they end."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """What fits, and the end when it is full."""
        room = self._room_for(data)
        if room:
            yield at_ms, data[:room]
        if len(data) >= room:
            self.fault.met += 1
            yield at_ms, End.CLOSE


class Truncate(Counted):
    """After `bytes` the rest is lost while the connection stays open: half a frame that never goes on."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """What fits."""
        room = self._room_for(data)
        if room:
            yield at_ms, data[:room]
        if len(data) > room:
            self.fault.met += 1
            self.lost = True


class Corrupt(Toxic):
    """Bytes are changed to others: each `every_nth` one, or each with a `probability`."""

    __slots__ = ("_until_next",)

    def __init__(self, fault: Fault, chance: ToxicChance, began_ms: int) -> None:
        super().__init__(fault, chance, began_ms)
        self._until_next: int | None = None

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """As many bytes, some of them others."""
        if self._until_next is None:
            self._until_next = self._gap()
        if self._until_next is not None and self._until_next < len(data):
            changed = bytearray(data)
            while self._until_next is not None and self._until_next < len(data):
                self.fault.met += 1
                changed[self._until_next] ^= self._chance.between(1, 255)
                gap = self._gap()
                self._until_next = None if gap is None else self._until_next + 1 + gap
            data = bytes(changed)
        if self._until_next is not None:
            self._until_next -= len(data)
        yield at_ms, data

    def _gap(self) -> int | None:
        """How many bytes stay as they are before the next that does not; None while nothing is to be changed."""
        if self.params["every_nth"]:
            return int(self.params["every_nth"]) - 1
        probability = self.params["probability"]
        return self._chance.failures(probability) if probability > 0 else None


class Duplicate(Toxic):
    """What is said at once is said twice, with a `probability`."""

    __slots__ = ()

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Once or twice."""
        yield at_ms, data
        if self._chance.random() < self.params["probability"]:
            self.fault.met += 1
            yield at_ms, data


class SlowClose(Toxic):
    """The end of the stream goes on `delay_ms` later."""

    __slots__ = ()

    def close(self, at_ms: float) -> float:
        """Later."""
        self.fault.met += 1
        return at_ms + float(self.params["delay_ms"])
