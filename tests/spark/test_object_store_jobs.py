"""Commands and streams whose captures and tables are in a bucket of a real S3 server."""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..cli.cli import Result
from ..s3_server import SECRET, S3Server

pytestmark = pytest.mark.spark

PORTS = ("--ports", 19093)
NUMBERS = pa.schema([("number", pa.int64())])
READ_MAX = 1.1


def rows_of(s3: S3Server, folder: str) -> pa.Table:
    """The rows of the files that `_SUCCESS` names; there are no others."""
    named = json.loads(s3.content("caps", f"{folder}/_SUCCESS"))["files"]
    assert [key for key in s3.keys("caps") if key.startswith(f"{folder}/")] == sorted(
        f"{folder}/{name}" for name in (*named, "_SUCCESS")
    )
    return pa.concat_tables(pq.read_table(io.BytesIO(s3.content("caps", f"{folder}/{name}"))) for name in named)


def test_captures_in_a_bucket_become_tables_in_it_a_report_and_a_verdict(
    run: Callable[..., Result], s3: S3Server, controller_capture: str
) -> None:
    content = Path(controller_capture).read_bytes()
    s3.put("s3://caps/ring/run.pcap", content)
    words = ("decode", "--captures", "s3a://caps/ring", *PORTS, "--out", "s3a://caps/tables", "--json")
    decoded = run(*words, "--option", "splitBytes=300k")
    assert decoded.exit_code == 0, decoded.output
    rows = json.loads(decoded.stdout)["rows"]
    assert (rows["frames"], rows["messages"]) == (1726, 1726)
    for name in ("frames", "messages", "exchanges", "conn_events", "file_events"):
        assert rows_of(s3, f"tables/{name}").num_rows == rows[name]
    assert {key.split("/")[1] for key in s3.keys("caps") if key.startswith("tables/")} == rows.keys()
    again = run(*words)
    assert again.exit_code == 2
    assert "s3://caps/tables/frames exists: --overwrite replaces it" in again.stderr
    before = s3.keys("caps")
    assert run(*words, "--overwrite", "--tables", "exchanges").exit_code == 0
    assert len(set(before) - set(s3.keys("caps"))) == len(set(s3.keys("caps")) - set(before)) > 0
    assert rows_of(s3, "tables/exchanges").num_rows == rows["exchanges"]

    report = run("report", "--tables", "s3://caps/tables", "--html", "s3://caps/run.html", "--strict")
    assert report.exit_code == 0, report.output
    assert "1,726 of 1,726 frames" in report.stdout
    assert b"</html>" in s3.content("caps", "run.html")


def test_replay_of_a_bucket_writes_its_tables_there(
    run: Callable[..., Result], s3: S3Server, controller_capture: str
) -> None:
    s3.put("s3://caps/run.pcap", Path(controller_capture).read_bytes())
    words = ("replay", "--captures", "s3://caps/run.pcap", *PORTS, "--filter", "BrokerRegistration")
    first = run(*words, "--out", "s3://caps/first")
    assert first.exit_code in (0, 1), first.output
    assert {"first/rules.json", "first/diffs/_SUCCESS", "first/replay_results/_SUCCESS"} <= {*s3.keys("caps")}
    second = run(*words, "--out", "s3://caps/second", "--baseline", "s3://caps/first")
    assert second.exit_code == 0, second.output
    assert rows_of(s3, "second/replay_results").num_rows == rows_of(s3, "first/replay_results").num_rows


def test_credentials_of_the_environment_are_in_no_plan_and_no_event_log(
    spark: Any, run: Callable[..., Result], s3: S3Server, event_log: Path, controller_capture: str
) -> None:
    from mockraft.spark_replay.spark import tables

    url = s3.put("s3://caps/run.pcap", Path(controller_capture).read_bytes())
    decoded = run("decode", "--captures", url, *PORTS, "--tables", "frames,exchanges", "--out", "s3://caps/logged")
    frames = spark.read.format("kafka_frames").load(url)
    assert (decoded.exit_code, frames.count()) == (0, 1726)
    plans = [each._jdf.queryExecution().toString() for each in (frames, tables.frames(spark, url))]
    logs = [file.read_text(errors="replace") for file in event_log.rglob("*") if file.is_file()]
    assert any("SparkListenerEnvironmentUpdate" in log and "SparkListenerJobEnd" in log for log in logs)
    for text in (*plans, *logs, decoded.output):
        assert SECRET not in text
        assert "key-of-the-environment" not in text


@pytest.mark.parametrize("split", ["64m", "16m"])
def test_a_job_reads_a_capture_once(spark: Any, s3: S3Server, controller_capture: str, split: str) -> None:
    from mockraft.spark_replay.spark import tables

    content = Path(controller_capture).read_bytes()
    content = content[:24] + 50 * content[24:]
    url = s3.put("s3://caps/run.pcap", content)
    assert tables.frames_table(spark, url, ports=[19093], splitBytes=split).dataframe().count() == 1726
    assert sum(each.size for each in s3.gets("run.pcap")) <= READ_MAX * len(content)
    packed = gzip.compress(content)
    url = s3.put("s3://caps/run.pcap.gz", packed)
    assert tables.frames_table(spark, url, ports=[19093], splitBytes=split).dataframe().count() == 1726
    assert sum(each.size for each in s3.gets("run.pcap.gz")) <= READ_MAX * len(packed)


@pytest.mark.needs_pyspark("4.2")
def test_a_prefix_is_streamed_each_object_once(
    spark: Any, s3: S3Server, controller_capture: str, brokers_capture: str, tmp_path: Path
) -> None:
    from mockraft.spark_replay.spark.data_source import register

    register(spark)

    def once() -> list[int]:
        frames = spark.readStream.format("kafka_frames").options(quietSeconds=0).load("s3a://caps/ring")
        query = (
            frames.select("server_port", "frame_no")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "frames"))
        )
        query.awaitTermination()
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    assert once() == []
    s3.put("s3://caps/ring/a.pcap", Path(controller_capture).read_bytes())
    assert once() == [1726]
    s3.put("s3://caps/ring/b.pcap", Path(brokers_capture).read_bytes())
    assert once() == [931]
    ports = spark.read.parquet(str(tmp_path / "frames")).groupBy("server_port").count().collect()
    assert sorted(map(tuple, ports)) == [(19093, 1726), (19192, 530), (19292, 401)]


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(0)], schema=NUMBERS)


def dying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of which some are written, then end the process as a lost worker does."""
    import os
    import signal

    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(0)], schema=NUMBERS)
        if batch.column(0)[0].as_py() >= 4:
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_leaves_the_earlier_table(spark: Any, s3: S3Server) -> None:
    from mockraft.spark_replay.spark.worker_table import WorkerTable, stored_table

    WorkerTable(spark.range(8, numPartitions=2), numbers, NUMBERS).write_parquet("s3://caps/numbers")
    before = s3.keys("caps")
    with pytest.raises(Exception, match=r"crashed|exited"):
        WorkerTable(spark.range(8, numPartitions=2), dying, NUMBERS).write_parquet("s3://caps/numbers")
    assert s3.keys("caps") == before
    assert sorted(stored_table(spark, "s3://caps/numbers", NUMBERS).dataframe().toArrow()["number"].to_pylist()) == [
        *range(8)
    ]
