"""Requests that are filled with the smallest elements that an API's schema allows, made from the schemas."""

from __future__ import annotations

import itertools
import string
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mockraft.wire.primitives import write_uvarint
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema
from mockraft.wire.schema_reading import FIXED

REACHING: Mapping[str, int] = {"timeout_ms": 60_000, "resource_type": 2, "broker_id": 1}
"""Values with which a request reaches the part of its handler that looks at every element."""

LETTERS = string.ascii_letters + string.digits
"""Letters of different names."""

INNER = 100
"""Elements of each inner array of a nested filling: few enough for the readers' fast path."""

UNLIMITED = 1 << 31
"""A limit of elements that no frame reaches."""

Path = tuple[FieldSpec, ...]


@dataclass(frozen=True)
class Filling:
    """A request that is filled to a size. `path` leads to the array that is filled; empty: unknown tagged fields.

    `values` are those of integer fields, by attribute; the others are 0.
    """

    name: str
    api: str
    version: int
    path: Path
    is_nested: bool = False
    has_names: bool = False
    values: Mapping[str, int] = field(default_factory=dict)

    def frame(self, size: int, elements_max: int = UNLIMITED) -> bytes:
        """Return the request with its length, about `size` bytes long or with at most so many elements."""
        body = _Writer(self.api + "Request", self.version, {**REACHING, **self.values}).body(self, size, elements_max)
        spec = schema(self.api + "Request")
        tags = b"\0" if spec.flexible.covers(self.version) else b""
        header = struct.pack(">hhih", spec.api_key, self.version, 1, 8) + b"attacker" + tags
        return struct.pack(">i", len(header) + len(body)) + header + body


def fillings(api: str, version: int) -> Iterator[Filling]:
    """Return a filling for every array of a request, and one with unknown tagged fields."""
    spec = schema(f"{api}Request")
    for path in _arrays(spec.root, version):
        name = f"{api} v{version} {'.'.join(each.json_name for each in path)}"
        yield Filling(name, api, version, path)
        if _name_of(path[-1], version):
            yield Filling(f"{name}, distinct names", api, version, path, has_names=True)
        if sum(each.is_array for each in path) > 1:
            yield Filling(f"{name}, {INNER} each", api, version, path, is_nested=True)
    if spec.flexible.covers(version):
        yield Filling(f"{api} v{version} unknown tagged fields", api, version, ())


def _arrays(spec: StructSpec, version: int) -> Iterator[Path]:
    for each in spec.fields:
        if not each.versions.covers(version):
            continue
        if each.is_array:
            yield (each,)
        if each.struct is not None:
            yield from ((each, *path) for path in _arrays(each.struct, version))


def _name_of(filled: FieldSpec, version: int) -> FieldSpec | None:
    """Return the first string of an array's elements."""
    if filled.struct is None:
        return None
    return next((each for each in filled.struct.untagged(version) if each.kind == "string" and not each.is_array), None)


class _Writer:
    def __init__(self, message: str, version: int, values: Mapping[str, int]) -> None:
        self._spec = schema(message)
        self._version = version
        self._is_flexible = self._spec.flexible.covers(version)
        self._values = values

    def body(self, filling: Filling, size: int, elements_max: int) -> bytes:
        root = self._spec.root
        if not filling.path:
            count = min(size // 2, elements_max)
            return self._struct(root, (), b"", tags=write_uvarint(count) + b"\x7b\0" * count)
        path, filled = filling.path, filling.path[-1]
        element = self._element(filled)
        if filling.is_nested:
            inner = self._array(filled, INNER, element * INNER)
            depth = max(place for place, each in enumerate(path[:-1]) if each.is_array)
            outer = path[depth].struct
            assert outer is not None
            one = self._struct(outer, path[depth + 1 :], inner)
            count = min(size // len(one), (elements_max - depth) // (INNER + 1))
            return self._struct(root, path[: depth + 1], self._array(path[depth], count, one * count))
        outside = sum(each.is_array for each in path[:-1])
        if filling.has_names:
            elements = list(itertools.islice(self._named(filled, size), elements_max - outside))
            return self._struct(root, path, self._array(filled, len(elements), b"".join(elements)))
        count = min(size // len(element), elements_max - outside)
        return self._struct(root, path, self._array(filled, count, element * count))

    def _named(self, filled: FieldSpec, size: int) -> Iterator[bytes]:
        """Yield elements with different names until they have `size` bytes."""
        assert filled.struct is not None
        name = _name_of(filled, self._version)
        assert name is not None
        mark = b"\xff\xfe\xfd"
        before, _, after = self._struct(filled.struct, (name,), mark).partition(mark)
        for length in itertools.count(1):
            prefix = bytes([length + 1]) if self._is_compact(name) else struct.pack(">h", length)
            for each in itertools.product(LETTERS, repeat=length):
                element = before + prefix + "".join(each).encode() + after
                size -= len(element)
                if size < 0:
                    return
                yield element

    def _struct(self, spec: StructSpec, path: Path, inserted: bytes, tags: bytes = b"\0") -> bytes:
        """Write the smallest struct in which the field that `path` leads to is `inserted`."""
        out = []
        for each in spec.untagged(self._version):
            out.append(self._on_path(each, path, inserted) if path and each is path[0] else self._smallest(each))
        if self._is_flexible:
            if path and path[0].tagged.covers(self._version):
                value = self._on_path(path[0], path, inserted)
                tags = b"\1" + write_uvarint(path[0].tag) + write_uvarint(len(value)) + value
            out.append(tags)
        return b"".join(out)

    def _on_path(self, each: FieldSpec, path: Path, inserted: bytes) -> bytes:
        if len(path) == 1:
            return inserted
        assert each.struct is not None
        inside = self._struct(each.struct, path[1:], inserted)
        if each.is_array:
            return self._array(each, 1, inside)
        return b"\1" + inside if each.nullable.covers(self._version) else inside

    def _array(self, each: FieldSpec, count: int, elements: bytes) -> bytes:
        return (write_uvarint(count + 1) if self._is_compact(each) else struct.pack(">i", count)) + elements

    def _element(self, each: FieldSpec) -> bytes:
        if each.struct is not None:
            return self._struct(each.struct, (), b"")
        return self._block(each) if each.kind in ("string", "bytes", "records") else self._fixed(each)

    def _smallest(self, each: FieldSpec) -> bytes:
        is_nullable = each.nullable.covers(self._version)
        if each.is_array:
            if is_nullable:
                return b"\0" if self._is_compact(each) else b"\xff\xff\xff\xff"
            return self._array(each, 0, b"")
        if each.struct is not None:
            return b"\xff" if is_nullable else self._struct(each.struct, (), b"")
        return self._block(each) if each.kind in ("string", "bytes", "records") else self._fixed(each)

    def _block(self, each: FieldSpec) -> bytes:
        if self._is_compact(each):
            return b"\1"
        return b"\0\0" if each.kind == "string" else b"\0\0\0\0"

    def _fixed(self, each: FieldSpec) -> bytes:
        if each.kind == "uuid":
            return bytes(15) + b"\7"
        return FIXED[each.kind].pack(self._values.get(each.attribute, 0))

    def _is_compact(self, each: FieldSpec) -> bool:
        return self._is_flexible and (each.flexible.covers(self._version) or each.tagged.covers(self._version))
