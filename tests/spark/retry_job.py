"""A replay whose tasks fail behind their last request, and are run again: `retry_job.py CAPTURE HOST PORT`.

Writes the error of the job, and the attempt to which each session was granted, as JSON.
"""

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.captured import to_batch
from mockraft.spark_replay.regression.coordinator import ReplayCoordinator
from mockraft.spark_replay.regression.session_replay import Run
from mockraft.spark_replay.regression.targets import Endpoint
from mockraft.spark_replay.spark.replaying import replay
from mockraft.spark_replay.spark.session import start_session
from pyspark import TaskContext
from pyspark.errors import PythonException

ATTEMPTS = 3
EXCHANGES = 20
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def lost(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Consume all results, and fail as if the worker were lost before it could deliver them."""
    sent = sum(batch.num_rows for batch in batches)
    context = TaskContext.get()
    raise RuntimeError(f"lost {sent} results in attempt {context.attemptNumber() if context else 0}")
    yield


def run(capture: str, host: str, port: str) -> None:
    """Run the job."""
    spark = start_session(f"local[2,{ATTEMPTS}]", QUICK, name="retry job")
    exchanges = spark.createDataFrame(pa.Table.from_batches([to_batch(read_exchanges(capture, {19093})[:EXCHANGES])]))
    with ReplayCoordinator("127.0.0.1") as driver:
        found = replay(exchanges, Run("r", Endpoint(host, int(port))), driver.client)
        try:
            found.mapInArrow(lost, "rows long").collect()
            error = ""
        except PythonException as raised:
            error = str(raised)
    sys.stdout.write(json.dumps({"error": error, "granted": driver.granted}) + "\n")
    spark.stop()


if __name__ == "__main__":
    run(*sys.argv[1:])
