"""The sources `kafka_pcap` and `kafka_frames` for `spark.read.format(…)` and `spark.readStream.format(…)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from mockraft.spark_replay.capture_paths import captures, loaded_paths
from mockraft.spark_replay.spark.options import LEVELS, OptionError, SourceOptions
from mockraft.spark_replay.spark.partition_reading import SCHEMAS, Predicate, plan_tasks, read_splits
from mockraft.spark_replay.storage.listing import StoredFile
from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession, datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from mockraft.spark_replay.spark.stream_reader import CaptureStreamReader
    from pyspark.sql.datasource import Filter

_OPERATORS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
}
_ALWAYS_SET = {"file", "ts_ns", "first_ts_ns", "client_port", "server_port", "sport", "dport"}


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema for a table of `schemas.py`."""
    return from_arrow_schema(schema)


def register(spark: SparkSession) -> None:
    """Register `kafka_pcap` and `kafka_frames` with a session, and enable filter pushdown for Python data sources."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KafkaPcapSource)
    spark.dataSource.register(KafkaFramesSource)


class PySparkTooOldError(RuntimeError):
    """Raised for what this PySpark lacks."""


class CaptureReader(DataSourceReader):
    """Read files, or splits of them (`formats.Split`), as Arrow batches."""

    def __init__(self, files: Sequence[StoredFile], options: SourceOptions) -> None:
        self._files = files
        self._options = options
        self.predicates: list[Predicate] = []

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each task. Raises CaptureError with onError=fail."""
        return [InputPartition(task.splits) for task in plan_tasks(self._files, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's batches. Raises CaptureError (file, offset) with onError=fail."""
        return read_splits(partition.value, self._options, self.predicates)


class FilteringReader(CaptureReader):
    """A reader with filter pushdown (option pushFilters): rejected rows never reach the JVM, rejected ports no parser.

    Not the default, because Spark 4.3 keeps pushed filters with the DataFrame: used for a second query, or twice in
    one, it would still be filtered.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        """Accept comparisons of one column with a value; return the others."""
        for each in filters:
            predicate = _predicate(each)
            if predicate is not None:
                self.predicates.append(predicate)
            elif not (isinstance(each, datasource.IsNotNull) and each.attribute[0] in _ALWAYS_SET):
                yield each


def _predicate(each: Filter) -> Predicate | None:
    operator = _OPERATORS.get(type(each).__name__)
    if operator is None or len(each.attribute) != 1 or each.value is None:
        return None
    value = tuple(each.value) if operator == "in" else each.value
    if operator == "in" and None in value:
        return None
    return Predicate(each.attribute[0], operator, value)


class KafkaPcapSource(DataSource):
    """Capture files at a level: runs (the default), packets, frames (each file by itself) or file_events."""

    levels: tuple[str, ...] = LEVELS

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "kafka_pcap"

    def schema(self) -> StructType:
        """Return the level's columns. Raises OptionError."""
        return to_spark_schema(SCHEMAS[self._options().level])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the current files. Raises OptionError, NoCaptureError."""
        options = self._options()
        if options.push_filters and not hasattr(datasource, "Filter"):
            raise OptionError(f"option pushFilters: needs PySpark 4.1 or later, and this is {pyspark_version}")
        kind = FilteringReader if options.push_filters else CaptureReader
        return kind(captures(loaded_paths(self.options)), options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of current and future files. Raises OptionError, NoCaptureError, PySparkTooOldError."""
        return stream_reader()(loaded_paths(self.options), self._options())

    def _options(self) -> SourceOptions:
        return SourceOptions.read(self.options, levels=self.levels)


class KafkaFramesSource(KafkaPcapSource):
    """Kafka frames of capture files; connections are not followed from one file into the next (`frames()` does)."""

    levels = ("frames",)

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "kafka_frames"


def stream_reader() -> type[CaptureStreamReader]:
    """Return the reader of streams. Raises PySparkTooOldError."""
    try:
        from mockraft.spark_replay.spark.stream_reader import CaptureStreamReader
    except ImportError:
        raise PySparkTooOldError(
            f"streams of captures need PySpark 4.2 or later, and this is {pyspark_version}; spark.read works"
        ) from None
    return CaptureStreamReader
