"""A driver that follows connections in a folder: `stream_job.py FOLDER OUT ends`, or `dies` in its second batch.

A fourth argument is the master of a cluster.
"""

import os
import signal
import sys
from typing import Any

from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.session import start_session
from pyspark.sql import DataFrame

QUICK = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "480m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def run(folder: str, out: str, end: str, master: str = "local[1]") -> None:
    """Write the frames of all files, one file a batch; with `dies` end the process inside the second batch."""
    # Alone, one task keeps the state of both buckets: each task more starts another Python.
    partitions = "1" if master.startswith("local") else "2"
    spark: Any = start_session(master, QUICK | {"spark.sql.shuffle.partitions": partitions}, name="stream job")

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{out}/frames/batch={number}")
        if end == "dies" and number == 1:
            # Its rows are written, and its commit is not: the next driver must do the batch again.
            os.killpg(os.getpgrp(), signal.SIGKILL)

    frames = tables.stream_frames(spark, folder, ports=[19093], quietSeconds=0, maxFilesPerTrigger=1, buckets=2)
    query = frames.writeStream.foreachBatch(write).option("checkpointLocation", f"{out}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    tables.waiting_frames(spark, f"{out}/checkpoint").write.parquet(f"{out}/waiting")
    spark.stop()


if __name__ == "__main__":
    run(*sys.argv[1:])
