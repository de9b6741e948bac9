"""Judge every frame of a batch, those of equal structure together, and keep their verdicts and bodies as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.accelerated import captures
from mockraft.spark_replay.arrow_columns import gather
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.frame_shapes import KNOWN_SHAPES, Bytes, FrameShape, frames_at
from mockraft.spark_replay.decoding.hidden_frames import rows_with_secrets
from mockraft.spark_replay.decoding.verdicts import OPAQUE, TRUNCATED, FrameVerdict, MakeBody, judge_frame
from mockraft.spark_replay.schemas import MESSAGES

TOGETHER_MIN = 12
"""Number of frames of one shape from which their bodies are made together."""

Rows = npt.NDArray[np.int64]

_COLUMNS = tuple(name for name in FrameVerdict._fields if name != "body")


class BodyMaker(NamedTuple):
    """Two functions that make bodies: `of_one` of a message, `of_shape` of frames of one shape (rows of bytes).

    `of_shape` returns a column, or one value for all rows, and a mask of the rows for which it is valid; the others are
    made one by one.
    """

    of_one: MakeBody
    of_shape: Callable[[FrameShape, Bytes], tuple[pa.Array, npt.NDArray[np.bool_]]]
    shows_secrets: bool


def judge_frames(columns: FrameColumns, maker: BodyMaker | None, *, by_shape: bool = True) -> VerdictColumns:
    """Return the verdict on each frame, with bodies if there is a maker."""
    verdicts = VerdictColumns(len(columns.starts))
    verdicts.put_all(np.flatnonzero(~columns.is_whole), TRUNCATED)
    verdicts.put_all(np.flatnonzero(columns.is_whole & ~columns.has_api), OPAQUE)
    left = np.flatnonzero(columns.is_whole & columns.has_api)
    if by_shape:
        left = _judge_by_shape(columns, left, verdicts, maker)
    of_one = maker.of_one if maker else None
    for row in left.tolist():
        verdicts.put(row, judge_frame(*columns.frame(row), of_one))
    return verdicts


def _judge_by_shape(columns: FrameColumns, rows: Rows, verdicts: VerdictColumns, maker: BodyMaker | None) -> Rows:
    """Judge the rows that share a shape; return the others."""
    overlay = in_use()
    left: list[Rows] = []
    for kind, group in columns.alike(rows):
        found, rest = KNOWN_SHAPES.sort(overlay, kind, columns.buffer, columns.starts[group])
        left.append(group[rest])
        for shape, places in found:
            left.append(_put_shape(shape, columns, group[places], verdicts, maker))
    return np.concatenate(left) if left else rows


def _put_shape(
    shape: FrameShape, columns: FrameColumns, rows: Rows, verdicts: VerdictColumns, maker: BodyMaker | None
) -> Rows:
    """Store the verdict and bodies of rows of one shape; return the rows whose bodies are made one by one."""
    if maker is None:
        verdicts.put_all(rows, shape.verdict)
        return rows[:0]
    if len(rows) < TOGETHER_MIN:
        return rows
    frames = frames_at(columns.buffer, columns.starts[rows], len(shape.bytes))
    left = rows[:0]
    if not maker.shows_secrets and (has_secret := rows_with_secrets(shape, frames)).any():
        left, rows, frames = rows[has_secret], rows[~has_secret], frames[~has_secret]
        if not len(rows):
            return left
    bodies, right = maker.of_shape(shape, frames)
    if not right.all():
        bodies = bodies.filter(pa.array(right))
    verdicts.put_all(rows[right], shape.verdict, bodies)
    return np.concatenate((left, rows[~right]))


class VerdictColumns:
    """One verdict for each row, set in any order; rows with the same verdict can be set together.

    `bodies` are those of single rows, `body_columns` those of several rows: a column of as many, or of one for all.
    """

    def __init__(self, rows: int) -> None:
        self.bodies: dict[int, object] = {}
        self.body_columns: list[tuple[Rows, pa.Array]] = []
        self._numbers = np.zeros(rows, np.int32)
        self._verdicts: dict[FrameVerdict, int] = {}

    def put(self, row: int, verdict: FrameVerdict) -> None:
        """Set the verdict on one row, with its body."""
        if verdict.body is not None:
            self.bodies[row] = verdict.body
            verdict = verdict._replace(body=None)
        self._numbers[row] = self._verdicts.setdefault(verdict, len(self._verdicts))

    def put_all(self, rows: Rows, verdict: FrameVerdict, bodies: pa.Array | None = None) -> None:
        """Set the verdict shared by several rows, and their bodies, if any."""
        self._numbers[rows] = self._verdicts.setdefault(verdict, len(self._verdicts))
        if bodies is not None:
            self.body_columns.append((rows, bodies))

    def columns(self) -> dict[str, pa.Array]:
        """Return every column of the verdicts but the bodies."""
        numbers = pa.array(self._numbers)
        found = {}
        for index, name in enumerate(_COLUMNS):
            values = [verdict[index] for verdict in self._verdicts]
            found[name] = pa.array(values, MESSAGES.field(name).type).take(numbers)
        return found


def put_together(rows: int, parts: Sequence[tuple[Rows, pa.Array]], kind: pa.DataType) -> pa.Array:
    """Return a column of `rows` values from parts and the rows that they are for; null where there is none.

    A part with one value has it for all of its rows. Parts whose rows follow each other are joined without a copy of
    each value.
    """
    places = np.full(rows, -1, np.int64)
    start = 0
    parts = sorted((part for part in parts if len(part[0])), key=lambda part: int(part[0][0]))
    for of_part, values in parts:
        places[of_part] = start if len(values) == 1 else np.arange(start, start + len(values))
        start += len(values)
    if not start:
        return pa.nulls(rows, kind)
    columns = [values for _, values in parts]
    if np.array_equal(places, np.arange(start)):
        return pa.concat_arrays(columns) if len(columns) > 1 else columns[0]
    if captures is not None and kind == pa.string():
        return _gathered(places, columns)
    return pa.concat_arrays(columns).take(pa.array(places, mask=places < 0))


def _gathered(places: Rows, parts: Sequence[pa.StringArray]) -> pa.StringArray:
    """Return the strings at places in parts that follow each other; null where a place is negative."""
    texts = [np.frombuffer(part.buffers()[2] or b"", np.uint8) for part in parts]
    bounds = [np.frombuffer(part.buffers()[1], np.int32)[part.offset : part.offset + len(part) + 1] for part in parts]
    before = np.cumsum([0, *(len(text) for text in texts)])
    starts = np.concatenate([each[:-1] + at for each, at in zip(bounds, before[:-1], strict=True)])
    sizes = np.concatenate([np.diff(each) for each in bounds])
    is_null = places < 0
    found = gather(np.concatenate(texts), starts[places], np.where(is_null, 0, sizes[places]))
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(places), [valid, *found.buffers()[1:]])
