"""Tables made as Arrow by Python workers, which can also write them as Parquet themselves.

Spark's writer converts batches to rows and rows back to columns: for frames that costs more than everything before it
(docs/explanation/decisions/parquet-from-the-workers.md).
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from mockraft.serving.private_files import DIRECTORY_MODE, opener
from mockraft.spark_replay.spark.data_source import to_spark_schema
from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
Make = Callable[[Batches], Batches]

ROW_GROUP_ROWS = 1 << 17
ROW_GROUP_BYTES = 16 << 20
"""Limits of a row group that a worker buffers before writing it: whichever is reached first."""

GROUPS_MAX = 64
"""Row groups of one task when reading back: about a gigabyte."""

READ_ROWS = 1 << 13
"""Rows of a batch when reading back."""

_COUNTED = frozenset(("frame_no", "request_frame_no", "response_frame_no", "correlation_id", "packet_first"))
_COUNTED |= {"packet_last", "latency_ns", "ts_first_ns", "ts_last_ns", "request_ts_ns", "response_ts_ns", "body"}
"""Columns with a value of its own in almost every row."""

_WRITTEN = pa.schema([("partition", pa.int32()), ("file", pa.string()), ("rows", pa.int64())])


class OutputError(OSError):
    """Raised if the driver cannot see what workers wrote."""


class WorkerTable(NamedTuple):
    """Rows of `schema` that `make` yields for the batches of each partition of `source`.

    `make` is pickled to the workers: a function of an installed module or a `partial` of one, not a closure.
    """

    source: DataFrame
    make: Make
    schema: pa.Schema

    def dataframe(self) -> DataFrame:
        """Return the table as a DataFrame."""
        return self.source.mapInArrow(self.make, to_spark_schema(self.schema))

    def then(self, make: Make, schema: pa.Schema) -> WorkerTable:
        """Return a table that the same workers make of this one's rows, which are not stored."""
        return WorkerTable(self.source, partial(_chained, self.make, make), schema)

    def write_parquet(self, out: Path) -> int:
        """Write the table to the folder `out`, replacing its contents, and return the number of rows.

        `out` is on a file system that the driver and all workers see at the same path. Each attempt of a task writes a
        file of its own, next to `out`; the files of the attempts that Spark counts are moved into place when all exist,
        so that `out` has all of the new table or what it had before. The driver collects a row for each partition.

        Raises OutputError if the driver cannot see the workers' files, and PythonException for errors of workers.
        """
        attempts = out.absolute().with_name(f".{out.name}.being-written")
        shutil.rmtree(attempts, ignore_errors=True)
        attempts.mkdir(DIRECTORY_MODE, parents=True)
        try:
            write = partial(_write_part, self.make, self.schema, str(attempts))
            written = sorted(self.source.mapInArrow(write, to_spark_schema(_WRITTEN)).collect())
            self._put_in_place(attempts, [file for _, file, rows in written if rows], out)
        finally:
            shutil.rmtree(attempts, ignore_errors=True)
        return sum(rows for _, _, rows in written)

    def _put_in_place(self, attempts: Path, files: list[str], out: Path) -> None:
        table, before = attempts / "table", attempts / "before"
        table.mkdir(DIRECTORY_MODE)
        for number, file in enumerate(files):
            try:
                (attempts / file).rename(table / f"part-{number:05}.parquet")
            except FileNotFoundError:
                problem = f"{out}: the driver cannot see a part written by a worker"
                raise OutputError(f"{problem}; use a folder shared by driver and workers") from None
        if not files:
            write_parts(iter(()), self.schema, table / "part-00000.parquet")
        (table / "_SUCCESS").touch()
        if out.exists():
            out.rename(before)
        table.rename(out)


def stored_table(spark: SparkSession, folder: Path, schema: pa.Schema) -> WorkerTable:
    """Return the columns of `schema` from a folder of Parquet files, read by workers.

    There are two tasks for each core, or more if a task would have more than `GROUPS_MAX` row groups: a task takes a
    Python worker about 40 ms before it has its first row.

    Raises FileNotFoundError for a folder without Parquet files.
    """
    import pyarrow.parquet as pq

    files = sorted(str(file) for file in folder.absolute().glob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"{folder}: no Parquet files")
    groups = [(file, group) for file in files for group in range(pq.ParquetFile(file).num_row_groups)]
    tasks = max(2 * spark.sparkContext.defaultParallelism, -(-len(groups) // GROUPS_MAX))
    numbers = spark.range(0, len(groups), numPartitions=max(min(tasks, len(groups)), 1))
    return WorkerTable(numbers, partial(_stored_groups, groups, schema.names), schema)


def _stored_groups(groups: list[tuple[str, int]], columns: list[str], batches: Batches) -> Batches:
    """Yield the rows of the row groups whose numbers are in `batches`."""
    import pyarrow.parquet as pq

    for batch in batches:
        for number in batch.column(0).to_pylist():
            name, group = groups[number]
            with pq.ParquetFile(name) as file:
                yield from file.iter_batches(READ_ROWS, row_groups=[group], columns=columns, use_threads=False)


def _chained(first: Make, second: Make, batches: Batches) -> Batches:
    return second(first(batches))


def _write_part(make: Make, schema: pa.Schema, folder: str, batches: Batches) -> Batches:
    """Write the rows of a partition to a file of its own, and yield its name."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    file = f"{partition:05}-{uuid.uuid4()}.parquet"
    rows = write_parts(make(batches), schema, Path(folder, file))
    yield pa.RecordBatch.from_pylist([{"partition": partition, "file": file, "rows": rows}], schema=_WRITTEN)


def write_parts(batches: Batches, schema: pa.Schema, file: Path) -> int:
    """Write batches as one Parquet file and return the number of rows; at most a row group is in memory.

    Raises OSError with the name of the file if the disk is full.
    """
    try:
        return _write_groups(batches, schema, file)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(file)) from None


def _write_groups(batches: Batches, schema: pa.Schema, file: Path) -> int:
    import pyarrow.parquet as pq

    # These differ from row to row: Parquet would build a dictionary and discard it.
    repeated = [field.name for field in schema if field.type != pa.binary() and field.name not in _COUNTED]
    total = rows = size = 0
    group: list[pa.RecordBatch] = []
    with open(file, "wb", opener=opener) as out, pq.ParquetWriter(out, schema, use_dictionary=repeated) as writer:
        for batch in batches:
            group.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group, schema))
                total += rows
                group, rows, size = [], 0, 0
        if rows:
            writer.write_table(pa.Table.from_batches(group, schema))
    return total + rows
