"""Which bytes of a message are structure and which are values, read off the schema.

A walk over one message that the codec reads: every length, count, null marker and tag is followed, and what remains,
the content of fields, is noted as leaves. What is in no leaf is structure.
"""

from __future__ import annotations

import sys
from struct import Struct
from typing import Any, NamedTuple

from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.primitives import STRING_BYTES_MAX, uvarint
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

FIXED = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
    "uuid": Struct("16s"),
}
"""The kinds of fields that always take the same number of bytes."""

_SHORT = FIXED["int16"]
_INT = FIXED["int32"]


class Leaf(NamedTuple):
    """The content of one field: `length` bytes at `offset` of the frame; `kind` is the schema's type."""

    kind: str
    offset: int
    length: int


class Group(NamedTuple):
    """A struct: its fields that are on the wire by their JSON names, and the tagged fields nobody knows."""

    fields: dict[str, Any]
    unknown: list[tuple[int, Leaf]]


Place = tuple[int, bytes]
"""Bytes at an offset."""


class Layout(NamedTuple):
    """What a walk found. Each of `defaults` is a tagged field whose value could be its default: places which, all
    holding the bytes given, make it so, and a writer then leaves the field out. `tree` is of Groups, lists and Leaves.
    """

    tree: Group
    leaves: list[Leaf]
    defaults: list[tuple[Place, ...]]
    end: int


class TooManyValuesError(WireError):
    """A message has more values than are wanted of one."""


def lay_out(cls: type[Message], version: int, data: bytes, offset: int = 0) -> Layout:
    """The layout of the message that starts at `offset`; WireError where the bytes are not one."""
    return _walk(cls, version, _Walk(cls, version, data, offset))


def check_values(cls: type[Message], version: int, data: bytes, values_max: int) -> None:
    """TooManyValuesError where the message has more elements and values than that; WireError where it is none.

    For messages of some size, before they are read: a few bytes each are enough to fill the memory with objects.
    """
    _walk(cls, version, _Counting(cls, version, data, 0, values_max))


def _walk(cls: type[Message], version: int, walk: _Walk) -> Layout:
    spec = schema_of(cls)
    try:
        tree = walk.struct(spec.root, spec.flexible.covers(version))
    except IndexError as error:
        raise WireError("the bytes end too soon", offset=walk.at) from error
    return Layout(tree, walk.leaves, walk.defaults, walk.at)


class _Walk:
    """One walk: how far it is and what it has seen."""

    def __init__(self, cls: type[Message], version: int, data: bytes, at: int) -> None:
        self.module = sys.modules[cls.__module__]
        self.version = version
        self.data = data
        self.at = at
        self.leaves: list[Leaf] = []
        self.defaults: list[tuple[Place, ...]] = []

    def struct(self, spec: StructSpec, flexible: bool) -> Group:
        group = Group({}, [])
        for field in spec.untagged(self.version):
            group.fields[field.json_name] = self.field(field, False)
        if flexible:
            self.tags(spec, group)
        return group

    def tags(self, spec: StructSpec, group: Group) -> None:
        known = spec.tagged(self.version)
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            field = known.get(tag)
            if field is None:
                group.unknown.append((tag, self.leaf("bytes", size)))
                continue
            end = self.at + size
            node = group.fields[field.json_name] = self.field(field, True)
            if self.at != end:
                raise WireError("the tagged field's size is not its value's", field=field.name, offset=end)
            default = getattr(getattr(self.module, spec.name)(), field.attribute)
            places = self.places_of_default(field, node, default)
            if places is not None:
                self.defaults.append(tuple(places))

    def field(self, spec: FieldSpec, in_tag: bool) -> Any:
        compact = in_tag or spec.flexible.covers(self.version)
        if spec.is_array:
            count = self.uvarint() - 1 if compact else self.integer(_INT)
            return None if count < 0 else self.elements(spec, compact, count)
        if spec.struct is not None and spec.nullable.covers(self.version):
            self.at += 1
            if self.data[self.at - 1] > 127:
                return None
        return self.element(spec, compact)

    def elements(self, spec: FieldSpec, compact: bool, count: int) -> Any:
        return [self.element(spec, compact) for _ in range(count)]

    def element(self, spec: FieldSpec, compact: bool) -> Any:
        if spec.struct is not None:
            return self.struct(spec.struct, spec.flexible.covers(self.version))
        fixed = FIXED.get(spec.kind)
        if fixed is not None:
            return self.leaf(spec.kind, fixed.size)
        length = self.uvarint() - 1 if compact else self.integer(_SHORT if spec.kind == "string" else _INT)
        if spec.kind == "string" and length > STRING_BYTES_MAX:
            raise WireError(f"a string of {length} bytes", field=spec.name, offset=self.at)
        return None if length < 0 else self.leaf(spec.kind, length)

    def leaf(self, kind: str, length: int) -> Leaf:
        leaf = Leaf(kind, self.at, length)
        self.at += length
        if self.at > len(self.data):
            raise WireError("the bytes end too soon", offset=leaf.offset)
        self.leaves.append(leaf)
        return leaf

    def uvarint(self) -> int:
        value, self.at = uvarint(self.data, self.at)
        return value

    def integer(self, kind: Struct) -> int:
        end = self.at + kind.size
        value = int.from_bytes(self.data[self.at : end], signed=True)
        if end > len(self.data):
            raise WireError("the bytes end too soon", offset=self.at)
        self.at = end
        return value

    def places_of_default(self, spec: FieldSpec, node: Any, default: Any) -> list[Place] | None:
        """Where the value's bytes decide whether it is `default`; None where its structure says that it is not."""
        if node is None or default is None:
            return [] if node is default else None
        if isinstance(node, list):
            return None if node or default else []
        if isinstance(node, Leaf):
            return _places_of_leaf(node, default)
        assert spec.struct is not None
        tagged = {field.json_name for field in spec.struct.tagged(self.version).values()}
        # A tagged field is only there when it is not its default.
        if node.unknown or tagged & node.fields.keys():
            return None
        places: list[Place] = []
        for field in spec.struct.untagged(self.version):
            inner = self.places_of_default(field, node.fields[field.json_name], getattr(default, field.attribute))
            if inner is None:
                return None
            places += inner
        return places


class _Counting(_Walk):
    """A walk that keeps nothing and ends where there are too many values."""

    def __init__(self, cls: type[Message], version: int, data: bytes, at: int, values_max: int) -> None:
        super().__init__(cls, version, data, at)
        self.values_left = values_max

    def elements(self, spec: FieldSpec, compact: bool, count: int) -> Any:
        fixed = FIXED.get(spec.kind)
        if fixed is not None:
            self.count(count)
            self.at += count * fixed.size
        else:
            for _ in range(count):
                self.count(1)
                self.element(spec, compact)

    def leaf(self, kind: str, length: int) -> Leaf:
        self.count(1)
        leaf = Leaf(kind, self.at, length)
        self.at += length
        return leaf

    def count(self, values: int) -> None:
        self.values_left -= values
        if self.values_left < 0:
            raise TooManyValuesError("more values than are read of one message", offset=self.at)

    def places_of_default(self, spec: FieldSpec, node: Any, default: Any) -> list[Place] | None:
        return None


def _places_of_leaf(leaf: Leaf, default: Any) -> list[Place] | None:
    # Zero is also minus zero: left open, so that other fields decide or nothing is proven.
    if leaf.kind == "float64":
        return []
    fixed = FIXED.get(leaf.kind)
    data = fixed.pack(default) if fixed else default.encode() if isinstance(default, str) else bytes(default)
    return [(leaf.offset, data)] if len(data) == leaf.length else None
