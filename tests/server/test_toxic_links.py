"""Byte toxics through real sockets by a clock that the test moves, on all clients or on chosen ones."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mockraft import Controller, stub
from mockraft.kafka_api import shell
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.toxic_links import HELD_BYTES_MAX, ToxicLink
from mockraft.wire import client
from mockraft.wire.connection import FrameReader, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..waiting import until
from .conftest import Party

DEADLINE_S = 60.0
ASK = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def question(client_id: str = "test") -> bytes:
    return write_request(ASK, 3, 1, client_id)


class World:
    """A controller, its faults, its clock, and clients that are read by hand."""

    def __init__(self, controller: Controller, clock: VirtualClock) -> None:
        self.controller = controller
        self.clock = clock
        self.clients: list[socket.socket] = []

    @property
    def faults(self) -> Faults:
        return self.controller.script.faults

    @property
    def peers(self) -> list[Any]:
        return self.controller.running.listener.connections()

    @property
    def asked(self) -> int:
        return len(self.controller.journal.exchanges())

    async def connect(self) -> socket.socket:
        client = socket.socket()
        client.setblocking(False)
        self.clients.append(client)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", self.controller.port))
        return client

    async def ask(self, client: socket.socket, data: bytes | None = None) -> None:
        await asyncio.get_running_loop().sock_sendall(client, question() if data is None else data)

    async def asking(self, data: bytes | None = None) -> socket.socket:
        """A new client that has sent its question."""
        client = await self.connect()
        await self.ask(client, data)
        return client

    async def read(self, client: socket.socket, size: int) -> bytes:
        data = b""
        async with asyncio.timeout(DEADLINE_S):
            while len(data) < size:
                part = await asyncio.get_running_loop().sock_recv(client, min(size - len(data), 1 << 16))
                if not part:
                    break
                data += part
        return data

    async def answer(self, client: socket.socket) -> bytes:
        await self.ask(client)
        size = await self.read(client, 4)
        return size + await self.read(client, int.from_bytes(size))


def silent(client: socket.socket) -> bool:
    """Return True if there is nothing to read, not even an end of file."""
    try:
        client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = VirtualClock()
    async with Controller(clock=clock, metadata_max_idle_interval_ms=3_600_000, assert_all_used=False) as controller:
        made = World(controller, clock)
        yield made
        for client in made.clients:
            client.close()


@pytest.fixture
async def plain(world: World) -> bytes:
    """The answer when nothing is in its way."""
    return await world.answer(await world.connect())


async def settle() -> None:
    """A few turns of the loop, for what must not come."""
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


async def test_links_without_faults_use_the_socket_directly(world: World, plain: bytes) -> None:
    assert len(plain) > 100
    assert [isinstance(peer.transport, ToxicLink) for peer in world.peers] == [False]


async def test_latency_holds_an_answer_until_its_time(world: World, plain: bytes) -> None:
    client = await world.connect()
    fault = world.faults.add("latency", latency_ms=300)
    await world.ask(client)
    await until(lambda: world.asked == 2)
    world.clock.advance(299)
    await settle()
    assert silent(client)
    world.clock.advance(1)
    assert await world.read(client, len(plain)) == plain
    assert fault.fired == 1


async def test_upstream_latency_holds_the_question(world: World, plain: bytes) -> None:
    world.faults.add("latency", latency_ms=300, direction="upstream")
    client = await world.asking()
    await until(lambda: len(world.peers) == 2 and world.peers[1].transport._up.held_bytes)
    assert world.asked == 1
    world.clock.advance(300)
    assert await world.read(client, len(plain)) == plain


async def test_disabled_fault_releases_its_bytes_and_is_removed(world: World, plain: bytes) -> None:
    client = await world.connect()
    fault = world.faults.add("latency", latency_ms=3_600_000)
    await world.ask(client)
    await until(lambda: world.asked == 2)
    world.faults.enable(fault.id, False)
    assert await world.read(client, len(plain)) == plain
    assert not any(isinstance(peer.transport, ToxicLink) for peer in world.peers)
    assert await world.answer(client) == plain


async def test_half_open_connections_are_taken_and_never_answered(world: World, plain: bytes) -> None:
    fault = world.faults.add("half_open")
    client = await world.asking()
    await until(lambda: fault.fired)
    world.clock.advance(3_600_000)
    await settle()
    assert world.asked == 1
    assert silent(client)
    world.faults.remove(fault.id)
    assert await world.read(client, 1) == b""
    assert await world.answer(await world.connect()) == plain


@pytest.mark.parametrize("kind", ["half_open", "reset_peer"])
async def test_a_connection_ends_after_the_timeout(world: World, kind: str) -> None:
    client = await world.connect()
    await until(lambda: len(world.peers) == 1)
    fault = world.faults.add(kind, timeout_ms=500)
    world.clock.advance(499)
    await settle()
    assert silent(client)
    world.clock.advance(1)
    if kind == "half_open":
        assert await world.read(client, 1) == b""
        assert [line.reason for line in world.controller.journal.closed()] == ["fault half_open-1 (half_open)"]
    else:
        with pytest.raises(ConnectionResetError):
            await world.read(client, 1)
        assert fault.fired == 1


async def test_limit_data_cuts_an_answer_in_the_middle(world: World, plain: bytes) -> None:
    world.faults.add("limit_data", bytes=17)
    client = await world.asking()
    assert await world.read(client, len(plain)) == plain[:17]
    await until(lambda: world.controller.journal.closed())
    assert "limit_data-1" in world.controller.journal.closed()[0].reason


async def test_slow_close_upstream_notices_a_clients_end_late(world: World) -> None:
    world.faults.add("slow_close", delay_ms=5_000, direction="upstream")
    client = await world.connect()
    await until(lambda: world.peers)
    client.close()
    await until(lambda: not world.peers or world.peers[0].transport._up.holds)
    assert world.controller.journal.closed() == []
    world.clock.advance(5_000)
    await until(lambda: world.controller.journal.closed())
    assert world.peers == []


async def test_down_breaks_those_there_are_and_those_that_come(world: World, plain: bytes) -> None:
    client = await world.connect()
    await until(lambda: len(world.peers) == 2)
    fault = world.faults.add("down")
    with pytest.raises(ConnectionResetError):
        await world.read(client, 1)
    with pytest.raises(ConnectionError):
        await world.answer(await world.connect())
    world.faults.remove(fault.id)
    assert await world.answer(await world.connect()) == plain


@pytest.mark.parametrize(
    "scope", [{"client_id": "slow"}, {"client_id": ["slow", "x"]}, {"connection": 2}, {"broker_id": 5}]
)
async def test_a_fault_meets_only_the_connections_it_is_about(world: World, scope: dict[str, Any]) -> None:
    other = await world.asking(question("fast"))
    await world.read(other, 100)
    client = await world.asking(question("slow"))
    await world.read(client, 100)
    heartbeat = write_request(BrokerHeartbeatRequest(broker_id=5, broker_epoch=1), 1, 2, "slow")
    await world.ask(client, heartbeat)
    await until(lambda: world.asked == 3)
    world.faults.add("half_open", **scope)
    links = [isinstance(peer.transport, ToxicLink) for peer in world.peers]
    assert links == [False, True]


async def test_response_to_the_first_identifying_request_is_affected(world: World, plain: bytes) -> None:
    fault = world.faults.add("limit_data", bytes=10, client_id="test")
    client = await world.asking()
    assert await world.read(client, len(plain)) == plain[:10]
    assert fault.fired == 1


@pytest.mark.parametrize("scope", [{"listener": "SSL"}, {"address": "10.0.0.1"}])
async def test_fault_of_another_listener_or_address_affects_no_connection(
    world: World, plain: bytes, scope: dict[str, Any]
) -> None:
    fault = world.faults.add("down", **scope)
    assert await world.answer(await world.connect()) == plain
    assert fault.fired == 0
    assert world.faults.unfired() == [fault]


async def test_toxicity_draws_once_for_each_connection(world: World) -> None:
    for _ in range(40):
        await world.connect()
    await until(lambda: len(world.peers) == 40)
    world.faults.add("latency", toxicity=0.5, seed=2)
    links = [isinstance(peer.transport, ToxicLink) for peer in world.peers]
    assert 8 < sum(links) < 32
    world.faults.add("latency", toxicity=0.0)
    assert [isinstance(peer.transport, ToxicLink) for peer in world.peers] == links


async def test_a_socket_is_not_read_while_too_much_is_held(world: World) -> None:
    fault = world.faults.add("latency", latency_ms=1_000, direction="upstream")
    client = await world.connect()
    long_question = question("n" * 2_000)
    many = long_question * (3 * HELD_BYTES_MAX // len(long_question))
    sending = asyncio.create_task(world.ask(client, many))
    await until(lambda: world.peers and world.peers[0].transport._up.held_bytes >= HELD_BYTES_MAX)
    await settle()
    held = world.peers[0].transport._up.held_bytes
    assert HELD_BYTES_MAX <= held < 2 * HELD_BYTES_MAX
    world.faults.remove(fault.id)
    reading = asyncio.create_task(world.read(client, 1 << 40))
    await until(lambda: world.asked == len(many) // len(long_question))
    reading.cancel()
    await sending
    with contextlib.suppress(asyncio.CancelledError):
        await reading


async def test_a_closed_connection_ends_although_its_client_stops_reading(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "CLOSE_LINGER_S", 0.05)
    world.faults.add("bandwidth", bytes_per_second=1_000_000)
    client = socket.socket()
    world.clients.append(client)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", world.controller.port))
    peer = await until(lambda: world.peers and world.peers[0])
    peer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    peer.send(bytes(300_000))
    assert peer.writing_paused
    world.controller.running.listener.close_connection(peer.connection_id, "test", "closed by the test")
    for _ in range(13):
        world.clock.advance(20)
        assert await world.read(client, 20_000) == bytes(20_000)
    assert not peer.writing_paused
    world.clock.advance(1_000)
    await until(lambda: not world.peers, 10)


async def test_toxics_act_below_tls(party: Party) -> None:
    context = party.client_context()
    context.check_hostname = False
    async with Controller(**party.options()) as controller:
        faults = controller.script.faults
        sliced = faults.add("slicer", average_size=7, direction="both")
        reader, writer = await asyncio.open_connection(controller.host, controller.port, ssl=context)
        writer.write(question())
        size = int.from_bytes(await reader.readexactly(4))
        assert len(await reader.readexactly(size)) == size > 100
        assert sliced.fired > 2
        faults.add("corrupt", every_nth=20)
        writer.write(question())
        with pytest.raises(ssl.SSLError):
            await reader.readexactly(4)
        writer.transport.abort()


QUESTION = write_request(ASK, 3, 1, "test")


async def is_answered(controller: Controller, local_host: str = "127.0.0.1") -> bool:
    """Return True if a client connects from this address."""
    reader, writer = await asyncio.open_connection(controller.host, controller.port, local_addr=(local_host, 0))
    frames = FrameReader()
    try:
        writer.write(QUESTION)
        while data := await reader.read(65_536):
            if frames.receive_data(data):
                return True
    except ConnectionError:
        return False
    finally:
        writer.transport.abort()
    return False


async def test_only_the_first_two_connections_fail() -> None:
    async with Controller() as controller:
        fault = controller.script.faults.add("down", connection=[1, 2])
        assert [await is_answered(controller) for _ in range(4)] == [False, False, True, True]
        assert fault.fired == 2


async def test_only_clients_of_one_address_fail() -> None:
    async with Controller() as controller:
        controller.script.faults.add("limit_data", bytes=0, address="127.0.0.2")
        assert not await is_answered(controller, "127.0.0.2")
        assert await is_answered(controller)


async def test_only_some_requests_fail_on_a_connection_that_is_slow_for_all() -> None:
    async with Controller() as controller:
        with controller.faults.latency(latency_ms=1, client_id="admin"):
            controller.stub("DescribeCluster", client_id="admin").times(1).disconnect_on()
            connection = await client.connect(controller.host, controller.port, client_id="admin")
            with pytest.raises(client.DisconnectedError):
                await connection.send(DescribeClusterRequest(endpoint_type=2))
            connection = await client.connect(controller.host, controller.port, client_id="admin")
            assert (await connection.send(DescribeClusterRequest(endpoint_type=2))).error_code == 0
            await connection.close()


async def test_fault_planned_before_the_start_begins_with_it() -> None:
    clock = VirtualClock()
    controller = Controller(clock=clock, assert_all_used=False)
    faults = controller.script.faults
    faults.add("not_controller")
    faults.run([{"fault": {"kind": "throttle", "params": {"throttleMs": 5}}}, {"at": 50, "fault": {"kind": "down"}}])
    async with controller:
        await asyncio.sleep(0)
        assert [(fault.kind.name, fault.error) for fault in faults.active] == [
            ("not_controller", None),
            ("throttle", None),
        ]
        assert len(controller.script.stubs.stubs) == 2
        clock.advance(50)
        assert [fault.kind.name for fault in faults.active][-1] == "down"


async def test_answers_keep_their_order_when_a_late_one_and_the_next_question_are_due_at_once() -> None:
    clock = VirtualClock()
    async with Controller(clock=clock) as controller, asyncio.timeout(60):
        slow = controller.script.stubs.add(stub("ApiVersions").once().delay_on(1))
        reader, writer = await asyncio.open_connection(controller.host, controller.port)
        writer.write(QUESTION)
        while not slow.called:
            await asyncio.sleep(0.002)
        clock.advance(0)  # The controller's own periodic work was due; from now on its timer is the late answer's.
        controller.script.faults.add("latency", latency_ms=1, direction="upstream", client_id="test")
        (peer,) = controller.running.listener.connections()
        writer.write(write_request(ASK, 3, 2, "test"))
        assert isinstance(peer.transport, ToxicLink)
        while not peer.transport._up.held_bytes:
            await asyncio.sleep(0.002)
        clock.advance(1)
        frames = FrameReader()
        result: list[bytes] = []
        while len(result) < 2:
            result += frames.receive_data(await reader.read(65_536))
        assert [int.from_bytes(frame[:4]) for frame in result] == [1, 2]
        writer.transport.abort()
