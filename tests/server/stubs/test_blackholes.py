"""Clients that are not answered any more, until they are."""

import asyncio
from typing import Any

import pytest
from mockraft import Controller, stub
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire import client
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ...waiting import until

DEADLINE_S = 60.0


@pytest.mark.parametrize("by", ["clientId", "connection"])
async def test_a_blackholed_client_is_answered_once_it_is_released(
    controller: Any, stubs: Any, connect: Any, by: str
) -> None:
    live = stubs.add(stub("BrokerHeartbeat", client_id="lost").once().blackhole(by))
    lost, other = await connect("lost"), await connect("other")
    waiting = asyncio.create_task(lost.code())
    await until(lambda: live.called)
    assert await other.code() == 77
    assert [each["stub"] for each in stubs.blackholed] == [live.id]
    silent, _ = controller.journal.exchanges(63)
    assert (silent.response_frame, silent.matched, silent.reason) == (b"", live.id, f"blackholed (stub {live.id})")
    assert not waiting.done()
    released = stubs.release(client_id="lost") if by == "clientId" else stubs.release(connection=silent.connection_id)
    assert released == 1
    assert await waiting == 77
    assert controller.journal.exchanges(63)[-1].reason == f"blackholed until released (stub {live.id})"


async def test_blackholed_client_waits_on_all_its_connections(stubs: Any, connect: Any) -> None:
    live = stubs.add(stub("BrokerHeartbeat", client_id="lost").blackhole())
    first, second = await connect("lost"), await connect("lost")
    waiting = [asyncio.create_task(first.code())]
    await until(lambda: live.called)
    waiting.append(asyncio.create_task(second.connection.send(DescribeClusterRequest())))
    await until(lambda: len(live.calls) == 2)
    assert not any(task.done() for task in waiting)
    stubs.remove(live)
    await asyncio.gather(*waiting)
    assert (live.call_count, stubs.blackholed) == (1, [])


async def test_a_blackhole_may_come_after_other_answers(stubs: Any, connect: Any) -> None:
    live = stubs.add(stub("BrokerHeartbeat").answers(["NOT_CONTROLLER", "blackhole"]))
    asker, again = await connect("lost"), await connect("lost")
    assert await asker.code() == 41
    waiting = asyncio.create_task(asker.code())
    await until(lambda: stubs.blackholed)
    other = asyncio.create_task(again.code())
    await until(lambda: len(live.calls) == 3)
    assert not waiting.done()
    assert not other.done()
    stubs.reset()
    assert [await waiting, await other] == [77, 77]


@pytest.mark.parametrize("end", ["remove", "disable"])
async def test_release_answers_at_once_though_the_clock_stands_still(end: str) -> None:
    async with Controller(clock=VirtualClock()) as controller:
        stubs = controller.script.stubs
        live = stubs.add(stub("BrokerHeartbeat").blackhole())
        connection = await client.connect(controller.host, controller.port, client_id="lost")
        waiting = asyncio.create_task(connection.send(BrokerHeartbeatRequest(broker_id=1)))
        await until(lambda: live.calls)
        controller.advance(600_000)
        assert not waiting.done()
        if end == "remove":
            stubs.remove(live)
        else:
            stubs.enable(live.id, False)
        async with asyncio.timeout(DEADLINE_S):
            assert (await waiting).error_code == 77
        await connection.close()


async def test_a_blackholed_connection_is_forgotten_when_it_ends(stubs: Any, connect: Any) -> None:
    live = stubs.add(stub("BrokerHeartbeat").blackhole("connection"))
    lost = await connect("lost")
    waiting = asyncio.create_task(lost.code())
    await until(lambda: live.calls)
    waiting.cancel()
    await lost.connection.close()
    await until(lambda: not stubs.blackholed)
    assert live.call_count == 1
