"""Damage to the bytes of one answer after it was written: what a client must notice, or survive."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from mockraft.server.stubs.action import Action, AnswerPlan
from mockraft.server.stubs.errors import StubError

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

Frame = bytes
"""Bytes of an answer; an alias because a parameter of the edits is called bytes."""

_INT = Struct(">i")
_HEAD_BYTES = 8
"""Size of the length and the correlation id, which `corrupt` leaves alone: only the body shall be misread."""


@dataclass(frozen=True)
class FrameEdit(Action):
    """Base of the edits: they work on the bytes of an answer, length included."""

    def extend(self, plan: AnswerPlan) -> None:
        """Edit the bytes before they are sent."""
        plan.let_pass()
        plan.frame_edits.append(self.edited)
        plan.reason.append(self.name)

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the bytes to send in place of the frame; `call` is the number of the stub's call."""
        raise AssertionError(f"{self.name} edits nothing")


@dataclass(frozen=True)
class WrongCorrelationId(FrameEdit):
    """Change the correlation id, as if the answer were to another request."""

    by: int = 1
    name = "wrongCorrelationId"
    summary = "The correlation id is off by `by` (default 1)."
    example: ClassVar[Json] = {"by": 1000}
    main = "by"

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the frame with another correlation id."""
        return frame[:4] + _shifted(frame[4:8], self.by) + frame[8:]


@dataclass(frozen=True)
class WrongLength(FrameEdit):
    """Send a length that is not the frame's."""

    by: int = 1
    name = "wrongLength"
    summary = "The frame's length field is off by `by` bytes (default 1; below 0: too small)."
    example: ClassVar[Json] = {"by": -4}
    main = "by"

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the frame with another length."""
        return _shifted(frame[:4], self.by) + frame[4:]


@dataclass(frozen=True)
class Truncate(FrameEdit):
    """Send only the beginning."""

    bytes: int
    name = "truncate"
    summary = "Only the first `bytes` of the frame, its length included, are sent."
    example: ClassVar[Json] = {"bytes": 6}
    main = "bytes"

    def __post_init__(self) -> None:
        if type(self.bytes) is not int or self.bytes < 0:
            raise StubError(f"expected bytes from 0 on, got {self.bytes!r}", "bytes")

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the beginning of the frame."""
        return frame[: self.bytes]


@dataclass(frozen=True)
class Corrupt(FrameEdit):
    """Change bytes at random places."""

    bytes: int = 1
    seed: int = 0
    name = "corrupt"
    summary = "This number of `bytes` of the body is changed; the same `seed` changes the same ones."
    example: ClassVar[Json] = {"bytes": 3, "seed": 7}
    main = "bytes"

    def __post_init__(self) -> None:
        if type(self.bytes) is not int or self.bytes < 1:
            raise StubError(f"expected bytes from 1 on, got {self.bytes!r}", "bytes")

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the frame with other bytes."""
        edited = bytearray(frame)
        rng = Random(f"{self.seed}/{call}")
        for _ in range(self.bytes if len(frame) > _HEAD_BYTES else 0):
            edited[rng.randrange(_HEAD_BYTES, len(frame))] ^= rng.randint(1, 255)
        return Frame(edited)


@dataclass(frozen=True)
class Duplicate(FrameEdit):
    """Send the answer several times."""

    times: int = 2
    name = "duplicate"
    summary = "The answer is sent this many `times` (default 2)."
    example: ClassVar[Json] = {"times": 3}
    main = "times"

    def __post_init__(self) -> None:
        if type(self.times) is not int or not 1 <= self.times <= 1000:
            raise StubError(f"expected a number from 1 to 1000, got {self.times!r}", "times")

    def edited(self, frame: Frame, call: int) -> Frame:
        """Return the frame repeated."""
        return frame * self.times


@dataclass(frozen=True)
class Raw(Action):
    """Send bytes that are no answer."""

    hex: str
    name = "raw"
    summary = "These bytes are sent, as they are, in place of an answer; the controller does not see the request."
    example: ClassVar[Json] = {"hex": "00000004 deadbeef"}
    main = "hex"

    def __post_init__(self) -> None:
        assert bytes_of(self.hex) is not None

    def extend(self, plan: AnswerPlan) -> None:
        """Answer with the bytes."""
        plan.take_answer()
        plan.raw = bytes_of(self.hex)
        plan.reason.append(self.name)


def bytes_of(text: str, name: str = "hex") -> bytes:
    """Return bytes from hexadecimal digits, spaces allowed. Raise StubError."""
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise StubError(f"expected hexadecimal digits, got {text!r}", name) from None


def _shifted(number: bytes, by: int) -> bytes:
    """Add to an int32, with overflow."""
    if len(number) < _INT.size:
        return number
    return _INT.pack((_INT.unpack(number)[0] + by + (1 << 31)) % (1 << 32) - (1 << 31))
