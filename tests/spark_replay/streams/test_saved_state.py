"""A reassembler saved and restored between chunks makes the same frames, and its state is small."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.streams import saved_state
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

from ...rows import each_row
from ..ring_files import ring_files

CAPTURES = Path(__file__).parents[2] / "captures"
PORTS = {"controller-4.3.1": (19093,), "brokers-4.3.1": (19192, 19292)}
KEY = [(name, "ascending") for name in ("conn_id", "incarnation", "is_response", "frame_no")]


@each_row("capture", list(PORTS))
@each_row("count", [2, 7, 40])
def test_frames_are_the_same_when_state_is_saved_after_each_file(tmp_path: Path, capture: str, count: int) -> None:
    ports = PORTS[capture]
    files = ring_files(CAPTURES / f"{capture}.pcap", tmp_path / "ring", count)
    reassembler, early = Reassembler(), 0
    found: list[pa.RecordBatch] = []
    for file in files:
        for segments in read_segments(str(file), ports=ports):
            found += reassembler.receive(make_runs(segments, ports))
        found += reassembler.drain()
        early += sum(batch.num_rows for batch in found) > 0
        reassembler.take_events()
        reassembler = saved_state.loads(saved_state.dumps(reassembler))
    found += reassembler.finish()
    # Rows come with the file that completes them, not at the end.
    assert early == count
    whole = pa.Table.from_batches(read_frames(files, ports)).sort_by(KEY)
    assert pa.Table.from_batches(found).sort_by(KEY).equals(whole)


def test_state_holds_no_bytes_of_what_was_returned() -> None:
    capture = CAPTURES / "controller-4.3.1.pcap"
    reassembler = Reassembler()
    for segments in read_segments(str(capture), ports=(19093,)):
        for _ in reassembler.receive(make_runs(segments, (19093,))):
            pass
    before = len(saved_state.dumps(reassembler))
    assert sum(batch.num_rows for batch in reassembler.drain()) == 1722
    reassembler.take_events()
    assert len(saved_state.dumps(reassembler)) < before / 5


def test_evicted_connections_are_reported_and_their_requests_returned() -> None:
    capture = CAPTURES / "controller-4.3.1.pcap"
    reassembler = Reassembler()
    for segments in read_segments(str(capture), ports=(19093,)):
        list(reassembler.receive(make_runs(segments, (19093,))))
    list(reassembler.drain())
    open_connections = reassembler.open_connections
    while reassembler.open_connections:
        reassembler.evict("too many")
    rows = [row for batch in reassembler.drain() for row in batch.to_pylist()]
    assert {row["pair_status"] for row in rows} == {"no_response"}
    kinds = reassembler.take_events().column("kind").to_pylist()
    assert kinds.count("evicted") == open_connections


class _Called:
    def __init__(self, function: object, *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self._call


@each_row(
    "named",
    {
        "a function": _Called(os.mkdir, "made"),
        "a function of a module of mockraft": _Called(shutil.rmtree, "made"),
        "a function of this package": _Called(saved_state.dumps, "made"),
        "an attribute": _Called(getattr, Reassembler(), "__class__"),
        "an array without buffers": _Called(pa.lib._restore_array, (pa.string(), 3, 0, 0, [], [], None)),
        "an array of too few bytes": _Called(
            pa.lib._restore_array, (pa.string(), 3, 0, 0, [None, pa.py_buffer(bytes(4)), pa.py_buffer(b"")], [], None)
        ),
    },
)
def test_a_state_of_others_names_nothing_but_classes_and_whole_arrays(named: object) -> None:
    with pytest.raises(saved_state.ForeignStateError, match=r"it names|number of buffers|too small"):
        saved_state.loads(pickle.dumps(named))
