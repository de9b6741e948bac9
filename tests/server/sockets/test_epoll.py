"""Sockets of the controller listener: what arrives in parts, ends early or is not read, on both event loops."""

import asyncio
import contextlib
import os
import resource
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from mockraft import Controller
from mockraft.server import tcp
from mockraft.server.clock import VirtualClock
from mockraft.server.effects import Effect
from mockraft.server.epoll import server
from mockraft.server.epoll.receiver import PureReceiver
from mockraft.server.epoll.transport import EpollTransport
from mockraft.server.repeats import LONG_RESPONSE_BYTES
from mockraft.server.tcp_connections import TcpConnection
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse

from ...conftest import registration_request
from ...fetches import fetch_request
from ...waiting import until
from ..test_tcp import connected, filler, frames_until, listening, send_many

VERY_MANY = 1_000
RESET = struct.pack("ii", 1, 0)


def api_versions(number: int) -> bytes:
    return write_request(ApiVersionsRequest(), 0, number, "test")


def ids_of(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[:4]) for frame in frames]


async def send(client_socket: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(client_socket, data)


async def end_of(client_socket: socket.socket) -> int:
    """Read until the server closes; return the number of bytes before that."""
    received = 0
    while data := await asyncio.get_running_loop().sock_recv(client_socket, 1 << 20):
        received += len(data)
    return received


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_frames_in_parts_and_many_in_one_part() -> None:
    async with Controller() as controller:
        with await connected(controller.port) as client_socket:
            for byte in api_versions(0):
                await send(client_socket, bytes([byte]))
                await asyncio.sleep(0)
            await send(client_socket, b"".join(map(api_versions, range(1, 60))) + api_versions(60)[:9])
            await send(client_socket, api_versions(60)[9:])
            assert ids_of(await frames_until(client_socket, 61)) == list(range(61))


async def test_an_end_in_mid_frame_is_journalled_and_requests_before_it_are_answered() -> None:
    async with Controller() as controller:
        with await connected(controller.port) as client_socket:
            await send(client_socket, api_versions(1) + api_versions(2)[:9])
            client_socket.shutdown(socket.SHUT_WR)
            assert await end_of(client_socket) > 100
        await until(lambda: controller.journal.closed())
        assert controller.journal.closed()[0].reason == "the peer closed, in a frame (9 of 18 bytes)"


async def test_a_reset_ends_a_connection_that_is_not_read_and_has_bytes_to_send(still_controller: Any) -> None:
    async with listening(still_controller, filler(1_000_000)) as (listener, port):
        client_socket = await connected(port, receive_bytes=4_096)
        await send_many(client_socket, 20)
        await until(lambda: listener.connections()[0].writing_paused)
        client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client_socket.close()
        await until(lambda: not listener.connections())
        assert "the connection broke" in listener.node.journal.closed()[0].reason


async def test_a_closed_connection_still_sends_what_was_written(still_controller: Any) -> None:
    async with listening(still_controller, filler(8_000_000)) as (listener, port):
        with await connected(port, receive_bytes=4_096) as client_socket:
            await send_many(client_socket, 1)
            await until(lambda: listener.connections() and listener.connections()[0].unread_bytes)
            listener.close_connection(1, "test", "closed by the test")
            listener.connections()[0].send(b"too late")
            assert await end_of(client_socket) > 8_000_000
            await until(lambda: not listener.connections())
            assert [closed.reason for closed in listener.node.journal.closed()] == ["closed by the test"]


async def test_no_file_descriptor_stays_open() -> None:
    before = open_files()
    async with Controller() as controller:
        running = open_files()
        for number in range(40):
            client_socket = await connected(controller.port)
            await send(client_socket, api_versions(number) if number % 2 else b"\0\0\0")
            if number % 4 > 1:
                client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client_socket.close()
        await until(lambda: len(controller.journal.closed()) == 40)
        assert open_files() == running
        left_open = [await connected(controller.port) for _ in range(3)]
        await until(lambda: controller.running.node.connections == 3)
    for client_socket in left_open:
        client_socket.close()
    assert open_files() == before


async def test_many_connections_are_answered_at_once() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * VERY_MANY)), hard))
    async with Controller() as controller:
        sockets = [await connected(controller.port) for _ in range(VERY_MANY)]
        for round_number in range(3):
            for number, client_socket in enumerate(sockets):
                client_socket.send(api_versions(VERY_MANY * round_number + number))
            for number, client_socket in enumerate(sockets):
                assert ids_of(await frames_until(client_socket, 1)) == [VERY_MANY * round_number + number]
        for client_socket in sockets:
            client_socket.close()
        await until(lambda: not controller.running.node.connections)
        assert controller.journal.counters()["exchanges"] == {"ApiVersions": 3 * VERY_MANY}


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Let no further file be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_free = os.dup(0)
    os.close(next_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_accepts_again_when_files_can_be_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "EXHAUSTED_PAUSE_S", 0.01)
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    async with Controller() as controller:
        client_socket = socket.socket()
        client_socket.setblocking(False)
        with no_more_files():
            await loop.sock_connect(client_socket, ("127.0.0.1", controller.port))
            await until(lambda: len(reported) >= 2)
            assert not controller.running.node.connections
        await send(client_socket, api_versions(7))
        assert ids_of(await frames_until(client_socket, 1)) == [7]
        client_socket.close()
    assert {context["exception"].args[1] for context in reported} == {"Too many open files"}


async def test_a_protocol_that_raises_loses_its_connection_only(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with Controller() as controller:
        with await connected(controller.port) as broken, await connected(controller.port) as other:
            await until(lambda: controller.running.node.connections == 2)
            with monkeypatch.context() as patched:
                patched.setattr(controller.running.node, "step", None)
                await send(broken, api_versions(1))
                with contextlib.suppress(ConnectionResetError):
                    assert await end_of(broken) == 0
            await send(other, api_versions(2))
            assert ids_of(await frames_until(other, 1)) == [2]
        assert [type(context["exception"]) for context in reported] == [TypeError]


@pytest.mark.parametrize("held_us", [60_000_000, 0])
async def test_responses_of_a_turn_wait_for_each_other(held_us: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Controller() as controller:
        node, events = controller.running.node, list[tuple[str, int]]()
        sockets = [await connected(controller.port) for _ in range(4)]
        await until(lambda: node.connections == len(sockets))
        step, send_now = node.step, TcpConnection.send

        def stepped(connection_id: int, data: bytes, now_ms: int) -> list[Effect]:
            events.append(("step", connection_id))
            if connection_id == 2:
                raise ValueError("no answer")
            return step(connection_id, data, now_ms)

        def sent(connection: TcpConnection, data: bytes) -> None:
            events.append(("send", connection.connection_id))
            send_now(connection, data)

        monkeypatch.setattr(tcp, "HELD_US", held_us)
        monkeypatch.setattr(node, "step", stepped)
        monkeypatch.setattr(TcpConnection, "send", sent)
        asyncio.get_running_loop().set_exception_handler(lambda _, context: None)
        for number, client_socket in enumerate(sockets):
            client_socket.send(write_request(registration_request(controller.cluster_id, number), 4, number, "test"))
        for number in (0, 2, 3):
            assert ids_of(await frames_until(sockets[number], 1)) == [number]
        if held_us:
            assert events == [("step", each) for each in (1, 2, 3, 4)] + [("send", each) for each in (1, 3, 4)]
        else:
            of_each = [(what, each) for each in (1, 2, 3, 4) for what in ("step", "send")]
            assert events == [each for each in of_each if each != ("send", 2)]
        for client_socket in sockets:
            client_socket.close()


async def test_a_repeated_request_does_not_overtake_a_fetch_that_is_answered_in_the_same_turn() -> None:
    async with Controller() as controller:
        log = controller.running.controller.log
        with await connected(controller.port) as broker, await connected(controller.port) as other:
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            broker.send(write_request(registration_request(controller.cluster_id, 1), 4, 0, "test"))
            registered = BrokerRegistrationResponse.read((await frames_until(broker, 1))[0][5:], 4)
            heartbeat = BrokerHeartbeatRequest(
                broker_id=1, broker_epoch=registered.broker_epoch, current_metadata_offset=registered.broker_epoch
            )
            for number in (0, 1, 2):  # unfenced by the first, remembered from the second on
                broker.send(write_request(heartbeat, 1, number, "test"))
                await frames_until(broker, 1)
            fetch = fetch_request(log.end_offset, log.leader_epoch, max_wait_ms=60_000, min_bytes=1)
            broker.send(write_request(fetch, 17, 3, "test"))
            await until(lambda: controller.running.node.parked)
            other.send(write_request(registration_request(controller.cluster_id, 2), 4, 0, "test"))
            broker.send(write_request(heartbeat, 1, 4, "test"))
            assert ids_of(await frames_until(broker, 2)) == [3, 4]


async def test_answers_at_time_0() -> None:
    async with Controller(clock=VirtualClock(0)) as controller:
        with await connected(controller.port) as client_socket:
            client_socket.send(api_versions(1))
            assert ids_of(await frames_until(client_socket, 1)) == [1]


@pytest.mark.parametrize(("long_us", "order"), [(0, [1, 2, 1]), (60_000_000, [1, 1, 2])])
async def test_the_next_request_after_a_long_one_waits_for_others(
    long_us: int, order: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Controller() as controller:
        node, stepped = controller.running.node, list[int]()
        sockets = [await connected(controller.port) for _ in range(2)]
        await until(lambda: node.connections == len(sockets))
        frames = [write_request(registration_request(controller.cluster_id, n), 4, n, "test") for n in range(3)]
        step = node.step

        def step_during_which_others_send(connection_id: int, data: bytes, now_ms: int) -> list[Effect]:
            stepped.append(connection_id)
            if len(stepped) == 1:
                sockets[1].send(frames[1])
                sockets[0].send(frames[2])
            return step(connection_id, data, now_ms)

        monkeypatch.setattr(tcp, "LONG_US", long_us)
        monkeypatch.setattr(node, "step", step_during_which_others_send)
        sockets[0].send(frames[0])
        assert ids_of(await frames_until(sockets[0], 2)) == [0, 2]
        assert ids_of(await frames_until(sockets[1], 1)) == [1]
        assert stepped == order
        for client_socket in sockets:
            client_socket.close()


async def test_serves_without_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "epoll")
    async with Controller() as controller:
        with await connected(controller.port) as client_socket:
            for number in range(3):
                await send(client_socket, api_versions(number))
                assert ids_of(await frames_until(client_socket, 1)) == [number]
        await until(lambda: controller.journal.closed())


async def test_requests_that_repeat_in_one_turn_are_all_recorded() -> None:
    async with Controller(metadata_max_idle_interval_ms=3_600_000) as controller:
        server, node = controller.running.controller, controller.running.node
        sockets = [await connected(controller.port) for _ in range(6)]
        heartbeats = []
        for broker_id in (1, 2, 3):
            registration = registration_request(server.config.cluster_id, broker_id)
            await send(sockets[0], write_request(registration, 4, 1, str(broker_id)))
            (frame,) = await frames_until(sockets[0], 1)
            epoch = BrokerRegistrationResponse.read(frame[5:], 4).broker_epoch
            heartbeats.append(BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, want_fence=False))
        begun = node.journal.mark()
        for offset in (100, 100, 101, 101, 101, 102, 102, 100, 103):
            for number, client_socket in enumerate(sockets):
                heartbeat = heartbeats[number % 3]
                # The same broker on two connections, with offsets and client ids that differ, too.
                heartbeat.current_metadata_offset = offset + number // 3
                client_socket.send(write_request(heartbeat, 1, offset, f"{number % 3} {offset % 2}"))
            for client_socket in sockets:
                assert ids_of(await frames_until(client_socket, 1)) == [offset]
            assert [server.heartbeats.brokers[each].metadata_offset for each in (1, 2, 3)] == [offset + 1] * 3
        assert node.journal.mark() == begun + 54
        assert node.journal.counters()["exchanges"] == {"BrokerHeartbeat": 54, "BrokerRegistration": 3}
        offsets = [each.request.current_metadata_offset for each in node.journal.exchanges(63)[-6:]]
        assert sorted(offsets) == [103] * 3 + [104] * 3
        for client_socket in sockets:
            client_socket.close()


@pytest.mark.parametrize("is_long", [True, False])
async def test_of_the_responses_of_a_turn_only_a_long_one_does_not_wait(is_long: bool) -> None:
    class WatchingClock(VirtualClock):
        """Notes, for each request, which clients have something to read."""

        def now_us(self) -> int:
            readable.append(clients.poll(0))
            return super().now_us()

    clients, readable = select.poll(), list[list[tuple[int, int]]]()
    async with Controller(clock=WatchingClock()) as controller:
        log = controller.running.controller.log
        sockets = [await connected(controller.port) for _ in range(2)]
        for client_socket in sockets:
            clients.register(client_socket, select.POLLIN)
        registration = registration_request(controller.cluster_id, 1, rack="r" * LONG_RESPONSE_BYTES)
        sockets[0].send(write_request(registration, 4, 0, "test"))
        await frames_until(sockets[0], 1)
        fetch = fetch_request(log.end_offset - is_long, log.leader_epoch, max_wait_ms=0)
        frame = write_request(fetch, 17, 1, "test")
        for turn in range(2):  # the first answers are remembered
            readable.clear()
            for client_socket in sockets:
                client_socket.send(frame)
            sizes = {len((await frames_until(client_socket, 1))[0]) for client_socket in sockets}
            assert {size >= LONG_RESPONSE_BYTES for size in sizes} == {is_long}, turn
        assert any(readable) == is_long
        for client_socket in sockets:
            client_socket.close()


async def test_a_client_that_reads_late_gets_whole_responses_to_requests_that_repeat() -> None:
    async with Controller(metadata_max_idle_interval_ms=3_600_000) as controller:
        log = controller.running.controller.log
        with await connected(controller.port, receive_bytes=4_096) as client_socket:
            for broker_id in range(6):
                request = registration_request(controller.cluster_id, broker_id, rack="r" * 32_000)
                client_socket.send(write_request(request, 4, broker_id, "test"))
                await frames_until(client_socket, 1)
            (connection,), begun = controller.running.listener.connections(), controller.journal.mark()
            fetch = fetch_request(0, log.leader_epoch, max_wait_ms=0)
            for number in range(100):
                await send(client_socket, write_request(fetch, 17, number, "test"))
                while controller.journal.mark() <= begun + number and not connection.unread_bytes:
                    await asyncio.sleep(0)
            assert connection.unread_bytes
            frames = await frames_until(client_socket, 100)
            assert ids_of(frames) == list(range(100))
            assert (len({frame[4:] for frame in frames}), len(frames[0]) > 6 * 32_000) == (1, True)


async def test_requests_that_repeat_lose_their_connections_only_if_they_cannot_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with Controller() as controller:
        sockets = [await connected(controller.port) for _ in range(3)]
        for client_socket in sockets:
            await send(client_socket, api_versions(1))
            assert ids_of(await frames_until(client_socket, 1)) == [1]
        *broken, other = sockets
        with monkeypatch.context() as patched:
            patched.setattr(controller.running.node.responses, "now_us", lambda: 1 // 0)
            for client_socket in broken:
                client_socket.send(api_versions(2))
            for client_socket in broken:
                assert await end_of(client_socket) == 0
        await send(other, api_versions(2))
        assert ids_of(await frames_until(other, 1)) == [2]
        for client_socket in sockets:
            client_socket.close()
    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError] * 2


@pytest.mark.accelerated
@pytest.mark.parametrize("value", [0, -1, 1 << 31, "65536"])
def test_the_receiver_in_c_names_a_constant_that_it_cannot_use(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    from mockraft_speed import _repeats

    monkeypatch.setattr(EpollTransport, "READ_BYTES", value)
    classes: Any = {cls.__name__: cls for cls in (TcpConnection, EpollTransport, PureReceiver)}
    with pytest.raises(TypeError, match=r"^EpollTransport\.READ_BYTES is no positive int$"):
        _repeats.Receiver(0, [], None, None, int, float, classes)
