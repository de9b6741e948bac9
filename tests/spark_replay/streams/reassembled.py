"""Frames and events of segments, read in every way that must make no difference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.key_logs import KeyLog
from mockraft.spark_replay.schemas import CONN_EVENTS, FRAMES, RUNS
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

from ..capture_bytes import pcap
from ..packetiser import PORT, Segment, packets

Row = dict[str, Any]


def written(path: Path, segments: Sequence[Segment], **options: Any) -> Path:
    path.write_bytes(pcap(packets(segments, **options)))
    return path


def in_order(frames: pa.Table) -> list[Row]:
    """The rows, by connection, direction and number."""
    keys = ("conn_id", "incarnation", "is_response", "frame_no")
    return list(frames.sort_by([(key, "ascending") for key in keys]).to_pylist())


def read(path: Path, ports: Collection[int] = (PORT,), **options: Any) -> tuple[list[Row], list[Row]]:
    events: list[pa.RecordBatch] = []
    frames = pa.Table.from_batches(list(read_frames(path, ports, conn_events=events, **options)), schema=FRAMES)
    frames.validate(full=True)
    return in_order(frames), pa.Table.from_batches(events, schema=CONN_EVENTS).to_pylist()


def read_sorted(
    path: Path, ports: Collection[int], chunk_bytes: int, batch_rows: int, key_log: KeyLog | None = None
) -> tuple[list[Row], list[Row]]:
    """The same as a partition of Spark would: runs sorted by connection, some at a time."""
    runs = [make_runs(segments, ports) for segments in read_segments(path, ports=ports, chunk_bytes=chunk_bytes)]
    keys = ("conn_id", "first_ts_ns", "file", "file_offset")
    table = pa.Table.from_batches(runs, schema=RUNS).sort_by([(key, "ascending") for key in keys]).combine_chunks()
    reassembler = Reassembler(sorted_by_connection=True, key_log=key_log)
    frames = []
    for batch in table.to_batches(max_chunksize=batch_rows):
        frames += list(reassembler.receive(batch))
    frames += list(reassembler.finish())
    return in_order(pa.Table.from_batches(frames, schema=FRAMES)), reassembler.take_events().to_pylist()


def kinds(events: list[Row]) -> dict[str, int]:
    """Return the total bytes of each kind of event."""
    found: dict[str, int] = {}
    for event in events:
        found[event["kind"]] = found.get(event["kind"], 0) + event["bytes"]
    return found
