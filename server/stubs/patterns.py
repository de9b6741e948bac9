"""Regular expressions of tests, without those that can take exponential time on a short text.

Python's `re` backtracks, and the controller waits meanwhile. Backtracking explodes when something is repeated that can
itself match the same text in several ways (`(a+)+`, `(a|ab)*`): the ways multiply with each repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from mockraft.server.stubs.errors import StubError

PATTERN_LENGTH_MAX: Final = 1_000

_TURNS_MAX = 4
"""Maximum repetitions of an ambiguous part, as in `([0-9]{1,3}[.]){3}`."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. Raise StubError if it is invalid or could take exponential time."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise StubError(f"a regular expression of {len(pattern)} characters; {PATTERN_LENGTH_MAX} are enough")
    try:
        found = re.compile(pattern)
        tree: Any = import_module("re._parser").parse(pattern)
    except (re.error, RecursionError, OverflowError) as wrong:
        raise StubError(f"{pattern!r} is no regular expression: {wrong}") from None
    if _may_take_for_ever(tree, 1):
        raise StubError(
            f"{pattern!r} may take exponential time: a repeat, a choice or `?` is nested in a repeat. Put the inner"
            " part into (?>…), which is not tried again, or match with startsWith, contains or in"
        )
    return found


def _may_take_for_ever(tree: Iterable[tuple[object, Any]], turns: int) -> bool:
    """Return True if an ambiguous part is repeated too often, in a `tree` that is itself repeated `turns` times."""
    for operation, about in tree:
        name = str(operation)
        is_repeat = name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
        varies = name in ("BRANCH", "GROUPREF_EXISTS") or (is_repeat and about[0] != about[1])
        if varies and turns > _TURNS_MAX:
            return True
        # What is atomic, or only looked ahead to, is not tried again.
        outside = 1 if name in ("ATOMIC_GROUP", "ASSERT", "ASSERT_NOT") else turns
        inside = outside * int(about[1]) if is_repeat else outside
        if any(_may_take_for_ever(body, inside) for body in _bodies(name, about)):
            return True
    return False


def _bodies(name: str, about: Any) -> Iterator[Any]:
    """Yield the parts of a part."""
    if name == "ATOMIC_GROUP":
        yield about
    elif name == "BRANCH":
        yield from about[1]
    elif name == "GROUPREF_EXISTS":
        yield from (body for body in about[1:] if body is not None)
    elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT", "SUBPATTERN"):
        yield about[-1]
    elif name in ("ASSERT", "ASSERT_NOT"):
        yield about[1]
