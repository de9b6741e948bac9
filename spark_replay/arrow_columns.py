"""Columns between numpy and Arrow, over the same memory.

`pa.array` and `to_numpy` do as much and import pandas first, which takes longer than reading many a capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]


def as_arrow(column: Array, kind: pa.DataType, is_null: Array | None = None) -> pa.Array:
    """A column of numbers or truths as Arrow; null where `is_null`."""
    numbers = np.ascontiguousarray(column, np.dtype(str(kind)))
    content = np.packbits(numbers, bitorder="little") if kind == pa.bool_() else numbers
    valid = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(content)])


def texts(values: Sequence[str]) -> pa.StringArray:
    """A column of texts."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def as_numpy(column: pa.Array) -> Array:
    """A column of numbers or truths without nulls; numbers are not copied and cannot be written to."""
    content = column.buffers()[1]
    if not len(column) or content is None:
        return np.zeros(0, np.dtype(str(column.type)))
    end = column.offset + len(column)
    if column.type == pa.bool_():
        bits = np.unpackbits(np.frombuffer(content, np.uint8), count=end, bitorder="little")
        return bits[column.offset :].astype(np.bool_)
    return np.frombuffer(content, np.dtype(str(column.type)))[column.offset : end]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of nothing."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
