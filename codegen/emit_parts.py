"""The parts that a writer's bytes are joined from: runs of fixed fields, short strings together with those around them.

A short string is packed with the fixed fields before and after it in one call, by a Struct for its length: fewer calls
and fewer parts than a call for each.
"""

from __future__ import annotations

from typing import NamedTuple

from mockraft.codegen.needs import FunctionEmitter, Needs
from mockraft.codegen.spec import MessageSpec


class String(NamedTuple):
    """A string with a compact length: the run before it, the names of its length and bytes, and a long one's length."""

    before: list[tuple[str, str]]
    length: str
    block: str
    long: str


class PartsEmitter(FunctionEmitter):
    """Emits statements that append parts to a list, `r` in the emitted code."""

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        super().__init__(spec, version, needs)
        self._string: String | None = None
        """A string that the run follows; both become one part if it is short."""
        self._out = "r"

    def _append(self, expression: str) -> None:
        self._lines.add(f"{self._out}.append({expression})")

    def _pack(self, run: list[tuple[str, str]], tail: str = "") -> str:
        """Return the call that packs a run; `tail` adds letters without a value (`x`)."""
        letters = "".join(letter for letter, _ in run) + tail
        return f"{self._needs.packing('pack', letters)}({', '.join(value for _, value in run)})"

    def _flush(self) -> None:
        """Write the run and the string in it."""
        string, run = self._string, self._run
        self._string, self._run = None, []
        if string is None:
            if run:
                self._append(self._pack(run))
        elif run or string.before:
            with self._lines.block(f"if {string.length} < 128:"):
                self._append(self._pack_string(string, run))
            with self._lines.block("else:"):
                self._append(self._long(string, run))
        else:
            self._length(string.length, string.long)
            self._append(string.block)

    def _pack_string(self, string: String, run: list[tuple[str, str]], tail: str = "") -> str:
        """Return the call that packs a short string with the runs around it."""
        before = [*string.before, ("B", string.length)]
        letters = "".join(letter for letter, _ in before) + "s" + "".join(letter for letter, _ in run) + tail
        values = [value for _, value in before] + [string.block] + [value for _, value in run]
        return f"{self._needs.packing('pack_string', letters)}[{string.length}]({', '.join(values)})"

    def _long(self, string: String | None, run: list[tuple[str, str]], *more: str) -> str:
        """Return the sum of a string of any length, the runs around it and more."""
        parts = list(more)
        if run:
            parts.insert(0, self._pack(run))
        if string is not None:
            before = [self._pack(string.before)] if string.before else []
            parts = [*before, string.long, string.block, *parts]
        return " + ".join(parts)

    def _length(self, length: str, long_form: str, is_long: bool = False) -> None:
        """Write the run and the compact length after it; `long_form` is the expression for one of any size.

        `is_long` adds a faster way for lengths of two bytes.
        """
        string = self._take_string()
        run, self._run = self._run, []
        run_to_length = [*run, ("B", length)]
        both_short = f"if {length} < 128 and {string.length} < 128:" if string is not None else f"if {length} < 128:"
        with self._lines.block(both_short):
            if string is not None:
                self._append(self._pack_string(string, run_to_length))
            else:
                self._append(self._pack(run_to_length) if run else f"{self._needs.use('UVARINTS')}[{length}]")
        if is_long and string is None:
            with self._lines.block(f"elif {length} < 16384:"):
                self._append(self._pack([*run, ("B", f"{length} & 127 | 128"), ("B", f"{length} >> 7")]))
        with self._lines.block("else:"):
            self._append(self._long(string, run, long_form))

    def _take_string(self) -> String | None:
        """Return the string that the run follows; write it first if neither it nor the run have any fixed fields."""
        string = self._string
        if string is not None and not string.before and not self._run:
            self._flush()
            return None
        self._string = None
        return string
