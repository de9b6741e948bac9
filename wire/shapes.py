"""Readers of structs with arrays, generated at run time for the array lengths that occur.

The partitions of a topic have replica lists of nearly always the same lengths. The bytes of such a struct have one
fixed format, and a loop generated for exactly that shape reads it a quarter faster than a general one. The source of
the loop consists of the schema's field names and small integers, never of other data from a peer, and the number of
shapes is bounded.
"""

from __future__ import annotations

from mockraft.wire.primitives import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mockraft.wire.message import Struct

    ReadAlike = Callable[[bytes, int, int, list[Struct]], int]
    Field = tuple[Any, ...]
    Shaped = tuple[type[Struct], tuple[Field, ...], tuple[tuple[str, object], ...]]

SHAPES_MAX = 32
"""Maximum number of shapes of one struct in its table; too large ones have no reader, but a place."""

SHAPE_VALUES_MAX = 96
"""Maximum number of values in the arrays of a shape that gets a reader."""

RUN_MIN = 32
"""Structs read one by one, or following in the array, before a shape gets a reader: making it takes as long as 100."""

RUN_MAX = 64
"""Maximum number of structs read by one call: it copies their bytes, in vain if the first has another shape."""


class Shapes(dict):  # type: ignore[type-arg]
    """Functions by the lengths of a struct's arrays that read structs of this shape.

    `shapes[lengths](data, offset, count, values)` appends at most `count` structs to `values`, stops at the first one
    with other lengths or tagged fields, and returns the offset after the last one read. `shapes.last` is the function
    that was used last, the best guess where nothing is known of the lengths.
    """

    def __init__(self, decoded: type[Struct], fields: tuple[Field, ...], constants: tuple[tuple[str, object], ...]):
        """`fields` are (name, format letter) in the order of the bytes, `constants` (name, value) the rest.

        An array of values has `[]` before the letter, one of structs of fixed fields `[]` and as a third element what
        describes the struct: its class, fields and constants.
        """
        self.shaped = decoded, fields, constants
        self._widths = [len(field[2][1]) + 1 if field[2:] else 1 for field in fields if field[1][0] == "["]
        self._met = 0
        self.last: ReadAlike = read_none

    def __missing__(self, lengths: tuple[int, ...]) -> ReadAlike:
        if len(self) >= SHAPES_MAX:
            return read_none
        if sum(length * width for length, width in zip(lengths, self._widths, strict=True)) > SHAPE_VALUES_MAX:
            self[lengths] = read_none
            return read_none
        return self._first

    def _first(self, d: bytes, o: int, count: int, values: list[Struct]) -> int:
        """Generate the reader for the shape of the struct just read, if enough were read or follow."""
        self._met += 1
        if self._met <= RUN_MIN and count < RUN_MIN:
            return o
        self._met = 0
        last = values[-1]
        lengths = tuple(len(getattr(last, name)) for name, letter, *_ in self.shaped[1] if letter[0] == "[")
        source = _Source()
        source.struct(self.shaped, iter(lengths))
        made = self[lengths] = source.compiled(self)
        return made(d, o, count, values)


def read_none(d: bytes, o: int, count: int, values: list[Struct]) -> int:
    """Read nothing: there is no reader for the shape."""
    return o


class _Source:
    """The source of the reader of one shape: names of the unpacked values, tests and stores, one struct each."""

    def __init__(self) -> None:
        self._scope: dict[str, object] = {}
        self._letters = ""
        self._names: list[str] = []
        self._tests: list[str] = []
        self._stores: list[str] = []

    def _value(self, letter: str) -> str:
        self._letters += letter
        self._names.append(f"v{len(self._names)}")
        return self._names[-1]

    def struct(self, shaped: Shaped, lengths: Iterator[int]) -> str:
        """Add a struct whose arrays have these lengths; return the name of its variable."""
        decoded, fields, constants = shaped
        var = f"e{len(self._names)}"
        self._scope[decoded.__name__] = decoded
        self._stores.append(f"{var} = {decoded.__name__}()")
        for name, letter, *nested in fields:
            self._stores.append(f"{var}.{name} = {self._field(letter, nested, lengths)}")
        self._stores += [f"{var}.{name} = {value!r}" for name, value in constants]
        self._stores.append(f"{var}.unknown_tagged_fields = ()")
        self._tests.append(self._value("B"))
        return var

    def _field(self, letter: str, nested: list[Shaped], lengths: Iterator[int]) -> str:
        if letter[0] != "[":
            return self._value(letter)
        length = next(lengths)
        self._tests.append(f"{self._value('B')} != {length + 1}")
        values = [self.struct(nested[0], lengths) if nested else self._value(letter[2:]) for _ in range(length)]
        return f"[{', '.join(values)}]"

    def compiled(self, shapes: Shapes) -> ReadAlike:
        struct = packed(self._letters)
        lines = [
            "def read_alike(d, o, count, values):",
            "    start = len(values)",
            f"    end = o + {struct.size} * min(count, (len(d) - o) // {struct.size}, {RUN_MAX})",
            f"    for {', '.join(self._names)} in iterate(d[o:end]):",
            f"        if {' or '.join(self._tests)}: return o + {struct.size} * (len(values) - start)",
            *(f"        {store}" for store in self._stores),
            "        values.append(e0)",
            "    shapes.last = read_alike",
            "    return end",
        ]
        scope = {**self._scope, "iterate": struct.iter_unpack, "shapes": shapes}
        exec("\n".join(lines), scope)
        return scope["read_alike"]  # type: ignore[return-value]
