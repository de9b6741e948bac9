"""docs/how-to/captures/metadata-log-sql.md: every query, run on a capture."""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "captures" / "metadata-log-sql.md"
BLOCK = re.compile(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
(VIEW, _), *QUERIES = BLOCK.findall(PAGE.read_text())


@pytest.fixture(scope="module")
def session(spark: Any, controller_capture: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The session with the views of the page, over stored tables."""
    from mockraft.spark_replay.spark import decode_job

    folder = tmp_path_factory.mktemp("tables")
    names = ("frames", "messages", "records", "forwarded")
    rows = decode_job.write_tables(
        spark, [controller_capture], folder, decode_job.TableOptions(only=names, source={"ports": "19093"})
    )
    assert rows == {"frames": 1726, "messages": 1726, "records": 1275, "forwarded": 52}
    for name in names:
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    spark.sql(VIEW)
    return spark


@pytest.mark.needs_pyspark("4.1")
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_documented_query_results_are_correct(session: Any, capsys: pytest.CaptureFixture[str], number: int) -> None:
    query, answer = QUERIES[number]
    session.sql(query).show(100, truncate=False)
    assert capsys.readouterr().out.strip() == answer.strip()


def test_page_names_the_fenced_broker_s_controller_and_silence() -> None:
    fenced, changed, lost, who = (answer for _, answer in QUERIES)
    assert len(re.findall(r"\|3000 ", fenced)) == 3
    assert "BrokerRegistrationChangeRecord" in changed
    assert "[2]" in lost
    assert "User:ANONYMOUS" in who
