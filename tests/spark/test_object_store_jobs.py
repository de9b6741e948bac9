"""Commands and streams whose captures are in a bucket of a real S3 server."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..cli.cli import Result
from ..s3_server import SECRET, S3Server

pytestmark = pytest.mark.spark

PORTS = ("--ports", 19093)
READ_MAX = 1.1


def test_captures_in_a_bucket_become_tables_and_tables_in_a_bucket_a_report(
    run: Callable[..., Result], s3: S3Server, controller_capture: str, tmp_path: Path
) -> None:
    s3.put("s3://caps/ring/run.pcap", Path(controller_capture).read_bytes())
    words = ("decode", "--captures", "s3a://caps/ring", *PORTS, "--out", tmp_path / "tables", "--json")
    decoded = run(*words, "--option", "splitBytes=300k")
    assert decoded.exit_code == 0, decoded.output
    rows = json.loads(decoded.stdout)["rows"]
    assert (rows["frames"], rows["messages"]) == (1726, 1726)
    for file in (tmp_path / "tables").rglob("part-*.parquet"):
        s3.put(f"s3://caps/{file.relative_to(tmp_path)}", file.read_bytes())
    report = run("report", "--tables", "s3://caps/tables", "--html", "s3://caps/run.html", "--strict")
    assert report.exit_code == 0, report.output
    assert "1,726 of 1,726 frames" in report.stdout
    assert b"</html>" in s3.content("caps", "run.html")


def test_credentials_of_the_environment_are_in_no_plan_and_no_event_log(
    spark: Any, run: Callable[..., Result], s3: S3Server, event_log: Path, controller_capture: str, tmp_path: Path
) -> None:
    from mockraft.spark_replay.spark import tables

    url = s3.put("s3://caps/run.pcap", Path(controller_capture).read_bytes())
    decoded = run("decode", "--captures", url, *PORTS, "--tables", "frames,exchanges", "--out", tmp_path / "t")
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
    assert tables.frames(spark, url, ports=[19093], splitBytes=split).count() == 1726
    assert sum(each.size for each in s3.gets("run.pcap")) <= READ_MAX * len(content)
    packed = gzip.compress(content)
    url = s3.put("s3://caps/run.pcap.gz", packed)
    assert tables.frames(spark, url, ports=[19093], splitBytes=split).count() == 1726
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
