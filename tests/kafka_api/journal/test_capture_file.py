"""The journal as a capture, read by tshark and by our own capture reader."""

import csv
import shutil
import subprocess
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.journal import ClosedConnection, Entry, Exchange, Journal, pcapng_pieces
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.frames import read_frames
from mockraft.wire.connection import parse_request

from .conftest import heartbeat

pytestmark = pytest.mark.programs

SERVERS = {3000: ("127.0.0.1", 9093), 3001: ("::1", 9094)}


def tshark(path: Path, port: int, *fields: str) -> list[list[str]]:
    program = shutil.which("tshark")
    assert program is not None, "tshark is missing: apt-get install tshark"
    command: list[str | Path] = [
        program,
        "-r",
        path,
        "-d",
        f"tcp.port=={port},kafka",
        "-Y",
        "kafka",
        "-T",
        "fields",
        "-E",
        "occurrence=a",
    ]
    command += [part for field in fields for part in ("-e", field)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return list(csv.reader(text.splitlines(), delimiter="\t"))


@pytest.fixture
def cluster(tmp_path: Path) -> tuple[Path, int, list[Exchange]]:
    """Traffic between a controller and a broker until the broker runs, as a file; its port; the journal."""
    path = tmp_path / "journal.pcapng"
    with Controller.sync(brokers=1) as controller:
        port = controller.port
        entries = list(controller.journal.entries)
    with path.open("wb") as file:
        file.writelines(pcapng_pieces(entries, {3000: ("127.0.0.1", port)}))
    return path, port, [entry for entry in entries if isinstance(entry, Exchange)]


def test_tshark_reads_every_exchange_as_kafka(cluster: tuple[Path, int, list[Exchange]]) -> None:
    path, port, exchanges = cluster
    packets = tshark(path, port, "kafka.api_key", "kafka.correlation_id", "tcp.dstport", "_ws.expert.message")
    asked = [(int(key), int(number)) for key, number, to_port, _ in packets if int(to_port) == port]
    assert sorted(asked) == sorted((exchange.api_key, exchange.correlation_id) for exchange in exchanges)
    assert 63 in {key for key, _ in asked}
    answered = [int(packet[1]) for packet in packets if int(packet[2]) != port]
    assert sorted(answered) == sorted(exchange.correlation_id for exchange in exchanges)
    # What Debian's tshark cannot read are versions of APIs that came after it.
    assert not [said for *_, said in packets if "alformed" in said and "Unsupported" not in said]


def test_our_own_reader_gives_back_the_same_frames(cluster: tuple[Path, int, list[Exchange]]) -> None:
    path, port, exchanges = cluster
    read = read_exchanges(path, [port])
    frames = {(each.request, each.response) for each in read if each.request and each.response}
    assert frames == {(each.request_frame, each.response_frame[4:]) for each in exchanges}
    assert {parse_request(frame).api_key for frame, _ in frames} >= {1, 18, 62, 63}


def test_connections_of_all_nodes_end_and_begin_again(tmp_path: Path, journals: list[Journal]) -> None:
    journals[0].add_exchange(heartbeat(1, at_ms=1000, reason="dropped", peer_address="127.0.0.1:40000"))
    refused = ClosedConnection(5, "127.0.0.1:40000", 900, 1003, "refused", True, b"\x00\x3f\x00\x63\x00\x00\x00\x01")
    journals[0].add_closed(refused, "request")
    journals[0].add_exchange(heartbeat(2, at_ms=1005, peer_address="unknown"))
    journals[1].add_exchange(heartbeat(3, at_ms=1001, peer_address="::1:40001"))
    entries: list[Entry] = [entry for journal in journals for entry in journal.entries]
    path = tmp_path / "journal.pcapng"
    with path.open("wb") as file:
        file.writelines(pcapng_pieces(entries, SERVERS))
    events: list[Any] = []
    assert sum(batch.num_rows for batch in read_frames(path, [9093, 9094], conn_events=events)) == 5
    (desync,) = [row for batch in events for row in batch.to_pylist() if row["kind"] == "desync"]
    assert desync["detail"].endswith("2a 2a 2a 2a 2a 2a 2a 2a")
    read = read_exchanges(path, [9093, 9094])
    servers = [(str(Endpoint(each.server, each.server_port)), each.response is not None) for each in read]
    assert sorted(servers) == [("127.0.0.1:9093", False), ("127.0.0.1:9093", True), ("[::1]:9094", True)]


def test_a_name_is_written_as_the_loopback(tmp_path: Path) -> None:
    path = tmp_path / "journal.pcapng"
    with path.open("wb") as file:
        file.writelines(pcapng_pieces([heartbeat(peer_address="[::1]:1")], {0: ("controller", 9093)}))
    (exchange,) = read_exchanges(path, [9093])
    assert (ip_address(exchange.server), exchange.server_port) == (ip_address("::ffff:127.0.0.1"), 9093)
