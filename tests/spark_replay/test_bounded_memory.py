"""Memory does not grow with what a capture unpacks to, nor with how many connections it has."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.spark_replay.streams.stitch import Stitcher

from .capture_bytes import Packet, pcap
from .packetiser import SYN, Flow, Segment, conversation, ip, link, packets, request

UNPACKED_BYTES = 250_000_000
READ = """
import resource, sys
from mockraft.spark_replay import read_frames

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

small, bomb, limit = sys.argv[1:]
list(read_frames(small))
before, events = peak(), []
frames = sum(batch.num_rows for batch in read_frames(
    bomb, file_events=events, on_error="quarantine", decompressed_bytes_max=int(limit)
))
print(frames, peak() - before, [(row["kind"], row["detail"]) for row in events])
"""


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("limit", [UNPACKED_BYTES * 2, UNPACKED_BYTES // 4])
def test_a_bomb_is_read_or_stopped_in_the_memory_of_a_few_chunks(tmp_path: Path, compression: str, limit: int) -> None:
    segments = conversation([request(1, bytes(1200))])
    small = tmp_path / "small"
    small.write_bytes(pcap(packets(segments)))
    # The last packet, again and again.
    record = pcap(packets(segments[-1:]))[24:]
    part = record * 10_000
    bomb = tmp_path / "bomb"
    with pa.CompressedOutputStream(str(bomb), compression) as out:
        out.write(small.read_bytes())
        for _ in range(UNPACKED_BYTES // len(part)):
            out.write(part)
    assert bomb.stat().st_size < UNPACKED_BYTES / 100
    command = [sys.executable, "-c", READ, str(small), str(bomb), str(limit)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    frames, grown, events = ended.stdout.split(maxsplit=2)
    assert frames == "1"
    assert int(grown) < 150_000_000
    stopped = f"[('corrupt', 'unpacks to more than {limit} bytes (decompressed_bytes_max)')]"
    assert events.strip() == (stopped if limit < UNPACKED_BYTES else "[]")


def peak_bytes(path: Path, connections: int) -> int:
    syn = [Segment(Flow(), True, 0, 7, 0, SYN, b"")]
    whole = []
    for number in range(connections):
        flow = Flow(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        whole.append(Packet(1_700_000_000_000_000_000 + number * 1000, link(ip(syn[0]._replace(flow=flow)))))
    path.write_bytes(pcap(whole))
    stitcher = Stitcher(connections_max=500)
    tracemalloc.start()
    for chunk in read_segments(path, chunk_bytes=1 << 15):
        assert list(stitcher.receive(make_runs(chunk))) == []
        stitcher.take_events()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_connections_of_one_packet_cost_little_more_than_a_number_each(tmp_path: Path) -> None:
    # The first run fills tables that stay. A connection that is kept takes 1,500 bytes at least.
    _, few, many = (peak_bytes(tmp_path / "x.pcap", count) for count in (100, 6_000, 12_000))
    assert (many - few) / 6_000 < 700
