"""Divide a message's bytes into structure and field contents, by its schema.

The walk over a valid message follows every length, count, null marker and tag. The remaining bytes, the contents of
fields, are recorded as leaves. All bytes outside leaves are structure.
"""

from __future__ import annotations

import sys
from typing import NamedTuple, TypeAlias

from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of
from mockraft.wire.schema_reading import FIXED, UNKNOWN_TAGS, Reader


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
    return _walk(cls, _Walk(cls, version, data, offset))


def check_values(cls: type[Message], version: int, data: bytes, values_max: int) -> None:
    """Check that the message has at most that many elements and values.

    For large messages, before they are decoded: an element takes a few bytes on the wire and far more as an object.
    Raises TooManyValuesError, and WireError for malformed bytes.
    """
    _walk(cls, _Counting(cls, version, data, 0, values_max))


def _walk(cls: type[Message], walk: _Walk) -> Layout:
    spec = schema_of(cls)
    tree = walk.struct(spec.root, spec.flexible.covers(walk.version), "")
    return Layout(tree, walk.leaves, walk.defaults, walk.at)


class _Walk(Reader):
    """A reader of the places of values."""

    def __init__(self, cls: type[Message], version: int, data: bytes, at: int) -> None:
        super().__init__(data, version, at)
        self.module = sys.modules[cls.__module__]
        self.leaves: list[Leaf] = []
        self.defaults: list[tuple[Place, ...]] = []

    def value(self, kind: str, start: int, path: str) -> Leaf | None:
        leaf = Leaf(kind, start, self.at - start)
        self.leaves.append(leaf)
        return leaf

    def struct(self, spec: StructSpec, flexible: bool, path: str) -> Group:
        fields = super().struct(spec, flexible, path)
        return Group(fields, fields.pop(UNKNOWN_TAGS, []))

    def tagged_field(self, struct: StructSpec, spec: FieldSpec, path: str) -> Node:
        node: Node = super().tagged_field(struct, spec, path)
        default = getattr(getattr(self.module, struct.name)(), spec.attribute)
        places = self.places_of_default(spec, node, default)
        if places is not None:
            self.defaults.append(tuple(places))
        return node

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

    def elements(self, spec: FieldSpec, compact: bool, count: int, path: str) -> Node:
        fixed = FIXED.get(spec.kind)
        if fixed is not None:
            self.count(count)
            self.skip(count * fixed.size, path)
        else:
            for _ in range(count):
                self.count(1)
                self.element(spec, compact, False, path)
        return None

    def value(self, kind: str, start: int, path: str) -> None:
        self.count(1)

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
