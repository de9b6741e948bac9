"""Captured traffic as DataFrames, compared with the known content of the real captures."""

from typing import Any

import pytest

pytestmark = pytest.mark.spark

PORT = 19093


@pytest.fixture(scope="module")
def frames(spark: Any, controller_capture: str) -> Any:
    from mockraft.spark_replay.spark import tables

    return tables.frames(spark, controller_capture, ports=[PORT]).cache()


def test_frames_of_a_capture_are_those_that_python_reads_alone(frames: Any, controller_capture: str) -> None:
    import pyarrow as pa
    from mockraft.spark_replay.frames import read_frames
    from mockraft.spark_replay.schemas import FRAMES

    def rows(table: Any) -> list[Any]:
        return sorted(table.to_pylist(), key=lambda row: (row["conn_id"], row["is_response"], row["frame_no"]))

    there = frames.toArrow()
    assert there.schema.equals(FRAMES)
    assert rows(there) == rows(pa.Table.from_batches(read_frames(controller_capture, [PORT])))
    assert there.num_rows == 1726


def test_every_message_of_a_real_controller_comes_back_as_it_was(frames: Any) -> None:
    from mockraft.spark_replay.spark import tables

    counted = tables.messages(frames, body="none").groupBy("decode_status", "roundtrip").count().collect()
    assert [tuple(row) for row in counted] == [("ok", True, 1726)]


def test_body_is_a_variant_readable_in_sql(frames: Any) -> None:
    from mockraft.spark_replay.spark import tables

    requests = tables.messages(frames).where("api_name = 'BrokerHeartbeat' and not is_response")
    brokers = requests.selectExpr("variant_get(body, '$.brokerId', 'int') broker").groupBy("broker").count()
    assert sorted(tuple(row) for row in brokers.collect()) == [(1, 67), (2, 96)]


def test_exchanges_have_a_request_and_its_response(frames: Any) -> None:
    from mockraft.spark_replay.schemas import EXCHANGES
    from mockraft.spark_replay.spark import tables

    pairs = tables.exchanges(frames).toArrow()
    assert pairs.schema.equals(EXCHANGES)
    assert pairs.num_rows == frames.where("is_response and pair_status = 'paired'").count()
    for pair in pairs.to_pylist():
        assert int.from_bytes(pair["request"][4:8], "big") == pair["correlation_id"]
        assert pair["response"][:4] == pair["request"][4:8]
        assert pair["latency_ns"] == pair["response_ts_ns"] - pair["request_ts_ns"] >= 0


def test_rejects_unknown_body_option(frames: Any) -> None:
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.options import OptionError

    with pytest.raises(OptionError, match="body: 'xml' is not variant, json, none"):
        tables.messages(frames, body="xml")
