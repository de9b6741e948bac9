"""A batch of runs as rows and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, as_arrow, as_list, as_numpy, in_order, repeated, take, texts
from mockraft.spark_replay.schemas import CONN_EVENTS
from mockraft.spark_replay.streams.frame_columns import Pieces
from mockraft.spark_replay.streams.runs import FIN, RST, SYN


def numbers(column: pa.Array) -> tuple[Array, Array]:
    """Return the numbers of all runs in a column of lists, and how many each run has."""
    bounds = bounds_of(column)
    return as_numpy(column.values.slice(bounds[0], bounds[-1] - bounds[0])), np.diff(bounds)


def bounds_of(column: pa.Array) -> Array:
    """Return where the values of a list or binary column begin in its items, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


_ENDS = ("client", "client_port", "server", "server_port")
_COLUMNS = (*("conn_id", *_ENDS), *("dir", "known_by", "seq", "first_ts_ns", "file"))


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
        self.conn_ids = as_numpy(runs.column("conn_id"))
        self.marks = np.zeros(len(self._counts), np.int64)
        for name, bit in (("syn", SYN), ("fin", FIN), ("rst", RST)):
            self.marks += as_numpy(runs.column(name)) * bit

    def rows(self, left_out: Array) -> Iterator[RunRow]:
        """Iterate over the runs, in order, without some."""
        runs, times = self._runs, self.pieces.ts_ns
        counts = self._counts
        ends = np.cumsum(counts)
        firsts = ends - counts
        back = np.zeros(len(times), bool)
        back[1:] = times[1:] < times[:-1]
        back[firsts] = False
        before = np.concatenate(([0], np.cumsum(back)))
        arrays: tuple[Array, ...] = (
            np.arange(len(counts)),
            self.marks,
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
        columns = [runs.column(name) for name in _COLUMNS]
        if left_out.size:
            kept = np.delete(np.arange(len(counts)), left_out)
            columns, arrays = [take(each, kept) for each in columns], tuple(each[kept] for each in arrays)
        return map(RunRow, *map(as_list, columns), *(each.tolist() for each in arrays))

    def refused(self) -> Array:
        """Return the rows of connections that have nothing but SYNs here, each with the RST that refuses it."""
        marks = self.marks
        if not (marks & RST).any():
            return np.zeros(0, np.int64)
        ids = self.conn_ids
        order = np.argsort(ids, kind="stable")
        ids, marks = ids[order], marks[order]
        starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
        counts = np.diff(starts, append=len(ids))
        is_even = (np.arange(len(ids)) - np.repeat(starts, counts)) % 2 == 0
        others = np.add.reduceat((marks != np.where(is_even, SYN, RST)).astype(np.int64), starts)
        return np.sort(order[np.repeat((others == 0) & (counts % 2 == 0), counts)])

    def mark_events(self, rows: Array, incarnations: Array) -> pa.RecordBatch:
        """Return the events of rows of SYNs and RSTs."""
        columns = {name: take(self._runs.column(name), rows) for name in ("conn_id", *_ENDS, "dir")}
        columns |= {"incarnation": as_arrow(incarnations, pa.int32()), "detail": repeated("", len(rows))}
        columns["ts_ns"] = as_arrow(self.pieces.ts_ns[(np.cumsum(self._counts) - self._counts)[rows]], pa.int64())
        columns["kind"] = take(texts(["syn", "rst"]), self.marks[rows] == RST)
        columns["bytes"] = as_arrow(np.zeros(len(rows)), pa.int64())
        return pa.RecordBatch.from_arrays(in_order(columns, CONN_EVENTS), schema=CONN_EVENTS)

    def holes(self, row: RunRow) -> Iterator[tuple[int, int, int, int]]:
        """Yield the places in a run where bytes were not captured: their number, and their packet's time and offset."""
        if not row.has_holes:
            return
        holes = self._runs.column("holes")
        first, last = bounds_of(holes)[row.number : row.number + 2].tolist()
        places, sizes = (as_numpy(holes.values.field(name))[first:last].tolist() for name in ("at", "len"))
        pieces = self.pieces
        ends = np.append(pieces.start[row.first_piece + 1 : row.end_piece], row.end).tolist()
        index = row.first_piece
        for at, size in zip(places, sizes, strict=True):
            # Each packet has one hole at most, and ends there.
            while ends[index - row.first_piece] < row.at + at:
                index += 1
            yield row.at + at, size, int(pieces.ts_ns[index]), int(pieces.offset[index])
            index += 1
