"""Sockets of the controller listener: what arrives in parts, ends early or is not read, on both event loops."""

import asyncio
import contextlib
import os
import resource
import socket
import struct
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
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


def open_sockets() -> int:
    """Count sockets only: libuv opens /dev/null once, to have a file for when there are no more."""
    found = 0
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{each}").startswith("socket:")
    return found


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
        await until(lambda: listener.connections() and listener.connections()[0].writing_paused)
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
    before = open_sockets()
    async with Controller() as controller:
        running = open_sockets()
        for number in range(40):
            client_socket = await connected(controller.port)
            await send(client_socket, api_versions(number) if number % 2 else b"\0\0\0")
            if number % 4 > 1:
                client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client_socket.close()
        await until(lambda: len(controller.journal.closed()) == 40)
        assert open_sockets() == running
        left_open = [await connected(controller.port) for _ in range(3)]
        await until(lambda: controller.running.node.connections == 3)
    for client_socket in left_open:
        client_socket.close()
    assert open_sockets() == before


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


async def test_a_protocol_that_raises_loses_its_connection_only(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with Controller() as controller:
        controller.is_judged = True  # it is broken on purpose
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


async def test_a_request_does_not_overtake_a_fetch_that_waits() -> None:
    async with Controller() as controller:
        log = controller.running.controller.log
        with await connected(controller.port) as broker, await connected(controller.port) as other:
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            broker.send(write_request(registration_request(controller.cluster_id, 1), 4, 0, "test"))
            registered = BrokerRegistrationResponse.read((await frames_until(broker, 1))[0][5:], 4)
            heartbeat = BrokerHeartbeatRequest(
                broker_id=1, broker_epoch=registered.broker_epoch, current_metadata_offset=registered.broker_epoch
            )
            for number in (0, 1, 2):
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


async def test_a_client_that_reads_late_gets_whole_responses() -> None:
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
