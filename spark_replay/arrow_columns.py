"""Convert columns between numpy and Arrow without copying.

`pa.array` and `to_numpy` do the same but import pandas first, which takes longer than reading many captures. So does
`pyarrow.compute`, which every `take` of a column imports: it generates a function with documentation for each kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.spark_replay.accelerated import captures

try:
    from pyarrow._compute import call_function
except ImportError:
    from pyarrow.compute import call_function

Array = npt.NDArray[Any]


def as_arrow(column: Array, kind: pa.DataType, is_null: Array | None = None) -> pa.Array:
    """Return a numpy column of numbers or booleans as an Arrow array; null where `is_null`."""
    numbers = np.ascontiguousarray(column, np.dtype(str(kind)))
    content = np.packbits(numbers, bitorder="little") if kind == pa.bool_() else numbers
    valid = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(content)])


def texts(values: Sequence[str]) -> pa.StringArray:
    """Return a column of strings."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def of_values(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return a column of Python strings, numbers or booleans."""
    return texts([*map(str, values)]) if kind == pa.string() else as_arrow(np.array(values), kind)


def as_list(column: pa.Array) -> list[Any]:
    """Return a column of strings, numbers or booleans without nulls, faster than `to_pylist`."""
    if column.type != pa.string():
        values: list[Any] = as_numpy(column).tolist()
        return values
    words = dictionary(column)
    return [*map(words.dictionary.to_pylist().__getitem__, as_numpy(words.indices).tolist())]


def take(column: pa.Array, rows: Array, is_null: Array | None = None) -> pa.Array:
    """Return the values of a column at `rows`; null where `is_null`."""
    return call_function("take", [column, as_arrow(rows, pa.int64(), is_null)])


def dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Return a column as numbers of its distinct values, in order of appearance."""
    return call_function("dictionary_encode", [column])


def repeated(text: str, count: int) -> pa.StringArray:
    """Return a column that repeats one string."""
    return take(texts([text]), np.zeros(count, np.int64))


def gather(buffer: Array, at: Array, size: Array) -> pa.BinaryArray:
    """Return slices of a byte buffer as a binary column."""
    if not len(at):
        return pa.nulls(0, pa.binary())
    if captures is None:
        return pure_gather(buffer, at, size)
    places = (np.ascontiguousarray(each, np.int64) for each in (at, size))
    offsets, data = captures.gather(buffer, *places)
    return pa.BinaryArray.from_buffers(pa.binary(), len(at), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def pure_gather(buffer: Array, at: Array, size: Array) -> pa.BinaryArray:
    """Return the same as `gather`, without C; Arrow copies all slices at once."""
    # Used and unused slices alternate; the last offset only keeps the array valid.
    offsets = np.empty(2 * len(at) + 1, np.int32)
    offsets[0:-1:2] = at
    offsets[1::2] = at + size
    offsets[-1] = len(buffer)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    slices = pa.BinaryArray.from_buffers(pa.binary(), 2 * len(at), buffers)
    return take(slices, np.arange(0, 2 * len(at), 2))


def in_order(columns: Mapping[str, Array | pa.Array], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of a schema by name, with numpy columns converted to Arrow."""
    return [
        as_arrow(columns[field.name], field.type)
        if isinstance(columns[field.name], np.ndarray)
        else columns[field.name]
        for field in schema
    ]


def as_numpy(column: pa.Array) -> Array:
    """Return a column of numbers or booleans without nulls; numbers are a read-only view."""
    content = column.buffers()[1]
    if not len(column) or content is None:
        return np.zeros(0, np.dtype(str(column.type)))
    end = column.offset + len(column)
    if column.type == pa.bool_():
        bits = np.unpackbits(np.frombuffer(content, np.uint8), count=end, bitorder="little")
        return bits[column.offset :].astype(np.bool_)
    return np.frombuffer(content, np.dtype(str(column.type)))[column.offset : end]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def at_least_one(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches; one without rows if there are none, so that `pa.Table.from_batches` knows the columns."""
    batch = None
    for batch in batches:
        yield batch
    if batch is None:
        yield no_rows(schema)
