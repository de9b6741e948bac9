"""Examples for docs/captured-frames.md: frames of a capture, and connection events."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.formats.file_events import FileEvent

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


def test_reads_frames_of_a_capture() -> None:
    request_bytes = 0
    for batch in read_frames(CAPTURE, ports=[19093]):  # Arrow batches, in bounded memory
        request_bytes += pc.sum(batch.filter(pc.invert(batch["is_response"]))["size"]).as_py() or 0
    assert request_bytes == 117_493

    frames = pa.Table.from_batches(read_frames(CAPTURE))  # without ports: Kafka connections are detected
    registrations = frames.filter((pc.field("api_key") == 62) & pc.field("is_response"))
    assert pc.max(registrations["latency_ns"]).as_py() == 47_303_000


def test_collects_connection_events() -> None:
    conn_events: list[pa.RecordBatch] = []
    frames = pa.Table.from_batches(read_frames(CAPTURE, ports=[19093], conn_events=conn_events))
    assert Counter(frames["pair_status"].to_pylist()) == {"paired": 1720, "no_response": 6}

    kinds = Counter(kind for batch in conn_events for kind in batch["kind"].to_pylist())
    assert kinds == {"syn": 134, "rst": 71, "fin": 61, "unfinished": 5, "dup": 3}


def test_continues_after_damage(tmp_path: Path) -> None:
    data = bytearray(CAPTURE.read_bytes())
    data[300_000:300_020] = b"\xff" * 20
    damaged = tmp_path / "night.pcap"
    damaged.write_bytes(data[:-10])

    file_events: list[FileEvent] = []
    frames = pa.Table.from_batches(read_frames(damaged, [19093], on_error="quarantine", file_events=file_events))
    assert frames.num_rows == 1725
    assert [(row["kind"], row["file_offset"]) for row in file_events] == [("corrupt", 300_000), ("truncated", 702_381)]
