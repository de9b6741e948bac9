"""Toxics of the bytes of one direction of one connection: toxiproxy's and a few more, without sockets.

A toxic takes bytes with the time at which they arrive and returns bytes with the time at which they go on, both in
milliseconds. It is evaluated lazily and in order, so its state moves with the stream. Random draws are per position
in the stream and not per chunk (except latency, slicer and duplicate, which are about chunks).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from mockraft.server.stubs.faults.fault import End, Fault, Item, Kind, Parameter, Toxic

BANDWIDTH_STEPS_PER_SECOND = 50
PIECES_MAX = 4096
"""Maximum number of pieces that bandwidth makes of bytes that arrived at once."""


class Latency(Toxic):
    """Delay everything by `latency_ms` ± `jitter_ms`, in order."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Delay the bytes."""
        self.fault.met += 1
        yield self._later(at_ms), data

    def close(self, at_ms: float) -> float:
        """Delay the end."""
        return self._later(at_ms)

    def _later(self, at_ms: float) -> float:
        jitter_ms = int(self.params.number("jitter_ms"))
        delay_ms = self.params.number("latency_ms") + (self._rng.randint(-jitter_ms, jitter_ms) if jitter_ms else 0)
        self._last_ms = max(self._last_ms, at_ms + max(0, delay_ms))
        return self._last_ms


class Bandwidth(Toxic):
    """Pass `bytes_per_second`, as a slow line does."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Pass piece by piece, each when its last byte is through."""
        self.fault.met += 1
        rate = self.params.number("bytes_per_second")
        size = max(1, int(rate) // BANDWIDTH_STEPS_PER_SECOND, len(data) // PIECES_MAX)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self._last_ms = max(self._last_ms, at_ms) + len(piece) * 1000 / rate
            yield self._last_ms, piece


class Slicer(Toxic):
    """Send pieces of `average_size` ± `size_variation` bytes, `delay_ms` apart."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Slice the bytes."""
        self.fault.met += 1
        average, variation = self.params.integer("average_size"), self.params.integer("size_variation")
        start = 0
        self._last_ms = max(self._last_ms, at_ms)
        while start < len(data):
            size = max(1, average + (self._rng.randint(-variation, variation) if variation else 0))
            if start:
                self._last_ms += self.params.number("delay_ms")
            yield self._last_ms, data[start : start + size]
            start += size


class HalfOpen(Toxic):
    """Swallow everything; with `timeout_ms` the connection is closed after that."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Swallow the bytes."""
        self.fault.met += 1
        self.lost = True
        yield from ()

    def end(self) -> tuple[float, End] | None:
        """End after the timeout, if there is one."""
        timeout_ms = self.params.number("timeout_ms")
        return (self._last_ms + timeout_ms, End.CLOSE) if timeout_ms else None


class ResetPeer(Toxic):
    """Break the connection with a RST after `timeout_ms`; until then everything passes."""

    def end(self) -> tuple[float, End] | None:
        """End after the timeout."""
        return self._last_ms + self.params.number("timeout_ms"), End.RESET


class Down(Toxic):
    """Break the connection at once."""

    def end(self) -> tuple[float, End] | None:
        """End now."""
        return self._last_ms, End.RESET


class Counted(Toxic):
    """Base of toxics that let `bytes` bytes pass."""

    def __init__(self, fault: Fault, rng: Random, began_ms: int) -> None:
        super().__init__(fault, rng, began_ms)
        self._passed = 0

    def _room_for(self, data: bytes) -> int:
        """Return how many of these bytes may pass."""
        room = max(0, self.params.integer("bytes") - self._passed)
        self._passed += len(data)
        return int(room)


class LimitData(Counted):
    """Close the connection after `bytes`, in the middle of a frame if they end there."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Pass what fits, and end when it is full."""
        room = self._room_for(data)
        if room:
            yield at_ms, data[:room]
        if len(data) >= room:
            self.fault.met += 1
            yield at_ms, End.CLOSE


class Truncate(Counted):
    """Lose everything after `bytes` while the connection stays open: half a frame that never goes on."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Pass what fits."""
        room = self._room_for(data)
        if room:
            yield at_ms, data[:room]
        if len(data) > room:
            self.fault.met += 1
            self.lost = True


class Corrupt(Toxic):
    """Change bytes to others: every `every_nth` one, or each with a `probability`."""

    def __init__(self, fault: Fault, rng: Random, began_ms: int) -> None:
        super().__init__(fault, rng, began_ms)
        self._until_next: int | None = None

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Return as many bytes, some of them changed."""
        if self._until_next is None:
            self._until_next = self._gap()
        if self._until_next is not None and self._until_next < len(data):
            changed = bytearray(data)
            while self._until_next is not None and self._until_next < len(data):
                self.fault.met += 1
                changed[self._until_next] ^= self._rng.randint(1, 255)
                gap = self._gap()
                self._until_next = None if gap is None else self._until_next + 1 + gap
            data = bytes(changed)
        if self._until_next is not None:
            self._until_next -= len(data)
        yield at_ms, data

    def _gap(self) -> int | None:
        """Number of bytes that stay as they are before the next change; None while nothing is to be changed."""
        if self.params.number("every_nth"):
            return self.params.integer("every_nth") - 1
        probability = self.params.number("probability")
        if probability <= 0:
            return None
        return 0 if probability >= 1 else int(math.log(1.0 - self._rng.random()) / math.log1p(-probability))


class Duplicate(Toxic):
    """Send what arrives at once twice, with a `probability`."""

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Send once or twice."""
        yield at_ms, data
        if self._rng.random() < self.params.number("probability"):
            self.fault.met += 1
            yield at_ms, data


class SlowClose(Toxic):
    """Delay the end of the stream by `delay_ms`."""

    def close(self, at_ms: float) -> float:
        """Delay the end."""
        self.fault.met += 1
        return at_ms + self.params.number("delay_ms")


UPSTREAM, DOWNSTREAM, BOTH = "upstream", "downstream", "both"


def _direction(default: str = DOWNSTREAM) -> Parameter:
    text = "downstream is from the controller to the client, upstream the other way"
    return Parameter("direction", "choice", default, text, (UPSTREAM, DOWNSTREAM, BOTH))


def _number(
    name: str, default: float, text: str, drawn: tuple[float, float], minimum: float = 0, grows: bool = False
) -> Parameter:
    return Parameter(name, "int", default, text, minimum=minimum, grows=grows, drawn=drawn)


def _probability(default: float, text: str) -> Parameter:
    drawn = (0.0005, 0.01)
    return Parameter("probability", "float", default, text, minimum=0, maximum=1, grows=True, drawn=drawn)


BYTE_KINDS = (
    Kind(
        "latency",
        "Everything arrives later, in order.",
        (
            _direction(),
            _number("latency_ms", 100, "delay in milliseconds", (50, 1_000), grows=True),
            _number(
                "jitter_ms", 0, "random difference of the delay, plus or minus, in milliseconds", (0, 200), grows=True
            ),
        ),
        toxic=Latency,
    ),
    Kind(
        "bandwidth",
        "The bandwidth of the line is limited.",
        (_direction(), _number("bytes_per_second", 10_000, "bytes a second", (1_000, 100_000), 1)),
        toxic=Bandwidth,
    ),
    Kind(
        "slow_close",
        "The end of a connection arrives late.",
        (_direction(), _number("delay_ms", 1_000, "delay in milliseconds", (100, 2_000), grows=True)),
        toxic=SlowClose,
    ),
    Kind(
        "half_open",
        "Connections are accepted and read, but never answered; those that lost bytes are closed when the fault ends.",
        (
            _direction(BOTH),
            _number("timeout_ms", 0, "milliseconds until the connection is closed; 0: never", (0, 5_000)),
        ),
        toxic=HalfOpen,
    ),
    Kind(
        "reset_peer",
        "Connections are broken with a TCP RST.",
        (_number("timeout_ms", 0, "milliseconds until the RST", (0, 1_000)),),
        toxic=ResetPeer,
    ),
    Kind(
        "slicer",
        "Bytes arrive in small pieces.",
        (
            _direction(),
            _number("average_size", 64, "bytes of a piece", (1, 256), 1),
            _number("size_variation", 0, "random difference of a piece, plus or minus, in bytes", (0, 32)),
            _number("delay_ms", 0, "milliseconds between two pieces", (0, 5), grows=True),
        ),
        toxic=Slicer,
    ),
    Kind(
        "limit_data",
        "Connections are closed after a number of bytes, possibly in the middle of a frame.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=LimitData,
    ),
    Kind(
        "truncate",
        "After a number of bytes nothing more arrives; connections stay open until the fault ends.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=Truncate,
    ),
    Kind(
        "corrupt",
        "Bytes are changed: each n-th, or each with a probability.",
        (
            _direction(),
            _probability(0.001, "probability for each byte"),
            Parameter("every_nth", "int", 0, "change each n-th byte, in place of a probability; 0: off", minimum=0),
        ),
        toxic=Corrupt,
    ),
    Kind(
        "duplicate",
        "Everything that is written at once (downstream: an answer) arrives twice.",
        (_direction(), _probability(1.0, "probability for each write")),
        toxic=Duplicate,
    ),
    Kind("down", "Connections break, and new ones break at once.", (), toxic=Down),
)
