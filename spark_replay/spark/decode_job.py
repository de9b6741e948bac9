"""Write captures as folders of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import NamedTuple

from mockraft.spark_replay.decoding.hidden_frames import hide_secrets
from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FILE_EVENTS, FORWARDED, FRAMES, MESSAGES, RECORDS
from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.lake_columns import rows_of_day
from mockraft.spark_replay.spark.worker_table import WorkerTable, of_dataframe, read_dataframe
from mockraft.spark_replay.storage import Location
from pyspark.sql import DataFrame, SparkSession

TABLES = ("frames", "messages", "exchanges", "conn_events", "file_events")
SCHEMAS = dict(zip(TABLES, (FRAMES, MESSAGES, EXCHANGES, CONN_EVENTS, FILE_EVENTS), strict=True))
SCHEMAS |= {"records": RECORDS, "forwarded": FORWARDED}
CHOICES = tuple(SCHEMAS)
"""The tables that are written by default, and those that are written when asked for."""


class TableOptions(NamedTuple):
    """The choice of tables: those of `only`, and for each API of `typed` a table with typed columns.

    Only records of `topics` are read for the table records (none: of all). Secrets are hidden, in the bytes too, unless
    `show_secrets`. With `day` only its rows (of file_events, which have no time, all) are written, with the column
    decoder_version; exchanges are then not made from the written frames, but read the captures once more.
    `source` are options of the source.
    """

    only: Sequence[str] = TABLES
    typed: Sequence[str] = ()
    with_bodies: bool = True
    show_secrets: bool = False
    topics: Sequence[str] = ()
    record_bytes_max: int | None = None
    partitions: int | None = None
    day: date | None = None
    source: Mapping[str, object] = MappingProxyType({})


def write_tables(
    spark: SparkSession,
    captures: Sequence[str],
    out: str | PathLike[str],
    options: TableOptions,
    on_table: Callable[[str], None] = lambda name: None,
) -> dict[str, int]:
    """Write each table into a folder of `out` by its name, replacing it; return the numbers of rows.

    Captures are read once for frames (messages and exchanges are made from the written frames) and once more for each
    other table: bytes with secrets hidden have neither whole snapshots nor carried responses. A table `messages_Fetch`
    has the messages of one API of `typed`. Raises what the source raises, from Spark's job, and OptionError.
    """
    only, typed, with_bodies, show_secrets, topics, record_bytes_max, partitions, day, given = options
    folder = Location.parse(out)
    written = folder / "frames"

    def captured() -> WorkerTable:
        return tables.frames_table(spark, captures, partitions=partitions, **given)

    def reassembled() -> WorkerTable:
        return captured() if show_secrets else captured().then(hide_secrets, FRAMES)

    def frames() -> WorkerTable:
        if "frames" not in only:
            return reassembled()
        return tables.stored_frames_table(spark, str(written))

    makers: dict[str, Callable[[], WorkerTable | DataFrame]] = {
        "frames": reassembled,
        "messages": lambda: tables.messages_table(frames(), with_bodies=with_bodies, show_secrets=show_secrets),
        "exchanges": lambda: tables.exchanges(
            # What one day's frames lack is the response to a request just before midnight.
            read_table(spark, written) if "frames" in only and not day else reassembled().dataframe()
        ),
        "records": lambda: tables.records_table(
            captured(), topics=topics, show_secrets=show_secrets, record_bytes_max=record_bytes_max
        ),
        "forwarded": lambda: tables.forwarded_table(captured(), show_secrets=show_secrets),
        "conn_events": lambda: tables.conn_events_table(spark, captures, partitions=partitions, **given),
        "file_events": lambda: tables.file_events(spark, captures, **given),
    }
    for api in typed:
        makers[typed_name(api)] = partial(_typed, frames, api, show_secrets)
    rows = {}
    for name in (*(name for name in CHOICES if name in only), *map(typed_name, typed)):
        on_table(name)
        rows[name] = _write(makers[name](), folder / name, day)
    return rows


def typed_name(api: str) -> str:
    """Return the name of the table of an API's typed messages."""
    return f"messages_{api}"


def _typed(frames: Callable[[], WorkerTable], api: str, show_secrets: bool) -> WorkerTable:
    return tables.typed_messages_table(frames(), api, show_secrets=show_secrets)


def _write(table: WorkerTable | DataFrame, out: Location, day: date | None) -> int:
    made = table if isinstance(table, WorkerTable) else of_dataframe(table, SCHEMAS[out.name])
    return (made if day is None else rows_of_day(made, day)).write_parquet(str(out))


def read_table(spark: SparkSession, out: Location) -> DataFrame:
    """Read a table written by `write_tables`; `out` ends in its name, which determines the columns."""
    return read_dataframe(spark, str(out), SCHEMAS[out.name])
