"""A batch of runs as rows and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, as_list, as_numpy
from mockraft.spark_replay.streams.frame_columns import Pieces
from mockraft.spark_replay.streams.runs import FIN, RST, SYN


def numbers(column: pa.Array) -> tuple[Array, Array]:
    """Return the numbers of all runs in a column of lists, and how many each run has."""
    bounds = bounds_of(column)
    return as_numpy(column.values.slice(bounds[0], bounds[-1] - bounds[0])), np.diff(bounds)


def bounds_of(column: pa.Array) -> Array:
    """Return where the values of a list or binary column begin in its items, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


_COLUMNS = (
    *("conn_id", "client", "client_port", "server", "server_port"),
    *("dir", "known_by", "seq", "first_ts_ns", "file"),
)


class RunRow(NamedTuple):
    """One run: [at, end) of the batch's bytes in [first_piece, end_piece) of its pieces; `marks` are TCP flags."""

    conn_id: int
    client: str
    client_port: int
    server: str
    server_port: int
    direction: int
    known_by: int
    seq: int
    first_ts_ns: int
    file: str
    number: int
    marks: int
    has_holes: bool
    dup_bytes: int
    conflict_bytes: int
    at: int
    end: int
    first_piece: int
    end_piece: int
    ts_ns: int
    last_ts_ns: int
    is_in_time: bool


class RunBatch:
    """Runs, with the columns of `schemas.RUNS`; every run has at least one segment."""

    def __init__(self, runs: pa.RecordBatch) -> None:
        self._runs = runs
        data = runs.column("data")
        self._bounds = bounds_of(data)
        content = data.buffers()[2] or pa.py_buffer(b"")
        self.view = memoryview(content)
        self.data = np.frombuffer(content, np.uint8)
        sizes, self._counts = numbers(runs.column("seg_len"))
        starts = int(self._bounds[0]) + np.cumsum(sizes, dtype=np.int64) - sizes
        times = numbers(runs.column("seg_ts_ns"))[0].copy()
        self.pieces = Pieces(starts, times, numbers(runs.column("seg_off"))[0])
        self.last_ts_ns = int(times[-1])

    def rows(self) -> Iterator[RunRow]:
        """Iterate over the runs, in order."""
        runs, times = self._runs, self.pieces.ts_ns
        counts = self._counts
        ends = np.cumsum(counts)
        firsts = ends - counts
        back = np.zeros(len(times), bool)
        back[1:] = times[1:] < times[:-1]
        back[firsts] = False
        before = np.concatenate(([0], np.cumsum(back)))
        marks = np.zeros(len(counts), np.int64)
        for name, bit in (("syn", SYN), ("fin", FIN), ("rst", RST)):
            marks += as_numpy(runs.column(name)) * bit
        arrays = (
            np.arange(len(counts)),
            marks,
            np.diff(bounds_of(runs.column("holes"))) > 0,
            as_numpy(runs.column("dup_bytes")),
            as_numpy(runs.column("conflict_bytes")),
            self._bounds[:-1],
            self._bounds[1:],
            firsts,
            ends,
            times[firsts],
            times[ends - 1],
            before[ends] == before[firsts],
        )
        columns = [as_list(runs.column(name)) for name in _COLUMNS]
        return map(RunRow, *columns, *(each.tolist() for each in arrays))

    def missing(self, row: RunRow) -> dict[int, int]:
        """Return for each piece of a run the number of bytes after it that were not captured."""
        ends = np.append(self.pieces.start[row.first_piece + 1 : row.end_piece], row.end) - row.at
        found: dict[int, int] = {}
        index = 0
        for hole in self._runs.column("holes")[row.number].as_py():
            while ends[index] < hole["at"] or index in found:
                index += 1
            found[index] = hole["len"]
        return found
