"""Replay on Spark: cluster sessions in parallel, each in the task of its partition.

Exchanges get the name of their session and are shuffled by it into the order of sending; a task replays one session
after the other (`regression.session_replay`). Sessions with a shared controller run in one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
from mockraft.spark_replay.regression.captured import of_batches
from mockraft.spark_replay.regression.coordinator import CoordinatorClient, ReplayCoordinator
from mockraft.spark_replay.regression.session_replay import OF_EXCHANGE, REPLAYED, Run, replayed
from mockraft.spark_replay.regression.sessions import ClusterPeriod, ConnectionFacts, Sessions, connections_of
from mockraft.spark_replay.schemas import DIFFS, EXCHANGES, columns
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.pandas.types import from_arrow_schema

_FACTS = pa.schema(
    columns(
        "conn_id int64, incarnation int32, server string, server_port int32",
        "cluster_id string, first_ns int64, last_ns int64",
    )
)
_CONNECTION = ["conn_id", "incarnation"]
_ENDPOINT = ["server", "server_port"]
_IN_SESSION = pa.schema([("session", pa.string()), *EXCHANGES])


class Tables(NamedTuple):
    """The tables of a replay as DataFrames: REPLAY_RESULTS, with the differences of each row, and DIFFS."""

    results: DataFrame
    diffs: DataFrame


def with_sessions(exchanges: DataFrame) -> DataFrame:
    """Return EXCHANGES with the name of the cluster session as the first column (`regression.sessions`).

    The driver collects one row for each cluster behind each endpoint, no data.
    """
    schema = from_arrow_schema(_FACTS)
    facts = exchanges.mapInArrow(_facts, schema).groupBy(*_CONNECTION, *_ENDPOINT)
    connections = facts.agg(
        F.max("cluster_id").alias("cluster_id"), F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns")
    ).select(*_FACTS.names)
    known = connections.where("cluster_id is not null").groupBy(*_ENDPOINT, "cluster_id")
    rows = known.agg(F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns")).collect()
    sessions = Sessions(ClusterPeriod(**row.asDict()) for row in rows)

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = [sessions.of(ConnectionFacts(**row)) for row in batch.to_pylist()]
            yield batch.select(_CONNECTION).append_column("session", pa.array(names, pa.string()))

    names = connections.mapInArrow(named, "conn_id long, incarnation int, session string")
    return exchanges.join(names, _CONNECTION).select(*_IN_SESSION.names)


def replay(exchanges: DataFrame, run: Run, coordinator: CoordinatorClient | None = None) -> DataFrame:
    """Return a row of `regression.rows.REPLAYED` for each of EXCHANGES. Write it once: computing it sends requests.

    `coordinator` is the driver's (`ReplayCoordinator`); raises ValueError for a shared target without one.
    """
    if run.target.is_shared and coordinator is None:
        raise ValueError(
            "sessions that share a controller need a ReplayCoordinator, which is in Spark's driver: over Spark Connect "
            "replay to new controllers (mockraft)"
        )
    sessions = with_sessions(exchanges)
    spread = sessions.coalesce(1) if run.target.is_shared else sessions.repartition("session")
    ordered = spread.sortWithinPartitions("session", "request_ts_ns", *_CONNECTION, "request_frame_no")

    def replay_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        attempt = context.attemptNumber() if context is not None else 0
        for session, part in _by_session(batches):
            if coordinator is not None and run.target.is_shared:
                coordinator.claim(session, attempt)
            yield from replayed(part, run, session)

    return ordered.mapInArrow(replay_partition, from_arrow_schema(REPLAYED))


def write_replay(spark: SparkSession, exchanges: DataFrame, run: Run, out: str) -> Tables:
    """Replay, and write its tables as Parquet to `out/replay_results` and `out/diffs`.

    Each request is sent once: its result is written, with its differences, before DIFFS are derived from it.
    """
    kept = exchanges.persist(StorageLevel.DISK_ONLY)
    try:
        with _coordinating(spark) as client:
            replay(kept, run, client).write.parquet(f"{out}/replay_results", mode="overwrite")
    finally:
        kept.unpersist()
    results = spark.read.parquet(f"{out}/replay_results")
    diffs = results.select(*OF_EXCHANGE, F.explode("differences").alias("found")).select(*OF_EXCHANGE, "found.*")
    diffs.write.parquet(f"{out}/diffs", mode="overwrite")
    return read_replay(spark, out)


@contextmanager
def _coordinating(spark: SparkSession) -> Iterator[CoordinatorClient | None]:
    """Yield the workers' connection to the driver; None over Spark Connect, whose workers may not reach the client."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        yield None
        return
    with ReplayCoordinator(context.getConf().get("spark.driver.host", "127.0.0.1")) as driver:
        yield driver.client


def read_replay(spark: SparkSession, out: str) -> Tables:
    """Read the tables written by `write_replay`."""
    return Tables(spark.read.parquet(f"{out}/replay_results"), spark.read.parquet(f"{out}/diffs"))


def counted_differences(diffs: DataFrame, baseline: DataFrame | None) -> DataFrame:
    """Return the rows of DIFFS that count: not excused by a rule, and not in the baseline, if there is one."""
    counted = _keyed(diffs)
    if baseline is not None:
        counted = counted.join(_keyed(baseline).select("key").distinct(), "key", "left_anti")
    return counted.select(*DIFFS.names)


def _keyed(diffs: DataFrame) -> DataFrame:
    # Values of fields with a rule differ in every run.
    values = [F.when(F.col("rule") == "", F.col(name)) for name in ("expected", "actual")]
    names = ["session", "conn_id", "incarnation", "request_frame_no", "path", "kind"]
    return diffs.where("kind != 'volatile_ok'").withColumn("key", F.to_json(F.struct(*names, *values)))


def _facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = [facts._asdict() for facts in connections_of(of_batches(batches))]
    yield pa.RecordBatch.from_pylist(rows, schema=_FACTS)


def _by_session(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Split batches of sorted rows into one iterator for each session; exhaust each before the next."""
    for session, parts in groupby(_cut(batches), key=lambda each: each[0]):
        yield session, (part for _, part in parts)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    for batch in batches:
        names = batch.column("session").to_pylist()
        start = 0
        for session, rows in groupby(names):
            count = sum(1 for _ in rows)
            yield session, batch.slice(start, count)
            start += count
