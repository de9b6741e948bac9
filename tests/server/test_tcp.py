import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import RealClock, VirtualClock
from mockraft.kafka_api.listening import bind
from mockraft.server.apis import api_versions
from mockraft.server.apis.api import AnyApi
from mockraft.server.config import ControllerConfig
from mockraft.server.node import Node
from mockraft.server.tcp import TcpListener
from mockraft.wire import client
from mockraft.wire.connection import FrameReader, write_request
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..fetches import fetch_request
from ..waiting import until
from .conftest import allocation_api

DEADLINE_S = 60.0


def filler(size: int) -> AnyApi:
    """An API that answers with so many bytes; it stands for a Fetch of a long log."""
    response = AllocateProducerIdsResponse(unknown_tagged_fields=[(9, bytes(size))])
    return allocation_api(lambda request, ctx, controller: response)


@contextlib.asynccontextmanager
async def listening(controller: Any, *apis: AnyApi, clock: Any = None) -> AsyncIterator[tuple[TcpListener, int]]:
    node = Node(controller, {api.api_key: api for api in (api_versions.API, *apis)})
    listener = TcpListener(node, clock or RealClock())
    bound = bind("127.0.0.1", 0)
    await listener.start(bound)
    try:
        yield listener, bound.getsockname()[1]
    finally:
        await listener.stop()


async def connected(port: int, receive_bytes: int | None = None) -> socket.socket:
    """A client's socket that is only read by hand."""
    client_socket = socket.socket()
    if receive_bytes is not None:
        client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client_socket.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client_socket, ("127.0.0.1", port))
    return client_socket


async def send_many(client_socket: socket.socket, count: int) -> None:
    """Send so many requests, numbered from 0, which are answered by the filler."""
    requests = b"".join(write_request(AllocateProducerIdsRequest(), 0, n, "many") for n in range(count))
    await asyncio.get_running_loop().sock_sendall(client_socket, requests)


async def frames_until(client_socket: socket.socket, count: int) -> list[bytes]:
    loop, reader = asyncio.get_running_loop(), FrameReader()
    frames: list[bytes] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(frames) < count:
            data = await loop.sock_recv(client_socket, 1 << 20)
            assert data, f"closed after {len(frames)} of {count} responses"
            frames += reader.receive_data(data)
    return frames


async def test_answers_over_a_socket() -> None:
    async with Controller() as controller:
        connection = await client.connect(controller.host, controller.port, client_id="test")
        assert connection.api_versions[63] == (0, 2)
        await connection.close()
        await until(lambda: controller.journal.closed())
        broken = await connected(controller.port)
        await until(lambda: controller.running.node.connections == 1)
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broken.close()
        await until(lambda: len(controller.journal.closed()) == 2)
        ended, reset = (line.reason for line in controller.journal.closed())
        assert ended == "the peer closed"
        assert "the connection broke" in reset, "a reset"


async def test_stops_with_connections_open() -> None:
    async with Controller() as controller:
        client_socket = await connected(controller.port)
        await until(lambda: controller.running.node.connections == 1)
        journal = controller.journal
    assert await asyncio.get_running_loop().sock_recv(client_socket, 100) == b""
    assert [line.reason for line in journal.closed()] == ["the controller stops"]
    client_socket.close()


async def test_a_parked_fetch_is_answered_by_the_clock() -> None:
    clock = VirtualClock()
    async with Controller(clock=clock, metadata_max_idle_interval_ms=3_600_000) as controller:
        node = controller.running.node
        client_socket = await connected(controller.port)
        request = fetch_request(node.controller.log.end_offset, node.controller.log.leader_epoch)
        await asyncio.get_running_loop().sock_sendall(client_socket, write_request(request, 17, 3, "raft"))
        await until(lambda: node.parked == 1)
        clock.advance(499)
        assert node.parked == 1
        clock.advance(1)
        (frame,) = await frames_until(client_socket, 1)
        assert frame[:4] == struct.pack(">i", 3)
        client_socket.close()


async def test_connections_of_all_listeners_have_a_limit(still_controller: Any) -> None:
    async with listening(still_controller, filler(1)) as (first, port), listening(still_controller) as (_, other):
        first.turns.connections_max = 2
        try:
            kept = [await connected(port), await connected(other)]
            await until(lambda: first.turns.connections == 2)
            refused = await connected(other)
            assert await asyncio.get_running_loop().sock_recv(refused, 1) == b""
            refused.close()
            kept.pop().close()
            await until(lambda: first.turns.connections == 1)
            kept.append(await connected(port))
            await send_many(kept[-1], 1)
            await frames_until(kept[-1], 1)
        finally:
            first.turns.connections_max = sys.maxsize
            for each in kept:
                each.close()


async def test_a_client_that_reads_late_gets_every_answer_in_order(still_controller: Any) -> None:
    async with listening(still_controller, filler(50_000)) as (_, port):
        client_socket = await connected(port, receive_bytes=16_384)
        await send_many(client_socket, 400)
        await asyncio.sleep(0)
        frames = await frames_until(client_socket, 400)
        assert [struct.unpack_from(">i", frame)[0] for frame in frames] == list(range(400))
        client_socket.close()


async def test_a_client_that_never_reads_costs_bounded_memory_and_is_closed(still_controller: Any) -> None:
    still_controller.config = ControllerConfig(write_stuck_ms=300)
    async with listening(still_controller, filler(100_000)) as (listener, port):
        greedy = await connected(port, receive_bytes=4_096)
        await send_many(greedy, 2000)
        largest = 0
        journal = listener.node.journal
        async with asyncio.timeout(DEADLINE_S):
            while not journal.closed():
                largest = max([largest, *(peer.unread_bytes for peer in listener.connections())])
                await asyncio.sleep(0.001)
        assert 0 < largest < 4 << 20
        (line,) = journal.closed()
        assert line.reason.startswith("the peer read nothing for 300 ms")
        assert journal.counters()["closed"] == {"write_stuck_ms": 1}
        await until(lambda: not listener.connections())
        greedy.close()


async def test_a_client_with_too_much_unread_is_closed(still_controller: Any) -> None:
    still_controller.config = ControllerConfig(write_bytes_max=200_000)
    async with listening(still_controller, filler(900_000)) as (listener, port):
        greedy = await connected(port, receive_bytes=4_096)
        await send_many(greedy, 100)
        await until(lambda: listener.node.journal.closed())
        assert "write_bytes_max=200000" in listener.node.journal.closed()[0].reason
        await until(lambda: not listener.connections())
        greedy.close()


async def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    async with Controller(connections_max_idle_ms=5_000) as controller:
        idle, busy = await connected(controller.port), await connected(controller.port)
        listener = controller.running.listener
        await until(lambda: len(listener.connections()) == 2)
        for connection in listener.connections():
            connection.active_at -= 5
        await asyncio.get_running_loop().sock_sendall(busy, write_request(ApiVersionsRequest(), 0, 1, "busy"))
        await frames_until(busy, 1)
        await until(lambda: controller.journal.closed())
        assert await asyncio.get_running_loop().sock_recv(idle, 1) == b""
        assert [line.reason for line in controller.journal.closed()] == ["idle for 5000 ms"]
        assert controller.running.node.connections == 1
        idle.close()
        busy.close()


def test_bind_raises_for_a_port_in_use() -> None:
    first = bind("127.0.0.1", 0)
    first.listen()
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", first.getsockname()[1])
    first.close()


def test_the_blocking_class_runs_in_its_own_thread() -> None:
    with Controller.sync() as controller:
        with socket.create_connection((controller.host, controller.port)) as client_socket:
            client_socket.sendall(write_request(ApiVersionsRequest(), 0, 1, "sync"))
            assert client_socket.recv(8)[4:] == b"\0\0\0\1"
        assert controller.call(lambda: controller.running.controller.log.end_offset) > 0
        assert controller.bootstrap == f"{controller.host}:{controller.port}"
