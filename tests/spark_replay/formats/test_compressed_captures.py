"""Compressed captures are read as they stream, in bounded memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import CaptureError, plan_splits, read_segments

from ..capture_bytes import pcap, pcapng
from ..packetiser import conversation, exchanges, packets
from .segment_rows import CAPTURES, counts, rows, written

PACKETS = packets(conversation(exchanges(40)))
FORMS = {"pcap": pcap(PACKETS), "pcapng": pcapng(PACKETS), "pcapng, big-endian": pcapng(PACKETS, order=">", sections=3)}


def compressed(path: Path, data: bytes, compression: str) -> Path:
    with pa.CompressedOutputStream(str(path), compression) as out:
        out.write(data)
    return path


@pytest.mark.parametrize("compression", ["gzip", "zstd", "bz2", "lz4"])
@pytest.mark.parametrize("form", FORMS)
def test_compression_is_detected_by_magic_bytes(tmp_path: Path, form: str, compression: str) -> None:
    plain = written(tmp_path / "plain", FORMS[form])
    packed = compressed(tmp_path / "x", FORMS[form], compression)
    assert rows(packed) == rows(plain)
    assert rows(packed, chunk_bytes=900) == rows(plain)
    assert counts(packed) == {}


def test_offsets_of_compressed_file_count_uncompressed_bytes(tmp_path: Path) -> None:
    plain = CAPTURES / "brokers-4.3.1.pcap"
    packed = written(tmp_path / "x.pcap.gz", gzip.compress(plain.read_bytes(), 1))
    found = [each.file_offset.tolist() for each in read_segments(packed)]
    assert found == [each.file_offset.tolist() for each in read_segments(plain)]


def test_compressed_file_is_one_split(tmp_path: Path) -> None:
    packed = compressed(tmp_path / "x", FORMS["pcap"], "zstd")
    (split,) = plan_splits(packed, 500)
    assert len(rows(split)) == len(PACKETS)


def test_parts_of_gzip_one_after_the_other_are_one_file(tmp_path: Path) -> None:
    data = FORMS["pcap"]
    packed = written(tmp_path / "x", gzip.compress(data[:5_000]) + gzip.compress(data[5_000:]))
    assert rows(packed) == rows(written(tmp_path / "plain", data))


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
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


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_decompression_stops_at_limit(tmp_path: Path, form: str) -> None:
    bomb = compressed(tmp_path / "x", FORMS[form] + FORMS[form][-200:] * 20_000, "zstd")
    assert bomb.stat().st_size < 20_000
    with pytest.raises(CaptureError, match="decompresses to more than 100000 bytes"):
        rows(bomb, decompressed_bytes_max=100_000)
    found = counts(bomb, decompressed_bytes_max=100_000, on_error="quarantine", chunk_bytes=30_000)
    assert found == {"corrupt": 0}


def test_compressed_empty_file_is_not_a_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="not a pcap or pcapng file: it is empty"):
        rows(compressed(tmp_path / "x", b"", "gzip"))
    with pytest.raises(CaptureError, match="ends inside its header"):
        rows(written(tmp_path / "y", gzip.compress(FORMS["pcap"])[:12]))
