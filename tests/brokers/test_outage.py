"""Many brokers in one process: one probes for a missing controller, and long work leaves the event loop to others."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers import time_slice
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.shell.outage import Outage
from mockraft.wire.client import DisconnectedError, RequestTimedOutError


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
    monkeypatch.setattr(time_slice, "PIECES", 1)
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
