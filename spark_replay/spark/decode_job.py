"""Write captures as folders of tables, by Spark's own writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from types import MappingProxyType
from typing import NamedTuple

from mockraft.spark_replay.spark import tables
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

TABLES = ("frames", "messages", "exchanges", "conn_events", "file_events")
CHOICES = (*TABLES, "records", "forwarded")
"""The tables that are written by default, and those that are written when asked for."""


class TablesExistError(ValueError):
    """Tables that were to be written exist."""


class TableOptions(NamedTuple):
    """The choice of tables: those of `only`, and for each API of `typed` a table with typed columns.

    Only records of `topics` are read for the table records (none: of all). Secrets are hidden, in the bytes too, unless
    `show_secrets`. `source` are options of the source.
    """

    only: Sequence[str] = TABLES
    typed: Sequence[str] = ()
    with_bodies: bool = True
    show_secrets: bool = False
    topics: Sequence[str] = ()
    record_bytes_max: int | None = None
    partitions: int | None = None
    overwrite: bool = False
    source: Mapping[str, object] = MappingProxyType({})


def write_tables(
    spark: SparkSession,
    captures: Sequence[str],
    out: str | PathLike[str],
    options: TableOptions,
    on_table: Callable[[str], None] = lambda name: None,
) -> dict[str, int]:
    """Write each table into a folder of `out` by its name, as Parquet; return the numbers of rows.

    Captures are read once for frames (messages and exchanges are made from the written frames) and once more for each
    other table: bytes with secrets hidden have neither whole snapshots nor carried responses. A table `messages_Fetch`
    has the messages of one API of `typed`. Raises what the source and Spark raise, OptionError, and
    TablesExistError before anything is written.
    """
    only, show_secrets, partitions = options.only, options.show_secrets, options.partitions
    captured = partial(tables.frames, spark, captures, partitions=partitions, **options.source)

    def shown() -> DataFrame:
        return captured() if show_secrets else tables.without_secrets(captured())

    def frames() -> DataFrame:
        return spark.read.parquet(f"{fspath(out)}/frames") if "frames" in only else shown()

    def typed(api: str) -> DataFrame:
        return tables.typed_messages(frames(), api, show_secrets=show_secrets)

    body = "json" if options.with_bodies else "none"
    makers: dict[str, Callable[[], DataFrame]] = {
        "frames": shown,
        "messages": lambda: tables.messages(frames(), body, show_secrets=show_secrets),
        "exchanges": lambda: tables.exchanges(frames()),
        "conn_events": lambda: tables.conn_events(spark, captures, partitions=partitions, **options.source),
        "file_events": lambda: tables.file_events(spark, captures, **options.source),
        "records": lambda: tables.records(
            captured(), topics=options.topics, show_secrets=show_secrets, record_bytes_max=options.record_bytes_max
        ),
        "forwarded": lambda: tables.forwarded(captured(), show_secrets=show_secrets),
    }
    names = [name for name in CHOICES if name in only]
    for api in options.typed:
        names.append(typed_name(api))
        makers[names[-1]] = partial(typed, api)
    if not options.overwrite and (there := [name for name in names if _exists(spark, f"{fspath(out)}/{name}")]):
        raise TablesExistError(f"{fspath(out)} has tables already: {', '.join(there)}")
    rows, mode = {}, "overwrite" if options.overwrite else "errorifexists"
    for name in names:
        on_table(name)
        makers[name]().write.parquet(f"{fspath(out)}/{name}", mode=mode)
        rows[name] = spark.read.parquet(f"{fspath(out)}/{name}").count()
    return rows


def _exists(spark: SparkSession, path: str) -> bool:
    """Return True if there is a folder: Spark looks for it when it plans to read it."""
    try:
        return bool(spark.read.text(path).schema)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False


def typed_name(api: str) -> str:
    """Return the name of the table of an API's typed messages."""
    return f"messages_{api}"
