"""Whatever bytes come over real sockets: order, limits, slow readers, and a listener that goes on serving others."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import Listener, draw_config
from mockraft.brokers.listener.client_listener import ListenerError
from mockraft.wire import client
from mockraft.wire.connection import write_request
from mockraft.wire.messages.metadata_request import MetadataRequest

from ...budgets import budget
from ...rows import each_row
from ..conftest import running, started

Serving = Callable[..., Any]


@pytest.fixture
async def start() -> AsyncIterator[Serving]:
    """A running broker with these options on a controller of its own."""
    brokers: list[SimulatedBroker] = []
    async with Controller() as controller:

        async def run(**options: Any) -> SimulatedBroker:
            brokers.append(await started(controller, len(brokers) + 1, serve_clients=True, **options))
            return brokers[-1]

        yield run
        for broker in brokers:
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
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_the_bound_port_is_registered_and_advertised(start: Serving) -> None:
    broker = await start()
    connection = await client.connect(*address(broker))
    try:
        (result,) = (await connection.send(MetadataRequest(topics=[]))).brokers
        assert (result.host, result.port) == address(broker)
        assert broker.listener.bootstrap == f"{result.host}:{result.port}"
    finally:
        await connection.close()


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


async def test_nobody_is_let_in_before_the_broker_has_caught_up() -> None:
    broker = SimulatedBroker.joining("127.0.0.1:9", "T0ta1ly_Mocked-Cluster", 1, serve_clients=True)
    broker.start()
    try:
        assert address(broker)[1] != 0
        with pytest.raises(client.DisconnectedError):
            await client.connect(*address(broker))
    finally:
        await broker.kill()


async def test_a_port_that_is_taken_is_reported_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = SimulatedBroker.joining("127.0.0.1:9", "T0ta1ly_Mocked-Cluster", 1, serve_clients=True, port=port)
        with pytest.raises(
            ListenerError, match=f"listener PLAINTEXT cannot be bound to 127.0.0.1:{port}.*another port"
        ):
            await broker.__aenter__()
    assert broker.listener is not None
    assert broker.listener.connections == {}


@each_row("name", ["socket.request.max.bytes", "connections.max.idle.ms", "group.consumer.session.timeout.ms"])
def test_a_property_that_is_no_number_is_refused_in_kafkas_words(name: str) -> None:
    with pytest.raises(ValueError, match=f"Invalid value many for configuration {name}: Not a number of type"):
        draw_config(1, "a-cluster", (), random.Random(1), properties={name: "many"})


VALID = [write_request(api.request(), api.versions[1], 1, "fuzz") for api in APIS.values()]
frames = st.binary(max_size=200)
headed = st.builds(
    lambda key, version, rest: key.to_bytes(2) + version.to_bytes(2) + rest,
    st.sampled_from(sorted(APIS)),
    st.integers(0, 20),
    st.binary(max_size=120),
)


@st.composite
def damaged(draw: Any) -> bytes:
    """A whole request, cut short or with some of its bytes changed."""
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=budget(8, 25))
@given(st.lists(st.one_of(frames, damaged(), headed.map(lambda data: len(data).to_bytes(4) + data)), max_size=8))
def test_a_listener_outlives_any_bytes(chunks: list[bytes]) -> None:
    async def work() -> int:
        async with Controller() as controller, running(controller) as broker:
            host, port = broker.config.listeners[0].host, broker.config.listeners[0].port
            for chunk in chunks:
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(chunk)
                writer.write_eof()
                async with asyncio.timeout(30):
                    await reader.read()
                writer.close()
                await writer.wait_closed()
            connection = await client.connect(host, port)
            result = await connection.send(MetadataRequest(topics=[]))
            await connection.close()
            return len(result.brokers)

    assert asyncio.run(work()) == 1
