"""Divide a message's bytes into structure and field contents, by its schema.

The walk over a valid message follows every length, count, null marker and tag. The remaining bytes, the contents of
fields, are recorded as leaves. All bytes outside leaves are structure.
"""

from __future__ import annotations

import sys
from struct import Struct
from typing import NamedTuple, TypeAlias

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
"""Field types with a fixed number of bytes."""

_SHORT = FIXED["int16"]
_INT = FIXED["int32"]


class Leaf(NamedTuple):
    """The content of one field: `length` bytes at `offset` of the frame; `kind` is the schema type."""

    kind: str
    offset: int
    length: int


class Group(NamedTuple):
    """A struct: its fields on the wire by JSON name, and its unknown tagged fields."""

    fields: dict[str, Node]
    unknown: list[tuple[int, Leaf]]


Node: TypeAlias = "Group | list[Node] | Leaf | None"
"""The layout of a value: a struct, an array, the content of a field, or null."""

Place = tuple[int, bytes]
"""Bytes at an offset."""


class Layout(NamedTuple):
    """The result of a walk; `tree` is made of Groups, lists and Leaves.

    Each entry of `defaults` is a tagged field whose value could be its default: if all of its places hold the given
    bytes, it is the default, and a writer leaves the field out.
    """

    tree: Group
    leaves: list[Leaf]
    defaults: list[tuple[Place, ...]]
    end: int


class TooManyValuesError(WireError):
    """Raised for a message with more values than allowed."""


def lay_out(cls: type[Message], version: int, data: bytes, offset: int = 0) -> Layout:
    """Return the layout of the message that starts at `offset`. Raises WireError for malformed bytes."""
    return _walk(cls, version, _Walk(cls, version, data, offset))


def check_values(cls: type[Message], version: int, data: bytes, values_max: int) -> None:
    """Check that the message has at most that many elements and values.

    For large messages, before they are decoded: an element takes a few bytes on the wire and far more as an object.
    Raises TooManyValuesError, and WireError for malformed bytes.
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
    """The state of one walk over a message."""

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

    def field(self, spec: FieldSpec, in_tag: bool) -> Node:
        compact = in_tag or spec.flexible.covers(self.version)
        if spec.is_array:
            count = self.uvarint() - 1 if compact else self.integer(_INT)
            return None if count < 0 else self.elements(spec, compact, count)
        if spec.struct is not None and spec.nullable.covers(self.version):
            self.at += 1
            if self.data[self.at - 1] > 127:
                return None
        return self.element(spec, compact)

    def elements(self, spec: FieldSpec, compact: bool, count: int) -> Node:
        return [self.element(spec, compact) for _ in range(count)]

    def element(self, spec: FieldSpec, compact: bool) -> Node:
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

    def places_of_default(self, spec: FieldSpec, node: Node, default: object) -> list[Place] | None:
        """Return where the value's bytes decide whether it is `default`; None if its structure rules that out."""
        if node is None or default is None:
            return [] if node is default else None
        if isinstance(node, list):
            return None if node or default else []
        if isinstance(node, Leaf):
            return _places_of_leaf(node, default)
        assert spec.struct is not None
        tagged = {field.json_name for field in spec.struct.tagged(self.version).values()}
        # A tagged field is written only if it is not its default.
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
    """A walk that only counts values and stops when there are too many."""

    def __init__(self, cls: type[Message], version: int, data: bytes, at: int, values_max: int) -> None:
        super().__init__(cls, version, data, at)
        self.values_left = values_max

    def elements(self, spec: FieldSpec, compact: bool, count: int) -> Node:
        fixed = FIXED.get(spec.kind)
        if fixed is not None:
            self.count(count)
            self.at += count * fixed.size
        else:
            for _ in range(count):
                self.count(1)
                self.element(spec, compact)
        return None

    def leaf(self, kind: str, length: int) -> Leaf:
        self.count(1)
        leaf = Leaf(kind, self.at, length)
        self.at += length
        return leaf

    def count(self, values: int) -> None:
        self.values_left -= values
        if self.values_left < 0:
            raise TooManyValuesError("too many values in one message", offset=self.at)

    def places_of_default(self, spec: FieldSpec, node: Node, default: object) -> list[Place] | None:
        return None


def _places_of_leaf(leaf: Leaf, default: object) -> list[Place] | None:
    # Zero equals minus zero: undecided here, so other fields decide or nothing is proven.
    if leaf.kind == "float64":
        return []
    if (fixed := FIXED.get(leaf.kind)) is not None:
        data = fixed.pack(default)
    else:
        assert isinstance(default, str | bytes)
        data = default.encode() if isinstance(default, str) else default
    return [(leaf.offset, data)] if len(data) == leaf.length else None
