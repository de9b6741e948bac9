"""pcapng files, read by the capture reader and by tshark."""

import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import packets, read_segments
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.wire.pcapng import SEGMENT_BYTES_MAX, PcapngWriter

from ..rows import each_row

CLIENT, SERVER = ("127.0.0.1", 40_000), ("127.0.0.2", 9093)
START_NS = 1_700_000_000_123_456_789


def written(path: Path, client: tuple[str, int] = CLIENT, server: tuple[str, int] = SERVER) -> list[int]:
    """Write one connection with a request and a long response; return the offsets of the two."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        flow = writer.connect(client, server, START_NS)
        offsets = [
            writer.send(flow, True, b"question", START_NS + 1),
            writer.send(flow, False, b"a" * 150_000, START_NS + 2),
        ]
        writer.close(flow, START_NS + 3)
        assert writer.bytes_written == file.tell()
    return offsets


def runs(path: Path) -> list[dict[str, Any]]:
    """Return the bytes that each side sent, one row per segment."""
    return list(pa.Table.from_batches([make_runs(segments) for segments in read_segments(path)]).to_pylist())


@each_row(
    ("client", "server"),
    [(CLIENT, SERVER), (("::1", 40_000), ("fd00::2", 9093)), (("127.0.0.1", 40_000), ("fd00::2", 9093))],
)
def test_bytes_and_times_of_each_side_are_read_back(
    tmp_path: Path, client: tuple[str, int], server: tuple[str, int]
) -> None:
    path = tmp_path / "x.pcapng"
    written(path, client, server)
    question, answer = (run for run in runs(path) if run["data"])
    assert (question["dir"], question["data"]) == (0, b"question")
    assert (answer["dir"], answer["data"]) == (1, b"a" * 150_000)
    assert question["server_port"] == 9093
    times = [row["ts_ns"] - START_NS for segments in read_segments(path) for row in packets(segments).to_pylist()]
    assert times == [0, 0, 0, 1, 2, 2, 2, 3, 3, 3]
    assert max(answer["seg_len"]) == SEGMENT_BYTES_MAX


def test_returns_the_offset_of_the_first_packet(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    question, answer = written(path)
    data = path.read_bytes()
    assert data[question : question + 4] == data[answer : answer + 4] == b"\x06\0\0\0"
    assert data.index(b"question") - question < 100


def test_a_reset_ends_a_connection_and_another_one_uses_the_same_ports(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for word in (b"first", b"second"):
            flow = writer.connect(CLIENT, SERVER, START_NS)
            writer.send(flow, True, word, START_NS)
            writer.close(flow, START_NS, reset=True)
    first, second = (run for run in runs(path) if run["data"])
    assert (first["data"], second["data"]) == (b"first", b"second")
    assert second["incarnation_hint"] == first["incarnation_hint"] + 1
    assert (second["client"], second["client_port"], second["server"], second["server_port"]) == (*CLIENT, *SERVER)


def test_a_host_name_is_refused() -> None:
    with pytest.raises(ValueError, match="localhost"):
        PcapngWriter(io.BytesIO()).connect(("localhost", 1), SERVER, 0)


@pytest.mark.programs
def test_tshark_reads_it_without_a_complaint(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    written(path)
    tshark = shutil.which("tshark")
    assert tshark is not None
    options = ["-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.len"]
    options += ["-e", "_ws.expert.message"]
    read = subprocess.run([tshark, "-r", path, *options], capture_output=True, text=True, check=True).stdout
    lengths = [int(line.split("\t")[1]) for line in read.splitlines()]
    assert sum(lengths) == len(b"question") + 150_000
    assert read.startswith("1700000000.123456789")
    assert re.search("checksum|malformed|out-of-order|retransmission|not captured", read, re.IGNORECASE) is None
