"""Extract single fields of many messages as columns, straight from the bytes: no message objects, no JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.frame_shapes import KNOWN_SHAPES, Bytes, frames_at, layout_alone
from mockraft.spark_replay.decoding.layout import Group, Leaf, Node
from mockraft.spark_replay.decoding.shape_json import INTEGERS
from mockraft.wire import uuids
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.schema_files import StructSpec, schema_of

Rows = npt.NDArray[np.int64]
Path = tuple[str | int, ...]

_STEP = re.compile(r"([A-Za-z]\w*)((?:\[\d+\])*)")


def field_columns(frames: pa.RecordBatch, message: str, paths: Sequence[str]) -> pa.RecordBatch:
    """Return the given fields of every frame of `message` ("BrokerHeartbeatRequest") that decodes without an error.

    `row` is the frame's row in `frames`; one column for each path follows, of the field's own type (a uuid as text). A
    path uses Kafka's JSON names: `replicaState.replicaId`, `topics[0].name`. A value is null if the version lacks the
    field, the field is null, it is a tagged field left out at its default, or the array is shorter. Raises WireError
    for an unknown message, and for a path that leads to a single value in no version.
    """
    overlay = in_use()
    cls = overlay.by_name(message)
    steps = {path: _parsed(path) for path in paths}
    types = {path: _type_of(cls, path, steps[path]) for path in paths}
    columns = FrameColumns(frames)
    is_response = message.endswith("Response")
    wanted = columns.is_whole & columns.has_api & (columns.api_key == cls.api_key)
    rows: list[Rows] = []
    parts: dict[str, list[pa.Array]] = {path: [] for path in paths}
    for kind, group in columns.alike(np.flatnonzero(wanted & (columns.is_response == is_response))):
        starts = columns.starts[group]
        by_shape, single = KNOWN_SHAPES.sort(overlay, kind, columns.buffer, starts)
        found = [(shape.layout, places) for shape, places in by_shape]
        for place in single.tolist():
            layout = layout_alone(columns.frame(int(group[place]))[0], overlay, cls, kind[1], is_response)
            found += [] if layout is None else [(layout, np.array([place]))]
        for layout, places in found:
            rows.append(group[places])
            block = frames_at(columns.buffer, starts[places], kind[-1])
            for path in paths:
                parts[path].append(_column(layout.tree, steps[path], block, types[path]))
    return _in_order(rows, parts, types)


def _in_order(rows: list[Rows], parts: dict[str, list[pa.Array]], types: dict[str, pa.DataType]) -> pa.RecordBatch:
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=pa.schema([("row", pa.int64()), *types.items()]))
    joined = np.concatenate(rows)
    order = np.argsort(joined)
    found = {path: pa.concat_arrays(arrays).take(pa.array(order)) for path, arrays in parts.items()}
    return pa.record_batch({"row": pa.array(joined[order]), **found})


def _parsed(path: str) -> Path:
    steps: list[str | int] = []
    for part in path.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            raise WireError(f"{part!r} is not a field: use a name, optionally with an index like [0]", field=path)
        steps += [match[1], *(int(index) for index in re.findall(r"\d+", match[2]))]
    return tuple(steps)


def _type_of(cls: type[Message], path: str, steps: Path) -> pa.DataType:
    struct: StructSpec | None = schema_of(cls).root
    kind = ""
    # True if the last field is an array and no element has been selected yet.
    is_open = False
    for step in steps:
        if isinstance(step, int):
            if not is_open:
                raise WireError(f"{cls.__name__} has no array at this path", field=path)
            is_open = False
            continue
        spec = next((field for field in struct.fields if field.json_name == step), None) if struct else None
        if spec is None:
            raise WireError(f"{cls.__name__} has no such field", field=path)
        if is_open:
            break
        struct, is_open, kind = spec.struct, spec.is_array, spec.kind
    if struct is not None or is_open:
        raise WireError("not a single value", field=path)
    if kind in ("string", "uuid"):
        return pa.string()
    # The other kinds have Arrow's names.
    return pa.binary() if kind in ("bytes", "records") else pa.type_for_alias(kind)


def _column(tree: Group, steps: Path, frames: Bytes, kind: pa.DataType) -> pa.Array:
    node: Node = tree
    for step in steps:
        if isinstance(step, int):
            node = node[step] if isinstance(node, list) and step < len(node) else None
        else:
            node = node.fields.get(step) if isinstance(node, Group) else None
    if not isinstance(node, Leaf):
        return pa.nulls(len(frames), kind)
    content = np.ascontiguousarray(frames[:, node.offset : node.offset + node.length])
    if node.kind in INTEGERS or node.kind == "float64":
        values = content.view(INTEGERS.get(node.kind, ">f8")).ravel()
        return pa.array(values.astype(values.dtype.newbyteorder("=")), kind)
    if node.kind == "bool":
        return pa.array(content[:, 0] != 0)
    texts = [value.tobytes() for value in content]
    if node.kind == "uuid":
        return pa.array([uuids.text_of(text) for text in texts], kind)
    return pa.array([text.decode() for text in texts] if node.kind == "string" else texts, kind)
