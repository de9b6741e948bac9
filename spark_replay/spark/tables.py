"""Captured traffic as DataFrames: frames, messages, exchanges, events of connections and of files.

Each has the columns of `schemas.py`. Nothing is collected in the driver: files are cut into splits, splits become runs
of bytes, and one shuffle brings all runs of a connection together, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike, fspath

import pyarrow as pa
from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FILE_EVENTS, FRAMES, MESSAGES
from mockraft.spark_replay.spark.data_source import register, to_spark_schema
from mockraft.spark_replay.spark.options import OptionError, SourceOptions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

BODIES = ("variant", "json", "none")

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
_OF_A_CONNECTION = ("conn_id", "incarnation", "client", "client_port", "server", "server_port")


def frames(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> DataFrame:
    """Frames of captures (FRAMES); options are the source's, camelCase. Raises OptionError."""
    return _load(spark, path, "frames", options)


def conn_events(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> DataFrame:
    """What happened to connections (CONN_EVENTS)."""
    return spark.createDataFrame([], to_spark_schema(CONN_EVENTS))


def file_events(spark: SparkSession, path: Paths, **options: object) -> DataFrame:
    """What of the files is in no table (FILE_EVENTS), a row a file, kind and detail."""
    return spark.createDataFrame([], to_spark_schema(FILE_EVENTS))


def messages(of: DataFrame, body: str = "variant") -> DataFrame:
    """Each frame decoded (MESSAGES): `body` is a VARIANT, JSON text (`json`) or left out (`none`: null, faster).

    Every row is kept: `decode_status` says what could not be read, `roundtrip` whether writing gives the same bytes.
    Raises OptionError for another `body`.
    """
    if body not in BODIES:
        raise OptionError(f"body: {body!r} is not {', '.join(BODIES)}")
    decoded = of.select(*FRAMES.names).mapInArrow(
        _DecodedFrames("none" if body == "none" else "json"), to_spark_schema(MESSAGES)
    )
    return decoded.withColumn("body", F.try_parse_json("body")) if body == "variant" else decoded


def exchanges(of: DataFrame, *, unanswered: bool = False) -> DataFrame:
    """Requests with their responses side by side (EXCHANGES), one row a pair, of a DataFrame of frames.

    With `unanswered` also requests without a response, whose columns are null.
    """
    request, response = ~F.col("is_response"), F.col("is_response")

    def first(condition: object, column: str) -> object:
        return F.first(F.when(condition, F.col(column)), ignorenulls=True)

    paired = of.where(F.col("pair_status").isin("paired", *(["no_response"] if unanswered else [])))
    sides = paired.groupBy("conn_id", "incarnation", "request_frame_no").agg(
        *[F.first(name).alias(name) for name in (*_OF_A_CONNECTION[2:], "api_key", "api_version", "correlation_id")],
        first(request, "client_id").alias("client_id"),
        first(response, "frame_no").alias("response_frame_no"),
        first(request, "ts_last_ns").alias("request_ts_ns"),
        first(response, "ts_last_ns").alias("response_ts_ns"),
        first(response, "latency_ns").alias("latency_ns"),
        first(request, "frame").alias("request"),
        first(response, "frame").alias("response"),
    )
    return sides.select(*EXCHANGES.names)


class _DecodedFrames:
    """Decodes a partition's frames; a class, so that it travels to the workers by its name."""

    def __init__(self, body: str) -> None:
        self._body = body

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from mockraft.spark_replay.decoding import decode_batches

        return decode_batches(batches, body=self._body)


def _load(spark: SparkSession, path: Paths, level: str, options: dict[str, object]) -> DataFrame:
    register(spark)
    texts = _texts(options)
    SourceOptions.read(texts | {"level": level})
    paths = [fspath(path)] if isinstance(path, str | PathLike) else [fspath(each) for each in path]
    return spark.read.format("kafka_pcap").options(**texts).option("level", level).load(paths)


def _texts(options: dict[str, object]) -> dict[str, str]:
    """Option values as Spark has them: sequences with commas, truth in small letters."""
    return {name: _text(value) for name, value in options.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(str(each) for each in value)
    return str(value)
