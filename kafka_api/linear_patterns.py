"""Regular expressions of stubs and clients, matched in a time that is linear in the text.

Python's `re` backtracks: a short pattern (`.*.*.*=x`) can keep it busy for minutes with a client id of 3,000
characters, and everybody else waits meanwhile. Here `re` only parses the pattern. It is then run as RE2 and Go do it
(Thompson's construction): a pattern is a graph of nodes, and the text is read once, with the set of nodes that may
consume the next character. A text is found if `re` finds it; there are no groups.

Refused is what no such graph can express: references to groups, look-around, atomic groups and possessive repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

PATTERN_LENGTH_MAX: Final = 1_000
NODES_MAX: Final = 1_000
"""A counted repeat has its part once for each count: `(.{1,100}){1,100}` would have 10,000 nodes."""
RANGED_MAX: Final = 4 << 16
"""Characters in all ranges of a pattern: for a set such as `[a-\uffff]` `re` makes a table of them, in 3 to 10 ms."""
CHECKED_LENGTH_MAX: Final = 65_536
"""Characters of all patterns that `Checks` checks; parsing them takes 0.2 s."""
_CACHED_MAX: Final = 512

_ORDINARY = "an ordinary one cannot take longer here"
_CONDITIONS = "combine conditions, such as regex and not"
_REFUSED: Final = {
    "GROUPREF": "references to groups",
    "GROUPREF_EXISTS": "references to groups",
    "ASSERT": f"look-around: {_CONDITIONS}",
    "ASSERT_NOT": f"look-around: {_CONDITIONS}",
    "ATOMIC_GROUP": f"atomic groups: {_ORDINARY}",
    "POSSESSIVE_REPEAT": f"possessive repeats: {_ORDINARY}",
}

# Not public, but the same in every Python from 3.11 on; a test compares the results with those of `re`.
_parser: Any = import_module("re._parser")
_compiler: Any = import_module("re._compiler")

Nodes = frozenset[int]


class PatternError(ValueError):
    """A pattern is invalid, too large, or cannot be matched in linear time."""


def compiled(pattern: str, *, whole: bool = False) -> LinearPattern:
    """Compile a pattern; one that is `whole` must match from the start of the text to its end. Raises PatternError."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise PatternError(f"a regular expression of {len(pattern)} characters; {PATTERN_LENGTH_MAX} are enough")
    try:
        return LinearPattern(_Graph(pattern, whole=whole))
    except (re.error, RecursionError, OverflowError) as wrong:
        raise PatternError(f"{pattern!r} is no regular expression: {wrong}") from None


class Checks:
    """Checks of patterns that are never matched here; all of them together are bounded, as those of one request."""

    def __init__(self) -> None:
        self._left = CHECKED_LENGTH_MAX

    def check(self, pattern: str) -> None:
        """Raise PatternError for a pattern that is invalid, and for all once they are too many or too long."""
        self._left -= len(pattern)
        if self._left < 0:
            raise PatternError(f"regular expressions of more than {CHECKED_LENGTH_MAX} characters")
        try:
            _parser.parse(pattern)  # compiling may take a second for each thousand characters
        except (re.error, RecursionError, OverflowError) as wrong:
            raise PatternError(f"{pattern!r} is no regular expression: {wrong}") from None


class _Node(NamedTuple):
    """A node: it consumes a character that `character` matches, or checks the position, or only leads to others."""

    following: list[int]
    character: re.Pattern[str] | None = None
    position: int | None = None


class _Graph:
    """The nodes of a pattern, `start` the first and `end` the last one; `positions` are its `^`, `$`, `\\b`, …"""

    def __init__(self, pattern: str, *, whole: bool) -> None:
        self._pattern = pattern
        self._copies = self._ranged = 0
        self._matchers: dict[tuple[object, ...], re.Pattern[str]] = {}
        self.nodes: list[_Node] = []
        self.positions: list[re.Pattern[str]] = []
        tree = _parser.parse(pattern)
        self.end = self._add(_Node([]))
        parts = list(tree)
        if whole:
            at_start, at_end = ((_parser.AT, at) for at in (_parser.AT_BEGINNING_STRING, _parser.AT_END_STRING))
            parts = [at_start, *parts, at_end]
        self.start = self._sequence(parts, tree.state.flags, self.end)

    def _add(self, node: _Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _sequence(self, tree: Iterable[tuple[object, Any]], flags: int, after: int) -> int:
        """Add the parts of a tree, which lead to `after`; return the first node."""
        for operation, about in reversed(list(tree)):
            after = self._part(str(operation), (operation, about), flags, after)
        self._copies += 1
        if max(self._copies, len(self.nodes)) > NODES_MAX:
            raise PatternError(f"{self._pattern!r} repeats too much: with each repeat written out it is too long")
        return after

    def _part(self, name: str, part: tuple[object, Any], flags: int, after: int) -> int:
        about = part[1]
        if name in _REFUSED:
            raise PatternError(f"{self._pattern!r} may take more than linear time; not supported: {_REFUSED[name]}")
        if name == "BRANCH":
            return self._add(_Node([self._sequence(body, flags, after) for body in about[1]]))
        if name == "SUBPATTERN":
            _, more, less, body = about
            return self._sequence(body, _compiler._combine_flags(flags, more, less), after)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, body = about
            return self._repeat(low, high, body, flags, after)
        matcher = self._matcher(name, part, flags)
        if name != "AT":
            return self._add(_Node([after], character=matcher))
        self.positions.append(matcher)
        return self._add(_Node([after], position=len(self.positions) - 1))

    def _matcher(self, name: str, part: tuple[object, Any], flags: int) -> re.Pattern[str]:
        """Return what matches a single character or a position; compiled once, however often it is repeated."""
        about = part[1]
        key = (name, id(about) if name == "IN" else about, flags)
        matcher = self._matchers.get(key)
        if matcher is None:
            if name == "IN":
                ranges = (each for kind, each in about if kind is _parser.RANGE)
                self._ranged += sum(min(high - low, 0xFFFF) for low, high in ranges)
                if self._ranged > RANGED_MAX:
                    raise PatternError(f"{self._pattern!r} has ranges of more than {RANGED_MAX} characters")
            single = _parser.State()
            single.flags = flags
            matcher = self._matchers[key] = _compiler.compile(_parser.SubPattern(single, [part]))
        return matcher

    def _repeat(self, low: int, high: int, body: Any, flags: int, after: int) -> int:
        end = after
        if high == _parser.MAXREPEAT:
            end = self._add(_Node([after]))
            self.nodes[end].following.append(self._sequence(body, flags, end))
        else:
            for _ in range(high - low):
                end = self._add(_Node([self._sequence(body, flags, end), after]))
        for _ in range(low):
            end = self._sequence(body, flags, end)
        return end


class LinearPattern:
    """A compiled pattern. Sets of nodes and the steps between them are kept for the next text, up to a limit."""

    def __init__(self, graph: _Graph) -> None:
        self._graph = graph
        self._reached: dict[tuple[Nodes, tuple[bool, ...]], Nodes] = {}
        self._followed: dict[tuple[Nodes, str], Nodes] = {}

    def search(self, text: str) -> bool:
        """Return True if some part of the text matches."""
        graph = self._graph
        before: Nodes = frozenset((graph.start,))
        for at in range(len(text) + 1):
            holds = tuple(position.match(text, at) is not None for position in graph.positions)
            nodes = self._reached.get((before, holds)) or self._reach(before, holds)
            if graph.end in nodes:
                return True
            if at < len(text):
                before = self._followed.get((nodes, text[at])) or self._follow(nodes, text[at])
        return False

    def _reach(self, before: Nodes, holds: tuple[bool, ...]) -> Nodes:
        """Return the nodes that are reached without a character where these positions hold."""
        seen, waiting = set(before), list(before)
        while waiting:
            node = self._graph.nodes[waiting.pop()]
            if node.character is None and (node.position is None or holds[node.position]):
                fresh = set(node.following) - seen
                seen |= fresh
                waiting += fresh
        return _kept(self._reached, (before, holds), frozenset(seen))

    def _follow(self, nodes: Nodes, character: str) -> Nodes:
        """Return the nodes behind a character, and the start: a match may begin there."""
        found = {self._graph.start}
        for node in map(self._graph.nodes.__getitem__, nodes):
            if node.character is not None and node.character.match(character):
                found.update(node.following)
        return _kept(self._followed, (nodes, character), frozenset(found))


def _kept(cache: dict[Any, Nodes], key: object, nodes: Nodes) -> Nodes:
    if len(cache) >= _CACHED_MAX:
        cache.clear()
    cache[key] = nodes
    return nodes
