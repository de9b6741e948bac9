"""pcapng files in every form, and compressed captures read as they stream, in bounded memory."""

from __future__ import annotations

import gzip
from pathlib import Path
from struct import pack

import numpy as np
import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import CaptureError, plan_splits, read_segments
from mockraft.spark_replay.formats.file_headers import Interface
from mockraft.spark_replay.formats.packet_sources import Split
from mockraft.spark_replay.formats.pcapng_blocks import times_ns

from ...rows import each_row
from ..capture_bytes import ETHERNET, RAW, SLL, SLL2, Packet, block, interface, pcap, pcapng, section
from ..packetiser import FLOW, Segment, conversation, exchanges, ip, link, packets
from .segment_rows import CAPTURES, counts, rows, written

SEGMENTS = conversation(exchanges(20))
PACKET = link(ip(Segment(FLOW, True, 0, 7, 0, 0x10, b"hello")))


@each_row("order", ["<", ">"])
@each_row("link_type", [ETHERNET, RAW, SLL, SLL2])
@each_row("sections", [1, 3])
def test_sections_byte_orders_and_unknown_blocks(tmp_path: Path, order: str, link_type: int, sections: int) -> None:
    listed = packets(SEGMENTS, link_type)
    same = written(tmp_path / "x.pcap", pcap(listed, link_type))
    data = pcapng(listed, link_type, order=order, sections=sections, unknown_blocks=True)
    path = written(tmp_path / "x.pcapng", data)
    assert rows(path) == rows(same)
    assert rows(path, chunk_bytes=500) == rows(same)


@each_row("resolution", [3, 6, 9, 10, 0x80 | 20, 0x80 | 32, 0x80 | 33])
@each_row("offset_s", [0, 3600, -3600])
def test_times_of_every_resolution_and_offset_are_nanoseconds(tmp_path: Path, resolution: int, offset_s: int) -> None:
    second = Packet(1_700_000_000_000_000_000, PACKET)
    (found,) = rows(written(tmp_path / "x.pcapng", pcapng([second], resolution=resolution, offset_s=offset_s)))
    assert found.ts_ns == second.time_ns


@each_row("resolution", [0, 3, 6, 9, 10, 18, 30, 0x80, 0x80 | 10, 0x80 | 33, 0x80 | 40, 0x80 | 127])
def test_ticks_become_nanoseconds_as_whole_numbers_would(resolution: int) -> None:
    rng = np.random.default_rng(resolution)
    ticks = np.concatenate([rng.integers(0, 1 << 40, 50, np.uint64), np.array([0, 1, 2**64 - 1], np.uint64)])
    per_s = (2 if resolution & 0x80 else 10) ** (resolution & 0x7F)
    exact = [value * 10**9 // per_s for value in ticks.tolist()]
    wanted = [value if value < 1 << 63 else 0 for value in exact]
    assert times_ns(ticks, Interface(1, 0, resolution)).tolist() == wanted
    assert times_ns(ticks[:50], Interface(1, 0, resolution)).tolist() == wanted[:50]


def test_interfaces_of_one_section_have_their_own_link_type_and_resolution(tmp_path: Path) -> None:
    raw = pack("<IIIII", 1, 0, 5_000, len(PACKET) - 14, len(PACKET) - 14) + PACKET[14:]
    ethernet = pack("<IIIII", 0, 0, 5_000, len(PACKET), len(PACKET)) + PACKET
    parts = [section(), interface(), block(6, ethernet), interface(RAW, resolution=3), block(6, raw)]
    found = rows(written(tmp_path / "x.pcapng", b"".join([*parts, block(6, ethernet)])))
    assert [row.ts_ns for row in found] == [5_000_000, 5_000_000_000, 5_000_000]
    assert [row.payload for row in found] == [b"hello"] * 3


@each_row("order", ["<", ">"])
def test_simple_and_old_packet_blocks_are_packets_and_a_simple_one_has_no_time(tmp_path: Path, order: str) -> None:
    old = pack(f"{order}HHIIII", 0, 9, 0, 7, len(PACKET), len(PACKET)) + PACKET
    simple = pack(f"{order}I", len(PACKET)) + PACKET
    parts = [section(order), interface(order=order), block(2, old, order), block(3, simple, order)]
    found = rows(written(tmp_path / "x.pcapng", b"".join(parts)))
    assert [(row.packet_no, row.ts_ns, row.payload) for row in found] == [(1, 7_000, b"hello"), (2, 0, b"hello")]


def test_a_simple_packet_is_as_long_as_the_snaplen_lets_it_be(tmp_path: Path) -> None:
    parts = [section(), interface(snaplen=57), block(3, pack("<I", len(PACKET)) + PACKET[:57])]
    (found,) = rows(written(tmp_path / "x.pcapng", b"".join(parts)))
    assert (found.payload, found.cut_bytes) == (b"hel", 2)


def test_reports_packet_of_undescribed_interface_with_offset(tmp_path: Path) -> None:
    parts = [section(), interface(), block(6, pack("<IIIII", 1, 0, 0, len(PACKET), len(PACKET)) + PACKET)]
    path = written(tmp_path / "x.pcapng", b"".join(parts))
    with pytest.raises(CaptureError, match="1 packet blocks cannot be read") as raised:
        rows(path)
    assert raised.value.offset == len(parts[0] + parts[1])
    assert counts(path, on_error="skip")["corrupt"] == len(parts[2])


@each_row("cut", [1, 2, 5, 8, 10, 16, 27])
def test_file_truncated_in_a_section_header_is_reported(tmp_path: Path, cut: int) -> None:
    whole = pcapng(packets(SEGMENTS))
    path = written(tmp_path / "x.pcapng", whole + section()[:cut])
    assert len(rows(path)) == len(SEGMENTS)
    assert counts(path) == {"truncated": cut}


def test_sections_by_the_thousand_are_read_in_one_go(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pcapng", (section("<") + section(">")) * 5_000 + pcapng(packets(SEGMENTS)))
    assert len(rows(path)) == len(SEGMENTS)
    assert [row for split in plan_splits(path, 100_000, "exact") for row in rows(split)] == rows(path)


PACKETS = packets(conversation(exchanges(40)))
FORMS = {"pcap": pcap(PACKETS), "pcapng": pcapng(PACKETS), "pcapng, big-endian": pcapng(PACKETS, order=">", sections=3)}


def compressed(path: Path, data: bytes, compression: str) -> Path:
    with pa.CompressedOutputStream(str(path), compression) as out:
        out.write(data)
    return path


@each_row("compression", ["gzip", "zstd", "bz2", "lz4"])
@each_row("form", FORMS)
def test_compression_is_detected_by_magic_bytes(tmp_path: Path, form: bytes, compression: str) -> None:
    plain = written(tmp_path / "plain", form)
    packed = compressed(tmp_path / "x", form, compression)
    assert rows(packed) == rows(plain)
    assert rows(packed, chunk_bytes=900) == rows(plain)
    assert counts(packed) == {}
    (split,) = plan_splits(packed, 500)
    assert len(rows(split)) == len(PACKETS)


def test_offsets_of_compressed_file_count_uncompressed_bytes(tmp_path: Path) -> None:
    plain = CAPTURES / "brokers-4.3.1.pcap"
    packed = written(tmp_path / "x.pcap.gz", gzip.compress(plain.read_bytes(), 1))
    found = [each.file_offset.tolist() for each in read_segments(packed)]
    assert found == [each.file_offset.tolist() for each in read_segments(plain)]


def test_parts_of_gzip_one_after_the_other_are_one_file(tmp_path: Path) -> None:
    data = FORMS["pcap"]
    packed = written(tmp_path / "x", gzip.compress(data[:5_000]) + gzip.compress(data[5_000:]))
    assert rows(packed) == rows(written(tmp_path / "plain", data))


@each_row("compression", ["gzip", "zstd"])
def test_truncated_compressed_file_is_reported_and_keeps_its_packets(tmp_path: Path, compression: str) -> None:
    plain = CAPTURES / "controller-4.3.1.pcap"
    whole = compressed(tmp_path / "x", plain.read_bytes(), compression).read_bytes()
    cut = written(tmp_path / "cut", whole[: len(whole) * 9 // 10])
    found, every = rows(cut), rows(plain)
    assert found == every[: len(found)]
    assert len(found) > len(every) / 3
    assert list(counts(cut)) == ["truncated"]


def test_damage_in_compressed_bytes_is_an_error_or_a_row_with_offset(tmp_path: Path) -> None:
    data = bytearray(gzip.compress((CAPTURES / "brokers-4.3.1.pcap").read_bytes(), 1))
    data[len(data) // 2] ^= 0x55
    path = written(tmp_path / "x", bytes(data))
    with pytest.raises(CaptureError) as raised:
        rows(path, chunk_bytes=10_000)
    assert raised.value.offset > 10_000
    assert raised.value.file == str(path)
    assert counts(path, chunk_bytes=10_000, on_error="quarantine").keys() == {"corrupt"}
    assert len(rows(path, chunk_bytes=10_000, on_error="quarantine")) > 100


@each_row("form", ["pcap", "pcapng"])
def test_decompression_stops_at_limit(tmp_path: Path, form: str) -> None:
    bomb = compressed(tmp_path / "x", FORMS[form] + FORMS[form][-200:] * 20_000, "zstd")
    assert bomb.stat().st_size < 20_000
    bounded = Split(str(bomb), decompressed_bytes_max=100_000)
    with pytest.raises(CaptureError, match="decompresses to more than 100000 bytes"):
        rows(bounded)
    found = counts(bounded, on_error="quarantine", chunk_bytes=30_000)
    assert found == {"corrupt": 0}


def test_compressed_empty_file_is_not_a_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="not a pcap or pcapng file: it is empty"):
        rows(compressed(tmp_path / "x", b"", "gzip"))
    with pytest.raises(CaptureError, match="ends inside its header"):
        rows(written(tmp_path / "y", gzip.compress(FORMS["pcap"])[:12]))
