"""Examples for docs/captured-messages.md: decoding, statuses and exchanges."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches, decode_frames, field_columns, pair_exchanges_table
from mockraft.spark_replay.schemas import FRAMES

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


def test_decodes_encodes_and_compares_every_message() -> None:
    messages = pa.Table.from_batches(decode_batches(read_frames(CAPTURE, ports=[19093])))
    assert messages.num_rows == 1726
    assert set(messages["decode_status"].to_pylist()) == {"ok"}
    assert set(messages["roundtrip"].to_pylist()) == {True}

    heartbeats = messages.filter((pc.field("api_name") == "BrokerHeartbeat") & ~pc.field("is_response"))
    offsets = [json.loads(body)["currentMetadataOffset"] for body in heartbeats["body"].to_pylist()]
    assert len(offsets) == 163

    frames = pa.Table.from_batches(read_frames(CAPTURE, ports=[19093])).combine_chunks().to_batches()[0]
    columns = field_columns(frames, "BrokerHeartbeatRequest", ["brokerId", "currentMetadataOffset", "wantFence"])
    assert columns.num_rows == 163
    assert pc.max(columns["currentMetadataOffset"]).as_py() == max(offsets)


def test_reports_unknown_versions() -> None:
    frame = next(read_frames(CAPTURE, ports=[19093])).slice(0, 1)
    newer = frame.set_column(FRAMES.get_field_index("api_version"), "api_version", pa.array([99], pa.int16()))
    (row,) = decode_frames(newer).to_pylist()
    assert row["decode_status"] == "unknown_version"
    assert row["error"] == "ApiVersionsRequest has versions 0 to 5"


def test_pairs_requests_with_responses() -> None:
    exchanges = pa.Table.from_batches(pair_exchanges_table(read_frames(CAPTURE, ports=[19093])))
    slowest = exchanges.sort_by([("latency_ns", "descending")]).slice(0, 1).to_pylist()[0]
    assert slowest["latency_ns"] > 0
    assert slowest["response"] is not None
