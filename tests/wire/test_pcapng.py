"""pcapng files, read by the capture reader and by tshark."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mockraft.spark_replay.captures import Endpoint, read_segments
from mockraft.spark_replay.tcp_streams import Connection, reassemble
from mockraft.wire.pcapng import SEGMENT_BYTES_MAX, PcapngWriter

CLIENT, SERVER = ("127.0.0.1", 40_000), ("127.0.0.2", 9093)
START_NS = 1_700_000_000_123_456_789


def written(path: Path, client: tuple[str, int] = CLIENT, server: tuple[str, int] = SERVER) -> list[int]:
    """One connection with a question and a long answer; gives the offsets of the two."""
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


@pytest.mark.parametrize(
    ("client", "server"),
    [(CLIENT, SERVER), (("::1", 40_000), ("fd00::2", 9093)), (("127.0.0.1", 40_000), ("fd00::2", 9093))],
)
def test_what_each_side_said_is_read_back_with_its_times(
    tmp_path: Path, client: tuple[str, int], server: tuple[str, int]
) -> None:
    path = tmp_path / "x.pcapng"
    written(path, client, server)
    chunks = list(reassemble(read_segments(path)))
    assert b"".join(chunk.data for chunk in chunks if chunk.from_client) == b"question"
    assert b"".join(chunk.data for chunk in chunks if not chunk.from_client) == b"a" * 150_000
    assert [chunk.time_ns - START_NS for chunk in chunks] == [1, 2, 2, 2, 3, 3]
    assert max(len(chunk.data) for chunk in chunks) == SEGMENT_BYTES_MAX
    assert chunks[0].connection.server.port == 9093


def test_an_offset_is_where_the_first_packet_of_what_was_said_lies(tmp_path: Path) -> None:
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
    chunks = [chunk for chunk in reassemble(read_segments(path)) if chunk.data]
    assert [chunk.data for chunk in chunks] == [b"first", b"second"]
    assert chunks[1].connection == Connection(Endpoint(*CLIENT), Endpoint(*SERVER), 2)


def test_a_host_name_is_refused() -> None:
    with pytest.raises(ValueError, match="localhost"):
        PcapngWriter(io.BytesIO()).connect(("localhost", 1), SERVER, 0)


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
