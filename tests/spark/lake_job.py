"""The job of docs/how-to/captures/delta.md, on a PySpark for which Delta has a package.

Usage: lake_job.py FOLDER FIRST SECOND, with captures of two days. Writes facts that test_lake_tables.py
checks as JSON into FOLDER.
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
FRAME = ("day", "cluster", "conn_id", "is_response", "ts_last_ns", "correlation_id")


def messages_of(spark: SparkSession, captures: list[str], cluster: str) -> DataFrame:
    frames = tables.frames(spark, captures, ports=[19093])
    return with_lake_columns(tables.messages(frames, body="json"), cluster)


def write_delta(rows: DataFrame, day: str, cluster: str, table: str) -> None:
    """Replace a day of a cluster, in one commit."""
    (
        rows.where(F.col("day") == day)
        .write.format("delta")
        .partitionBy("day", "cluster")
        .mode("overwrite")
        .option("replaceWhere", f"day = '{day}' AND cluster = '{cluster}'")
        .option("mergeSchema", "true")
        .save(table)
    )


def merge_delta(spark: SparkSession, rows: DataFrame, table: str) -> None:
    """Add the rows that are not there yet: of captures that overlap, or of a part of a day."""
    rows.createOrReplaceTempView("arrived")
    same = " AND ".join(f"known.{name} <=> arrived.{name}" for name in FRAME)
    spark.sql(f"MERGE INTO delta.`{table}` AS known USING arrived ON {same} WHEN NOT MATCHED THEN INSERT *")


def older(rows: DataFrame) -> DataFrame:
    """Rows as a release without two of the columns would have decoded them."""
    return rows.drop("unknown_tags", "first_diff_offset").withColumn("decoder_version", F.lit("0.1.0"))


def rows_of(table: DataFrame) -> list[str]:
    """The rows as text, sorted, without the columns that an older release lacks."""
    names = sorted(name for name in table.columns if name not in ("unknown_tags", "first_diff_offset"))
    return sorted(table.select(F.to_json(F.struct(*names))).toPandas().iloc[:, 0])


def facts(table: DataFrame) -> dict[str, Any]:
    """The rows by day, cluster and version, the columns, and how many rows are there twice."""
    counted = table.groupBy(F.col("day").cast("string"), "cluster", "decoder_version").count().collect()
    return {
        "counts": sorted(map(list, counted)),
        "columns": sorted(table.columns),
        "twice": table.count() - table.select(*FRAME).distinct().count(),
    }


def main(folder: str, first: str, second: str) -> None:
    """Write two days, the second one twice, as overwritten partitions and by MERGE."""
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": ""}
    spark: Any = start_session("local[2]", DELTA | quick)
    friday = messages_of(spark, [first], "prod-1")
    saturday = messages_of(spark, [second], "prod-1")
    both = messages_of(spark, [first, second], "prod-1").where(F.col("day") == "2026-11-21")
    days = ("2026-11-20", "2026-11-21")
    table = f"{folder}/messages"
    found: dict[str, Any] = {"spark": spark.version}

    def read() -> DataFrame:
        rows: DataFrame = spark.read.format("delta").load(table)
        return rows

    write_delta(older(friday), days[0], "prod-1", table)
    found["first"] = facts(read())
    write_delta(saturday, days[1], "prod-1", table)
    write_delta(saturday, days[1], "prod-1", table)
    found["repeated"] = facts(read())
    merge_delta(spark, both, table)
    found["merged"] = facts(read())
    merge_delta(spark, with_lake_columns(saturday, "prod-2").limit(10), table)
    found["other cluster"] = facts(read())
    write_delta(friday, days[0], "prod-1", table)
    found["decoded again"] = facts(read())
    found["then"] = facts(spark.sql(f"SELECT * FROM delta.`{table}` VERSION AS OF 0"))
    now = read().where(F.col("cluster") == "prod-1")
    found["equal"] = rows_of(now) == rows_of(friday.union(saturday))
    Path(folder, "facts.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
