"""Frames to messages: one row out for every row in, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.hidden_frames import rows_with_secrets
from mockraft.spark_replay.decoding.shapes import KNOWN_SHAPES, Shape, frames_at
from mockraft.spark_replay.decoding.verdicts import (
    OPAQUE,
    TRUNCATED,
    Verdict,
    WriteJson,
    full_json,
    json_without_secrets,
    judge_frame,
)
from mockraft.spark_replay.schemas import MESSAGES

BATCH_BYTES_MAX = 4 << 20
"""Upper bound for the bytes of frames that `decode_batches` decodes at once; a longer frame is decoded alone."""

TEMPLATE_ROWS_MIN = 12
"""Number of frames of one shape from which their JSON is rendered together."""

Rows = npt.NDArray[np.int64]

_COLUMNS = tuple(name for name in Verdict._fields if name != "body")
_KEPT = [name for name in MESSAGES.names if name not in ("api_name", *Verdict._fields)]


def decode_frames(
    frames: pa.RecordBatch,
    body: Literal["json", "none"] = "json",
    *,
    show_secrets: bool = False,
    by_shape: bool = True,
) -> pa.RecordBatch:
    """Decode a batch of frames: `schemas.FRAMES` in, `schemas.MESSAGES` out, row for row.

    `decode_status` is

    - ok: decoded; `roundtrip` shows whether the codec writes the same bytes again, else see `first_diff_offset`
    - error: the bytes are not such a message; see `error` and `error_offset` (from the start of the frame)
    - unknown_api, unknown_version: not known to the codec
    - opaque: not Kafka's protocol (`api_key` is null); truncated: the capture lacks some of the bytes

    `body` "json" gives each body as Kafka's JsonConverters write it, compact, with `[hidden]` for secrets unless
    `show_secrets` (`mockraft.wire.redaction`); "none" leaves the column null. Frames of equal structure are judged
    together (see `shapes`); without `by_shape` each is decoded on its own, with the same result.
    """
    if body not in ("json", "none"):
        raise ValueError(f"body must be json or none, not {body!r}")
    columns = FrameColumns(frames)
    verdicts = VerdictColumns(frames.num_rows)
    write_json = None if body == "none" else full_json if show_secrets else json_without_secrets
    verdicts.put_all(np.flatnonzero(~columns.is_whole), TRUNCATED)
    verdicts.put_all(np.flatnonzero(columns.is_whole & ~columns.has_api), OPAQUE)
    left = np.flatnonzero(columns.is_whole & columns.has_api)
    if by_shape:
        left = _judge_by_shape(columns, left, verdicts, write_json)
    for row in left.tolist():
        verdicts.put(row, judge_frame(*columns.frame(row), write_json))
    kept = {name: frames.column(name) for name in _KEPT}
    return pa.record_batch({**kept, "api_name": _api_names(frames), **verdicts.columns()}, schema=MESSAGES)


def decode_batches(
    batches: Iterable[pa.RecordBatch], body: Literal["json", "none"] = "json", *, show_secrets: bool = False
) -> Iterator[pa.RecordBatch]:
    """Call `decode_frames` for many batches, cut so that at most `BATCH_BYTES_MAX` are decoded at once.

    Without any frame there is one batch without rows.
    """
    parts = (part for batch in batches for part in _cut(batch))
    yield from at_least_one((decode_frames(part, body, show_secrets=show_secrets) for part in parts), MESSAGES)


def _judge_by_shape(columns: FrameColumns, rows: Rows, verdicts: VerdictColumns, write_json: WriteJson | None) -> Rows:
    """Judge the rows that share a shape; return the others."""
    overlay = in_use()
    left: list[Rows] = []
    for kind, group in columns.alike(rows):
        found, rest = KNOWN_SHAPES.sort(overlay, kind, columns.buffer, columns.starts[group])
        left.append(group[rest])
        for shape, places in found:
            left.append(_put_shape(shape, columns, group[places], verdicts, write_json))
    return np.concatenate(left) if left else rows


def _put_shape(
    shape: Shape, columns: FrameColumns, rows: Rows, verdicts: VerdictColumns, write_json: WriteJson | None
) -> Rows:
    """Store the verdict and bodies of rows of one shape; return the rows whose bodies are rendered one by one."""
    if write_json is None:
        verdicts.put_all(rows, shape.verdict)
        return rows[:0]
    if len(rows) < TEMPLATE_ROWS_MIN:
        return rows
    frames = frames_at(columns.buffer, columns.starts[rows], len(shape.bytes))
    left = rows[:0]
    if write_json is not full_json and (has_secret := rows_with_secrets(shape, frames)).any():
        left, rows, frames = rows[has_secret], rows[~has_secret], frames[~has_secret]
        if not len(rows):
            return left
    bodies, right = shape.template.write(frames)
    if not right.all():
        bodies = bodies.filter(pa.array(right))
    verdicts.put_all(rows[right], shape.verdict, bodies)
    return np.concatenate((left, rows[~right]))


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(batch.column("size").fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = before = 0
    while start < batch.num_rows:
        stop = max(int(np.searchsorted(ends, before + BATCH_BYTES_MAX, "right")), start + 1)
        yield batch.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def _api_names(frames: pa.RecordBatch) -> pa.Array:
    """Return the APIs' names as Kafka spells them (`BrokerHeartbeat`); null for an unknown key."""
    names = {key: name.removesuffix("Request") for key, name in in_use().requests.items()}
    keys = frames.column("api_key").dictionary_encode()
    return pa.array([names.get(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)


class VerdictColumns:
    """One verdict for each row, set in any order; rows with the same verdict can be set together."""

    def __init__(self, rows: int) -> None:
        self._numbers = np.zeros(rows, np.int32)
        self._verdicts: dict[Verdict, int] = {}
        self._bodies: dict[int, str] = {}
        self._body_columns: list[tuple[Rows, pa.Array]] = []

    def put(self, row: int, verdict: Verdict) -> None:
        """Set the verdict on one row, with its body."""
        if verdict.body is not None:
            self._bodies[row] = verdict.body
            verdict = verdict._replace(body=None)
        self._numbers[row] = self._verdicts.setdefault(verdict, len(self._verdicts))

    def put_all(self, rows: Rows, verdict: Verdict, bodies: pa.Array | None = None) -> None:
        """Set the verdict shared by several rows, and their bodies, if any, as a column of the same length."""
        self._numbers[rows] = self._verdicts.setdefault(verdict, len(self._verdicts))
        if bodies is not None:
            self._body_columns.append((rows, bodies))

    def columns(self) -> dict[str, pa.Array]:
        """Return every column of the verdicts, body included."""
        found: dict[str, pa.Array] = {}
        numbers = pa.array(self._numbers)
        for index, name in enumerate(_COLUMNS):
            values = [verdict[index] for verdict in self._verdicts]
            found[name] = pa.array(values, MESSAGES.field(name).type).take(numbers)
        found["body"] = self._body_column()
        return found

    def _body_column(self) -> pa.Array:
        single = list(self._bodies)
        columns = [*self._body_columns, (np.array(single, np.int64), pa.array(self._bodies.values(), pa.string()))]
        # Index of each row's body in the concatenated bodies; null without one.
        places = np.full(len(self._numbers), -1, np.int64)
        start = 0
        for rows, bodies in columns:
            places[rows] = np.arange(start, start + len(rows))
            start += len(bodies)
        wanted = pa.array(places, mask=places < 0)
        return pa.concat_arrays([bodies for _, bodies in columns]).take(wanted)
