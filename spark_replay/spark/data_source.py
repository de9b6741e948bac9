"""The sources `kafka_pcap` and `kafka_frames` for `spark.read.format(…)` and `spark.readStream.format(…)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from mockraft.spark_replay.capture_paths import captures, loaded_paths
from mockraft.spark_replay.spark.capture_reader import CaptureReader
from mockraft.spark_replay.spark.options import LEVELS, OptionError, SourceOptions
from mockraft.spark_replay.spark.partition_reading import SCHEMAS
from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from mockraft.spark_replay.spark.stream_reader import CaptureStreamReader


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
        kind = _filtering_reader() if options.push_filters else CaptureReader
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


def _filtering_reader() -> type[CaptureReader]:
    try:
        from mockraft.spark_replay.spark.filtering_reader import FilteringReader
    except ImportError:
        raise OptionError(f"option pushFilters: needs PySpark 4.1 or later, and this is {pyspark_version}") from None
    return FilteringReader
