"""Runs of captures, read by tasks that the driver plans itself.

A Python data source starts a Python process for its reader and one for its partitions, which import everything anew:
half a second for each table. Files that cannot be planned here are left to the data source, which reports why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from mockraft.spark_replay.formats import CaptureError, Split
from mockraft.spark_replay.spark.capture_paths import NoCaptureError, capture_paths
from mockraft.spark_replay.spark.data_source import to_spark_schema
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import read_partition, splits_of
from mockraft.spark_replay.streams.packed_runs import PACKED_RUNS, packed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

TASKS_MAX = 4096
"""Each task is sent all splits: of more than these, a task reads several."""


def planned_splits(paths: Sequence[str], options: SourceOptions) -> list[Split] | None:
    """Return the splits of captures; None if the files cannot be planned."""
    try:
        return [split for path in capture_paths(paths) for split in splits_of(path, options)]
    except (CaptureError, NoCaptureError, OSError):
        return None


def split_runs(spark: SparkSession, splits: list[Split], options: SourceOptions) -> DataFrame:
    """Return the runs of splits, with the columns of `PACKED_RUNS`."""
    read = partial(_read, splits, options)
    return numbers(spark, splits, TASKS_MAX).mapInArrow(read, to_spark_schema(PACKED_RUNS))


def numbers(spark: SparkSession, splits: Sequence[Split], tasks_max: int) -> DataFrame:
    """Return the numbers of the splits, in at most `tasks_max` partitions."""
    return spark.range(0, len(splits), numPartitions=max(min(len(splits), tasks_max), 1))


def in_order(runs: DataFrame, partitions: int | None) -> DataFrame:
    """Return runs with each connection in one partition, in the order required by `Reassembler`."""
    parts = ("conn_id",) if partitions is None else (partitions, "conn_id")
    # Order within one packet: SYN, then data, then FIN or RST.
    marks = (F.desc("syn"), F.asc("fin"), F.asc("rst"))
    return runs.repartition(*parts).sortWithinPartitions("conn_id", "first_ts_ns", "file", "file_offset", *marks)


def _read(splits: list[Split], options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for runs in read_partition(splits[number], options):
                yield packed(runs)
