"""Random schemas: for everything the language allows, the generated code reads exactly what it writes."""

import sys
from random import Random
from typing import Any

import pytest
from mockraft.codegen.spec import BLOCKS, FIXED
from mockraft.wire.errors import WireError

from ..rows import each_row
from .conftest import MessageOf

Tree = dict[str, Any]

INTEGER_BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
LAST_VERSION = 3


def random_schema(rng: Random) -> tuple[list[Tree], Tree]:
    """The fields and the top-level keys of a schema with versions 0 to 3."""
    flexible_from = rng.choice([0, 1, 2, None])
    struct_numbers = iter(range(100))
    fields = [_field(rng, i, flexible_from, struct_numbers, depth=0) for i in range(rng.randint(1, 7))]
    flexible = "none" if flexible_from is None else f"{flexible_from}+"
    return fields, {"validVersions": f"0-{LAST_VERSION}", "flexibleVersions": flexible}


def _field(rng: Random, number: int, flexible_from: int | None, struct_numbers: Any, depth: int) -> Tree:
    field: Tree = {"name": f"Field{number}", "versions": rng.choice(["0+", "0+", "0+", "1+", "0-1", "2", "3+"])}
    kinds = [*FIXED, *BLOCKS, *BLOCKS] + ["Struct"] * (3 if depth < 2 else 0)
    kind = rng.choice(kinds)
    is_array = rng.random() < 0.4
    if kind == "Struct":
        kind = f"Struct{next(struct_numbers)}"
        count = rng.randint(1, 4)
        field["fields"] = [_field(rng, i, flexible_from, struct_numbers, depth + 1) for i in range(count)]
    field["type"] = f"[]{kind}" if is_array else kind
    if (is_array or kind not in FIXED) and rng.random() < 0.4:
        field["nullableVersions"] = rng.choice([field["versions"], "2+"])
        if field["nullableVersions"] == field["versions"] and rng.random() < 0.5:
            field["default"] = "null"
    if flexible_from is not None and rng.random() < 0.3:
        low = max(flexible_from, int(field["versions"][0]))
        high = int(field["versions"][-1]) if field["versions"][-1].isdigit() else LAST_VERSION
        if low <= high:
            field |= {"tag": number + rng.choice([0, 200]), "taggedVersions": f"{low}-{high}"}
    return field


class Filler:
    """Gives messages of one version random values."""

    def __init__(self, cls: Any, version: int, rng: Random) -> None:
        self._classes = vars(sys.modules[cls.__module__])
        self._has_tags = version >= cls.flexible_from
        self._version = version
        self._rng = rng

    def fill(self, struct: Any, fields: list[Tree]) -> Any:
        for field in fields:
            if self._has(field["versions"]) and self._rng.random() < 0.9:
                setattr(struct, field["name"].lower(), self._value(field))
        if self._has_tags and self._rng.random() < 0.1:
            struct.unknown_tagged_fields = [(1000, b"unknown")]
        return struct

    def _has(self, versions: str) -> bool:
        low, _, high = versions.rstrip("+").partition("-")
        return int(low) <= self._version <= (LAST_VERSION if versions.endswith("+") else int(high or low))

    def _value(self, field: Tree) -> Any:
        if "nullableVersions" in field and self._has(field["nullableVersions"]) and self._rng.random() < 0.3:
            return None
        kind = field["type"].removeprefix("[]")
        if not field["type"].startswith("[]"):
            return self._single(kind, field)
        count = self._rng.choice([0, 1, 2, 3, 20, 140])
        return [self._single(kind, field) for _ in range(count if kind in FIXED else min(count, 20))]

    def _single(self, kind: str, field: Tree) -> Any:
        rng = self._rng
        if kind in INTEGER_BITS:
            low = 0 if kind.startswith("u") else -(1 << INTEGER_BITS[kind])
            return rng.choice([0, 1, low, (1 << INTEGER_BITS[kind]) - 1])
        if kind == "uuid":
            return rng.randbytes(16)
        if kind == "string":
            return "xä" * rng.choice([0, 1, 42, 43, 200])
        if kind in BLOCKS:
            return rng.randbytes(rng.choice([0, 1, 126, 127, 20000]))
        if kind in ("bool", "float64"):
            return rng.random() < 0.5 if kind == "bool" else rng.random()
        return self.fill(self._classes[kind](), field["fields"])


@each_row("seed", range(120))
def test_written_messages_read_back_equal(seed: int, message_of: MessageOf) -> None:
    rng = Random(seed)
    fields, keys = random_schema(rng)
    cls = message_of(*fields, **keys)
    for version in range(LAST_VERSION + 1):
        for _ in range(4):
            message = Filler(cls, version, rng).fill(cls(), fields)
            written = message.write(version)
            assert cls.read(written, version) == message
            for end in {rng.randrange(len(written)) for _ in range(20)} if written else ():
                with pytest.raises(WireError):
                    cls.read(written[:end], version)
