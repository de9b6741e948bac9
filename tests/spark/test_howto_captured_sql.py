"""docs/captured-sql.md, docs/captured-tables.md and docs/spark.md: every query and block, run on captures."""

import os
import re
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "captured-sql.md"
BLOCK = re.compile(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
VIEW, *QUERIES = BLOCK.findall(PAGE.read_text())


@pytest.fixture(scope="module")
def calls(spark: Any, controller_capture: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The view of requests with their responses, over a stored table of messages."""
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.session import start_session

    folder, captures = tmp_path_factory.mktemp("tables"), [controller_capture]

    spark = start_session("local[2]")
    messages = tables.messages(tables.frames(spark, captures, ports=[19093]), body="json")
    messages.write.parquet(f"{folder}/messages")

    spark.read.parquet(f"{folder}/messages").createOrReplaceTempView("messages")
    spark.sql(VIEW[0])
    return spark.table("calls")


def rows(answer: str) -> list[dict[str, str]]:
    """Return a table of the page, one dict per row."""
    lines = [line.strip("|").split("|") for line in answer.splitlines() if line.startswith("|")]
    names, *found = [[cell.strip() for cell in line] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in found]


def test_each_request_is_a_row_with_its_answer(calls: Any) -> None:
    assert VIEW[1] == ""
    assert calls.selectExpr("count(*)", "count(response)").collect() == [(866, 860)]


def test_documented_query_results_are_correct(spark: Any, calls: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for query, _ in QUERIES:
        spark.sql(query).show(100, truncate=False)
        shown.append(capsys.readouterr().out.strip())
    assert shown == [answer.strip() for _, answer in QUERIES]


def test_query_results_match_the_capture() -> None:
    registered, silent, fenced, quorum, moved, _, _, epochs, refused = [rows(answer) for _, answer in QUERIES]
    came = [("1", "17"), ("2", "38"), ("2", "470"), ("1", "539"), ("2", "603")]
    assert [(row["broker"], row["epoch"]) for row in registered] == came
    assert [(row["broker"], row["epoch"]) for row in epochs] == came
    assert sum(int(row["heartbeats"]) for row in epochs) == 163
    assert {row["broker"] for row in silent} == {"1", "2"}
    assert [row["state"] for row in fenced if row["epoch"] == "17"] == ["fenced", "unfenced", "may shut down"]
    assert [(row["epoch"], row["leader"]) for row in quorum] == [("1", "3000"), ("2", "3000")]
    assert sum(int(row["fetches"]) for row in quorum) == 603
    assert {(row["before"], row["leader"]) for row in moved} == {("2", "1")}
    assert {(row["api_name"], row["error"]) for row in refused} == {("Fetch", "74"), ("AlterPartition", "108")}


def test_howto_make_tables_of_captures(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables

    captures = [controller_capture]
    frames = tables.frames(spark, captures, ports=[19093])
    messages = tables.messages(frames)
    exchanges = tables.exchanges(frames)
    assert messages.where("api_name = 'BrokerRegistration'").count() == 10
    assert exchanges.columns[-2:] == ["request", "response"]


def test_howto_write_frames_as_parquet(spark: Any, tmp_path: Path, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables

    captures, out = [controller_capture], tmp_path / "frames"
    rows = tables.frames_table(spark, captures, ports=[19093]).write_parquet(out)
    assert rows == spark.read.parquet(str(out)).count() == 1726


def test_howto_read_a_folder_that_grows(spark: Any, controller_capture: str, tmp_path: Path) -> None:
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.data_source import register

    folder, ring, checkpoint = tmp_path / "tables", str(tmp_path / "ring"), str(tmp_path / "checkpoint")
    os.mkdir(ring)
    copyfile(controller_capture, f"{ring}/whole.pcap")
    os.utime(f"{ring}/whole.pcap", (1_000_000_000, 1_000_000_000))
    copyfile(controller_capture, f"{ring}/written_to_still.pcap")

    register(spark)
    frames = spark.readStream.format("kafka_frames").option("ports", "19093").option("quietSeconds", 3600).load(ring)
    query = (
        tables.messages(frames, body="json")
        .writeStream.option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(f"{folder}/messages")
    )
    query.awaitTermination()

    assert spark.read.parquet(f"{folder}/messages").where("roundtrip").count() == 1726
