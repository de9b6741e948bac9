"""Mutants of a module: each small change that mutmut's operators make inside its functions.

mutmut itself finds no code of ours: it takes a module's name from its path (`server/raft/raft.py` is
`mockraft.server.raft.raft` here), and it leaves out decorated functions and all methods of decorated classes, which
most of our state is. So only its operators are used. Three things are not changed: module and class level (as in
mutmut), annotations, and texts of messages, which the conformance suite compares with Kafka's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

UNCHANGED = (libcst.Annotation, libcst.Decorator, libcst.Parameters)
UNCHANGED_CALLS = {"cast", "isinstance", "len"}
TEXTS = (libcst.SimpleString, libcst.FormattedString, libcst.ConcatenatedString)
BLOCKS = (libcst.If, libcst.While, libcst.For, libcst.With, libcst.Match, libcst.MatchCase, libcst.ExceptHandler)


class Mutant(NamedTuple):
    """One change of a module. `lines` are the first and the last line of the statement that has it."""

    module: str
    path: Path
    source: str
    lines: tuple[int, int]
    original: str
    changed: str
    make_source: Callable[[], str]

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[0]}  {one_line(self.original)}  →  {one_line(self.changed)}"


def one_line(code: str) -> str:
    """Return code on one line."""
    return " ".join(code.split())


def module_name(path: Path) -> str:
    """Return the name under which the tests import a file of the repository."""
    return ".".join(("mockraft", *path.with_suffix("").parts))


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file, whose path is relative to the repository."""
    source = path.read_text()
    wrapper = MetadataWrapper(libcst.parse_module(source))
    changes = _Changes(wrapper.module)
    wrapper.visit(changes)
    return [
        Mutant(
            module_name(path),
            path,
            source,
            lines,
            wrapper.module.code_for_node(old),
            wrapper.module.code_for_node(new),
            partial(_source_with, wrapper.module, old, new),
        )
        for lines, old, new in changes.found
    ]


def _source_with(module: Any, old: Any, new: Any) -> str:
    code: str = module.deep_replace(old, new).code
    return code


def drawn_from(paths: list[Path], rng: random.Random) -> list[Mutant]:
    """Return all mutants of the files in random order, so that a prefix is a fair sample."""
    found = [mutant for path in paths for mutant in mutants_of(path)]
    rng.shuffle(found)
    return found


class _Changes(libcst.CSTVisitor):
    """Collects (lines of the statement, node, other node) within functions."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.found: list[tuple[tuple[int, int], Any, Any]] = []
        self._module = module
        self._functions = 0
        self._statements: list[tuple[int, int]] = []

    def on_visit(self, node: Any) -> bool:
        if isinstance(node, UNCHANGED):
            return False
        if isinstance(node, libcst.Call) and getattr(node.func, "value", None) in UNCHANGED_CALLS:
            return False
        self._functions += isinstance(node, libcst.FunctionDef)
        if isinstance(node, libcst.SimpleStatementLine | libcst.Else | libcst.Finally):
            self._statements.append(self._lines(node))
        elif isinstance(node, BLOCKS):
            self._statements.append(self._header_lines(node))
        if self._functions and self._statements:
            self.found += [(self._statements[-1], node, other) for other in self._others(node)]
        return True

    def on_leave(self, node: Any) -> None:
        self._functions -= isinstance(node, libcst.FunctionDef)
        if isinstance(node, (libcst.SimpleStatementLine, libcst.Else, libcst.Finally, *BLOCKS)):
            self._statements.pop()

    def _lines(self, node: Any) -> tuple[int, int]:
        position = self.get_metadata(PositionProvider, node)
        return position.start.line, position.end.line

    def _header_lines(self, node: Any) -> tuple[int, int]:
        """Return the lines of a block's statement before its body."""
        start = self._lines(node)[0]
        body = node.cases if isinstance(node, libcst.Match) else node.body.body
        return start, max(start, self._lines(body[0])[0] - 1)

    def _others(self, node: Any) -> Iterator[Any]:
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                yield from (other for other in operator(node) if not self._changes_a_text(node, other))

    def _changes_a_text(self, node: Any, other: Any) -> bool:
        """Return True for another text of a message, and for a string of other case: one mutant a string is enough."""
        if isinstance(node, libcst.SimpleString):
            return self._is_text(node) or "XX" not in other.value
        if isinstance(node, libcst.Call) and isinstance(other, libcst.Call):
            kept = {id(each) for each in other.args}
            return any(self._is_text(each.value) for each in node.args if id(each) not in kept)
        return False

    def _is_text(self, node: Any) -> bool:
        return isinstance(node, TEXTS) and " " in self._module.code_for_node(node)
