"""Faults that users of toxiproxy requested: only the first two, only one client's address, only one kind of request."""

from __future__ import annotations

import asyncio

import pytest
from mockraft import Controller, stub
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.toxic_links import ToxicLink
from mockraft.wire import client
from mockraft.wire.connection import FrameReader, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

ASK = ApiVersionsRequest(client_software_name="a", client_software_version="1")
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
    controller = Controller(clock=clock)
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
