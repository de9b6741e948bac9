"""Results do not depend on chunks, batches or the order of connections; memory stays bounded."""

from pathlib import Path
from random import Random

import pyarrow as pa
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.schemas import RUNS
from mockraft.spark_replay.streams import saved_state
from mockraft.spark_replay.streams.reassembly import Limits, Reassembler
from mockraft.spark_replay.streams.runs import make_runs

from ...rows import each_row
from ..packetiser import FLOW, SYN, Flow, Said, Segment, conversation, exchanges, request, response, timed
from .reassembled import read, read_sorted, written

CAPTURES = Path(__file__).parents[2] / "captures"


@each_row(("name", "count"), [("controller-4.3.1", 1726), ("brokers-4.3.1", 931)])
@each_row("ports", {"found": (), "named": (19093, 19192, 19292)})
def test_real_captures_have_the_frames_that_tshark_finds_in_any_chunks(
    name: str, count: int, ports: tuple[int, ...]
) -> None:
    path = CAPTURES / f"{name}.pcap"
    frames, _ = read(path, ports)
    assert len(frames) == count
    assert read(path, ports, chunk_bytes=50_000)[0] == frames
    assert read_sorted(path, ports, 30_000, 7)[0] == frames


def test_one_packet_connections_leave_no_state(tmp_path: Path) -> None:
    segments = [
        Segment(Flow(f"10.1.{number >> 8}.{number & 255}"), True, number * 1000, 7, 0, SYN, b"")
        for number in range(3000)
    ]
    path = written(tmp_path / "x.pcap", segments)
    reassembler = Reassembler(limits=Limits(connections_max=100))
    for chunk in read_segments(path, chunk_bytes=4096):
        assert list(reassembler.receive(make_runs(chunk))) == []
    assert reassembler.open_connections == 100
    events = reassembler.take_events()
    assert events.column("kind").to_pylist().count("evicted") == 2900


def test_closed_connections_are_left_after_a_minute_of_captured_time(tmp_path: Path) -> None:
    segments = []
    for number in range(50):
        flow = Flow(client_port=20_000 + number)
        segments += conversation(exchanges(1), flow, closes=True, start_ns=number * 10_000_000_000)
    path = written(tmp_path / "x.pcap", segments)
    reassembler = Reassembler()
    most = 0
    for chunk in read_segments(path, chunk_bytes=1024):
        for _ in reassembler.receive(make_runs(chunk)):
            pass
        most = max(most, reassembler.open_connections)
    assert most <= 9


def test_bytes_held_for_gaps_are_bounded(tmp_path: Path) -> None:
    segments = conversation([request(number, bytes(1000)) for number in range(300)])
    del segments[3]
    path = written(tmp_path / "x.pcap", segments)
    reassembler = Reassembler(limits=Limits(held_bytes_max=50_000))
    rows = 0
    for chunk in read_segments(path, chunk_bytes=4096):
        rows += sum(batch.num_rows for batch in reassembler.receive(make_runs(chunk)))
        assert reassembler.held_bytes <= 60_000
    rows += sum(batch.num_rows for batch in reassembler.finish())
    assert rows == 299
    (gap,) = [row for row in reassembler.take_events().to_pylist() if row["kind"] == "gap"]
    assert gap["bytes"] == len(request(0, bytes(1000)).data)


def test_a_frame_in_many_packets_costs_each_byte_once(tmp_path: Path) -> None:
    said = request(1, Random(1).randbytes(1 << 20))
    path = written(tmp_path / "x.pcap", conversation([said]))
    (frame,) = read(path, chunk_bytes=10_000)[0]
    assert frame["frame"] == said.frame
    assert frame["segments"] == -(-len(said.data) // 1448)


def test_no_runs_are_no_frames() -> None:
    reassembler = Reassembler()
    assert list(reassembler.receive(pa.RecordBatch.from_pylist([], schema=RUNS))) == []
    assert list(reassembler.finish()) == []
    assert reassembler.take_events().num_rows == 0


@each_row(
    ("said", "lost"),
    {
        "behind a gap": ([request(1), response(1), request(2), request(3)], 5),
        "before any request": ([response(1, bytes(20_000))], None),
    },
)
def test_bytes_that_wait_of_idle_connections_are_bounded_and_make_no_gap_elsewhere(
    tmp_path: Path, said: list[Said], lost: int | None
) -> None:
    segments = []
    for number in range(40):
        flow = conversation(said, Flow(client_port=50_000 + number))
        segments += [each for index, each in enumerate(flow) if index != lost]
    active = conversation(exchanges(200))
    for index in range(4, len(active) - 2, 4):
        active[index], active[index + 2] = active[index + 2], active[index]
    path = written(tmp_path / "x.pcap", timed([*segments, *active]))
    reassembler = Reassembler(limits=Limits(waiting_bytes_max=10_000))
    for chunk in read_segments(path, ports=(), chunk_bytes=1024):
        list(reassembler.receive(make_runs(chunk)))
    list(reassembler.drain())
    gaps = [row for row in reassembler.take_events().to_pylist() if row["kind"] == "gap"]
    assert not [row for row in gaps if row["client_port"] == FLOW.client_port]
    assert len(saved_state.dumps(reassembler)) < 100_000
