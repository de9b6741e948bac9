"""Traffic of a capture by server port: which ones speak Kafka or TLS. For messages about captures without frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mockraft.spark_replay.formats import Segments, read_segments
from mockraft.spark_replay.formats.file_events import FileEvent
from mockraft.spark_replay.key_logs import read_key_log
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

LOOKED_AT_BYTES = 256 << 20
"""Bytes of captures that are looked at."""


class PortTraffic(NamedTuple):
    """Traffic of a server port: its Kafka frames, its connections, and those of them with TLS."""

    port: int
    frames: int
    connections: int
    with_tls: int


def seen_traffic(files: Sequence[str], key_log: str | None = None) -> tuple[list[PortTraffic], list[FileEvent]]:
    """Return the traffic of the first bytes of captures, the busiest Kafka port first, and what is in no table."""
    frames: Counter[int] = Counter()
    connections: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    with_tls: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    left_out: list[FileEvent] = []
    reassembler = Reassembler(key_log=read_key_log(key_log))
    for segments in _first_segments(files, left_out):
        for batch in reassembler.receive(make_runs(segments)):
            frames.update(batch.column("server_port").to_pylist())
    for batch in reassembler.finish():
        frames.update(batch.column("server_port").to_pylist())
    names = ("server_port", "conn_id", "incarnation", "kind")
    events = reassembler.take_events()
    for port, conn_id, incarnation, kind in zip(*(events.column(name).to_pylist() for name in names), strict=True):
        connections[port].add((conn_id, incarnation))
        if kind == "tls":
            with_tls[port].add((conn_id, incarnation))
    found = [
        PortTraffic(port, frames[port], len(connections[port]), len(with_tls[port]))
        for port in frames.keys() | connections.keys()
    ]
    return sorted(found, key=lambda each: (-each.frames, -each.with_tls, -each.connections)), left_out


def _first_segments(files: Sequence[str], left_out: list[FileEvent]) -> Iterator[Segments]:
    left = LOOKED_AT_BYTES
    for file in files:
        for segments in read_segments(file, events=left_out, on_error="skip"):
            yield segments
            left -= len(segments.buffer)
            if left <= 0:
                return
