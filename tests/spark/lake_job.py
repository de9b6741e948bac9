"""The job of docs/how-to/captures/delta-and-iceberg.md, on a PySpark for which there are packages.

Usage: lake_job.py KIND FOLDER FIRST SECOND RING…, with captures of two days and the first one as a ring of files.
Writes facts that test_lake_tables.py checks as JSON into FOLDER.
"""

import json
import sys
from pathlib import Path
from typing import Any

from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.lake_columns import with_lake_columns
from mockraft.spark_replay.spark.session import start_session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "warehouse",
    "spark.sql.defaultCatalog": "lake",
}
FRAME = ("day", "cluster", "conn_id", "is_response", "ts_last_ns", "correlation_id")
OF_ONE_RUN = ("frame_no", "request_frame_no", "incarnation", "packet_first", "packet_last")
ADDED = ("unknown_tags", "first_diff_offset")


def messages_of(spark: SparkSession, captures: list[str], cluster: str) -> DataFrame:
    frames = tables.frames(spark, captures, ports=[19093])
    return with_lake_columns(tables.messages(frames, body="json"), cluster)


def make_ready(spark: SparkSession, rows: DataFrame, table: str, kind: str) -> None:
    """Create the table, or add the columns that it lacks."""
    if not spark.catalog.tableExists(table):
        rows.limit(0).writeTo(table).using(kind).partitionedBy(F.col("day"), F.col("cluster")).create()
        return
    known = spark.table(table).columns
    added = [f"{field.name} {field.dataType.simpleString()}" for field in rows.schema if field.name not in known]
    if added:
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(added)})")


def replace_day(rows: DataFrame, day: str, cluster: str, table: str) -> None:
    """Replace a day of a cluster, in one commit."""
    of_day = (F.col("day") == day) & (F.col("cluster") == cluster)
    rows.where(of_day).writeTo(table).overwrite(of_day)


def merge(spark: SparkSession, rows: DataFrame, table: str) -> None:
    """Add the rows that are not there yet, and complete those whose other half has arrived."""
    rows.createOrReplaceTempView("arrived")
    same = " AND ".join(f"known.{name} <=> arrived.{name}" for name in FRAME)
    spark.sql(f"""
        MERGE INTO {table} AS known USING arrived ON {same}
        WHEN MATCHED AND known.pair_status <> 'paired' AND arrived.pair_status = 'paired' THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
    """)


def older(rows: DataFrame) -> DataFrame:
    """Rows as a release without two of the columns would have decoded them."""
    return rows.drop(*ADDED).withColumn("decoder_version", F.lit("0.1.0"))


def rows_of(table: DataFrame, *left_out: str) -> list[str]:
    """The rows as text, sorted, without some columns."""
    names = sorted(name for name in table.columns if name not in left_out)
    return sorted(table.select(F.to_json(F.struct(*names))).toPandas().iloc[:, 0])


def facts(table: DataFrame) -> dict[str, Any]:
    """The rows by day, cluster and version, the columns, and how many rows are there twice."""
    counted = table.groupBy(F.col("day").cast("string"), "cluster", "decoder_version").count().collect()
    return {
        "counts": sorted(map(list, counted)),
        "columns": sorted(table.columns),
        "twice": table.count() - table.select(*FRAME).distinct().count(),
    }


def days(spark: Any, kind: str, table: str, first: str, second: str) -> dict[str, Any]:
    """Write two days, the second one twice, another cluster, and the first day again with more columns."""
    friday = messages_of(spark, [first], "prod-1")
    saturday = messages_of(spark, [second], "prod-1")
    both = messages_of(spark, [first, second], "prod-1").where(F.col("day") == "2026-11-21")
    found: dict[str, Any] = {}
    make_ready(spark, older(friday), table, kind)
    replace_day(older(friday), "2026-11-20", "prod-1", table)
    found["first"] = facts(spark.table(table))
    if kind == "delta":
        (version,) = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("version").first()
    else:
        (version,) = spark.table(f"{table}.history").orderBy(F.desc("made_current_at")).select("snapshot_id").first()
    make_ready(spark, saturday, table, kind)
    for _ in range(2):
        replace_day(saturday, "2026-11-21", "prod-1", table)
    found["repeated"] = facts(spark.table(table))
    merge(spark, both, table)
    found["merged"] = facts(spark.table(table))
    merge(spark, with_lake_columns(saturday, "prod-2").limit(10), table)
    found["other cluster"] = facts(spark.table(table))
    replace_day(friday, "2026-11-20", "prod-1", table)
    found["decoded again"] = facts(spark.table(table))
    found["then"] = facts(spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}"))
    now = spark.table(table).where(F.col("cluster") == "prod-1")
    found["equal"] = rows_of(now, *ADDED) == rows_of(friday.union(saturday), *ADDED)
    return found


def ring(spark: Any, kind: str, table: str, whole: str, files: list[str]) -> dict[str, Any]:
    """Merge the files of a ring as they arrive, each with the one before it; compare with all of them at once."""
    make_ready(spark, messages_of(spark, files[:1], "prod-1"), table, kind)
    unpaired = []
    for number in range(len(files)):
        merge(spark, messages_of(spark, files[max(0, number - 1) : number + 1], "prod-1"), table)
        unpaired.append(spark.table(table).where("pair_status = 'no_response'").count())
    expected = rows_of(messages_of(spark, [whole], "prod-1"), *OF_ONE_RUN)
    return {"unpaired": unpaired, "equal to the whole": rows_of(spark.table(table), *OF_ONE_RUN) == expected}


def main(kind: str, folder: str, first: str, second: str, *files: str) -> None:
    """Write tables of a kind by days and by files of a ring."""
    quick = {
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "",
    }
    spark: Any = start_session("local[2]", {"delta": DELTA, "iceberg": ICEBERG}[kind] | quick)
    spark.sql("CREATE SCHEMA traffic")
    found = {
        "spark": spark.version,
        **days(spark, kind, "traffic.messages", first, second),
        **ring(spark, kind, "traffic.ring", first, list(files)),
    }
    Path(folder, "facts.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
