"""Tables made as Arrow by Python workers, which can also write them as Parquet themselves.

Spark's writer converts batches to rows and rows back to columns: for frames that costs more than everything before it
(docs/explanation/decisions/parquet-from-the-workers.md).
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from mockraft.spark_replay.spark.data_source import to_spark_schema
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.staging import Staging, table_files
from mockraft.spark_replay.storage.whole_files import open_for_writing
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
Make = Callable[[Batches], Batches]

ROW_GROUP_ROWS = 1 << 17
ROW_GROUP_BYTES = 16 << 20
"""Limits of a row group that a worker buffers before writing it: whichever is reached first."""

READ_ROWS = 1 << 13
"""Rows of a batch when reading back."""

_COUNTED = frozenset(("frame_no", "request_frame_no", "response_frame_no", "correlation_id", "packet_first"))
_COUNTED |= {"packet_last", "latency_ns", "ts_first_ns", "ts_last_ns", "request_ts_ns", "response_ts_ns", "body"}
"""Columns with a value of its own in almost every row."""

_GLOBBED = re.compile(r"[][{}*?\\]")
"""What Spark would read as a glob in the name of a folder."""

_WRITTEN = pa.schema([("partition", pa.int32()), ("file", pa.string()), ("rows", pa.int64())])


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

    def write_parquet(self, out: str | PathLike[str]) -> int:
        """Write the table to the folder `out` (a path or URL), replacing its contents, and return the number of rows.

        A folder on a disk is on a file system that the driver and all workers see at the same path. Each attempt of a
        task writes a file of its own; those of the attempts that Spark counts become the table when all exist, so that
        `out` has all of the new table or what it had before (`storage.staging`). The driver collects a row for each
        partition.

        Raises OutputError if the driver cannot see the workers' files, LocationError for a location that cannot be
        used, and PythonException for errors of workers.
        """
        staging = Staging.begin(Location.parse(out))
        try:
            write = partial(_write_part, self.make, self.schema, str(staging.parts))
            written = sorted(self.source.mapInArrow(write, to_spark_schema(_WRITTEN)).collect())
            files = [file for _, file, rows in written if rows]
            if not files:
                files = ["empty.parquet"]
                write_parts(iter(()), self.schema, staging.parts / files[0])
            staging.publish(files)
        finally:
            staging.end()
        return sum(rows for _, _, rows in written)


def of_dataframe(rows: DataFrame, schema: pa.Schema) -> WorkerTable:
    """Return the rows of Spark's own work, to be written like a worker's; `schema` has their columns."""
    return WorkerTable(rows, partial(_cast, schema), schema)


def write_dataframe(rows: DataFrame, schema: pa.Schema, out: str | PathLike[str]) -> int:
    """Write the rows of Spark's own work like `WorkerTable.write_parquet`; `schema` has their columns."""
    return of_dataframe(rows, schema).write_parquet(out)


def read_dataframe(spark: SparkSession, folder: str | PathLike[str], schema: pa.Schema) -> DataFrame:
    """Return a stored table: read by Spark from a disk, by workers from elsewhere."""
    location = Location.parse(folder)
    if location.is_remote:
        return stored_table(spark, folder, schema).dataframe()
    # The driver may run in another folder (Spark Connect).
    plain = _GLOBBED.sub(r"\\\g<0>", os.path.abspath(location.path))
    return spark.read.schema(to_spark_schema(schema)).parquet(plain)


def stored_table(spark: SparkSession, folder: str | PathLike[str], schema: pa.Schema) -> WorkerTable:
    """Return the columns of `schema` from a folder of Parquet files, each read by a worker.

    Raises FileNotFoundError for a folder without Parquet files, OutputError for a table that is incomplete.
    """
    location = Location.parse(folder)
    location = location if location.is_remote else location._replace(path=os.path.abspath(location.path))
    files = [str(file) for file in table_files(location)]
    numbers = spark.range(0, len(files), numPartitions=len(files))
    return WorkerTable(numbers, partial(_stored_rows, files, schema), schema)


def _stored_rows(files: list[str], schema: pa.Schema, batches: Batches) -> Batches:
    """Yield the rows of the files whose numbers are in `batches`."""
    encoded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    for batch in batches:
        for number in batch.column(0).to_pylist():
            where = Location.parse(files[number])
            with pq.ParquetFile(
                where.arrow_path,
                filesystem=where.file_system(),
                pre_buffer=where.is_remote,
                read_dictionary=encoded,
            ) as file:
                for group in range(file.num_row_groups):  # of which one is in memory
                    yield from file.iter_batches(READ_ROWS, [group], schema.names, use_threads=False)


def _cast(schema: pa.Schema, batches: Batches) -> Batches:
    for batch in batches:
        yield pa.RecordBatch.from_arrays(
            [batch[name].cast(schema.field(name).type) for name in schema.names], schema=schema
        )


def _chained(first: Make, second: Make, batches: Batches) -> Batches:
    return second(first(batches))


def _write_part(make: Make, schema: pa.Schema, folder: str, batches: Batches) -> Batches:
    """Write the rows of a partition to a file of its own, and yield its name."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    file = f"{partition:05}-{uuid.uuid4()}.parquet"
    rows = write_parts(make(batches), schema, Location.parse(folder) / file)
    yield pa.RecordBatch.from_pylist([{"partition": partition, "file": file, "rows": rows}], schema=_WRITTEN)


def write_parts(batches: Batches, schema: pa.Schema, file: Location) -> int:
    """Write batches as one Parquet file and return the number of rows; at most a row group is in memory.

    Raises OSError with the name of the file if the disk is full.
    """
    try:
        return _write_groups(batches, schema, file)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(file)) from None


def _write_groups(batches: Batches, schema: pa.Schema, file: Location) -> int:
    # These differ from row to row: Parquet would build a dictionary and discard it.
    repeated = [field.name for field in schema if field.type != pa.binary() and field.name not in _COUNTED]
    total = rows = size = 0
    group: list[pa.RecordBatch] = []
    with open_for_writing(file) as out, pq.ParquetWriter(out, schema, use_dictionary=repeated) as writer:
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
