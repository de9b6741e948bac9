"""Runs of captures, read by tasks that the driver plans itself.

A Python data source starts a Python process for its reader and one for its partitions, which import everything anew:
half a second for each table. Files that cannot be planned here are left to the data source, which reports why, and so
are those that need more than `TASKS_MAX` tasks, because each task is sent the splits of all.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from mockraft.spark_replay.capture_paths import NoCaptureError, captures
from mockraft.spark_replay.formats import CaptureError
from mockraft.spark_replay.spark.data_source import to_spark_schema
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import OPEN_BYTES, SplitTask, plan_tasks, read_splits
from mockraft.spark_replay.streams.run_rows import PACKED_RUNS, packed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

TASKS_MAX = 4096


def planned_tasks(paths: Sequence[str], options: SourceOptions) -> list[SplitTask] | None:
    """Return the tasks that read captures; None if the files cannot be planned, or need too many tasks."""
    try:
        files = captures(paths)
        if sum(file.size + OPEN_BYTES for file in files) > TASKS_MAX * options.split_bytes:
            return None  # before large files are opened to be planned
        tasks = plan_tasks(files, options)
    except (CaptureError, NoCaptureError, OSError):
        return None
    return tasks if len(tasks) <= TASKS_MAX else None


def task_runs(spark: SparkSession, tasks: Sequence[SplitTask], options: SourceOptions) -> DataFrame:
    """Return the runs that tasks read, with the columns of `PACKED_RUNS`."""
    read = partial(_read, packed_splits(tasks), options)
    return numbers(spark, tasks, TASKS_MAX).mapInArrow(read, to_spark_schema(PACKED_RUNS))


def packed_splits(tasks: Iterable[SplitTask]) -> list[bytes]:
    """Return the splits of each task, pickled: a task unpickles its own, and not those of 100,000 files."""
    return [pickle.dumps(task.splits) for task in tasks]


def numbers(spark: SparkSession, tasks: Sequence[SplitTask], partitions_max: int) -> DataFrame:
    """Return the numbers of tasks, in at most `partitions_max` partitions."""
    return spark.range(0, len(tasks), numPartitions=max(min(len(tasks), partitions_max), 1))


def in_order(runs: DataFrame, partitions: int | None) -> DataFrame:
    """Return runs with each connection in one partition, in the order required by `Reassembler`."""
    parts = ("conn_id",) if partitions is None else (partitions, "conn_id")
    # Order within one packet: SYN, then data, then FIN or RST.
    marks = (F.desc("syn"), F.asc("fin"), F.asc("rst"))
    return runs.repartition(*parts).sortWithinPartitions("conn_id", "first_ts_ns", "file", "file_offset", *marks)


def _read(splits: list[bytes], options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for runs in read_splits(pickle.loads(splits[number]), options):
                yield packed(runs)
