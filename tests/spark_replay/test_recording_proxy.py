"""The proxy between simulated brokers and a controller: forwarding, translation, recording."""

import asyncio
import contextlib
import errno
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum, SimulatedBroker
from mockraft.brokers.lifecycle import BrokerState
from mockraft.kafka.child_process import free_port
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recorded_exchanges import RecordedExchanges
from mockraft.spark_replay.recording import INDEX_SUFFIX, Filter, Recording
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.wire import api_keys, record_batch
from mockraft.wire.client import connect
from mockraft.wire.connection import parse_request, read_response, write_request
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.records.voters_record import VotersRecord

from ..rows import each_row
from .formats.segment_rows import counts, rows


def proxied(path: Path, *upstreams: Endpoint, **options: Any) -> RecordingProxy:
    recording = Recording(path, bytes_max=options.pop("bytes_max", None), kept=options.pop("kept", None))
    return RecordingProxy(recording, upstreams, **options)


def upstream_of(controller: Controller) -> Endpoint:
    return Endpoint(controller.host, controller.port)


@contextlib.asynccontextmanager
async def serving(handler: Callable[..., Awaitable[None]]) -> AsyncIterator[Endpoint]:
    async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
        yield Endpoint(*server.sockets[0].getsockname())


async def said_by(listener: Endpoint, first: bytes = b"") -> bytes:
    """Everything that comes after these bytes until the connection is closed."""
    reader, writer = await asyncio.open_connection(*listener)
    writer.write(first)
    said = await reader.read()
    writer.close()
    return said


async def run_a_broker(bootstrap: str, controller: Controller) -> None:
    async with SimulatedBroker.joining(bootstrap, controller.cluster_id, 1, seed=1, serve_clients=False) as broker:
        await broker.wait_until(BrokerState.RUNNING)


async def test_a_broker_runs_behind_the_proxy_and_every_exchange_is_in_the_file_and_in_the_index(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.pcapng"
    async with Controller() as controller, proxied(path, upstream_of(controller)) as proxy:
        await run_a_broker(proxy.bootstrap, controller)
        direct = Counter(each.api_key for each in controller.journal.exchanges())
        upstream = upstream_of(controller)
    exchanges = read_exchanges(path)
    answered = Counter(each.api_key for each in exchanges if each.response)
    assert direct - answered == Counter()
    assert direct[api_keys.BROKER_REGISTRATION] == 1
    assert {Endpoint(each.server, each.server_port) for each in exchanges} == {upstream}
    lines = [json.loads(line) for line in (tmp_path / ("run.pcapng" + INDEX_SUFFIX)).read_text().splitlines()]
    assert Counter(line["apiKey"] for line in lines) == Counter(each.api_key for each in exchanges)
    with path.open("rb") as file:
        for line in lines:
            file.seek(line["requestOffset"])
            assert file.read(4) == b"\x06\0\0\0"


async def test_responses_name_only_proxy_and_file_keeps_original_bytes(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    async with Controller() as controller, proxied(path, upstream_of(controller)) as proxy:
        upstream = upstream_of(controller)
        listener = proxy.listeners[upstream]
        answer, cluster = await asked(listener, fetch_request(), DescribeClusterRequest(endpoint_type=2))
        assert voters_in(answer) == [listener]
        assert [Endpoint(node.host, node.port) for node in answer.node_endpoints] == [listener]
        assert [Endpoint(node.host, node.port) for node in cluster.brokers] == [listener]
    said = {each.api_key: each for each in read_exchanges(path)}
    fetch = said[api_keys.FETCH]
    assert fetch.response is not None
    really = read_response(fetch.response, api_keys.FETCH, fetch.api_version)
    assert voters_in(really) == [upstream]
    assert [Endpoint(node.host, node.port) for node in really.node_endpoints] == [upstream]


async def test_opens_listener_for_controller_named_in_response(tmp_path: Path) -> None:
    async with Quorum(3) as quorum:
        first = Endpoint("127.0.0.1", int(quorum.bootstrap.split(",")[0].rpartition(":")[2]))
        async with proxied(tmp_path / "run.pcapng", first) as proxy:
            result: set[Endpoint] = set()
            while len(result) < 3:  # until all have registered
                (cluster,) = await asked(proxy.listeners[first], DescribeClusterRequest(endpoint_type=2))
                result = {Endpoint(node.host, node.port) for node in cluster.brokers}
            assert result == set(proxy.listeners.values())
            for listener in result:
                (answer,) = await asked(listener, DescribeClusterRequest(endpoint_type=2))
                assert {Endpoint(node.host, node.port) for node in answer.brokers} == result


async def test_filter_records_some_apis_and_forwards_all(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    kept = Filter.parse(["BrokerRegistration,brokerheartbeat"])
    async with Controller() as controller, proxied(path, upstream_of(controller), kept=kept) as proxy:
        await run_a_broker(proxy.bootstrap, controller)
    assert {each.api_key for each in read_exchanges(path)} == {api_keys.BROKER_REGISTRATION, api_keys.BROKER_HEARTBEAT}


async def test_limit_ends_recording_with_valid_file_but_not_traffic(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    async with Controller() as controller, proxied(path, upstream_of(controller), bytes_max=2_000) as proxy:
        await run_a_broker(proxy.bootstrap, controller)
        assert proxy.recording.ended == f"{path} has reached its limit of 2000 bytes"
    assert 0 < path.stat().st_size <= 2_000
    assert next(each.api_key for each in read_exchanges(path) if each.response) == api_keys.API_VERSIONS


async def test_full_disk_ends_recording_but_not_traffic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.pcapng"
    really_write, room = os.write, [3_000]

    def write(descriptor: int, data: bytes) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = really_write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    async with Controller() as controller, proxied(path, upstream_of(controller)) as proxy:
        monkeypatch.setattr("mockraft.spark_replay.recording.os.write", write)
        await run_a_broker(proxy.bootstrap, controller)
        assert proxy.recording.ended is not None
        assert "No space left on device" in proxy.recording.ended
    assert len(rows(path)) > 5
    assert counts(path) == {}


def test_a_disk_that_is_full_from_the_start_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        Recording(path)


async def test_encrypted_bytes_are_forwarded_and_recorded_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    hello = b"\x16\x03\x01\x00\x05hello"

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(hello)))
        writer.close()

    async with serving(echo) as upstream, proxied(path, upstream) as proxy:
        assert await said_by(proxy.listeners[upstream], hello) == hello
    assert [row.payload for row in rows(path) if row.payload] == [hello, hello]
    assert read_exchanges(path) == []


async def test_non_kafka_frame_closes_connection_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    events: list[str] = []
    async with Controller() as controller, proxied(path, upstream_of(controller), on_event=events.append) as proxy:
        assert await said_by(proxy.listeners[upstream_of(controller)], b"GET / HTTP/1.1\r\n\r\n") == b""
    assert "not a Kafka frame" in events[0]


async def test_reports_unreachable_upstream_and_closes_client(tmp_path: Path) -> None:
    events: list[str] = []
    gone = Endpoint("127.0.0.1", free_port())
    async with proxied(tmp_path / "run.pcapng", gone, on_event=events.append) as proxy:
        assert await said_by(proxy.listeners[gone]) == b""
    assert events == [f"cannot connect to {gone}: Connection refused"]


def test_a_password_does_not_reach_the_file(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "run.pcapng")
    connection = recording.connection(Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2), 0)
    frame = write_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, 1, "c")[4:]
    connection.request(parse_request(frame), 0)
    recording.close()
    assert b"secret" not in recording.path.read_bytes()
    (exchange,) = read_exchanges(recording.path)
    assert exchange.api_key == api_keys.SASL_AUTHENTICATE


async def test_exchanges_in_memory_equal_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    heard = RecordedExchanges()
    async with (
        Controller() as controller,
        RecordingProxy(heard, [upstream_of(controller)]) as before,
        proxied(path, before.listeners[upstream_of(controller)]) as proxy,
    ):
        client = await connect(*proxy.listeners[before.listeners[upstream_of(controller)]], client_id="a-test")
        for _ in range(3):
            await client.send(DescribeClusterRequest(endpoint_type=2))
        await client.close()
    read = read_exchanges(path)
    for name in ("number", "client_id", "api_key", "request_frame_no", "request"):
        assert [getattr(each, name) for each in heard.exchanges] == [getattr(each, name) for each in read]
    assert [each.response_frame_no for each in heard.exchanges] == [0, 1, 2, 3]
    assert all(each.response and each.latency_ns for each in heard.exchanges)


def test_exchanges_in_memory_are_limited_and_without_passwords() -> None:
    heard = RecordedExchanges(bytes_max=100, exchanges_max=1)
    connection = heard.connection(Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2), 0)
    login = write_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, 1, "c")[4:]
    connection.request(parse_request(login), 0)
    assert b"secret" not in (heard.exchanges[0].request or b"secret")
    for number in range(2, 20):
        connection.request(parse_request(write_request(DescribeClusterRequest(), 1, number, "c")[4:]), number)
        connection.response(api_keys.DESCRIBE_CLUSTER, number.to_bytes(4), number)
    assert len(heard.exchanges) == 1
    assert 0 < heard.not_kept[api_keys.DESCRIBE_CLUSTER] < 10
    assert heard.bytes_kept <= 100
    assert (heard.ended, heard.requests) == ("the recording has reached its limit of 100 bytes", 19)


@each_row("text", ["Heartbeats", "!Fetsch"])
def test_rejects_filter_with_unknown_api(text: str) -> None:
    with pytest.raises(ValueError, match="there is no API"):
        Filter.parse([text])


def fetch_request() -> FetchRequest:
    """An observer's first."""
    partition = FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=1, last_fetched_epoch=0, replica_directory_id=bytes(16)
    )
    topic = FetchTopic(topic_id=(1).to_bytes(16), partitions=[partition])
    return FetchRequest(max_bytes=1 << 20, max_wait_ms=0, topics=[topic], replica_state=ReplicaState(replica_id=1))


async def asked(listener: Endpoint, *requests: Any) -> list[Any]:
    connection = await connect(*listener)
    answers = [await connection.send(request) for request in requests]
    await connection.close()
    return answers


def voters_in(response: Any) -> list[Endpoint]:
    (topic,) = response.responses
    values = [
        value
        for batch in record_batch.read_batches(bytes(topic.partitions[0].records or b""))
        if batch.is_control
        for key, value in batch.records
        if record_batch.control_type(key) == record_batch.KRAFT_VOTERS and value is not None
    ]
    voters = [voter for value in values for voter in VotersRecord.read(value, 0).voters]
    return [Endpoint(each.host, each.port) for voter in voters for each in voter.endpoints]


async def test_forwards_raw_sasl_token_without_recording_it(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    token = b"\0alice\0secret"
    come = bytearray()
    ended = asyncio.Event()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            come.extend(data)
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with serving(swallow) as upstream, proxied(path, upstream) as proxy:
        _, writer = await asyncio.open_connection(*proxy.listeners[upstream])
        handshake = write_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1, "c")
        writer.write(handshake + len(token).to_bytes(4) + token)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await asyncio.wait_for(ended.wait(), 20)
    assert come.endswith(token)
    assert b"PLAIN" in path.read_bytes()
    assert b"secret" not in path.read_bytes()


async def test_half_closed_client_still_gets_pending_responses(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    asked_frame = write_request(DescribeClusterRequest(), 1, 7, "c")
    answer = (8).to_bytes(4) + (7).to_bytes(4) + b"late"

    async def answer_after_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == asked_frame
        writer.write(answer)
        writer.close()

    async with serving(answer_after_the_end) as upstream, asyncio.timeout(60), proxied(path, upstream) as proxy:
        reader, writer = await asyncio.open_connection(*proxy.listeners[upstream])
        writer.write(asked_frame)
        writer.write_eof()
        assert await reader.read() == answer
        writer.close()
        assert not proxy.open_connections
    (exchange,) = read_exchanges(path)
    assert exchange.response is not None


async def test_records_controller_that_sends_first(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    said = (5).to_bytes(4) + b"hello"

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    async with serving(speak) as upstream, asyncio.timeout(60), proxied(path, upstream) as proxy:
        assert await said_by(proxy.listeners[upstream]) == said
    assert [row.payload for row in rows(path) if row.payload] == [said]


async def test_a_listener_that_was_not_served_yet_is_closed_with_the_proxy(tmp_path: Path) -> None:
    first, found = Endpoint("127.0.0.1", free_port()), Endpoint("127.0.0.1", free_port())
    async with proxied(tmp_path / "run.pcapng", first) as proxy:
        listener = Endpoint(*proxy.translate(*found))
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*listener)
