"""The clients of a broker, without sockets and with them: order, parked requests, limits, slow readers, bad bytes."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import socket
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.apis.api import BrokerView, Parked
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import Listener, draw_config
from mockraft.brokers.coordinators.group_coordinator import Groups
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.listener.client_listener import ListenerError
from mockraft.brokers.listener.clients import Clients, Limits
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.effects import AwaitSent, Close, PauseReading, ResumeReading, Send
from mockraft.wire import api_keys, client, error_codes
from mockraft.wire.connection import FrameReader, read_response_body, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.messages.metadata_response import MetadataResponse
from mockraft.wire.messages.push_telemetry_request import PushTelemetryRequest
from mockraft.wire.messages.vote_request import VoteRequest

from ...budgets import budget
from ...rows import each_row
from ..conftest import running, started

UNLIMITED = Limits()


class Bench:
    """Clients with one connection, number 1, and the bytes that it was sent."""

    def __init__(self, limits: Limits = UNLIMITED) -> None:
        self.wakes = 0
        self.delay_ms = 0
        self.groups = Groups({})
        broker = SimpleNamespace(
            apis=APIS,
            config=draw_config(1, "a-cluster", (("127.0.0.1", 9),), random.Random(1)),
            image=ClusterImage(),
            observer=SimpleNamespace(applied_offset=41, voters={}),
            forwarding=SimpleNamespace(api_versions=None),
            replicas=SimpleNamespace(disk_delay_ms=lambda _keys: self.delay_ms),
            groups=SimpleNamespace(groups=self.groups),
            shares=Mock(next_tick_ms=lambda: NEVER_MS),
            rng=random.Random(1),
        )
        self.clients = Clients(cast(BrokerView, broker), limits, self._wake)
        self.effects = self.clients.connected(1, "127.0.0.1", 0, "PLAINTEXT")
        self.clients.tick(0)

    def _wake(self) -> None:
        self.wakes += 1

    def receive(self, data: bytes, now_ms: int = 0) -> list[Any]:
        self.effects = self.clients.step(1, data, now_ms)
        return list(self.effects)

    def tick(self, now_ms: int) -> list[Any]:
        self.effects = self.clients.tick(now_ms)
        return list(self.effects)

    @property
    def answered(self) -> list[int]:
        """Correlation ids of the responses among the last effects."""
        data = b"".join(effect.data for effect in self.effects if isinstance(effect, Send))
        return [int.from_bytes(frame[:4]) for frame in FrameReader().receive_data(data)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def metadata(correlation_id: int, version: int = 13) -> bytes:
    return write_request(MetadataRequest(topics=[]), version, correlation_id, "test")


def handle_metadata(monkeypatch: pytest.MonkeyPatch, handle: Any, **changes: Any) -> None:
    key = api_keys.METADATA
    monkeypatch.setitem(APIS, key, dataclasses.replace(APIS[key], handle=handle, **changes))


def test_answers_an_unknown_version_of_api_versions_in_version_0(bench: Bench) -> None:
    data = bytearray(
        write_request(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4, 9, "t")
    )
    data[6:8] = (99).to_bytes(2)
    (sent,) = bench.receive(bytes(data))
    response = read_response_body(sent.data, 8, 18, 0)
    assert (response.error_code, [(each.api_key, each.max_version) for each in response.api_keys]) == (
        error_codes.UNSUPPORTED_VERSION,
        [(18, ApiVersionsRequest.max_version)],
    )
    bench.receive(metadata(10))
    assert bench.answered == [10]


TRUNCATED = metadata(1)[4:-2]
BAD = {
    "an API that only controllers have": (write_request(VoteRequest(), 2, 1, "t"), "is not served on this listener"),
    "an API that is not served": (write_request(PushTelemetryRequest(), 0, 1, "t"), "is not served on this listener"),
    "a body that ends early": (len(TRUNCATED).to_bytes(4) + TRUNCATED, "end too soon"),
}


@pytest.mark.parametrize("case", BAD)
def test_closes_the_connection_for_bad_bytes_after_the_requests_before_them(bench: Bench, case: str) -> None:
    data, reason = BAD[case]
    *_, closed = bench.receive(metadata(1) + metadata(2) + data)
    assert bench.answered == [1, 2]
    assert closed == Close(1, bench.clients.closings[-1])
    assert reason in closed.reason
    assert bench.receive(metadata(3)) == []


def test_closes_one_connection_too_many() -> None:
    bench = Bench(Limits(max_connections=1))
    (closed,) = bench.clients.connected(2, "127.0.0.1", 0)
    assert closed == Close(2, "refused: 1 connections are open, connections_max=1")
    bench.clients.disconnected(1, "the peer closed", 0)
    assert bench.clients.connected(3, "127.0.0.1", 0) == []


def test_takes_a_request_as_large_as_the_limit_and_none_larger() -> None:
    size = len(metadata(1)) - 4
    bench = Bench(Limits(socket_request_max_bytes=size))
    bench.receive(metadata(1))
    assert bench.answered == [1]
    (closed,) = bench.receive((size + 1).to_bytes(4))
    assert isinstance(closed, Close)


@pytest.mark.parametrize("is_parked", [False, True])
def test_answers_an_unknown_error_when_a_handler_breaks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_parked: bool
) -> None:
    def broken(*_arguments: Any) -> MetadataResponse:
        raise ZeroDivisionError

    handle_metadata(monkeypatch, (lambda _request, _ctx: Parked(5, broken)) if is_parked else broken)
    effects = bench.receive(write_request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 13, 1, "test"))
    (sent,) = effects or bench.tick(5)
    (topic,) = read_response_body(sent.data, 9, 3, 13).topics
    assert topic.error_code == error_codes.UNKNOWN_SERVER_ERROR


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Metadata requests are parked for 100 ms, or until the list has an entry."""
    entries: list[bool] = []

    def handle(_request: MetadataRequest, ctx: Any) -> Parked[MetadataResponse]:
        return Parked(ctx.now_ms + 100, lambda _now_ms, expired: MetadataResponse() if expired or entries else None)

    handle_metadata(monkeypatch, handle)
    return entries


def test_answers_a_parked_request_after_a_change_and_then_the_next_one(bench: Bench, ready: list[bool]) -> None:
    assert bench.receive(metadata(1) + metadata(2)) == [PauseReading(1)]
    bench.clients.changed()
    bench.clients.changed()
    assert (bench.wakes, bench.clients.next_tick_ms(0)) == (1, 0)
    assert bench.tick(10) == []
    ready.append(True)
    assert bench.clients.next_tick_ms(0) == 100
    bench.clients.changed()
    bench.tick(20)
    assert bench.answered == [1]
    assert AwaitSent(1) in bench.effects
    bench.effects = bench.clients.sent(1, 20)
    assert bench.answered == [2]
    assert ResumeReading(1) in bench.effects


def test_a_slow_disk_delays_a_request(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def handle(_request: MetadataRequest, ctx: Any) -> MetadataResponse:
        times.append(ctx.now_ms)
        return MetadataResponse()

    handle_metadata(monkeypatch, handle, replicas=lambda _request, _ctx: [])
    bench.delay_ms = 30
    bench.receive(metadata(1), 5)
    bench.clients.changed()
    assert bench.tick(10) == []
    bench.tick(35)
    assert (bench.answered, times) == ([1], [35])


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
