"""Frames of real traffic, also in pcapng files that tshark reads, decode and re-encode to the same bytes."""

import io
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.formats import packets, read_segments
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.wire import api_keys, messages, metadata_log_frame, record_batch, records, schema_reading
from mockraft.wire.pcapng import SEGMENT_BYTES_MAX, PcapngWriter

from ..rows import each_row

CAPTURES = Path(__file__).parents[1] / "captures"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
CONTROL_RECORDS = {
    record_batch.LEADER_CHANGE: "LeaderChangeMessage",
    record_batch.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    record_batch.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    record_batch.KRAFT_VERSION: "KRaftVersionRecord",
    record_batch.KRAFT_VOTERS: "VotersRecord",
}


@pytest.fixture(scope="module", params=["controller-4.3.1", "brokers-4.3.1"])
def exchanges(request: pytest.FixtureRequest) -> list[Captured]:
    return read_exchanges(CAPTURES / f"{request.param}.pcap")


def rewritten(cls: Any, frame: bytes, header_class: Any, header_version: int, version: int) -> tuple[Any, bytes]:
    """Return a frame's body and the frame written again; the codec of the schemas must agree on both."""
    header, offset = header_class.read_from(frame, header_version, 0)
    body, end = cls.read_from(frame, version, offset)
    assert end == len(frame)
    tree = schema_reading.read(cls.__name__, version, frame, offset=offset)
    assert schema_reading.write(cls.__name__, version, tree) == frame[offset:]
    return body, header.write(header_version) + body.write(version)


def reread_request(frame: bytes, api_key: int, version: int) -> Any:
    header_version = messages.request_header_version(api_key, version)
    body, again = rewritten(messages.request(api_key), frame, messages.RequestHeader, header_version, version)
    assert again == frame
    return body


def reread_response(frame: bytes, api_key: int, version: int) -> Any:
    header_version = messages.response_header_version(api_key, version)
    body, again = rewritten(messages.response(api_key), frame, messages.ResponseHeader, header_version, version)
    assert again == frame
    return body


def test_every_frame_decodes_and_re_encodes_to_the_same_bytes(exchanges: list[Captured]) -> None:
    frames = 0
    for exchange in exchanges:
        if exchange.request is not None:
            reread_request(exchange.request, exchange.api_key, exchange.api_version)
            frames += 1
        if exchange.response is not None:
            reread_response(exchange.response, exchange.api_key, exchange.api_version)
            frames += 1
    assert frames in (1726, 931)


def test_requests_inside_envelopes_re_encode_to_the_same_bytes() -> None:
    inner: Counter[str] = Counter()
    for exchange in read_exchanges(CAPTURES / "controller-4.3.1.pcap"):
        if exchange.api_key != api_keys.ENVELOPE or exchange.request is None or exchange.response is None:
            continue
        request = reread_request(exchange.request, exchange.api_key, exchange.api_version)
        response = reread_response(exchange.response, exchange.api_key, exchange.api_version)
        api_key, version = (int.from_bytes(request.request_data[i : i + 2]) for i in (0, 2))
        reread_request(request.request_data, api_key, version)
        reread_response(response.response_data, api_key, version)
        principal = request.request_principal
        assert messages.DefaultPrincipalData.read_from(principal, int.from_bytes(principal[:2]), 2)[1] == len(principal)
        inner[api_keys.name(api_key)] += 1
    assert sum(inner.values()) == 26
    assert inner["IncrementalAlterConfigs"] == inner["ListPartitionReassignments"] == 9


def test_metadata_records_inside_fetches_re_encode_to_the_same_bytes() -> None:
    seen: Counter[str] = Counter()
    for data in metadata_batches():
        for batch in record_batch.read_batches(data):
            for key, value in batch.records:
                assert value is not None
                seen[reread_control(key, value) if batch.is_control else reread_metadata(value)] += 1
    assert {"LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"} < set(seen)
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "PartitionChangeRecord"} < set(seen)
    assert sum(seen.values()) > 500


def test_metadata_batches_re_encode_to_the_same_bytes() -> None:
    batches = 0
    for data in metadata_batches():
        for header in record_batch.read_headers(data):
            batch = record_batch.read_batch(data, header)
            if batch.is_control or len(set(batch.timestamps_ms)) > 1:
                continue
            values = [value for _, value in batch.records if value is not None]
            assert data[header.position : header.end] == record_batch.encode(
                values,
                base_offset=batch.base_offset,
                leader_epoch=batch.leader_epoch,
                timestamp_ms=batch.timestamps_ms[0],
            )
            batches += 1
    assert batches > 500


def metadata_batches() -> Iterator[bytes]:
    for exchange in read_exchanges(CAPTURES / "controller-4.3.1.pcap"):
        if exchange.api_key == api_keys.FETCH and exchange.response is not None:
            response = reread_response(exchange.response, exchange.api_key, exchange.api_version)
            for topic in response.responses:
                assert topic.topic_id == METADATA_TOPIC_ID
                yield from (partition.records for partition in topic.partitions if partition.records)


def reread_control(key: bytes | None, value: bytes) -> str:
    cls: Any = records.by_name(CONTROL_RECORDS[record_batch.control_type(key)])
    version = int.from_bytes(value[:2])
    assert cls.read(value, version).write(version) == value
    return str(cls.__name__)


def reread_metadata(value: bytes) -> str:
    record = metadata_log_frame.decode(value)
    assert metadata_log_frame.encode(*record) == value
    return type(record.record).__name__


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
