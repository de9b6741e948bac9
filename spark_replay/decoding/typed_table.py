"""Frames of one API to messages with typed columns instead of JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import as_arrow, as_numpy, at_least_one
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.frame_shapes import Bytes, FrameShape
from mockraft.spark_replay.decoding.judging import BodyMaker, Rows, VerdictColumns, judge_frames, put_together
from mockraft.spark_replay.decoding.message_table import BATCH_BYTES_MAX, KEPT, cut, kept
from mockraft.spark_replay.decoding.typed_columns import struct_column, struct_type
from mockraft.spark_replay.decoding.verdicts import FrameVerdict, without_secrets
from mockraft.spark_replay.schemas import MESSAGES
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.names import did_you_mean
from mockraft.wire.schema_files import schema_of

_SIDES = ("request", "response")
_VERDICT = [name for name in FrameVerdict._fields if name != "body"]


def typed_schema(api: str) -> pa.Schema:
    """Return the columns of the typed messages of an API ("Fetch"): those of MESSAGES without `api_name` and `body`.

    `request` and `response` are structs with the message's fields of all versions, by Kafka's JSON names. Raises
    WireError for an unknown API.
    """
    overlay, key = in_use(), _api_key(api)
    names = overlay.requests[key], overlay.responses[key]
    sides = zip(_SIDES, names, strict=True)
    types = [pa.field(side, struct_type(schema_of(overlay.by_name(name)).root)) for side, name in sides]
    return pa.schema([*(MESSAGES.field(name) for name in (*KEPT, *_VERDICT)), *types])


def decode_typed(frames: pa.RecordBatch, api: str, *, show_secrets: bool = False) -> pa.RecordBatch:
    """Decode the frames of one API; a row for each, with the columns of `typed_schema`.

    `request` or `response` has the body, with a field of its own type for each field of the message: null if the
    frame's version lacks it, its default if it is a tagged field that was left out. Both are null if the frame did not
    decode. Secrets are `[hidden]` unless `show_secrets`. Raises WireError for an unknown API.
    """
    return _decoded(_of_api(frames, _api_key(api)), typed_schema(api), show_secrets)


def _of_api(frames: pa.RecordBatch, api_key: int) -> pa.RecordBatch:
    return frames.filter(pc.fill_null(pc.equal(frames.column("api_key"), api_key), False))


def _decoded(frames: pa.RecordBatch, schema: pa.Schema, show_secrets: bool) -> pa.RecordBatch:
    columns = FrameColumns(frames)
    verdicts = judge_frames(columns, _SHOWING if show_secrets else _HIDING)
    found = kept(frames) | verdicts.columns()
    for number, side in enumerate(_SIDES):
        is_wanted, kind = columns.is_response == bool(number), schema.field(side).type
        others = np.flatnonzero(~is_wanted)
        parts = [*_parts(verdicts, is_wanted), (others, pa.nulls(len(others), kind))]
        found[side] = put_together(frames.num_rows, parts, kind)
    return pa.record_batch(found, schema=schema)


def decode_typed_batches(
    batches: Iterable[pa.RecordBatch], api: str, *, show_secrets: bool = False
) -> Iterator[pa.RecordBatch]:
    """Call `decode_typed` for many batches, cut as for `decode_batches`, or joined where few frames are of the API.

    The rows of a batch are in the order of their direction and size.
    """
    schema, api_key = typed_schema(api), _api_key(api)
    joined = _joined(_of_api(batch, api_key) for batch in batches)
    parts = (part for batch in joined for part in cut(batch))
    yield from at_least_one((_decoded(part, schema, show_secrets) for part in parts), schema)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with as many rows as are decoded at once: each costs some milliseconds, whatever it holds."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= BATCH_BYTES_MAX:
            yield from _by_kind(waiting)
            waiting, size = [], 0
    if waiting:
        yield from _by_kind(waiting)


def _by_kind(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Join batches, and put frames of a direction and size after each other: they are decoded where they are.

    Columns of requests, then of responses, also take less time to join and to write.
    """
    frames = pa.Table.from_batches(batches).combine_chunks()
    is_response, size = (frames[name].combine_chunks() for name in ("is_response", "size"))
    order = np.lexsort((as_numpy(pc.fill_null(size, 0)), as_numpy(pc.fill_null(is_response, False))))
    joined: list[pa.RecordBatch] = frames.take(as_arrow(order, pa.int64())).to_batches()
    return joined


def _parts(verdicts: VerdictColumns, is_wanted: npt.NDArray[np.bool_]) -> list[tuple[Rows, pa.Array]]:
    """Return the bodies of the rows of one direction."""
    parts = [(rows, bodies) for rows, bodies in verdicts.body_columns if len(rows) and is_wanted[rows[0]]]
    single: defaultdict[tuple[type[Message], int], dict[int, Message]] = defaultdict(dict)
    for row, body in verdicts.bodies.items():
        if is_wanted[row]:
            assert isinstance(body, tuple)
            message, version = body
            single[type(message), version][row] = message
    for (cls, version), found in single.items():
        parts.append((np.array([*found], np.int64), struct_column(cls, version, [*found.values()])))
    return parts


def _api_key(api: str) -> int:
    keys = {name: key for key, name in in_use().api_names.items()}
    if api not in keys:
        raise WireError(f"Kafka has no API {api!r}; {did_you_mean(api, [*keys])}")
    return keys[api]


def _shown(message: Message, version: int, block: bytes) -> tuple[Message, int]:
    return message, version


def _hidden(message: Message, version: int, block: bytes) -> tuple[Message, int]:
    return without_secrets(message, block), version


def _of_shape(shape: FrameShape, frames: Bytes) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    return shape.read_struct(frames), np.ones(len(frames), np.bool_)


_SHOWING = BodyMaker(_shown, _of_shape, True)
_HIDING = BodyMaker(_hidden, _of_shape, False)
