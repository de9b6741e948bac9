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
    from collections.abc import Callable

    from mockraft.wire.message import Struct

    ReadAlike = Callable[[bytes, int, int, list[Struct]], int]

SHAPES_MAX = 32
"""Maximum number of shapes of one struct that get a reader."""

SHAPE_VALUES_MAX = 48
"""Maximum number of array elements in a shape that gets a reader."""

RUN_MIN = 8
"""Minimum number of structs still to read before a new shape gets a reader: compiling costs as much as reading many."""

RUN_MAX = 64
"""Maximum number of structs read by one call: it copies their bytes, in vain if the first has another shape."""


class Shapes(dict):  # type: ignore[type-arg]
    """Functions by the lengths of a struct's arrays that read structs of this shape.

    `shapes[lengths](data, offset, count, values)` appends at most `count` structs to `values`, stops at the first one
    with other lengths or tagged fields, and returns the offset after the last one read.
    """

    def __init__(
        self,
        decoded: type[Struct],
        fields: tuple[tuple[str, str], ...],
        constants: tuple[tuple[str, object], ...],
    ) -> None:
        """`fields` are (name, format letter), `[]` before the letter of an array; `constants` the rest."""
        self._decoded = decoded
        self._fields = fields
        self._constants = constants

    def __missing__(self, lengths: tuple[int, ...]) -> ReadAlike:
        if len(self) >= SHAPES_MAX or sum(lengths) > SHAPE_VALUES_MAX:
            return _read_none
        return self._first

    def _first(self, d: bytes, o: int, count: int, values: list[Struct]) -> int:
        """Generate the reader for the shape of the struct just read, if enough structs follow."""
        if count < RUN_MIN:
            return o
        last = values[-1]
        lengths = tuple(len(getattr(last, name)) for name, letter in self._fields if letter[0] == "[")
        made = self[lengths] = self._reader(lengths)
        return made(d, o, count, values)

    def _reader(self, lengths: tuple[int, ...]) -> ReadAlike:
        letters = ""
        names: list[str] = []
        tests: list[str] = []
        stores: list[str] = []
        remaining = iter(lengths)
        for name, letter in self._fields:
            place = len(names)
            if letter[0] != "[":
                letters += letter
                names.append(f"v{place}")
                stores.append(f"e.{name} = v{place}")
                continue
            length = next(remaining)
            elements = [f"v{place + 1 + i}" for i in range(length)]
            letters += "B" + letter[2:] * length
            names += [f"v{place}", *elements]
            tests.append(f"v{place} != {length + 1}")
            stores.append(f"e.{name} = [{', '.join(elements)}]")
        struct = packed(letters + "B")
        scope = {"iterate": struct.iter_unpack, "C": self._decoded}
        exec(_source(struct.size, names, tests, stores, self._constants), scope)
        return scope["read_alike"]  # type: ignore[return-value]


def _read_none(d: bytes, o: int, count: int, values: list[Struct]) -> int:
    return o


def _source(
    size: int, names: list[str], tests: list[str], stores: list[str], constants: tuple[tuple[str, object], ...]
) -> str:
    lines = [
        "def read_alike(d, o, count, values):",
        "    start = len(values)",
        f"    end = o + {size} * min(count, (len(d) - o) // {size}, {RUN_MAX})",
        f"    for {', '.join(names)}, t in iterate(d[o:end]):",
        f"        if {' or '.join([*tests, 't'])}: return o + {size} * (len(values) - start)",
        "        e = C()",
        *(f"        {store}" for store in stores),
        *(f"        e.{name} = {value!r}" for name, value in constants),
        "        e.unknown_tagged_fields = ()",
        "        values.append(e)",
        "    return end",
    ]
    return "\n".join(lines)
