"""Triggers: which of the matching requests a stub serves, by their number from 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, ClassVar

from mockraft.server.stubs.errors import StubError, unknown
from mockraft.wire.names import camel, snake

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree


@dataclass(frozen=True, slots=True)
class Trigger:
    """Every matching request."""

    name: ClassVar[str] = "everyTime"
    summary: ClassVar[str] = "every matching request (this is the default)"
    parameter: ClassVar[str | None] = None

    def fires(self, number: int) -> bool:
        """Return True if the matching request of this number is served."""
        return True

    def is_spent(self, number: int) -> bool:
        """Return True if none is served any more after this many."""
        return False

    def to_json(self) -> Tree:
        """Return the trigger's name with its parameter, or true if it has none."""
        return {self.name: True if self.parameter is None else getattr(self, snake(self.parameter))}


@dataclass(frozen=True, slots=True)
class Times(Trigger):
    """The first `n` matching requests."""

    times: int
    name = "times"
    summary = "the first matching requests, up to this number"
    parameter: ClassVar[str | None] = "times"

    def __post_init__(self) -> None:
        _check_count(self.times, self.name)

    def fires(self, number: int) -> bool:
        """Return True if it is among the first."""
        return number <= self.times

    def is_spent(self, number: int) -> bool:
        """Return True after that many."""
        return number >= self.times


@dataclass(frozen=True, slots=True)
class Once(Times):
    """The first matching request."""

    times: int = field(default=1, init=False)
    name = "once"
    summary = "the first matching request"
    parameter = None


@dataclass(frozen=True, slots=True)
class OnCall(Trigger):
    """The matching request of one number."""

    on_call: int
    name = "onCall"
    summary = "only the matching request of this number, from 1"
    parameter = "onCall"

    def __post_init__(self) -> None:
        _check_count(self.on_call, self.name)

    def fires(self, number: int) -> bool:
        """Return True if it is the one."""
        return number == self.on_call

    def is_spent(self, number: int) -> bool:
        """Return True if it is past."""
        return number >= self.on_call


@dataclass(frozen=True, slots=True)
class WithProbability(Trigger):
    """Each matching request with this probability; the same seed picks the same ones."""

    with_probability: float
    seed: int = 0
    name = "withProbability"
    summary = "each matching request with this probability; the same `seed` picks the same ones"
    parameter = "withProbability"

    def __post_init__(self) -> None:
        given = self.with_probability
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
            raise StubError(f"expected a number from 0 to 1, got {given!r}", self.name)
        if type(self.seed) is not int:
            raise StubError(f"expected an integer, got {self.seed!r}", "seed")

    def fires(self, number: int) -> bool:
        """Return True if it is drawn."""
        return Random(f"{self.seed}/{number}").random() < self.with_probability

    def to_json(self) -> Tree:
        """Return the trigger as JSON."""
        return {self.name: self.with_probability, "seed": self.seed}


TRIGGERS: dict[str, type[Trigger]] = {kind.name: kind for kind in (Trigger, Once, Times, OnCall, WithProbability)}
"""The triggers by their name in JSON."""


def trigger_from_json(tree: Json) -> Trigger:
    """Read a trigger from JSON: `{"times": 2}`, or only a name if it has no parameters. Raise StubError."""
    if isinstance(tree, str):
        tree = {tree: True}
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an object such as {{'times': 2}}, got {tree!r}")
    given = {camel(str(name)): value for name, value in tree.items()}
    named = [name for name in given if name in TRIGGERS]
    strange = [name for name in given if name not in TRIGGERS and name != "seed"]
    if strange:
        raise StubError(unknown("trigger", strange[0], TRIGGERS), strange[0])
    if len(named) != 1:
        raise StubError(f"expected one of {', '.join(TRIGGERS)}, got {tree!r}")
    kind, value = TRIGGERS[named[0]], given[named[0]]
    make: Callable[..., Trigger] = kind  # checks its arguments itself
    if kind is WithProbability:
        return make(value, given.get("seed", 0))
    if "seed" in given:
        raise StubError(f"{named[0]} takes no seed", "seed")
    if kind.parameter is not None:
        return make(value)
    if value is not True:
        raise StubError(f"expected true, got {value!r}", named[0])
    return kind()


def _check_count(value: object, field: str) -> None:
    if type(value) is not int or value < 1:
        raise StubError(f"expected a number from 1 on, got {value!r}", field)
