"""Segments as rows, to compare readers and files with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from mockraft.spark_replay.formats import Split, packets, read_segments
from mockraft.spark_replay.formats.file_events import FileEvent

from ..capture_bytes import Packet, pcap

CAPTURES = Path(__file__).parents[2] / "captures"


class Row(NamedTuple):
    """A segment in plain Python, without its place in the file."""

    packet_no: int | None
    ts_ns: int
    src: str
    sport: int
    dst: str
    dport: int
    seq: int
    flags: int
    payload: bytes
    cut_bytes: int


def rows(source: Path | Split, **options: Any) -> list[Row]:
    return [
        Row._make([*(row[name] for name in Row._fields[:-1]), row["payload_len"] - row["captured_len"]])
        for segments in read_segments(source, **options)
        for row in packets(segments).to_pylist()
    ]


def counts(source: Path | Split, **options: Any) -> dict[str, int]:
    """Return the counts of what was left out, by kind."""
    events: list[FileEvent] = []
    for _ in read_segments(source, events=events, **options):
        pass
    found: dict[str, int] = {}
    for event in events:
        found[event["kind"]] = found.get(event["kind"], 0) + event["count"]
    return found


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def capture(folder: Path, packets: list[bytes], link_type: int = 1) -> Path:
    """A capture of packets a second apart."""
    listed = [Packet(1_700_000_000_000_000_000 + number * 10**9, data) for number, data in enumerate(packets)]
    return written(folder / "x.pcap", pcap(listed, link_type))
