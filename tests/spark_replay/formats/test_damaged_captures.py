"""Any file content gives rows or errors with an offset; never a crash, a hang or invented packets."""

from __future__ import annotations

import shutil
import subprocess
import tracemalloc
from collections.abc import Generator
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.formats import CaptureError, SplitDesyncError, plan_splits, read_segments

from ...rows import each_row
from ..capture_bytes import pcap, pcapng
from ..packetiser import conversation, exchanges, packets
from .segment_rows import CAPTURES, counts, rows, written

PACKETS = packets(conversation(exchanges(120)))
FORMS = {"pcap": pcap(PACKETS), "pcapng": pcapng(PACKETS)}
# Where the twentieth packet's record starts, and the twenty-first's.
TWENTIETH = {"pcap": len(pcap(PACKETS[:20])), "pcapng": len(pcapng(PACKETS[:20]))}
NEXT = {"pcap": len(pcap(PACKETS[:21])), "pcapng": len(pcapng(PACKETS[:21]))}


def damaged(path: Path, form: str, offset: int, data: bytes) -> Path:
    whole = FORMS[form]
    return written(path / "damaged", whole[:offset] + data + whole[offset + len(data) :])


def times(source: Any, **options: Any) -> list[int]:
    return [row.ts_ns for row in rows(source, **options)]


@each_row(
    ("content", "complaint"),
    [
        (b"", "not a pcap or pcapng file: it is empty"),
        (b"\xd4", "not a pcap or pcapng file: it starts with d4"),
        (b"GET / HTTP/1.1", "not a pcap or pcapng file: it starts with 47 45 54 20"),
        (b"\xd4\xc3\xb2\xa1" + bytes(5), "ends inside its header"),
        (b"\x0a\x0d\x0d\x0a" + bytes(30), "invalid section header"),
        (FORMS["pcap"][:24] + bytes(8) + b"\xff\xff\xff\x7f" * 2, "invalid record header"),
        (FORMS["pcap"][:24] + bytes(5_000), "invalid record header"),
        (FORMS["pcapng"][:28] + b"\x06\0\0\0\x0b\0\0\0" + bytes(20), "no block"),
        (FORMS["pcapng"][:28] + b"\x06\0\0\0\x00\0\0\x7f" + bytes(20), "no block"),
    ],
)
def test_invalid_capture_is_an_error_with_file_and_offset(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = written(tmp_path / "x", content)
    with pytest.raises(CaptureError, match=complaint) as raised:
        rows(path)
    assert raised.value.file == str(path)
    assert f"(offset {raised.value.offset})" in str(raised.value)
    assert rows(path, on_error="skip") == []
    assert counts(path, on_error="quarantine").keys() <= {"quarantined", "corrupt"}


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nowhere\.pcap: cannot be opened"):
        rows(tmp_path / "nowhere.pcap")
    with pytest.raises(CaptureError, match="cannot be opened"):
        rows(tmp_path)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_file_cut_anywhere_keeps_every_whole_packet(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    whole = FORMS[form]
    path = written(tmp_path_factory.mktemp("x") / "x", whole)
    every = times(path)
    cut = data.draw(st.integers(28, len(whole)))
    written(path, whole[:cut])
    found = times(path)
    assert found == every[: len(found)]
    ends = [len((pcap if form == "pcap" else pcapng)(PACKETS[:count])) for count in (len(found), len(found) + 1)]
    assert ends[0] <= cut or not found
    assert cut < ends[1] or cut == len(whole)
    assert set(counts(path)) == (set() if cut in (ends[0], len(whole)) else {"truncated"}) or not found


@each_row("form", list(FORMS))
@each_row("at", [0, 4, 8, 12])
def test_a_header_that_cannot_be_one_costs_its_own_packet_only(tmp_path: Path, form: str, at: int) -> None:
    every = times(written(tmp_path / "whole", FORMS[form]))
    path = damaged(tmp_path, form, TWENTIETH[form] + at, b"\xff" * 8)
    found = times(path, on_error="skip")
    if at == 12 or (form == "pcap" and at == 0):
        # A time or a length on the wire that may be true.
        assert len(found) in (len(every), len(every) - 1)
    else:
        assert found == every[:20] + every[21:]
        assert counts(path, on_error="skip") == {"corrupt": NEXT[form] - TWENTIETH[form]}
        with pytest.raises(CaptureError) as raised:
            rows(path)
        assert raised.value.offset == TWENTIETH[form]


@each_row(("at", "size"), {"empty": (20, 0), "late": (4, 54)})
def test_an_empty_packet_or_a_fraction_of_a_whole_second_is_no_damage(tmp_path: Path, at: int, size: int) -> None:
    odd = pack("<4I", 1_700_000_000, 0 if size == 0 else 1_000_000, size, size) + bytes(size)
    whole = pcap(PACKETS[:at]) + odd + pcap(PACKETS[at:])[24:]
    path = written(tmp_path / "odd.pcap", whole)
    assert times(path) == times(written(tmp_path / "whole", FORMS["pcap"]))
    parts = plan_splits(path, 4_000)
    assert len(parts) > 1
    assert [each for part in parts for each in times(part)] == times(path)


def test_a_length_that_hides_the_next_records_gives_them_back(tmp_path: Path) -> None:
    every = times(written(tmp_path / "whole", FORMS["pcap"]))
    path = damaged(tmp_path, "pcap", TWENTIETH["pcap"] + 8, (3_001).to_bytes(4, "little") * 2)
    assert times(path, on_error="quarantine") == every[:20] + every[21:]
    assert counts(path, on_error="quarantine")["corrupt"] == NEXT["pcap"] - TWENTIETH["pcap"]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12)
@given(data=st.data())
def test_damage_is_the_same_in_splits_or_the_plan_is_refused(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    size = len(FORMS[form])
    offset = data.draw(st.integers(48, size - 60))
    noise = data.draw(st.binary(min_size=1, max_size=40))
    path = damaged(tmp_path_factory.mktemp("x"), form, offset, noise)
    whole = times(path, on_error="skip")
    plan = plan_splits(path, data.draw(st.integers(4_000, 30_000)), "exact")
    try:
        found = [time for split in plan for time in times(split, on_error="skip")]
    except SplitDesyncError:
        return
    assert found == whole


@settings(max_examples=25)
@given(head=st.sampled_from([FORMS["pcap"][:24], FORMS["pcapng"][:60]]), noise=st.binary(max_size=3_000))
def test_noise_behind_a_header_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, noise: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("x") / "x", head + noise)
    assert isinstance(rows(path, on_error="skip"), list)


@pytest.mark.programs
@each_row("seed", [1, 2, 3])
def test_bit_errors_by_editcap_cost_packets_not_the_file(tmp_path: Path, seed: int) -> None:
    editcap = shutil.which("editcap")
    assert editcap is not None
    original, turned = CAPTURES / "brokers-4.3.1.pcap", tmp_path / "turned"
    options = ["-F", "pcapng", "-E", "0.002", "--seed", str(seed)]
    subprocess.run([editcap, *options, original, turned], check=True, capture_output=True)
    found, every = rows(turned), rows(original)
    left_out = counts(turned)
    assert len(found) + sum(left_out.values()) == len(every)
    assert len(found) > len(every) * 0.8
    assert {row.ts_ns for row in found} <= {row.ts_ns for row in every}


def test_a_record_that_claims_much_takes_no_more_memory_than_the_file(tmp_path: Path) -> None:
    claim = (60_000_000).to_bytes(4, "little") * 2
    header = bytearray(FORMS["pcap"][:24])
    header[16:20] = (1 << 30).to_bytes(4, "little")
    path = written(tmp_path / "x", bytes(header) + bytes(8) + claim + bytes(5_000))
    tracemalloc.start()
    assert counts(path) == {"truncated": 5_016}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_a_reader_may_stop_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path / "x", FORMS["pcap"])
    stopped = read_segments(path, chunk_bytes=1_000)
    assert len(next(iter(stopped))) > 0
    assert isinstance(stopped, Generator)
    stopped.close()
    path.unlink()
