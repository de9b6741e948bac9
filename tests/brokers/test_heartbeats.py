"""Heartbeats on their way, many brokers in one process without a controller, and brokers of a proposal."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller
from mockraft.brokers import directories
from mockraft.brokers.lifecycle import End
from mockraft.brokers.shell.socket_links import Outage
from mockraft.wire import api_keys
from mockraft.wire.client import DisconnectedError, RequestTimedOutError
from mockraft.wire.errors import WireError

from ..topics import create_topics, topic
from ..waiting import until
from .conftest import running, started

QUICK = {"heartbeat_interval_ms": 30}


def connections(controller: Controller) -> list[int]:
    """The connections that heartbeats came over, in order."""
    return list(dict.fromkeys(e.connection_id for e in controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)))


def has_connections(controller: Controller, number: int) -> bool:
    return len(connections(controller)) == number


async def test_no_task_is_needed_while_all_is_well() -> None:
    async with Controller() as controller, running(controller, **QUICK) as broker:
        took: list[float] = []
        broker.node.heart.took = took.append
        tasks = asyncio.all_tasks()
        while len(took) < 5:
            await asyncio.sleep(0.005)
            assert asyncio.all_tasks() <= tasks
        assert len(connections(controller)) == 1
        assert all(seconds > 0 for seconds in took)


async def test_broken_connection_is_reopened() -> None:
    async with Controller() as controller, running(controller, **QUICK) as broker:
        for number in (1, 2, 3):
            broker.disconnect()
            await until(partial(has_connections, controller, 1 + number))
        assert not broker.refusals


async def test_frozen_broker_sends_no_heartbeat_until_thawed() -> None:
    async with Controller(session_timeout_ms=400) as controller, running(controller, **QUICK) as broker:
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
    async with Controller() as controller, running(controller, **QUICK) as broker:
        broker.freeze()
        broker.thaw()
        before = broker.heartbeats
        await until(lambda: broker.heartbeats > before + 1)
        assert not broker.refusals


async def test_an_answer_no_broker_survives_ends_it_without_a_task_too() -> None:
    async with Controller() as controller:
        broker = await started(controller, **QUICK)
        broker.node.kernel.enter(lambda: broker.node.heart._not_answered(WireError("nonsense")))
        await broker.wait_stopped()
        assert broker.end is End.FATAL
        assert "nonsense" in str(broker.fault)


async def test_one_broker_probes_during_an_outage_and_all_reconnect_after_it() -> None:
    outage = Outage()
    is_there, tries, at_once, most = False, 0, 0, 0

    async def connect() -> str:
        nonlocal tries, at_once, most
        tries, at_once = tries + 1, at_once + 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        if not is_there:
            raise DisconnectedError("refused") from ConnectionRefusedError()
        return "connected"

    async def insist() -> str:
        while True:
            try:
                return await outage.connect(connect)
            except DisconnectedError:
                continue

    with pytest.raises(DisconnectedError):
        await outage.connect(connect)
    waiting = [asyncio.ensure_future(insist()) for _ in range(200)]
    while tries < 4:
        await asyncio.sleep(0.005)
    assert most == 1
    is_there = True
    before = tries
    assert set(await asyncio.gather(*waiting)) == {"connected"}
    assert tries - before <= 201
    assert await outage.connect(connect) == "connected"


@pytest.mark.parametrize("error", [ValueError("nonsense"), RequestTimedOutError("too late")])
async def test_slow_or_faulty_controller_is_no_outage(error: Exception) -> None:
    outage, under_way = Outage(), asyncio.Event()

    async def fail() -> str:
        raise error

    async def wait() -> str:
        under_way.set()
        await asyncio.Event().wait()
        return "late"

    async def connect() -> str:
        return "connected"

    with pytest.raises(type(error)):
        await outage.connect(fail)
    waiting = asyncio.ensure_future(outage.connect(wait))
    await under_way.wait()
    assert await outage.connect(connect) == "connected", "nobody queues up behind a slow one"
    waiting.cancel()


def test_places_all_replicas_with_one_per_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "REPLICAS_AT_ONCE", 1)
    with Controller.sync(brokers=3) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        for _ in range(2):
            admin.create_topics([NewTopic("t", 20, 3)])["t"].result(30)

            def placed() -> list[int]:
                return [
                    sum(len(view.replicas) for view in broker.log_dirs.values())
                    for broker in controller.brokers.values()
                ]

            def followed() -> bool:
                return all(
                    len(partition.isrs) == 3 for partition in admin.list_topics("t").topics["t"].partitions.values()
                )

            while placed() != [20, 20, 20] or not followed():
                assert all(broker.state is BrokerState.RUNNING for broker in controller.brokers.values())
            admin.delete_topics(["t"])["t"].result(30)
            while placed() != [0, 0, 0]:
                assert all(broker.state is BrokerState.RUNNING for broker in controller.brokers.values())


DEADLINE_S = 60.0


def partitions_of(image: Any, name: str) -> list[Any]:
    return list(image.topics.by_name[name].partitions.values())


@pytest.mark.parametrize("profile", [["kip-858"], ["kip-1066"], ["kip-858", "kip-1066"]], ids=" and ".join)
async def test_runs_on_a_controller_of_the_same_proposal(profile: list[str]) -> None:
    async with Controller(profile=profile) as controller:
        async with running(controller, messages=controller.messages, log_dir_paths=("/a", "/b"), **QUICK) as broker:
            await create_topics(controller.bootstrap, topic("t", 3, 1))

            directories = {log_dir.directory_id for log_dir in broker.config.log_dirs}
            image = controller.running.controller.image
            await until(lambda: {each.directories[0] for each in partitions_of(image, "t")} <= directories)
            failed, kept = broker.config.log_dirs
            broker.fail_log_dir(failed.directory_id)
            await until(lambda: image.cluster.brokers[1].log_dirs == (kept.directory_id,))
            await until(lambda: (own := broker.view.registration) and own.log_dirs == (kept.directory_id,))
            heartbeat = controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)[-1]
            assert heartbeat.api_version == controller.messages.request(63).max_version
        assert broker.fault is None
    assert broker.refusals == {}


async def test_kip_1066_registration_and_all_heartbeats_contain_the_cordoned_directories() -> None:
    async with (
        Controller(profile="kip-1066") as controller,
        running(controller, messages=controller.messages, log_dir_paths=("/a", "/b"), cordoned_log_dirs="/b") as broker,
    ):
        cordoned = broker.directories.find("/b").directory_id
        (registration,) = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
        heartbeats = controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)
        assert {tuple(each.request.cordoned_log_dirs) for each in (registration, *heartbeats)} == {(cordoned,)}
