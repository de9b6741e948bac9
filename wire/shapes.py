"""Readers and writers of structs with arrays, generated at run time for the array lengths that occur.

The partitions of a topic have replica lists of nearly always the same lengths. The bytes of such a struct have one
fixed format, and a loop generated for exactly that shape reads or writes it in little more than half the time. The
source of the loop consists of the schema's field names and small integers, never of other data from a peer, and the
number of shapes is bounded.
"""

from __future__ import annotations

from mockraft.wire.primitives import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from mockraft.wire.message import Struct

    Field = tuple[Any, ...]
    Constant = tuple[str, object, bool]
    Shaped = tuple[type[Struct], tuple[Field, ...], tuple[Constant, ...]]

SHAPES_MAX = 32
"""Maximum number of shapes of one struct that get a reader, and a writer."""

SHAPE_VALUES_MAX = 96
"""Maximum number of values in the arrays of a shape that gets a reader."""

RUN_MIN = 32
"""Structs met one by one, or following in the array, before a shape gets a function: it takes as long as a hundred."""

RUN_MAX = 64
"""Maximum number of structs read by one call: it copies their bytes, in vain if the first has another shape."""


class _ByShape(dict):  # type: ignore[type-arg]
    """Functions by the lengths of a struct's arrays; `last` is that of the last two structs in a row with one shape."""

    def __init__(self, shaped: Shaped, source: type[_ReaderSource | _WriterSource], last: Callable[..., int]) -> None:
        self.shaped = shaped
        self.last = last
        self.before: tuple[int, ...] | None = None
        """The shape of the struct before, if `last` was of no use for it."""
        self._source = source
        self._widths = [len(field[2][1]) + 1 if field[2:] else 1 for field in shaped[1] if field[1][0] == "["]
        self._met = 0

    def meet(self, lengths: tuple[int, ...], following: int) -> None:
        """Note the shape of a struct for which `last` was of no use; so many structs follow in its array."""
        self._met += 1
        made = self.get(lengths)
        if made is None and len(self) < SHAPES_MAX and (self._met > RUN_MIN or following >= RUN_MIN):
            self._met = 0
            if sum(length * width for length, width in zip(lengths, self._widths, strict=True)) <= SHAPE_VALUES_MAX:
                self.last = self[lengths] = self._source(self).compiled(self.shaped, lengths)
        elif made is not None and lengths == self.before:
            self.last = made
        self.before = lengths


class Shapes(_ByShape):
    """Readers by shape, and `writers`.

    `shapes.last(data, offset, count, values)` appends at most `count` structs to `values`, stops at the first one of
    another shape or with tagged fields, and returns the offset after the last one read.
    `shapes.writers.last(values, start, parts)` appends the bytes of structs from `start` on to `parts`, stops in the
    same way, and returns the index of the first one not written.
    """

    def __init__(self, decoded: type[Struct], fields: tuple[Field, ...], constants: tuple[Constant, ...]):
        """`fields` are (name, format letter) in the order of the bytes, `constants` the rest.

        An array of values has `[]` before the letter, one of structs of fixed fields `[]` and as a third element what
        describes the struct: its class, fields and constants. A constant is a name, a value, and True if a struct with
        another value cannot be written as the others are.
        """
        super().__init__((decoded, fields, constants), _ReaderSource, _read_none)
        self.writers = _ByShape(self.shaped, _WriterSource, _write_none)


def _read_none(d: bytes, o: int, count: int, values: list[Struct]) -> int:
    return o


def _write_none(values: Sequence[Struct], start: int, parts: list[bytes]) -> int:
    return start


class _Source:
    """The source of a function for one shape: the format of its bytes, their values, tests and statements."""

    def __init__(self, table: _ByShape) -> None:
        self._scope: dict[str, object] = {"table": table}
        self._letters = ""
        self._values: list[str] = []
        self._tests: list[str] = []
        self._lines: list[str] = []

    def _function(self, lines: list[str]) -> Callable[..., int]:
        struct = packed(self._letters)
        scope = {**self._scope, "iterate": struct.iter_unpack, "pack": struct.pack}
        exec("\n".join(lines), scope)
        return scope["alike"]  # type: ignore[return-value]

    def _value(self, letter: str) -> str:
        return self._add(letter, f"v{len(self._values)}")

    def _add(self, letter: str, value: str) -> str:
        self._letters += letter
        self._values.append(value)
        return value


class _ReaderSource(_Source):
    def compiled(self, shaped: Shaped, lengths: tuple[int, ...]) -> Callable[..., int]:
        """Return the reader of structs whose arrays have these lengths."""
        self._struct(shaped, iter(lengths))
        size = packed(self._letters).size
        lines = [
            "def alike(d, o, count, values):",
            "    start = len(values)",
            f"    end = o + {size} * min(count, (len(d) - o) // {size}, {RUN_MAX})",
            f"    for {', '.join(self._values)} in iterate(d[o:end]):",
            f"        if {' or '.join(self._tests)}: break",
            *(f"        {line}" for line in self._lines),
            "        values.append(e0)",
            "    read = len(values) - start",
            "    if read: table.before = None",
            f"    return o + {size} * read",
        ]
        return self._function(lines)

    def _struct(self, shaped: Shaped, lengths: Iterator[int]) -> str:
        decoded, fields, constants = shaped
        var = f"e{len(self._values)}"
        self._scope[decoded.__name__] = decoded
        self._lines.append(f"{var} = {decoded.__name__}()")
        for name, letter, *nested in fields:
            self._lines.append(f"{var}.{name} = {self._field(letter, nested, lengths)}")
        self._lines += [f"{var}.{name} = {value!r}" for name, value, _ in constants]
        self._lines.append(f"{var}.unknown_tagged_fields = ()")
        self._tests.append(self._value("B"))
        return var

    def _field(self, letter: str, nested: list[Shaped], lengths: Iterator[int]) -> str:
        if letter[0] != "[":
            return self._value(letter)
        length = next(lengths)
        self._tests.append(f"{self._value('B')} != {length + 1}")
        values = [self._struct(nested[0], lengths) if nested else self._value(letter[2:]) for _ in range(length)]
        return f"[{', '.join(values)}]"


class _WriterSource(_Source):
    def compiled(self, shaped: Shaped, lengths: tuple[int, ...]) -> Callable[..., int]:
        """Return the writer of structs whose arrays have these lengths."""
        self._struct(shaped, iter(lengths))
        lines = [
            "def alike(values, start, parts):",
            "    before = len(parts)",
            "    try:",
            f"        for e0 in values[start : start + {RUN_MAX}]:",
            *(f"            {line}" for line in self._lines),
            f"            if {' or '.join(self._tests)}: break",
            f"            parts.append(pack({', '.join(self._values)}))",
            "    except (TypeError, ValueError):",
            "        pass  # an array of another length, or none at all: for the general writer",
            "    written = len(parts) - before",
            "    if written: table.before = None",
            "    return start + written",
        ]
        return self._function(lines)

    def _struct(self, shaped: Shaped, lengths: Iterator[int]) -> str:
        var = f"e{len(self._letters)}"
        for name, letter, *nested in shaped[1]:
            if letter[0] != "[":
                if letter == "U":
                    self._tests.append(f"len({var}.{name}) != 16")
                self._add(letter, f"{var}.{name}")
                continue
            length = next(lengths)
            self._add("B", f"{length + 1}")
            elements = [self._struct(nested[0], lengths) if nested else self._value(letter[2:]) for _ in range(length)]
            self._lines.append(f"({''.join(f'{element}, ' for element in elements)}) = {var}.{name}")
            if letter == "[]U":
                self._tests += [f"len({element}) != 16" for element in elements]
        self._tests += [f"{var}.{name} != {value!r}" for name, value, matters in shaped[2] if matters]
        self._tests.append(f"{var}.unknown_tagged_fields")
        self._letters += "x"
        return var
