"""Examples for docs/faults.md: network faults, plans, chaos and release emulation."""

import pytest
from mockraft import Controller
from mockraft.server.clock import VirtualClock
from mockraft.server.stubs.faults.chaos import chaos
from mockraft.wire import client
from mockraft.wire.json_form import Json
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest


async def test_client_works_with_latency_and_slicer() -> None:
    async with Controller() as controller:
        with controller.faults.latency(latency_ms=30, jitter_ms=10), controller.faults.slicer(average_size=16):
            connection = await client.connect(controller.host, controller.port, client_id="admin")
            answer = await connection.send(DescribeClusterRequest(endpoint_type=2))
            assert answer.cluster_id == controller.cluster_id
        await connection.close()


async def test_limit_data_closes_one_client_inside_a_response() -> None:
    async with Controller() as controller:
        cut = controller.double.script.faults.add("limit_data", bytes=17, client_id="unlucky")
        lucky = await client.connect(controller.host, controller.port, client_id="lucky")
        with pytest.raises(client.DisconnectedError):
            await client.connect(controller.host, controller.port, client_id="unlucky")
        assert cut.fired == 1
        await lucky.close()


async def test_broker_is_fenced_while_its_connections_are_half_open() -> None:
    async with Controller(session_timeout_ms=1_000, brokers=1) as controller:
        with controller.faults.half_open(broker_id=1):
            await controller.wait_until(lambda: controller.state.broker(1).fenced)
        await controller.wait_until(lambda: not controller.state.broker(1).fenced)
        assert controller.faults.active == []


async def test_plan_follows_the_virtual_clock() -> None:
    clock = VirtualClock()
    async with Controller(clock=clock) as controller:
        faults = controller.double.script.faults
        plan: list[Json] = [
            {"at": 1_000, "duration": 5_000, "ramp": 4_000, "fault": {"kind": "latency", "params": {"latencyMs": 400}}},
            {"at": 8_000, "duration": 500, "fault": {"kind": "down"}},
        ]
        faults.run(plan)
        clock.advance(3_000)
        (slow,) = faults.active
        assert slow.params_now["latency_ms"] == 200
        clock.advance(5_000)
        assert [fault.kind.name for fault in faults.active] == ["down"]
        clock.advance(500)
        assert faults.active == []


async def test_chaos_plan_is_reproducible() -> None:
    clock = VirtualClock()
    async with Controller(clock=clock) as controller:
        plan = chaos(seed=7, kinds=["latency", "slicer", "reset_peer"], targets=[{"clientId": "admin"}])
        assert plan == chaos(seed=7, kinds=["latency", "slicer", "reset_peer"], targets=[{"clientId": "admin"}])
        controller.double.script.faults.run(plan)
        clock.advance(62_000)
        assert controller.double.script.faults.active == []


async def test_emulates_an_older_release() -> None:
    async with Controller(release="3.9", api_versions={"Vote": "off"}) as controller:
        connection = await client.connect(controller.host, controller.port, client_id="test")
        assert connection.api_versions[63] == (0, 1)
        assert 52 not in connection.api_versions
        await connection.close()

        controller.double.as_version("4.1")
        connection = await client.connect(controller.host, controller.port, client_id="test")
        assert connection.api_versions[1] == (4, 18)
        await connection.close()
