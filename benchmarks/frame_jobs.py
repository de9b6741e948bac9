"""The work that `spark.py` measures, in a process of its own that it starts.

    frame_jobs.py core FILE PORT[,PORT]   the frames of a capture with `read_frames`: one JSON line
    frame_jobs.py session MASTER EVENTS   a Spark session; a job (JSON) a line in, its result (JSON) a line out

A session answers `{"ready": …}` first. Its jobs: `frames` writes those of `path` to Parquet in `out`, `messages` reads
that Parquet, decodes every frame, writes it again and compares, `bodies` also stores the messages with bodies as JSON,
`typed` those of one API with typed columns, `stream_bytes` sums how long its frames are, `replay` replays the beginning
of a real capture in `sessions`, each to a mockraft of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


CAPTURE = Path(__file__).parents[1] / "tests" / "captures" / "controller-4.3.1.pcap"
CAPTURE_PORT, CLUSTER_ID = 19093, b"p66Y0sRpQNGVKjK4oTgauw"
EXCHANGES = 60
"""Exchanges of a session."""


def core(path: str, port: str) -> None:
    """Read all frames on one core, without Spark."""
    # numpy's linear algebra, which nothing here uses, would start threads that spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mockraft.spark_replay.frames import read_frames

    began = time.perf_counter()
    rows = 0
    for batch in read_frames(path, [int(each) for each in port.split(",")]):
        rows += batch.num_rows
    say({"seconds": time.perf_counter() - began, "rows": rows})


def session(master: str, events: str) -> None:
    """Jobs from standard input, until it ends."""
    from mockraft.spark_replay.regression.session_replay import Run
    from mockraft.spark_replay.regression.targets import FreshProcess
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.coverage import coverage
    from mockraft.spark_replay.spark.replaying import write_replay
    from mockraft.spark_replay.spark.session import start_session
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

    spark = start_session(master, SETTINGS | {"spark.eventLog.dir": events}, name="benchmark")

    target = FreshProcess([sys.executable, "-m", "mockraft", "serve", "--host", "127.0.0.1", "--port", "0"])

    def write(table: DataFrame, job: dict[str, Any]) -> Callable[[], int]:
        table.write.parquet(job["out"], mode="overwrite")
        return lambda: spark.read.parquet(job["out"]).count()

    def frames(job: dict[str, Any]) -> Callable[[], int]:
        return write(tables.frames(spark, job["path"], ports=job["port"]), job)

    def stream_bytes(job: dict[str, Any]) -> Callable[[], int]:
        total = spark.read.parquet(job["path"]).agg(F.sum(F.col("size") + 4)).collect()[0][0]
        return lambda: int(total)

    def messages(job: dict[str, Any]) -> Callable[[], int]:
        decoded = tables.messages(spark.read.parquet(job["path"]), "none")
        equal = sum(row.frames - row.not_roundtrip for row in coverage(decoded) if row.decode_status == "ok")
        return lambda: equal

    def bodies(job: dict[str, Any]) -> Callable[[], int]:
        return write(tables.messages(spark.read.parquet(job["path"]), "json"), job)

    def typed(job: dict[str, Any]) -> Callable[[], int]:
        return write(tables.typed_messages(spark.read.parquet(job["path"]), job["api"]), job)

    def replay(job: dict[str, Any]) -> Callable[[], int]:
        found = write_replay(spark, spark.createDataFrame(sessions(job["sessions"])), Run("replay", target), job["out"])
        return lambda: found.results.where("status = 'ok'").select("session").distinct().count()

    jobs = {"frames": frames, "messages": messages, "bodies": bodies, "typed": typed}
    jobs |= {"stream_bytes": stream_bytes, "replay": replay}
    say({"ready": True})
    for line in sys.stdin:
        job = json.loads(line)
        spark.sparkContext.setJobDescription(job["name"])
        began = time.perf_counter()
        rows = jobs[job["job"]](job)
        seconds = time.perf_counter() - began
        spark.sparkContext.setJobDescription("")
        say({"seconds": seconds, "rows": rows()})
    spark.stop()


def sessions(count: int) -> Any:
    """Return the first exchanges of the capture, as if `count` clusters had them at the same time."""
    import pyarrow as pa
    from mockraft.spark_replay.exchanges import read_exchanges
    from mockraft.spark_replay.regression.captured import to_batch

    found = read_exchanges(CAPTURE, {CAPTURE_PORT})[:EXCHANGES]
    batches = []
    for number in range(count):
        cluster_id = CLUSTER_ID[:18] + b"%03dw" % number
        batches.append(
            to_batch(
                [
                    each._replace(
                        conn_id=each.conn_id ^ number << 32,
                        server_port=each.server_port + number,
                        request=each.request and each.request.replace(CLUSTER_ID, cluster_id),
                    )
                    for each in found
                ]
            )
        )
    return pa.Table.from_batches(batches)


def shuffle_bytes(events: Path, name: str) -> int:
    """Bytes that the jobs of that name wrote for a shuffle, from the logs of ended sessions."""
    total = 0
    for path in sorted(events.iterdir()):
        stages: set[int] = set()
        for line in path.read_text().splitlines():
            if not line.endswith("}"):
                # The last line of a session that was killed.
                break
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                if event["Properties"].get("spark.job.description") == name:
                    stages.update(event["Stage IDs"])
            elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
                total += event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return total


def say(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"core": core, "session": session}[sys.argv[1]](*sys.argv[2:])
