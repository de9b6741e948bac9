"""The sources kafka_pcap and kafka_frames and their tables, compared with one machine and known content."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.schemas import (
    CONN_EVENTS,
    EXCHANGES,
    FILE_EVENTS,
    FORWARDED,
    FRAMES,
    MESSAGES,
    PACKETS,
    RECORDS,
    RUNS,
)

from ..spark_replay.ring_files import damaged, ring_files
from ..spark_replay.streams.reassembled import in_order

pytestmark = pytest.mark.spark

PORT = 19093
_PLACES = ("packet_first", "packet_last")


@pytest.fixture(scope="module")
def alone(controller_capture: str) -> tuple[pa.Table, pa.Table]:
    """Frames and connection events as one machine reads them."""
    events: list[pa.RecordBatch] = []
    frames = pa.Table.from_batches(read_frames(controller_capture, [PORT], conn_events=events), schema=FRAMES)
    return frames, pa.Table.from_batches(events, schema=CONN_EVENTS)


def tables() -> Any:
    """The module; imported late, since environments without PySpark collect this file too."""
    from mockraft.spark_replay.spark import tables

    return tables


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(row) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("split_bytes", "chunk_bytes", "index", "partitions"), [("64k", "8m", "auto", 5), ("300k", "40k", "exact", 1)]
)
def test_any_splits_chunks_and_partitions_give_the_frames_of_one_machine(
    spark: Any, controller_capture: str, alone: Any, split_bytes: str, chunk_bytes: str, index: str, partitions: int
) -> None:
    found = tables().frames(
        spark,
        controller_capture,
        partitions=partitions,
        ports=[PORT],
        splitBytes=split_bytes,
        chunkBytes=chunk_bytes,
        splitIndex=index,
    )
    assert found.rdd.getNumPartitions() == partitions
    table = found.toArrow()
    assert table.schema.equals(FRAMES)
    assert in_order(table) == in_order(alone[0])


def test_connections_go_on_over_the_files_of_a_folder(
    spark: Any, controller_capture: str, alone: Any, tmp_path: Path
) -> None:
    ring_files(Path(controller_capture), tmp_path / "ring", 5)
    found = tables().frames(spark, tmp_path / "ring", ports=[PORT], chunkBytes="50k").toArrow()
    assert in_order(found.drop_columns(_PLACES)) == in_order(alone[0].drop_columns(_PLACES))


def test_loaded_table_has_runs_in_batches_limited_by_bytes(spark: Any, controller_capture: str, alone: Any) -> None:
    runs = spark.read.format("kafka_pcap").option("ports", PORT).option("chunkBytes", "50k").load(controller_capture)
    assert runs.toArrow().schema.equals(RUNS)
    limit = "spark.sql.execution.arrow.maxBytesPerBatch"
    usual = spark.conf.get(limit)
    spark.conf.set(limit, "20k")
    try:
        sizes = runs.mapInArrow(
            lambda batches: (pa.record_batch({"bytes": pa.array([batch.nbytes])}) for batch in batches), "bytes long"
        ).collect()
        assert in_order(tables().frames(spark, controller_capture, ports=[PORT]).toArrow()) == in_order(alone[0])
    finally:
        spark.conf.set(limit, usual)
    assert usual == "16m"
    assert len(sizes) > 10


def test_events_of_connections_are_those_of_one_machine(spark: Any, controller_capture: str, alone: Any) -> None:
    found = tables().conn_events(spark, controller_capture, ports=[PORT], splitBytes="200k", apiKeys="Fetch").toArrow()
    assert found.schema.equals(CONN_EVENTS)
    assert rows_of(found) == rows_of(alone[1])
    assert {"syn", "fin", "rst"} < set(found["kind"].to_pylist())


def test_tables_without_a_frame_have_their_columns(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.decoding import typed_schema

    none = tables().frames(spark, controller_capture, ports=[9])
    by_source = spark.read.format("kafka_frames").options(ports=9).load(controller_capture)
    for table, schema in (
        (none, FRAMES),
        (by_source, FRAMES),
        (tables().messages(none, "json"), MESSAGES),
        (tables().typed_messages(none, "Fetch"), typed_schema("Fetch")),
        (tables().records(none), RECORDS),
        (tables().forwarded(none), FORWARDED),
        (tables().exchanges(none), EXCHANGES),
        (tables().conn_events(spark, controller_capture, ports=[9]), CONN_EVENTS),
    ):
        found = table.toArrow()
        assert (found.num_rows, found.schema) == (0, schema)


@pytest.mark.needs_pyspark("4.1")
def test_filter_is_pushed_down_without_changing_rows(spark: Any, controller_capture: str, alone: Any) -> None:
    def loaded(source: str, level: str) -> Any:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        reader = spark.read.format(source).option("level", level).option("pushFilters", "true")
        return reader.option("ports", PORT).load(controller_capture)

    frames = loaded("kafka_frames", "frames").where("client_port < 40000 and api_key = 63 and not is_response")
    plan = frames._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan" in plan
    assert "client_port" not in plan.partition("Filter")[2].partition("\n")[0]
    rows = [row for row in alone[0].to_pylist() if row["client_port"] < 40000 and row["api_key"] == 63]
    assert in_order(frames.toArrow()) == in_order(
        pa.Table.from_pylist([row for row in rows if not row["is_response"]], schema=FRAMES)
    )
    packets = loaded("kafka_pcap", "packets").where("sport = 19093 and payload_len > 0").toArrow()
    assert packets.schema.equals(PACKETS)
    assert set(packets["sport"].to_pylist()) == {PORT}


def test_frame_options_apply_after_reassembly(spark: Any, controller_capture: str, alone: Any) -> None:
    found = (
        tables().frames(spark, controller_capture, ports=[PORT], apiKeys=["Fetch", 63], includeBytes=False).toArrow()
    )
    wanted = [row | {"frame": None} for row in alone[0].to_pylist() if row["api_key"] in (1, 63)]
    assert in_order(found) == in_order(pa.Table.from_pylist(wanted, schema=FRAMES))


def test_exchanges_are_those_of_one_machine(frames: Any, alone: Any) -> None:
    found = tables().exchanges(frames, unanswered=True).toArrow()
    assert rows_of(found) == rows_of(
        pa.Table.from_batches(pair_exchanges_table(alone[0].to_batches()), schema=EXCHANGES)
    )
    assert found["response"].null_count == 6
    answered = tables().exchanges(frames).toArrow()
    assert answered.schema.equals(EXCHANGES)
    assert rows_of(answered) == rows_of(found.filter(pc.field("response").is_valid()))
    for pair in answered.to_pylist():
        assert int.from_bytes(pair["request"][4:8], "big") == pair["correlation_id"]
        assert pair["response"][:4] == pair["request"][4:8]
        assert pair["latency_ns"] == pair["response_ts_ns"] - pair["request_ts_ns"] >= 0


def test_damage_fails_the_job_with_its_place_or_is_a_row(spark: Any, controller_capture: str, tmp_path: Path) -> None:
    path = damaged(Path(controller_capture), tmp_path / "x.pcap", 300_000, 100)
    with pytest.raises(Exception, match=rf"CaptureError: {path}: invalid record header: .* \(offset 300000\)"):
        tables().frames(spark, path, ports=[PORT], splitBytes="200k").count()
    frames = tables().frames(spark, path, ports=[PORT], splitBytes="200k", onError="quarantine")
    assert 1700 < frames.count() < 1726
    found = tables().file_events(spark, path, splitBytes="200k", onError="quarantine").toArrow()
    assert found.schema.equals(FILE_EVENTS)
    (row,) = found.to_pylist()
    assert (row["file"], row["file_offset"], row["kind"]) == (str(path), 300_000, "corrupt")


def test_errors_are_reported_before_a_job_begins(spark: Any, controller_capture: str, tmp_path: Path) -> None:
    from mockraft.spark_replay.spark.options import OptionError

    text = tmp_path / "x.pcap"
    text.write_text("GET / HTTP/1.1")
    with pytest.raises(Exception, match=rf"CaptureError: {text}: not a pcap or pcapng file: it starts with 47 45 54"):
        tables().frames(spark, [controller_capture, text]).count()
    with pytest.raises(Exception, match=r"NoCaptureError: no capture file at .*/nowhere\.pcap"):
        tables().frames(spark, tmp_path / "nowhere.pcap").count()
    with pytest.raises(OptionError, match=r"unknown option port=9092 \(did you mean ports\?\)"):
        tables().frames(spark, controller_capture, port=9092)
    with pytest.raises(OptionError, match=r"option level: 'packets' is not frames"):
        tables().frames(spark, controller_capture, level="packets")
    with pytest.raises(Exception, match=r"OptionError: option splitBytes: '0' is not a size \(64m\)"):
        spark.read.format("kafka_pcap").option("splitBytes", "0").load(controller_capture)


@pytest.fixture(scope="module")
def frames(spark: Any, controller_capture: str) -> Any:
    return tables().frames(spark, controller_capture, ports=[PORT]).cache()


def test_body_is_a_variant_readable_in_sql(frames: Any) -> None:
    requests = tables().messages(frames).where("api_name = 'BrokerHeartbeat' and not is_response")
    brokers = requests.selectExpr("variant_get(body, '$.brokerId', 'int') broker").groupBy("broker").count()
    assert sorted(tuple(row) for row in brokers.collect()) == [(1, 67), (2, 96)]


def test_rejects_unknown_body_option(frames: Any) -> None:
    from mockraft.spark_replay.spark.options import OptionError

    with pytest.raises(OptionError, match="body: 'xml' is not variant, json, none"):
        tables().messages(frames, body="xml")


def test_messages_are_counted_by_kind_with_the_first_failing_example(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.spark.coverage import Coverage, coverage

    api = {"client": "10.0.0.1", "client_port": 5, "api_key": 63, "api_version": 2, "api_name": "BrokerHeartbeat"}
    rows: list[dict[str, object]] = [
        {"decode_status": "ok", "roundtrip": True},
        {"decode_status": "ok", "roundtrip": False, "first_diff_offset": 40},
        {"decode_status": "ok", "roundtrip": False, "first_diff_offset": 12},
        {"decode_status": "error", "error_offset": 7, "error": "no such tag"},
        {"decode_status": "unknown_api"},
    ]
    found = [api | {"is_response": False, "frame_no": number} | row for number, row in enumerate(rows)]
    assert coverage(spark.createDataFrame(pa.Table.from_pylist(found, schema=MESSAGES))) == [
        Coverage("BrokerHeartbeat", 63, 2, False, "error", 1, 0, "10.0.0.1:5 frame 3 offset 7 no such tag"),
        Coverage("BrokerHeartbeat", 63, 2, False, "ok", 3, 2, "10.0.0.1:5 frame 1 offset 40"),
        Coverage("BrokerHeartbeat", 63, 2, False, "unknown_api", 1, 0, "10.0.0.1:5 frame 4"),
    ]
    captured = coverage(tables().messages(tables().frames(spark, controller_capture, ports=[PORT]), body="none"))
    assert {(row.decode_status, row.not_roundtrip, row.example) for row in captured} == {("ok", 0, "")}
    assert sum(row.frames for row in captured) == 1726
