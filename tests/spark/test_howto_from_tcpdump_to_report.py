"""docs/from-tcpdump-to-report.md: a real controller's capture, from packets to the page."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from mockraft import Controller
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches, pair_exchanges_table
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.targets import Endpoint
from mockraft.spark_replay.report.page import write_report

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"

SILENCES = """
    SELECT client_id AS broker, count(*) AS heartbeats, round(max(silence_s), 1) AS longest_s
    FROM (
        SELECT client_id, (ts_last_ns - lag(ts_last_ns) OVER each_broker) / 1e9 AS silence_s
        FROM messages
        WHERE api_name = 'BrokerHeartbeat' AND NOT is_response
        WINDOW each_broker AS (PARTITION BY client_id ORDER BY ts_last_ns)
    )
    GROUP BY client_id
    ORDER BY longest_s DESC
"""


def test_howto_read_exchanges() -> None:
    frames = pa.Table.from_batches(read_frames(CAPTURE, ports=[19093]))
    assert frames.num_rows == 1726

    messages = pa.Table.from_batches(decode_batches(frames.to_batches()))
    assert pc.all(messages["roundtrip"]).as_py()

    requests = messages.filter(~pc.field("is_response")).sort_by("ts_last_ns")
    registrations = requests.filter(pc.field("api_name") == "BrokerRegistration")
    assert registrations["client_id"].to_pylist() == ["1", "2", "2", "1", "2"]


@pytest.mark.spark
def test_howto_query_silent_brokers_in_sql(spark: Any) -> None:
    from mockraft.spark_replay.spark.tables import frames, messages

    captured = frames(spark, CAPTURE, ports=19093)
    messages(captured, body="json").createOrReplaceTempView("messages")
    rows = spark.sql(SILENCES).collect()
    assert [tuple(row) for row in rows] == [("1", 67, 136.2), ("2", 96, 75.4)]


@pytest.mark.real_kafka
def test_howto_replay_it_and_write_the_page(tmp_path: Path) -> None:
    exchanges = pa.Table.from_batches(pair_exchanges_table(read_frames(CAPTURE, ports=[19093])))
    in_order = exchanges.sort_by("request_ts_ns").to_batches()
    with Controller.sync() as controller:
        run = Run("first try", Endpoint(controller.host, controller.port))
        for results, diffs in replay_session(in_order, run, "cluster"):
            pq.write_to_dataset(pa.Table.from_batches([results]), tmp_path / "replayed" / "replay_results")
            pq.write_to_dataset(pa.Table.from_batches([diffs]), tmp_path / "replayed" / "diffs")

    page = tmp_path / "run.html"
    found: dict[str, Any] = write_report(page, captures=[CAPTURE], ports=[19093], replay=tmp_path / "replayed")
    assert (found["replay"]["same"], found["replay"]["sent"]) == (856, 858)
    assert {row["path"] for row in found["differences"]} == {
        "responses[].partitions[].errorCode",
        "responses[].partitions[].highWatermark",
    }
    assert "FENCED_LEADER_EPOCH" in page.read_text()
