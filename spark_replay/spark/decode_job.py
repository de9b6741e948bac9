"""Captures written out as folders of tables, and what a codec made of them counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FILE_EVENTS, FRAMES, MESSAGES
from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.data_source import to_spark_schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

SCHEMAS = {
    "frames": FRAMES,
    "messages": MESSAGES,
    "exchanges": EXCHANGES,
    "conn_events": CONN_EVENTS,
    "file_events": FILE_EVENTS,
}
TABLES = tuple(SCHEMAS)
FORMATS = ("parquet", "json")
_STATEMENT = ("api_name", "api_key", "api_version", "is_response", "decode_status")


class Coverage(NamedTuple):
    """How the frames of one API, version and direction were read; `example` names a frame that was not, or is empty."""

    api_name: str
    api_key: int | None
    api_version: int | None
    is_response: bool
    decode_status: str
    frames: int
    not_roundtrip: int
    example: str


def write_tables(
    spark: SparkSession,
    captures: Sequence[str],
    out: Path,
    *,
    only: Sequence[str] = TABLES,
    file_format: str = "parquet",
    body: str = "json",
    partitions: int | None = None,
    options: Mapping[str, object] | None = None,
    on_table: Callable[[str], None] = lambda name: None,
) -> None:
    """Write each table of `only` into a folder of `out` by its name, replacing what is there.

    Captures are read once for frames (messages and exchanges are made of what was written) and once more for each
    table of events. Raises what the source raises, from Spark's job.
    """
    given = dict(options or {})
    written = out / "frames"

    def frames() -> DataFrame:
        if "frames" in only:
            return read_table(spark, written, file_format)
        return tables.frames(spark, captures, partitions=partitions, **given)

    makers: dict[str, Callable[[], DataFrame]] = {
        "frames": lambda: tables.frames(spark, captures, partitions=partitions, **given),
        "messages": lambda: tables.messages(frames(), body=body),
        "exchanges": lambda: tables.exchanges(frames()),
        "conn_events": lambda: tables.conn_events(spark, captures, partitions=partitions, **given),
        "file_events": lambda: tables.file_events(spark, captures, **given),
    }
    for name in TABLES:
        if name in only:
            on_table(name)
            makers[name]().write.mode("overwrite").format(file_format).save(str(out / name))


def read_table(spark: SparkSession, path: Path, file_format: str = "parquet") -> DataFrame:
    """A table that `write_tables` wrote; `path` ends in its name, which says the columns."""
    return spark.read.schema(to_spark_schema(SCHEMAS[path.name])).format(file_format).load(str(path))


def coverage(messages: DataFrame) -> list[Coverage]:
    """The messages counted by API, version, direction and status: as many rows as there are such kinds."""
    wrong = ~F.coalesce(F.col("roundtrip"), F.lit(False)) & (F.col("decode_status") == "ok")
    where = F.concat_ws(
        " ",
        F.concat_ws(":", "client", "client_port"),
        F.lit("frame"),
        F.col("frame_no"),
        F.concat(F.lit("offset "), F.coalesce("first_diff_offset", "error_offset")),
        F.col("error"),
    )
    counted = messages.groupBy(*_STATEMENT).agg(
        F.count("*").alias("frames"),
        F.sum(wrong.cast("long")).alias("not_roundtrip"),
        F.coalesce(F.min(F.when(wrong | (F.col("decode_status") != "ok"), where)), F.lit("")).alias("example"),
    )
    rows = [Coverage(*row) for row in counted.collect()]
    return sorted(rows, key=lambda row: (row.api_key is None, row.api_key, row.api_version or 0, row.is_response, row))


def fails(row: Coverage) -> bool:
    """Whether the codec failed: bytes that it should know and could not read, or did not write again as they were."""
    return row.decode_status == "error" or row.not_roundtrip > 0
