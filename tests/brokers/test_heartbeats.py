"""Heartbeats on their way: over the open connection without a task, over another when that is gone."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.lifecycle import End
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError

from ..waiting import until


def joining(controller: Controller, **options: Any) -> SimulatedBroker:
    return SimulatedBroker.joining(
        controller.bootstrap, controller.cluster_id, 1, seed=1, heartbeat_interval_ms=30, **options
    )


def connections(controller: Controller) -> list[int]:
    """The connections that heartbeats came over, in order."""
    return list(dict.fromkeys(e.connection_id for e in controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)))


def has_connections(controller: Controller, number: int) -> bool:
    return len(connections(controller)) == number


async def test_no_task_is_needed_while_all_is_well() -> None:
    async with Controller() as controller, joining(controller) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        took: list[float] = []
        broker.node.heart.took = took.append
        tasks = asyncio.all_tasks()
        while len(took) < 5:
            await asyncio.sleep(0.005)
            assert asyncio.all_tasks() <= tasks
        assert len(connections(controller)) == 1
        assert all(seconds > 0 for seconds in took)


async def test_broken_connection_is_reopened() -> None:
    async with Controller() as controller, joining(controller) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        for number in (1, 2, 3):
            broker.disconnect()
            await until(partial(has_connections, controller, 1 + number))
        assert not broker.refusals


async def test_frozen_broker_sends_no_heartbeat_until_thawed() -> None:
    async with Controller(session_timeout_ms=400) as controller, joining(controller) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        broker.freeze()
        brokers = controller.running.controller.image.cluster.brokers
        await until(lambda: brokers[1].fenced)
        said = len(controller.journal.exchanges(api_keys.BROKER_HEARTBEAT))
        assert broker.state is BrokerState.RUNNING
        broker.thaw()
        await until(lambda: not brokers[1].fenced)
        assert len(controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)) > said
        assert len(connections(controller)) == 1


async def test_freeze_and_thaw_without_pending_work_sends_no_request() -> None:
    async with Controller() as controller, joining(controller) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        broker.freeze()
        broker.thaw()
        before = broker.heartbeats
        await until(lambda: broker.heartbeats > before + 1)
        assert not broker.refusals


async def test_an_answer_no_broker_survives_ends_it_without_a_task_too() -> None:
    async with Controller() as controller:
        broker = joining(controller)
        broker.start()
        await broker.wait_until(BrokerState.RUNNING)
        broker.node.kernel.enter(lambda: broker.node.heart._not_answered(WireError("nonsense")))
        await broker.wait_stopped()
        assert broker.end is End.FATAL
        assert "nonsense" in str(broker.fault)
