"""Replays on Spark: cluster sessions side by side, each replayed where its partition is.

Exchanges get the name of their session, are brought together by it in the order of sending, and a task replays one
session after the other (`regression.session_replay`). Sessions that go to one controller are one task's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
from mockraft.spark_replay.regression.captured import of_batches
from mockraft.spark_replay.regression.driver_line import DriverLine, Line
from mockraft.spark_replay.regression.replay import LEFT_OUT, Outcome
from mockraft.spark_replay.regression.rows import REPLAYED
from mockraft.spark_replay.regression.session_replay import Run, replayed
from mockraft.spark_replay.regression.sessions import ConnectionFacts, Reign, Sessions, connections_of
from mockraft.spark_replay.schemas import DIFFS, EXCHANGES, REPLAY_RESULTS
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (PySpark's own name for it)
from pyspark.sql.pandas.types import from_arrow_schema

_FACTS = pa.schema(
    [
        ("conn_id", pa.int64()),
        ("incarnation", pa.int32()),
        ("server", pa.string()),
        ("server_port", pa.int32()),
        ("cluster_id", pa.string()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
    ]
)
_CONNECTION = ["conn_id", "incarnation"]
_ENDPOINT = ["server", "server_port"]
_IN_SESSION = pa.schema([("session", pa.string()), *EXCHANGES])
_OF_DIFFERENCE = ["path", "kind", "expected", "actual", "rule"]
TELL_EVERY_S = 1.0


class Tables(NamedTuple):
    """What a replay wrote, as DataFrames: REPLAY_RESULTS and DIFFS."""

    results: DataFrame
    diffs: DataFrame


def with_sessions(exchanges: DataFrame) -> DataFrame:
    """EXCHANGES with the name of the cluster session in front (`regression.sessions`).

    The driver collects one row for each cluster behind each endpoint, no data.
    """
    schema = from_arrow_schema(_FACTS)
    facts = exchanges.mapInArrow(_facts, schema).groupBy(*_CONNECTION, *_ENDPOINT)
    connections = facts.agg(
        F.max("cluster_id").alias("cluster_id"), F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns")
    ).select(*_FACTS.names)
    known = connections.where("cluster_id is not null").groupBy(*_ENDPOINT, "cluster_id")
    rows = known.agg(F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns")).collect()
    sessions = Sessions(Reign(**row.asDict()) for row in rows)

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = [sessions.of(ConnectionFacts(**row)) for row in batch.to_pylist()]
            yield batch.select(_CONNECTION).append_column("session", pa.array(names, pa.string()))

    names = connections.mapInArrow(named, "conn_id long, incarnation int, session string")
    return exchanges.join(names, _CONNECTION).select(*_IN_SESSION.names)


def replay(exchanges: DataFrame, run: Run, line: Line | None = None) -> DataFrame:
    """Replay EXCHANGES; a row of `regression.rows.REPLAYED` for each. Write it once: to compute it is to send.

    `line` is the driver's (`DriverLine`); a target that all sessions share needs one.

    Raises:
        ValueError: a shared target without a line.
    """
    if run.target.is_shared and line is None:
        raise ValueError("sessions that share a controller are granted by the driver: a DriverLine is needed")
    sessions = with_sessions(exchanges)
    spread = sessions.coalesce(1) if run.target.is_shared else sessions.repartition("session")
    ordered = spread.sortWithinPartitions("session", "request_ts_ns", *_CONNECTION, "request_frame_no")

    def replay_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        attempt = context.attemptNumber() if context is not None else 0
        for session, part in _by_session(batches):
            if line is not None and run.target.is_shared:
                line.claim(session, attempt)
            teller = _Teller(line)
            yield from replayed(part, run, session, on_outcome=teller.count)
            teller.tell()

    return ordered.mapInArrow(replay_partition, from_arrow_schema(REPLAYED))


def write_replay(
    spark: SparkSession,
    exchanges: DataFrame,
    run: Run,
    out: str,
    *,
    on_progress: Callable[[int, int], None] = lambda sent, different: None,
) -> Tables:
    """Replay, and write REPLAY_RESULTS and DIFFS as Parquet to `out/replay_results` and `out/diffs`.

    Each request is sent once: what came of it is written before anything else is made of it.
    """
    kept = exchanges.persist(StorageLevel.DISK_ONLY)
    both = f"{out.rstrip('/')}/replayed"
    host = spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1")
    try:
        with DriverLine(host, on_progress) as driver:
            replay(kept, run, driver.line).write.mode("overwrite").parquet(both)
    finally:
        kept.unpersist()
    found = _stored(spark, both, REPLAYED)
    found.select(*REPLAY_RESULTS.names).write.mode("overwrite").parquet(f"{out}/replay_results")
    diffs_of(found).write.mode("overwrite").parquet(f"{out}/diffs")
    _delete(spark, both)
    return read_replay(spark, out)


def read_replay(spark: SparkSession, out: str) -> Tables:
    """What `write_replay` wrote."""
    return Tables(_stored(spark, f"{out}/replay_results", REPLAY_RESULTS), _stored(spark, f"{out}/diffs", DIFFS))


def diffs_of(replayed_rows: DataFrame) -> DataFrame:
    """DIFFS of rows of REPLAYED."""
    names = [name for name in DIFFS.names if name not in _OF_DIFFERENCE]
    return replayed_rows.select(*names, F.explode("differences").alias("found")).select(*names, "found.*")


def counted_differences(diffs: DataFrame, baseline: DataFrame | None) -> DataFrame:
    """The rows of DIFFS that count: not excused by a rule, and not among the baseline's."""
    counted = _keyed(diffs)
    if baseline is not None:
        counted = counted.join(_keyed(baseline).select("key").distinct(), "key", "left_anti")
    return counted.select(*DIFFS.names)


def gone_differences(diffs: DataFrame, baseline: DataFrame) -> DataFrame:
    """The baseline's differences that are none any more."""
    return counted_differences(baseline, diffs)


def _keyed(diffs: DataFrame) -> DataFrame:
    # Where a rule speaks of the field, its values are other ones in every run.
    values = [F.when(F.col("rule") == "", F.col(name)) for name in ("expected", "actual")]
    names = ["session", "conn_id", "incarnation", "request_frame_no", "path", "kind"]
    return diffs.where("kind != 'volatile_ok'").withColumn("key", F.to_json(F.struct(*names, *values)))


def _facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = [facts._asdict() for facts in connections_of(of_batches(batches))]
    yield pa.RecordBatch.from_pylist(rows, schema=_FACTS)


def _by_session(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Batches of sorted rows as one iterator a session; each has to be used up before the next."""
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


class _Teller:
    """Tells the driver now and then how far a task is."""

    def __init__(self, line: Line | None) -> None:
        self._line = line
        self._sent = self._different = 0
        self._told_s = time.monotonic()

    def count(self, outcome: Outcome) -> None:
        if outcome.status == LEFT_OUT:
            return
        self._sent += 1
        self._different += not outcome.is_same
        if time.monotonic() - self._told_s > TELL_EVERY_S:
            self.tell()

    def tell(self) -> None:
        if self._line is not None and self._sent:
            self._line.tell(self._sent, self._different)
        self._sent = self._different = 0
        self._told_s = time.monotonic()


def _stored(spark: SparkSession, path: str, schema: pa.Schema) -> DataFrame:
    # without a schema Spark runs a job to find it
    return spark.read.schema(from_arrow_schema(schema)).parquet(path)


def _delete(spark: SparkSession, path: str) -> None:
    """Delete a folder where it is, on whatever file system."""
    jvm = spark._jvm
    assert jvm is not None
    where = jvm.org.apache.hadoop.fs.Path(path)
    where.getFileSystem(spark._jsc.hadoopConfiguration()).delete(where, True)
