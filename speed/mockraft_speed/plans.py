"""Plans of a message version, as rows for the C code, from the table that a generated module has of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Range = tuple[int, int]
Row = tuple[Any, ...]

SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
KINDS = (*SIZES, "string", "bytes", "struct")
"""Kinds of fields in the order of the C enumeration; `records` are bytes."""


class Field(NamedTuple):
    """One field of a struct, a row of the generated table: see `mockraft.codegen.emit_module`."""

    name: str
    type: str
    versions: Range
    default: Any
    ignorable: bool = False
    nullable: Range = (0, -1)
    tagged: Range = (0, -1)
    tag: int = -1
    compact: Range | None = None

    @property
    def element(self) -> str:
        """The type without its `[]`."""
        return self.type.removeprefix("[]")


def _has(versions: Range, version: int) -> bool:
    return versions[0] <= version <= versions[1]


class Planner:
    """Computes the rows of one message; `namespace` is the generated module's, which has the classes."""

    def __init__(self, structs: tuple[tuple[str, tuple[Row, ...]], ...], namespace: Mapping[str, Any]) -> None:
        self._structs = {name: tuple(Field(*row) for row in rows) for name, rows in structs}
        self._namespace = namespace
        self.message: Any = namespace[structs[0][0]]

    def __call__(self, version: int) -> Row:
        """Return the row of a version of the message."""
        return self._plan(self.message.__name__, version)

    def _plan(self, name: str, version: int) -> Row:
        fields = self._structs[name]
        present = [f for f in fields if _has(f.versions, version)]
        plain = [f for f in present if not _has(f.tagged, version)]
        tagged = sorted((f for f in present if _has(f.tagged, version)), key=lambda f: f.tag)
        absent = sorted((f for f in fields if f not in present), key=lambda f: f.ignorable)
        return (
            self._namespace[name],
            self._namespace["_" + name],
            self._is_flexible(version),
            *(tuple(self._field(f, version) for f in group) for group in (plain, tagged, absent)),
            sum(not f.ignorable for f in absent),
            tuple(f.tag for f in fields if f.tag >= 0 and f.tag not in [t.tag for t in tagged]),
        )

    def _field(self, field: Field, version: int) -> Row:
        kind = {"records": "bytes"}.get(field.element, field.element)
        is_struct = kind in self._structs
        return (
            field.name,
            KINDS.index("struct" if is_struct else kind),
            field.type != field.element,
            self._is_compact(field, version),
            _has(field.nullable, version),
            field.nullable[0] <= field.nullable[1],
            max(field.tag, 0),
            self._size_min(field, version),
            field.default,
            self._plan(kind, version) if is_struct else None,
        )

    def _is_flexible(self, version: int) -> bool:
        return version >= int(self.message.flexible_from)

    def _is_compact(self, field: Field, version: int) -> bool:
        return self._is_flexible(version) and (
            field.compact is None or _has(field.compact, version) or _has(field.tagged, version)
        )

    def _size_min(self, field: Field, version: int) -> int:
        """Return the bytes that a field, or one element of an array, takes at least."""
        element = field.element
        if element in SIZES:
            return SIZES[element]
        if element not in self._structs:
            return 1 if self._is_compact(field, version) else (2 if element == "string" else 4)
        total = 1 if self._is_flexible(version) else 0
        for child in self._structs[element]:
            if _has(child.versions, version) and not _has(child.tagged, version):
                if child.type != child.element:
                    total += 1 if self._is_compact(child, version) else 4
                elif child.element in self._structs and _has(child.nullable, version):
                    total += 1
                else:
                    total += self._size_min(child, version)
        return total
