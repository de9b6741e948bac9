"""Columns of record batches as numpy arrays; rows grouped and counted in Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TEXT_MAX = 200
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def integers(batch: pa.RecordBatch, name: str, null: int = 0) -> npt.NDArray[np.int64]:
    """Return a column of integers."""
    numbers: npt.NDArray[np.int64] = pc.fill_null(batch.column(name).cast(pa.int64()), null).to_numpy(
        zero_copy_only=False
    )
    return numbers


def connection_keys(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    """Return a number for the connection of each row, from `conn_id` and `incarnation`."""
    keys: npt.NDArray[np.uint64] = integers(batch, "conn_id").view(np.uint64)
    return keys + integers(batch, "incarnation").view(np.uint64) * _SPREAD


def count_rows(batch: pa.RecordBatch, names: list[str], sums: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Count rows by these columns, as `rows`; sum others, as `<name>_sum`."""
    table = pa.Table.from_batches([batch]).select([*names, *sums])
    grouped = table.group_by(names).aggregate([*[(name, "sum") for name in sums], ([], "count_all")])
    columns = [*names, *[f"{name}_sum" for name in sums], "rows"]
    rows: list[dict[str, Any]] = grouped.rename_columns(columns).to_pylist()
    return rows


def cut_texts(batch: pa.RecordBatch, *names: str) -> pa.RecordBatch:
    """Return the batch with texts cut to TEXT_MAX."""
    for name in names:
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, pc.utf8_slice_codeunits(batch.column(name), 0, TEXT_MAX))
    return batch


def first_integer(texts: pa.Array, pattern: str) -> pa.Array:
    """Return the first integer matched by group `n` of a pattern in each text (null if none)."""
    found = pc.struct_field(pc.extract_regex(texts, pattern), "n")
    return pc.if_else(pc.equal(found, ""), None, found).cast(pa.int64())
