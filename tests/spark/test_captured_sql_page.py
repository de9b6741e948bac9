"""docs/how-to/captures/captured-sql.md: every query, run on a capture."""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "captures" / "captured-sql.md"
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


@pytest.mark.needs_pyspark("4.1")
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
