"""Expected responses as JSON trees with the relevant fields, and the first difference from them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

PATIENCE_S = 20.0
PAUSE_S = 0.05
"""How long to wait for what a controller does soon, and between two looks."""


class FirstDifference(NamedTuple):
    """The first difference; `path` has the form `topics[0].errorCode`."""

    path: str
    expected: object
    got: object


class NotAsExpectedError(AssertionError):
    """A failed case: `what` (a response, the records, a connection) is not as expected."""

    def __init__(self, what: str, expected: object, got: object, first: FirstDifference) -> None:
        super().__init__(f"{what}: {first.path or 'it'} should be {shown(first.expected)}, is {shown(first.got)}")
        self.what = what
        self.expected = expected
        self.got = got
        self.first = first


class NotApplicableError(Exception):
    """The case does not apply to this controller; the message is the reason."""


class OneOf:
    """A place in a tree at which more than one value is accepted."""

    def __init__(self, description: str, accepts: Callable[[Any], bool]) -> None:
        self.description = description
        self.accepts = accepts

    def __repr__(self) -> str:
        return f"<{self.description}>"


class InAnyOrder(list[object]):
    """An array whose elements may come in any order."""


class Only(dict[str, object]):
    """An object that has these keys and no others."""


ANYTHING = OneOf("anything", lambda _: True)
NOT_EMPTY = OneOf("not empty", bool)
Fields = Mapping[str, object]
"""Expected fields of an object."""
GOOD: Fields = {"errorCode": 0, "errorMessage": None}
"""A result without an error."""
MISSING = OneOf("nothing", lambda _: False)
"""In a difference: there is no such key or element."""


def refused(code: int, message: object = ANYTHING) -> Fields:
    """Accept a result with this error."""
    return {"errorCode": code, "errorMessage": message}


def above(least: float) -> OneOf:
    """Accept a number above `least`."""
    return OneOf(f"over {least}", lambda value: isinstance(value, int | float) and value > least)


def like(pattern: str) -> OneOf:
    """Accept a string that the whole regular expression matches."""
    return OneOf(
        f"like {pattern}", lambda value: isinstance(value, str) and re.fullmatch(pattern, value, re.S) is not None
    )


def either(*values: object) -> OneOf:
    """Accept any of these, which may be trees."""
    return OneOf(f"one of {list(values)}", lambda value: any(difference(each, value) is None for each in values))


def difference(expected: object, got: object, path: str = "") -> FirstDifference | None:
    """Return the first difference: objects are compared by the keys of `expected` only, arrays by every element."""
    if isinstance(expected, OneOf):
        return None if expected.accepts(got) else FirstDifference(path, expected, got)
    if isinstance(expected, dict):
        return _of_objects(expected, got, path)
    if isinstance(expected, InAnyOrder):
        return _in_any_order(expected, got, path)
    if isinstance(expected, list | tuple):
        return _of_arrays(expected, got, path)
    same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return None if same else FirstDifference(path, expected, got)


def _of_objects(expected: Fields, got: object, path: str) -> FirstDifference | None:
    if not isinstance(got, dict):
        return FirstDifference(path, expected, got)
    for key, value in expected.items():
        inside = f"{path}.{key}" if path else key
        if key not in got:
            if value is MISSING:
                continue
            return FirstDifference(inside, value, MISSING)
        if found := difference(value, got[key], inside):
            return found
    if isinstance(expected, Only) and (more := [key for key in got if key not in expected]):
        return FirstDifference(f"{path}.{more[0]}" if path else more[0], MISSING, got[more[0]])
    return None


def _of_arrays(expected: Sequence[object], got: object, path: str) -> FirstDifference | None:
    if not isinstance(got, list):
        return FirstDifference(path, expected, got)
    for index, value in enumerate(expected):
        if index == len(got):
            return FirstDifference(f"{path}[{index}]", value, MISSING)
        if found := difference(value, got[index], f"{path}[{index}]"):
            return found
    if len(got) > len(expected):
        return FirstDifference(f"{path}[{len(expected)}]", MISSING, got[len(expected)])
    return None


def _in_any_order(expected: Sequence[object], got: object, path: str) -> FirstDifference | None:
    if not isinstance(got, list):
        return FirstDifference(path, expected, got)
    left = list(got)
    for value in expected:
        fitting = next((each for each in left if difference(value, each) is None), None)
        if fitting is None:
            return FirstDifference(path, value, left)
        left.remove(fitting)
    return FirstDifference(path, MISSING, left[0]) if left else None


def expect(what: str, expected: object, got: object) -> None:
    """Raise NotAsExpectedError unless `got` is as expected."""
    if first := difference(expected, got):
        raise NotAsExpectedError(what, expected, got, first)


async def eventually(what: str, expected: object, ask: Callable[[], Awaitable[object]]) -> None:
    """Ask until the response is as expected: some are made from the last published image. NotAsExpectedError if not."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while difference(expected, got := await ask()) is not None and loop.time() < deadline:
        await asyncio.sleep(PAUSE_S)
    expect(what, expected, got)


def shown(value: object) -> str:
    """Return a value as one line of text."""
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
