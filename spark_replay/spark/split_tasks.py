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

TASKS_MAX = 4096
"""Each task is sent all splits: of more than these, a task reads several."""


def planned_runs(spark: SparkSession, paths: Sequence[str], options: SourceOptions) -> DataFrame | None:
    """Return the runs of captures, with the columns of `PACKED_RUNS`; None if the files cannot be planned."""
    try:
        splits = [split for path in capture_paths(paths) for split in splits_of(path, options)]
    except (CaptureError, NoCaptureError, OSError):
        return None
    numbers = spark.range(0, len(splits), numPartitions=min(len(splits), TASKS_MAX))
    return numbers.mapInArrow(partial(_read, splits, options), to_spark_schema(PACKED_RUNS))


def _read(splits: list[Split], options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for runs in read_partition(splits[number], options):
                yield packed(runs)
