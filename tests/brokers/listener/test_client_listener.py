"""A broker's client listener over real sockets: order, limits, bad bytes, slow readers, and nothing left behind."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import Listener, draw_config
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.client_listener import ListenerError
from mockraft.brokers.listener.limits import Limits
from mockraft.wire import client, error_codes
from mockraft.wire.connection import FrameReader, read_response_body, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from mockraft.wire.messages.push_telemetry_request import PushTelemetryRequest
from mockraft.wire.messages.vote_request import VoteRequest

Serving = Callable[..., Any]


async def until(condition: Callable[[], Any], timeout_s: float = 10) -> Any:
    async with asyncio.timeout(timeout_s):
        while not (found := condition()):
            await asyncio.sleep(0.005)
    return found


@pytest.fixture
async def start() -> AsyncIterator[Serving]:
    """A running broker with these options on a controller of its own."""
    started: list[SimulatedBroker] = []
    async with Controller() as controller:

        async def run(**options: Any) -> SimulatedBroker:
            options = {"serve_clients": True, **options}
            broker = SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, len(started) + 1, **options)
            started.append(broker)
            broker.start()
            await broker.wait_until(BrokerState.RUNNING)
            return broker

        yield run
        for broker in started:
            await broker.kill()


def address(broker: SimulatedBroker, number: int = 0) -> tuple[str, int]:
    listener = broker.config.listeners[number]
    return listener.host, listener.port


def metadata(correlation_id: int, version: int = 13) -> bytes:
    return write_request(MetadataRequest(topics=[]), version, correlation_id, "test")


async def answered(broker: SimulatedBroker, data: bytes) -> bytes:
    """All that comes back until the broker closes."""
    reader, writer = await asyncio.open_connection(*address(broker))
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_the_bound_port_is_registered_and_advertised(start: Serving) -> None:
    broker = await start()
    connection = await client.connect(*address(broker))
    try:
        (told,) = (await connection.send(MetadataRequest(topics=[]))).brokers
        assert (told.host, told.port) == address(broker)
        assert broker.listener.bootstrap == f"{told.host}:{told.port}"
    finally:
        await connection.close()


async def test_pipelined_requests_are_answered_in_order_however_they_are_cut(start: Serving) -> None:
    broker = await start()
    reader, writer = await asyncio.open_connection(*address(broker))
    data = b"".join(metadata(number) for number in range(100))
    for cut in range(0, len(data), 7):
        writer.write(data[cut : cut + 7])
    frames, answers = FrameReader(), []
    async with asyncio.timeout(10):
        while len(answers) < 100:
            answers += frames.receive_data(await reader.read(1 << 16))
    writer.close()
    await writer.wait_closed()
    assert [int.from_bytes(answer[:4]) for answer in answers] == list(range(100))


async def test_a_version_of_api_versions_that_nobody_knows_is_answered_in_version_0(start: Serving) -> None:
    broker = await start()
    reader, writer = await asyncio.open_connection(*address(broker))
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    data = bytearray(write_request(request, 4, 9, "test"))
    data[6:8] = (99).to_bytes(2)
    writer.write(data)
    size = int.from_bytes(await reader.readexactly(4))
    answer = await reader.readexactly(size)
    response = read_response_body(answer, 4, 18, 0)
    assert (response.error_code, [(each.api_key, each.max_version) for each in response.api_keys]) == (
        error_codes.UNSUPPORTED_VERSION,
        [(18, 4)],
    )
    writer.write(metadata(10))
    assert await reader.readexactly(4)
    writer.close()
    await writer.wait_closed()


TRUNCATED = metadata(1)[4:-2]
BAD = {
    "an API that only controllers have": (write_request(VoteRequest(), 2, 1, "t"), "is not served on this listener"),
    "an API that is not served": (write_request(PushTelemetryRequest(), 0, 1, "t"), "is not served on this listener"),
    "an API that there is not": (b"\0\0\0\x0a\x7f\xff\0\0" + bytes(6), "there is no request with the api key"),
    "a version that there is not": (b"\0\0\0\x0b\0\x03\0\x63" + bytes(7), "has no version 99 here"),
    "a negative version": (b"\0\0\0\x0a\0\x03\xff\xff" + bytes(6), "has no version -1 here"),
    "a negative size": (b"\xff\xff\xff\xff", "negative length"),
    "a size above the limit": (b"\x7f\xff\xff\xff", "the limit is 104857600"),
    "no header": (b"\0\0\0\x01\0", "has no API key"),
    "an empty frame": (bytes(4), "has no API key"),
    "a body that ends early": (len(TRUNCATED).to_bytes(4) + TRUNCATED, "end too soon"),
}


@pytest.mark.parametrize("what", BAD)
async def test_bad_bytes_close_the_connection_and_no_other(start: Serving, what: str) -> None:
    broker = await start()
    good = await client.connect(*address(broker))
    data, why = BAD[what]
    assert await answered(broker, data) == b""
    assert why in broker.listener.clients.closings[-1]
    assert (await good.send(MetadataRequest(topics=[]))).brokers
    await good.close()


async def test_what_came_before_bad_bytes_is_answered(start: Serving) -> None:
    broker = await start()
    answers = await answered(broker, metadata(1) + metadata(2) + b"\xff\xff\xff\xff")
    ids = [int.from_bytes(each[:4]) for each in FrameReader().receive_data(answers)]
    assert ids == [1, 2]


async def test_an_unfinished_request_and_a_sudden_end_leave_nothing(start: Serving) -> None:
    broker = await start()
    for data in (b"", metadata(1)[:9], metadata(1)):
        _, writer = await asyncio.open_connection(*address(broker))
        await until(lambda: broker.listener.connections)
        writer.write(data)
        writer.transport.abort()
        await until(lambda: not broker.listener.connections)
    assert broker.state is BrokerState.RUNNING


async def test_a_client_that_does_not_read_is_not_read_from(start: Serving) -> None:
    broker = await start()
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(address(broker))
        peer.setblocking(False)
        asked, sent = b"".join(metadata(number) for number in range(1000)), 0
        stuck = 0
        while stuck < 50:
            try:
                sent += peer.send(asked)
                stuck = 0
            except BlockingIOError:
                stuck += 1
                await asyncio.sleep(0.01)
        (connection,) = broker.listener.connections.values()
        assert connection.transport.get_write_buffer_size() < 1 << 18
        other = await client.connect(*address(broker))
        assert (await other.send(MetadataRequest(topics=[]))).brokers
        await other.close()
    await until(lambda: not broker.listener.connections)


async def test_one_connection_too_many_is_turned_away(start: Serving) -> None:
    broker = await start(properties={"max.connections": "1"})
    first = await client.connect(*address(broker))
    assert await answered(broker, metadata(1)) == b""
    assert "max.connections=1" in broker.listener.clients.closings[-1]
    await first.close()
    await until(lambda: not broker.listener.connections)
    second = await client.connect(*address(broker))
    assert second.is_open
    await second.close()


async def test_an_idle_connection_is_closed(start: Serving) -> None:
    broker = await start(properties={"connections.max.idle.ms": "40"})
    assert await answered(broker, b"\0") == b""
    assert broker.listener.clients.closings == ["idle for connections.max.idle.ms=40"]


async def test_a_request_as_large_as_the_limit_is_taken_and_one_byte_more_is_not(start: Serving) -> None:
    size = len(metadata(1)) - 4
    broker = await start(properties={"socket.request.max.bytes": str(size)})
    reader, writer = await asyncio.open_connection(*address(broker))
    writer.write(metadata(1))
    assert len(await reader.readexactly(8)) == 8
    writer.close()
    await writer.wait_closed()
    assert await answered(broker, (size + 1).to_bytes(4)) == b""


async def test_several_listeners_know_their_names(start: Serving) -> None:
    seen = (await start()).config
    config = draw_config(7, seen.cluster_id, seen.bootstrap, random.Random(7), serve_clients=True)
    listeners = (Listener("INSIDE", "127.0.0.1", 0), Listener("OUTSIDE", "127.0.0.1", 0))
    broker = SimulatedBroker(dataclasses.replace(config, listeners=listeners))
    try:
        broker.start()
        await broker.wait_until(BrokerState.RUNNING)
        for number in (0, 1):
            connection = await client.connect(*address(broker, number))
            ports = [each.port for each in (await connection.send(MetadataRequest(topics=[]))).brokers]
            await connection.close()
            assert ports == [broker.config.listeners[number].port]
    finally:
        await broker.kill()


async def test_nothing_is_left_after_close(start: Serving) -> None:
    broker = await start()
    connection = await client.connect(*address(broker))
    await broker.kill()
    assert broker.listener.connections == {}
    with pytest.raises(client.DisconnectedError):
        await connection.send(MetadataRequest(topics=[]))
    with pytest.raises(client.DisconnectedError):
        await client.connect(*address(broker))
    assert {task for task in asyncio.all_tasks() if "answer" in repr(task)} == set()
    await connection.close()


async def test_an_answer_that_cannot_be_said_closes_the_connection(
    start: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await start()

    def handle(request: Any, ctx: Any) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name=None)])

    monkeypatch.setitem(APIS, 3, dataclasses.replace(APIS[3], handle=handle))
    assert await answered(broker, metadata(1, version=9)) == b""
    assert "cannot be written in version 9" in broker.listener.clients.closings[-1]


async def test_a_handler_that_breaks_is_an_unknown_error_and_nothing_else(
    start: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await start()

    def handle(request: Any, ctx: Any) -> MetadataResponse:
        raise ZeroDivisionError

    connection = await client.connect(*address(broker))
    with monkeypatch.context() as patched:
        patched.setitem(APIS, 3, dataclasses.replace(APIS[3], handle=handle))
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        (topic,) = (await connection.send(request)).topics
        assert topic.error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert (await connection.send(MetadataRequest(topics=[]))).brokers
    await connection.close()


async def test_nobody_is_let_in_before_the_broker_has_caught_up() -> None:
    broker = SimulatedBroker.joining("127.0.0.1:9", "T0ta1ly_Mocked-Cluster", 1, serve_clients=True)
    broker.start()
    try:
        assert address(broker)[1] != 0
        with pytest.raises(client.DisconnectedError):
            await client.connect(*address(broker))
    finally:
        await broker.kill()


async def test_a_port_that_is_taken_is_said_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = SimulatedBroker.joining("127.0.0.1:9", "T0ta1ly_Mocked-Cluster", 1, serve_clients=True, port=port)
        with pytest.raises(
            ListenerError, match=f"listener PLAINTEXT cannot be bound to 127.0.0.1:{port}.*another port"
        ):
            await broker.__aenter__()
    assert broker.listener is not None
    assert broker.listener.connections == {}


@pytest.mark.parametrize("name", ["socket.request.max.bytes", "max.connections", "connections.max.idle.ms"])
def test_a_limit_that_is_no_number_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Limits.of({name: "many"})
    assert Limits.of({name: "7"}) != Limits()
