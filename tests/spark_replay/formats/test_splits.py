"""Splits of any size, read separately, are exactly the whole file, or an error reports a wrong plan."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.formats import (
    CaptureError,
    Split,
    SplitDesyncError,
    packet_numbers,
    packets,
    plan_splits,
    read_segments,
)

from ...rows import each_row
from ..capture_bytes import RAW, Packet, interface, pcap, pcapng, section
from ..packetiser import FLOW, Said, Segment, conversation, exchanges, ip, link
from ..packetiser import packets as packets_of
from .segment_rows import CAPTURES, rows, written

PACKETS = packets_of(conversation(exchanges(60)))
FORMS = {
    "pcap": pcap(PACKETS),
    "pcap, big-endian, nanoseconds": pcap(PACKETS, order=">", nanoseconds=True),
    "pcapng": pcapng(PACKETS, resolution=9),
    "pcapng, big-endian": pcapng(PACKETS, order=">"),
    "pcapng with unknown blocks": pcapng(PACKETS, unknown_blocks=True),
    "pcapng of simple packets": pcapng(PACKETS, simple=True),
    "pcapng of four sections": pcapng(PACKETS, sections=4),
}


def offsets(source: Path | Split, **options: Any) -> list[int]:
    return [
        offset for found in read_segments(source, **options) for offset in packets(found)["file_offset"].to_pylist()
    ]


@pytest.mark.parametrize("index", ["auto", "exact"])
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=3)
@given(split_bytes=st.integers(3_000, 20_000), chunk_bytes=st.integers(1_000, 20_000))
def test_any_split_size_gives_the_same_segments(
    tmp_path_factory: pytest.TempPathFactory, form: str, index: Any, split_bytes: int, chunk_bytes: int
) -> None:
    path = written(tmp_path_factory.mktemp("x") / "x", FORMS[form])
    splits = plan_splits(path, split_bytes, index)
    found = [row for split in splits for row in rows(split, chunk_bytes=chunk_bytes)]
    assert len(splits) > 1 or path.stat().st_size < 3 * split_bytes
    if index == "exact":
        assert found == rows(path)
    else:
        assert [row._replace(packet_no=None) for row in rows(path)] == [row._replace(packet_no=None) for row in found]


def test_split_survives_pickling() -> None:
    splits = plan_splits(CAPTURES / "brokers-4.3.1.pcap", 50_000)
    assert pickle.loads(pickle.dumps(splits)) == splits


def test_ignores_capture_inside_payloads(tmp_path: Path) -> None:
    inner = pcap([Packet(1_700_000_000_000_000_000, link(ip(Segment(FLOW, True, 0, 7, 0, 16, b""))))] * 300)
    said = [Said(bool(number % 2), Random(number).randbytes(number) + inner) for number in range(20)]
    listed = packets_of(conversation(said, segment_bytes=60_000))
    path = written(tmp_path / "x.pcap", pcap(listed))
    for split_bytes in (33_333, 100_000):
        splits = plan_splits(path, split_bytes)
        assert [offset for split in splits for offset in offsets(split)] == offsets(path)
    assert len(splits) > 4


def test_ignores_pcapng_inside_payloads(tmp_path: Path) -> None:
    inner = pcapng([Packet(1_700_000_000_000_000_000, link(ip(Segment(FLOW, True, 0, 7, 0, 16, b""))))] * 500)
    said = [Said(bool(number % 2), bytes(number % 5) + inner) for number in range(20)]
    listed = packets_of(conversation(said, segment_bytes=60_000))
    path = written(tmp_path / "x.pcapng", pcapng(listed))
    for index in ("auto", "off"):
        splits = plan_splits(path, 100_000, index)
        assert len(splits) > 3
        assert [offset for split in splits for offset in offsets(split)] == offsets(path)


@each_row("form", ["pcap", "pcapng"])
@each_row("moved", [-4, 4, 16, 40])
def test_a_split_that_does_not_end_where_the_next_begins_is_an_error(tmp_path: Path, form: str, moved: int) -> None:
    path = written(tmp_path / "x", FORMS[form])
    first = plan_splits(path, 20_000, "off")[0]
    assert first.end is not None
    with pytest.raises(SplitDesyncError, match="crosses the split's end") as raised:
        rows(first._replace(end=first.end + moved), on_error="skip")
    assert raised.value.file == str(path)
    assert raised.value.offset <= first.end + moved


@each_row("later", [section() + interface(RAW), interface(RAW)])
def test_interfaces_that_begin_within_a_pcapng_file_are_found_or_an_error(tmp_path: Path, later: bytes) -> None:
    half = len(PACKETS) // 2
    data = pcapng(PACKETS[:half]) + later + pcapng(PACKETS[half:])[len(section() + interface(offset_s=0)) :]
    path = written(tmp_path / "x.pcapng", data)
    whole = offsets(path)
    assert [offset for split in plan_splits(path, 10_000) for offset in offsets(split)] == whole
    with pytest.raises(SplitDesyncError, match="begin within the splits"):
        _ = [offsets(split) for split in plan_splits(path, 10_000, "off")]


def test_numbers_are_those_of_the_file_when_it_is_read_whole_or_planned_exactly() -> None:
    path = CAPTURES / "brokers-4.3.1.pcap"
    assert [row.packet_no for split in plan_splits(path, 50_000, "exact") for row in rows(split)] == list(
        range(1, 1914)
    )
    assert {row.packet_no for split in plan_splits(path, 50_000) for row in rows(split)} == {None}
    places = offsets(path)
    assert packet_numbers(path, [places[1000], places[0], 25, places[-1]]) == [1001, 1, 0, 1913]


@each_row("split_bytes", [0, -5])
def test_rejects_splits_of_zero_bytes(split_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"split_bytes must be positive, not {split_bytes}"):
        plan_splits(CAPTURES / "brokers-4.3.1.pcap", split_bytes)


def test_cannot_plan_splits_of_invalid_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="not a pcap"):
        plan_splits(written(tmp_path / "x", b"GET / HTTP/1.1"))
