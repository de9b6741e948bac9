"""Memory grows neither with the decompressed size of a capture nor with its connections."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

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
def test_decompression_bomb_needs_memory_for_few_chunks(tmp_path: Path, compression: str, limit: int) -> None:
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
    stopped = f"[('corrupt', 'decompresses to more than {limit} bytes (decompressed_bytes_max)')]"
    assert events.strip() == (stopped if limit < UNPACKED_BYTES else "[]")


def peak_bytes(path: Path, connections: int) -> int:
    syn = [Segment(Flow(), True, 0, 7, 0, SYN, b"")]
    whole = []
    for number in range(connections):
        flow = Flow(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        whole.append(Packet(1_700_000_000_000_000_000 + number * 1000, link(ip(syn[0]._replace(flow=flow)))))
    path.write_bytes(pcap(whole))
    reassembler = Reassembler(connections_max=500)
    gc.collect()
    tracemalloc.start()
    for chunk in read_segments(path, chunk_bytes=1 << 15):
        assert list(reassembler.receive(make_runs(chunk))) == []
        reassembler.take_events()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def bytes_per_connection(path: Path) -> float:
    # The first run fills tables that stay. Between the other two no dict grows (at 10,922 and 21,845 entries).
    _, few, many = (peak_bytes(path, count) for count in (100, 12_000, 20_000))
    return (many - few) / 8_000


def test_one_packet_connections_need_little_memory(tmp_path: Path) -> None:
    # A kept connection takes at least 1,500 bytes.
    assert bytes_per_connection(tmp_path / "x.pcap") < 700
