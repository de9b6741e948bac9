"""Ids resolved by host, against a controller with simulated brokers, one of which has lost its disks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import endpoint_of
from mockraft.brokers.ids.broker_ids import Resolved, collect_garbage, resolve
from mockraft.brokers.ids.host_map import HOSTS_FILE, HostFile
from mockraft.brokers.ids.identity import IdentityError, Refusal, Source, Steps
from mockraft.brokers.ids.observed_cluster import ObservedCluster

from ..topics import assigned, create_topics

SESSION_TIMEOUT_MS = 1_500


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller(session_timeout_ms=SESSION_TIMEOUT_MS) as started:
        yield started


def joining(controller: Controller, broker_id: int, **options: Any) -> SimulatedBroker:
    return SimulatedBroker.joining(
        controller.bootstrap,
        controller.cluster_id,
        broker_id,
        heartbeat_interval_ms=50,
        serve_clients=False,
        **options,
    )


def observed(controller: Controller) -> ObservedCluster:
    return ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id)


async def running(controller: Controller, *broker_ids: int, host: str = "h{}") -> list[SimulatedBroker]:
    brokers = [joining(controller, each, host=host.format(each)) for each in broker_ids]
    for broker in brokers:
        broker.start()
    for broker in brokers:
        await broker.wait_until(BrokerState.RUNNING)
    return brokers


async def place(controller: Controller, *broker_ids: int) -> None:
    """Create a topic with a replica on each of these."""
    await create_topics(controller.bootstrap, assigned("used", *([each] for each in broker_ids)))


async def resolved(controller: Controller, folder: Path, host: str, **options: Any) -> Resolved:
    async with observed(controller) as cluster:
        return await resolve(HostFile(folder), host, cluster, **{"wait_ms": 10_000, **options})


async def refusal(controller: Controller, folder: Path, host: str, **options: Any) -> Refusal:
    with pytest.raises(IdentityError) as refused:
        await resolved(controller, folder, host, **options)
    return refused.value.refusal


async def test_used_ids_and_live_brokers_are_read(controller: Controller) -> None:
    first, second = await running(controller, 1, 2)
    await place(controller, 1, 2)
    await second.kill()
    async with observed(controller) as cluster:
        assert cluster.used_ids == {1, 2}
        assert await cluster.wait_for(lambda: set(cluster.alive) == {1}, 10_000)
        assert cluster.alive[1] == {"h1"}
        assert cluster.controllers == {3000}
    await first.kill()


async def test_missing_controller_is_reported(controller: Controller) -> None:
    with pytest.raises(ConnectionError, match="metadata log"):
        async with ObservedCluster([("127.0.0.1", 1)], "none", timeout_ms=200):
            raise AssertionError("it cannot be entered")


async def test_a_host_that_lost_its_disks_gets_its_id_back(controller: Controller, tmp_path: Path) -> None:
    assert await resolved(controller, tmp_path, "h7", explicit=7) == Resolved(7, Source.EXPLICIT, "h7", True)
    (broker,) = await running(controller, 7)
    await place(controller, 7)
    await broker.kill()
    assert await resolved(controller, tmp_path, "H7.") == Resolved(7, Source.HOST, "h7", False)


async def test_an_id_that_stays_alive_is_not_the_host_s_any_more(controller: Controller, tmp_path: Path) -> None:
    await resolved(controller, tmp_path, "h7", explicit=7)
    (broker,) = await running(controller, 7)
    await place(controller, 7)
    assert await refusal(controller, tmp_path, "h7", wait_ms=1) is Refusal.NO_NEW_ONE
    new = await resolved(controller, tmp_path, "h7", wait_ms=1, steps=Steps(generate=True))
    assert new == Resolved(1001, Source.GENERATED, "h7", True)
    await broker.kill()


async def test_running_id_is_refused_and_not_stored(controller: Controller, tmp_path: Path) -> None:
    (broker,) = await running(controller, 7)
    steps = Steps(reuse_missing=True, generate=True)
    assert await refusal(controller, tmp_path, "h8", explicit=7, wait_ms=1, steps=steps) is Refusal.IN_USE
    assert await refusal(controller, tmp_path, "h8", stored=7, wait_ms=1, steps=steps) is Refusal.IN_USE
    assert await refusal(controller, tmp_path, "h8", stored=7, explicit=8) is Refusal.INCONSISTENT
    assert await refusal(controller, tmp_path, "h8", explicit=-1) is Refusal.BAD_ID
    assert await refusal(controller, tmp_path, "h:8", explicit=8) is Refusal.BAD_HOST
    assert not (tmp_path / HOSTS_FILE).exists()
    await broker.kill()


async def test_missing_id_is_reclaimed_only_on_request(controller: Controller, tmp_path: Path) -> None:
    brokers = await running(controller, 1, 2, 3)
    await place(controller, 1, 2, 3)
    await brokers[1].kill()
    async with observed(controller) as cluster:
        assert await cluster.wait_for(lambda: set(cluster.alive) == {1, 3}, 10_000)
    assert await refusal(controller, tmp_path, "new") is Refusal.ONE_MISSING
    reuse = Steps(reuse_missing=True)
    assert await resolved(controller, tmp_path, "new", steps=reuse) == Resolved(2, Source.MISSING, "new", True)
    await brokers[2].kill()
    async with observed(controller) as cluster:
        assert await cluster.wait_for(lambda: set(cluster.alive) == {1}, 10_000)
    assert await refusal(controller, tmp_path, "newer", steps=reuse) is Refusal.SEVERAL_MISSING
    await brokers[0].kill()


async def test_concurrent_hosts_get_different_new_ids(controller: Controller, tmp_path: Path) -> None:
    hosts = [f"h{number}" for number in range(8)]
    async with observed(controller) as cluster:
        steps = Steps(generate=True)
        found = await asyncio.gather(*(resolve(HostFile(tmp_path), host, cluster, steps=steps) for host in hosts))
    assert sorted(each.broker_id for each in found) == list(range(1001, 1009))
    kept = json.loads((tmp_path / HOSTS_FILE).read_text())
    assert kept == {each.host: {"version": 0, "broker.id": each.broker_id} for each in found}
    again = await resolved(controller, tmp_path, "h3", steps=steps)
    assert again == Resolved(kept["h3"]["broker.id"], Source.HOST, "h3", False)


async def test_a_new_id_is_none_that_replicas_or_registrations_have(controller: Controller, tmp_path: Path) -> None:
    (broker,) = await running(controller, 2999)
    found = await resolved(controller, tmp_path, "new", steps=Steps(generate=True))
    assert found.broker_id == 3001
    await broker.kill()


async def test_of_two_brokers_with_one_id_the_controller_lets_one_in() -> None:
    async with Controller() as controller, joining(controller, 1) as first:
        await first.wait_until(BrokerState.RUNNING)
        second = joining(controller, 1)
        second.start()
        async with asyncio.timeout(60):
            while not second.refusals["DUPLICATE_BROKER_REGISTRATION"]:
                second.changed.clear()
                await second.changed.wait()
        assert second.state is BrokerState.STARTING
        assert first.state is BrokerState.RUNNING
        await second.kill()


async def test_garbage_is_shown_first_and_then_removed(controller: Controller, tmp_path: Path) -> None:
    (tmp_path / HOSTS_FILE).write_text(
        json.dumps({host: {"version": 0, "broker.id": n} for host, n in (("old", 1), ("h1", 1), ("down", 2))})
    )
    (broker,) = await running(controller, 1)
    hosts = HostFile(tmp_path)
    async with observed(controller) as cluster:
        assert collect_garbage(hosts, cluster, remove=False) == {"old": 1}
        assert hosts.read().ids == {"old": 1, "h1": 1, "down": 2}
        assert collect_garbage(hosts, cluster, remove=True) == {"old": 1}
        assert collect_garbage(hosts, cluster, remove=True) == {}
    assert hosts.read().ids == {"h1": 1, "down": 2}
    await broker.kill()
