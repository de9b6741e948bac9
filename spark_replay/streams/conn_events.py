"""Events of connections, collected as rows of `schemas.CONN_EVENTS`."""

from __future__ import annotations

import pyarrow as pa
from mockraft.spark_replay.arrow_columns import no_rows, of_values
from mockraft.spark_replay.schemas import CONN_EVENTS

_ROWS_MAX = 8192
_Row = tuple[int, int, str, int, str, int, int, int, str, int, str]


class ConnEvents:
    """A buffer of event rows; kept as Arrow columns, so that millions of them stay small."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, row: _Row) -> None:
        """Add one row, with the columns of `schemas.CONN_EVENTS`."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS_MAX:
            self._pack()

    def take(self) -> pa.RecordBatch:
        """Return all rows so far and clear the buffer."""
        self._pack()
        table = pa.Table.from_batches(self._batches, schema=CONN_EVENTS).combine_chunks()
        self._batches = []
        return table.to_batches()[0] if table.num_rows else no_rows(CONN_EVENTS)

    def _pack(self) -> None:
        if self._rows:
            columns = [
                of_values(values, field.type)
                for values, field in zip(zip(*self._rows, strict=True), CONN_EVENTS, strict=True)
            ]
            self._batches.append(pa.RecordBatch.from_arrays(columns, schema=CONN_EVENTS))
            self._rows = []
