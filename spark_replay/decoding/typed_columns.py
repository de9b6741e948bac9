"""Bodies of one API as Arrow structs: a field of the message is a field of the column, of its own type.

The type of a request or response has the fields of all versions, by Kafka's JSON names; a field is null if the frame's
version lacks it. A tagged field that is left out has its default, as for a reader of the message. A uuid is text;
uint16 and uint32 are the next larger integers, which Spark has too.

`struct_column` makes a column from decoded messages. Frames of one shape need no messages: `struct_reader` returns a
function that takes every value from its place in the bytes, elements of equal arrays all at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import as_arrow
from mockraft.spark_replay.decoding.layout import Group, Leaf, Node
from mockraft.spark_replay.decoding.shape_json import INTEGERS, fixed_strings, uuid_texts
from mockraft.wire import uuids
from mockraft.wire.message import Message, Struct
from mockraft.wire.redaction.masks import HIDDEN, MaskedBytes, MaskedText
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of
from mockraft.wire.schema_reading import FIXED

Bytes = npt.NDArray[np.uint8]
Read = Callable[[Bytes], pa.Array]
"""A function from rows of bytes to a column with a value for each."""

_LARGER = {"uint16": "int32", "uint32": "int64", "uuid": "string", "bytes": "binary", "records": "binary"}


def struct_type(spec: StructSpec) -> pa.StructType:
    """Return the type of a struct with the fields of all versions."""
    return pa.struct([pa.field(field.json_name, _type_of(field)) for field in spec.fields])


def _type_of(field: FieldSpec) -> pa.DataType:
    kind = _element_type(field)
    return pa.list_(kind) if field.is_array else kind


def _element_type(field: FieldSpec) -> pa.DataType:
    if field.struct is not None:
        return struct_type(field.struct)
    return pa.type_for_alias(_LARGER.get(field.kind, field.kind))


def struct_column(cls: type[Message], version: int, found: Sequence[Message]) -> pa.StructArray:
    """Return messages of a class and version as a column."""
    return _structs(schema_of(cls).root, version, found)


def _structs(spec: StructSpec, version: int, found: Sequence[Struct | None]) -> pa.StructArray:
    given = [each for each in found if each is not None]
    columns = [
        _values(field, version, [getattr(each, field.attribute) for each in given])
        if field.versions.covers(version)
        else pa.nulls(len(given), _type_of(field))
        for field in spec.fields
    ]
    made = _struct_array(struct_type(spec), columns, len(given))
    if len(given) == len(found):
        return made
    places = iter(range(len(given)))
    return made.take(pa.array([None if each is None else next(places) for each in found], pa.int64()))


def _values(field: FieldSpec, version: int, found: Sequence[Any]) -> pa.Array:
    if not field.is_array:
        return _elements(field, version, found)
    offsets = np.zeros(len(found) + 1, np.int32)
    np.cumsum([len(each or ()) for each in found], out=offsets[1:])
    elements = _elements(field, version, [element for each in found for element in each or ()])
    return _lists(offsets, elements, [each is None for each in found])


def _elements(field: FieldSpec, version: int, found: Sequence[Any]) -> pa.Array:
    if field.struct is not None:
        return _structs(field.struct, version, found)
    shown = _SHOWN.get(field.kind)
    return pa.array(found if shown is None else [shown(each) for each in found], _element_type(field))


def _lists(offsets: npt.NDArray[np.int32], elements: pa.Array, is_null: Sequence[bool] | None = None) -> pa.ListArray:
    mask = pa.array(is_null, pa.bool_()) if is_null and any(is_null) else None
    return pa.ListArray.from_arrays(as_arrow(offsets, pa.int32()), elements, mask=mask)


def _struct_array(kind: pa.StructType, columns: Sequence[pa.Array], rows: int) -> pa.StructArray:
    return pa.Array.from_buffers(kind, rows, [None], children=list(columns))


_SHOWN: dict[str, Callable[[Any], object]] = {
    "string": lambda text: HIDDEN if type(text) is MaskedText else text,
    "uuid": uuids.text_of,
    "bytes": lambda data: HIDDEN.encode() if type(data) is MaskedBytes else data,
    "records": lambda data: HIDDEN.encode() if type(data) is MaskedBytes else data,
}


def struct_reader(cls: type[Message], version: int, tree: Group) -> Read:
    """Return a function from frames of one layout to a column of their bodies."""
    return _Readers(cls, version).struct(schema_of(cls).root, tree, 0)


class _Readers:
    """Makes readers of values; offsets in the layout count from `base` of the rows of bytes."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self._module = sys.modules[cls.__module__]
        self._version = version

    def struct(self, spec: StructSpec, group: Group, base: int) -> Read:
        defaults = getattr(self._module, spec.name)()
        reads = [self._field(field, group, defaults, base) for field in spec.fields]
        kind = struct_type(spec)
        return lambda rows: _struct_array(kind, [read(rows) for read in reads], len(rows))

    def _field(self, field: FieldSpec, group: Group, defaults: Struct, base: int) -> Read:
        kind = _type_of(field)
        if not field.versions.covers(self._version):
            return lambda rows: pa.nulls(len(rows), kind)
        if field.json_name not in group.fields:
            default = _values(field, self._version, [getattr(defaults, field.attribute)])
            return lambda rows: default.take(_zeros(len(rows)))
        node = group.fields[field.json_name]
        if node is None:
            return lambda rows: pa.nulls(len(rows), kind)
        return self._array(field, node, base) if isinstance(node, list) else self._element(field, node, base)

    def _element(self, field: FieldSpec, node: Node, base: int) -> Read:
        if isinstance(node, Leaf):
            return _leaf_reader(node, base, _element_type(field))
        assert field.struct is not None
        if node is None:
            kind = _element_type(field)
            return lambda rows: pa.nulls(len(rows), kind)
        assert isinstance(node, Group)
        return self.struct(field.struct, node, base)

    def _array(self, field: FieldSpec, nodes: list[Node], base: int) -> Read:
        if len(nodes) == 1:
            read = self._element(field, nodes[0], base)
            return lambda rows: _lists(_offsets(len(rows), 1), read(rows))
        if nodes and (stride := _stride(nodes)):
            return self._alike(field, nodes, stride, base)
        reads = [self._element(field, node, base) for node in nodes]
        empty = pa.nulls(0, _element_type(field))

        def read_unlike(rows: Bytes) -> pa.Array:
            columns = pa.concat_arrays([read(rows) for read in reads]) if reads else empty
            order = np.arange(len(reads) * len(rows)).reshape(len(reads), len(rows)).T.ravel()
            return _lists(_offsets(len(rows), len(reads)), columns.take(as_arrow(order, pa.int64())))

        return read_unlike

    def _alike(self, field: FieldSpec, nodes: list[Node], stride: int, base: int) -> Read:
        """Return a reader of elements of the same layout: rows of bytes become rows for each element."""
        count, start = len(nodes), _leaves(nodes[0])[0].offset
        read = self._element(field, nodes[0], start)

        def read_alike(rows: Bytes) -> pa.Array:
            # The last element may end before the next would begin, at the end of the frame.
            elements = rows[:, start - base : start - base + count * stride]
            if (missing := count * stride - elements.shape[1]) > 0:
                elements = np.pad(elements, ((0, 0), (0, missing)))
            return _lists(_offsets(len(rows), count), read(elements.reshape(-1, stride)))

        return read_alike


def _stride(nodes: list[Node]) -> int:
    """Return the distance of the elements of an array if all have the same layout and distance, else 0."""
    starts = [found[0].offset for found in map(_leaves, nodes) if found]
    if len(starts) < len(nodes):
        return 0
    first, stride = _relative(nodes[0], starts[0]), starts[1] - starts[0]
    is_same = all(
        at == starts[0] + number * stride and _relative(node, at) == first
        for number, (node, at) in enumerate(zip(nodes, starts, strict=True))
    )
    return stride if is_same else 0


def _leaves(node: Node) -> list[Leaf]:
    if node is None:
        return []
    if isinstance(node, Leaf):
        return [node]
    inner = node if isinstance(node, list) else [*node.fields.values(), *(leaf for _, leaf in node.unknown)]
    return [leaf for each in inner for leaf in _leaves(each)]


def _relative(node: Node, base: int) -> object:
    """Return a value that is equal for nodes of the same layout."""
    if node is None:
        return None
    if isinstance(node, Leaf):
        return node.kind, node.offset - base, node.length
    if isinstance(node, list):
        return [_relative(each, base) for each in node]
    unknown = [(tag, _relative(leaf, base)) for tag, leaf in node.unknown]
    return {name: _relative(each, base) for name, each in node.fields.items()}, unknown


def _leaf_reader(leaf: Leaf, base: int, kind: pa.DataType) -> Read:
    start, end = leaf.offset - base, leaf.offset - base + leaf.length
    if leaf.kind in FIXED and leaf.kind not in ("bool", "uuid"):
        form = INTEGERS.get(leaf.kind, ">f8")
        return lambda rows: as_arrow(np.ascontiguousarray(rows[:, start:end]).view(form).ravel(), kind)
    if leaf.kind == "bool":
        return lambda rows: as_arrow(rows[:, start] != 0, kind)
    if leaf.kind == "uuid":
        return lambda rows: uuid_texts(rows[:, start:end])
    return lambda rows: fixed_strings(rows[:, start:end], kind)


def _offsets(rows: int, count: int) -> npt.NDArray[np.int32]:
    return np.arange(rows + 1, dtype=np.int32) * np.int32(count)


def _zeros(rows: int) -> pa.Array:
    return as_arrow(np.zeros(rows, np.int32), pa.int32())
