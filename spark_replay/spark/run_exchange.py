"""Exchange runs between the tasks of one machine through files, in place of Spark's shuffle.

The shuffle copies each byte about ten times: to the JVM, into rows, sorted, compressed, back into Arrow, to a worker.
On one machine the tasks that read splits write their runs to files next to the future table instead, and the driver
gives each task that makes the table an equal share of the connections. Such a task reads the index of all runs, sorts
those of its connections, and reads their bytes in that order: its memory does not depend on their bytes;
the index takes about 130 bytes for each run.

A file has the bytes of each run (its data, and the numbers of its segments) one after the other, and then the index, an
Arrow stream. As for the parts of a table, each attempt of a task writes a file of its own, and the driver uses those of
the attempts that Spark counts. Captures larger than `BYTES_MAX` go through the shuffle, which compresses and can spill
(docs/explanation/decisions/runs-through-files.md).
"""

from __future__ import annotations

import os
import pickle
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.files.private_files import opener
from mockraft.spark_replay.arrow_columns import Array, as_arrow, as_numpy, take
from mockraft.spark_replay.spark.data_source import to_spark_schema
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import SplitTask, read_partition
from mockraft.spark_replay.spark.split_tasks import in_order, numbers, packed_splits, task_runs
from mockraft.spark_replay.spark.worker_table import Make, spare_modules
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.streams.run_rows import PACKED_RUNS, bounds_of, packed
from pyspark.sql import DataFrame, SparkSession

BYTES_MAX = 4 << 30
"""Captures up to this size are exchanged through files, which take up to 0.8 of it on the disk.

Compressed ones may hold more: a task stops when its file is too large, and the shuffle is used.
"""
ROWS_MAX = 1 << 22
"""Runs up to this number: the index of a task's share is in its memory."""
BATCH_BYTES = 16 << 20
TASKS_MAX = 128
"""Each task that gets runs opens the files of all tasks that wrote some."""

_BUCKETS = 1024
_BYTES = tuple(field.name for field in PACKED_RUNS if field.type == pa.binary())
_SIZES = tuple(f"{name}_bytes" for name in _BYTES)
_INDEX = pa.schema(
    [
        *(field for field in PACKED_RUNS if field.name not in _BYTES),
        *((name, pa.int64()) for name in ("split", "at", *_SIZES)),
    ]
)
_WRITTEN = pa.schema([("file", pa.string()), ("index_at", pa.int64()), ("rows", pa.int64()), ("sizes", pa.binary())])


class RunFile(NamedTuple):
    """A file of runs, and where its index begins."""

    path: str
    index_at: int


class SplitRuns(NamedTuple):
    """The runs that planned tasks read (`PACKED_RUNS`), each connection in one task and in order.

    `partitions` is the number of tasks that get them. Default: spark.sql.shuffle.partitions, or a task for each core if
    they get them in files.
    """

    spark: SparkSession
    tasks: list[SplitTask]
    options: SourceOptions
    partitions: int | None

    def shuffled(self) -> DataFrame:
        """Return the runs, shuffled by Spark."""
        return in_order(task_runs(self.spark, self.tasks, self.options), self.partitions)

    def through_files(self, folder: Location) -> tuple[DataFrame, Make] | None:
        """Read the splits, and return the numbers of tasks and what gives such a task its runs; None: not possible.

        That is on several machines, or if there is too much. The files are in `folder`, which is not removed.
        """
        if not self._is_local(folder) or sum(task.size for task in self.tasks) > BYTES_MAX:
            return None
        writers = min(len(self.tasks), TASKS_MAX) or 1
        file_bytes_max = max(BYTES_MAX // writers, 2 * max((task.size for task in self.tasks), default=0))
        write = partial(write_runs, packed_splits(self.tasks), self.options, folder.path, file_bytes_max)
        written = numbers(self.spark, self.tasks, TASKS_MAX).mapInArrow(write, to_spark_schema(_WRITTEN)).collect()
        if sum(row.rows for row in written) > ROWS_MAX:
            return None
        sizes, files = sizes_and_files([row.asDict() for row in written])
        # Their shares are equal: with more tasks than cores none would wait less.
        count = self.partitions or self.spark.sparkContext.defaultParallelism
        tasks = self.spark.range(0, count, numPartitions=count)
        return tasks, partial(_read_runs, files, shares(sizes, count))

    def _is_local(self, folder: Location) -> bool:
        """Return True if driver and workers are on one machine, and the folder is on its disk."""
        if folder.is_remote or not isinstance(self.spark, SparkSession):
            return False
        return re.fullmatch(r"local(\[.*\])?", self.spark.sparkContext.master) is not None


def sizes_and_files(written: Sequence[Mapping[str, Any]]) -> tuple[Array, list[RunFile]]:
    """Return the bytes of each bucket of connections, and the files, from the rows of `write_runs`."""
    sizes = sum((np.frombuffer(row["sizes"], np.int64) for row in written), np.zeros(_BUCKETS, np.int64))
    return sizes, [RunFile(row["file"], row["index_at"]) for row in written if row["rows"]]


def shares(sizes: Array, partitions: int) -> Array:
    """Return the task of each bucket of connections: the largest first, each to the task with the fewest bytes."""
    shares = np.zeros(len(sizes), np.int64)
    loads = [(0, task) for task in range(partitions)]
    heapify(loads)
    for bucket in np.argsort(-sizes, kind="stable").tolist():
        load, task = loads[0]
        shares[bucket] = task
        heapreplace(loads, (load + int(sizes[bucket]), task))
    return shares


def write_runs(
    splits: list[bytes], options: SourceOptions, folder: str, file_bytes_max: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the runs of the tasks whose numbers are in `batches` to a file, and yield its name.

    A file that would be larger than `file_bytes_max` is left out: its row has more than `ROWS_MAX` rows.
    """
    path = os.path.join(folder, f"{uuid.uuid4()}.runs")
    parts: list[pa.RecordBatch] = []
    sizes = np.zeros(_BUCKETS, np.int64)
    with open(path, "wb", opener=opener) as file:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for place, split in enumerate(pickle.loads(splits[number]), number << 32):
                    for runs in read_partition(split, options):
                        index = _write(file, packed(runs), place)
                        if file.tell() > file_bytes_max:
                            os.unlink(path)
                            yield _written(path, 0, ROWS_MAX + 1, sizes)
                            return
                        total = sum(as_numpy(index.column(name)) for name in _SIZES)
                        sizes += np.bincount(_bucket(index), total, _BUCKETS).astype(np.int64)
                        parts.append(index)
        index_at = file.tell()
        with pa.ipc.new_stream(file, _INDEX) as stream:
            for part in parts:
                stream.write_batch(part)
    rows = sum(part.num_rows for part in parts)
    spare_modules("runs")
    yield _written(path, index_at, rows, sizes)


def _written(path: str, index_at: int, rows: int, sizes: Array) -> pa.RecordBatch:
    row = {"file": path, "index_at": index_at, "rows": rows, "sizes": sizes.tobytes()}
    return pa.RecordBatch.from_pylist([row], schema=_WRITTEN)


def _bucket(index: pa.RecordBatch) -> Array:
    return as_numpy(index.column("conn_id")) % _BUCKETS


def _write(file: BinaryIO, runs: pa.RecordBatch, split: int) -> pa.RecordBatch:
    """Write the bytes of runs, run by run, and return their index."""
    start = file.tell()
    columns = [runs.column(name) for name in _BYTES]
    bounds = [bounds_of(column) for column in columns]
    slices: list[memoryview] = [memoryview(b"")] * (len(columns) * runs.num_rows)
    for number, (column, ends) in enumerate(zip(columns, bounds, strict=True)):
        view, at = memoryview(column.buffers()[2] or b""), ends.tolist()
        slices[number :: len(columns)] = [view[low:high] for low, high in pairwise(at)]
    file.write(b"".join(slices))
    sizes = [np.diff(each).astype(np.int64) for each in bounds]
    total = sum(sizes)
    found = {name: runs.column(name) for name in PACKED_RUNS.names if name not in _BYTES}
    found_at = (np.full(runs.num_rows, split), start + np.cumsum(total) - total, *sizes)
    arrays = [as_arrow(each, pa.int64()) for each in found_at]
    return pa.RecordBatch.from_arrays([*found.values(), *arrays], schema=_INDEX)


def _read_runs(files: list[RunFile], shares: Array, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the runs of the connections of the tasks whose numbers are in `batches`."""
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield from runs_of_task(files, shares, task)


def runs_of_task(files: list[RunFile], shares: Array, task: int) -> Iterator[pa.RecordBatch]:
    """Yield the runs of a task's connections, in order; a batch has at most `BATCH_BYTES`, or one run."""
    opened = [os.open(file.path, os.O_RDONLY) for file in files]
    try:
        index, source = _sorted_index(files, shares, task)
        if index is None:
            return
        sizes = np.stack([as_numpy(index.column(name)) for name in _SIZES])
        ends = np.cumsum(sizes.sum(axis=0))
        first = 0
        while first < index.num_rows:
            last = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + BATCH_BYTES, "right"))
            last = max(last, first + 1)
            yield _runs(index.slice(first, last - first), source[first:last], sizes[:, first:last], opened)
            first = last
    finally:
        for each in opened:
            os.close(each)


def _sorted_index(files: list[RunFile], shares: Array, task: int) -> tuple[pa.RecordBatch | None, Array]:
    """Return the index of a task's runs in their order, and the number of the file of each."""
    parts: list[pa.RecordBatch] = []
    sources: list[Array] = []
    for number, file in enumerate(files):
        with open(file.path, "rb") as opened:
            opened.seek(file.index_at)
            for part in pa.ipc.open_stream(opened):
                rows = np.flatnonzero(shares[_bucket(part)] == task)
                if rows.size:
                    parts.append(_taken(part, rows))
                    sources.append(np.full(len(rows), number))
    if not parts:
        return None, np.zeros(0, np.int64)
    index = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    marks = [as_numpy(index.column(name)) for name in ("syn", "fin", "rst")]
    # The order of `split_tasks.in_order`: the splits are in the order of files.
    keys = [as_numpy(index.column(name)) for name in ("file_offset", "split", "first_ts_ns", "conn_id")]
    order = np.lexsort((marks[2], marks[1], ~marks[0], *keys))
    return _taken(index, order), np.concatenate(sources)[order]


def _taken(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([take(column, rows) for column in batch.columns], schema=batch.schema)


def _runs(index: pa.RecordBatch, source: Array, sizes: Array, opened: list[int]) -> pa.RecordBatch:
    """Return runs with their bytes, which are read from the files."""
    bounds = np.zeros((len(_BYTES), index.num_rows + 1), np.int64)
    np.cumsum(sizes, axis=1, out=bounds[:, 1:])
    contents = [np.empty(int(each), np.uint8) for each in bounds[:, -1]]
    views = [memoryview(content.data) for content in contents]
    places = as_numpy(index.column("at")).tolist()
    wanted = sizes.sum(axis=0).tolist()
    for number, at, size, begin, end in zip(
        source.tolist(), places, wanted, bounds[:, :-1].T.tolist(), bounds[:, 1:].T.tolist(), strict=True
    ):
        parts = [view[low:high] for view, low, high in zip(views, begin, end, strict=True)]
        if os.preadv(opened[number], parts, at) != size:
            raise OSError(f"a file of runs ends before byte {at + size}")
    columns = {name: index.column(name) for name in _INDEX.names}
    for name, content, bound in zip(_BYTES, contents, bounds, strict=True):
        buffers = [None, pa.py_buffer(bound.astype(np.int32)), pa.py_buffer(content)]
        columns[name] = pa.BinaryArray.from_buffers(pa.binary(), index.num_rows, buffers)
    return pa.RecordBatch.from_arrays([columns[name] for name in PACKED_RUNS.names], schema=PACKED_RUNS)
