"""The reader of a capture's batches for Spark's data sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import Predicate, plan_tasks, read_splits
from mockraft.spark_replay.storage.listing import StoredFile
from pyspark.sql.datasource import DataSourceReader, InputPartition


class CapturePartition(InputPartition):
    """Files, or splits of them (`formats.Split`), that one task reads."""


class CaptureReader(DataSourceReader):
    """Read files, or splits of them, as Arrow batches."""

    def __init__(self, files: Sequence[StoredFile], options: SourceOptions) -> None:
        self._files = files
        self._options = options
        self.predicates: list[Predicate] = []

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each task. Raises CaptureError with onError=fail."""
        return [CapturePartition(task.splits) for task in plan_tasks(self._files, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's batches. Raises CaptureError (file, offset) with onError=fail."""
        return read_splits(partition.value, self._options, self.predicates)
