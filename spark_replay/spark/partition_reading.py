"""What one partition of the sources gives: a file or a split of one as Arrow batches, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.schemas import FRAMES
from mockraft.spark_replay.spark.options import SourceOptions

SCHEMAS = {"frames": FRAMES}
"""The columns of each level."""

_BYTES = {"packets": "payload", "frames": "frame"}
_COMPARE = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Predicate(NamedTuple):
    """A condition on one column: `operator` is =, <, <=, >, >= or in (then `value` is a tuple)."""

    column: str
    operator: str
    value: Any

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Which rows of `batch` it holds for; null where the column is."""
        column = batch.column(self.column)
        if self.operator == "in":
            return pc.is_in(column, value_set=pa.array(self.value, column.type))
        return _COMPARE[self.operator](column, pa.scalar(self.value, column.type))


def plan(path: str, options: SourceOptions) -> list[str]:
    """The splits that `path` is read in."""
    return [path]


def read_partition(
    source: str, options: SourceOptions, predicates: Sequence[Predicate] = ()
) -> Iterator[pa.RecordBatch]:
    """The batches of one file or split at `options.level`, rows that a predicate refuses left out."""
    for batch in _LEVELS[options.level](source, options, predicates):
        kept = kept_rows(batch, options, predicates)
        if kept.num_rows:
            yield kept


def kept_rows(batch: pa.RecordBatch, options: SourceOptions, predicates: Sequence[Predicate] = ()) -> pa.RecordBatch:
    """The rows that the options' clients and APIs and all predicates allow, without bytes where none are wanted."""
    masks = [predicate.mask(batch) for predicate in predicates]
    if options.clients:
        clients = pa.array(options.clients, pa.string())
        sides = [name for name in ("client", "src", "dst") if name in batch.schema.names]
        if sides:
            masks.append(reduce(pc.or_, [pc.is_in(batch.column(side), value_set=clients) for side in sides]))
    if options.api_keys:
        masks.append(pc.is_in(batch.column("api_key"), value_set=pa.array(options.api_keys, pa.int16())))
    if masks:
        batch = batch.filter(reduce(pc.and_, masks))
    if not options.include_bytes and (name := _BYTES.get(options.level)):
        empty = pa.nulls(batch.num_rows, pa.binary())
        batch = batch.set_column(batch.schema.get_field_index(name), name, empty)
    return batch


def _read_frames(source: str, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    return read_frames(source, options.ports)


_LEVELS = {"frames": _read_frames}
