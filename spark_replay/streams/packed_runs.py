"""Runs whose lists of numbers are binary columns: Spark copies the items of a list one by one, bytes all at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, as_numpy
from mockraft.spark_replay.schemas import RUNS

_PACKED = ("seg_len", "seg_ts_ns", "seg_off")
PACKED_RUNS = pa.schema([pa.field(each.name, pa.binary()) if each.name in _PACKED else each for each in RUNS])
"""The columns of `schemas.RUNS`, with those of segments as native numbers in bytes."""


def packed(runs: pa.RecordBatch) -> pa.RecordBatch:
    """Return runs with the columns of `PACKED_RUNS`."""
    columns = {name: runs.column(name) for name in RUNS.names}
    for name in _PACKED:
        items, sizes = numbers(columns[name], name)
        offsets = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes * items.itemsize, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(items)]
        columns[name] = pa.BinaryArray.from_buffers(pa.binary(), len(sizes), buffers)
    return pa.RecordBatch.from_arrays([*columns.values()], schema=PACKED_RUNS)


def numbers(column: pa.Array, name: str) -> tuple[Array, Array]:
    """Return the numbers of all runs in such a column, packed or not, and how many each run has."""
    bounds = bounds_of(column)
    if column.type != pa.binary():
        return as_numpy(column.values.slice(bounds[0], bounds[-1] - bounds[0])), np.diff(bounds)
    kind = np.dtype(str(RUNS.field(name).type.value_type))
    first, last = int(bounds[0]), int(bounds[-1])
    content = column.buffers()[2] or pa.py_buffer(b"")
    return np.frombuffer(content, np.uint8)[first:last].view(kind), np.diff(bounds) // kind.itemsize


def bounds_of(column: pa.Array) -> Array:
    """Return where the values of a list or binary column begin in its items, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
