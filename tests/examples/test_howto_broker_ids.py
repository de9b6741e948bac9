"""Broker ids by hostname: a machine that lost its disks is itself again, a stranger is not."""

import json
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.broker_ids import collect_garbage, resolve
from mockraft.brokers.config import endpoint_of
from mockraft.brokers.host_map import HostFile
from mockraft.brokers.identity import IdentityError, Refusal, Source, Steps
from mockraft.brokers.observed_cluster import ObservedCluster


async def test_a_machine_that_lost_its_disks_gets_its_id_back(tmp_path: Path) -> None:
    async with (
        Controller(data_dir=tmp_path, session_timeout_ms=1000) as controller,
        ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id) as cluster,
    ):
        hosts = HostFile(tmp_path)
        first = await resolve(hosts, "machine-1", cluster, steps=Steps(generate=True))
        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, first.broker_id) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            await broker.kill()

        again = await resolve(hosts, "machine-1", cluster)
        assert again.broker_id == first.broker_id == 1001
        assert again.source is Source.HOST


async def test_a_person_decides_unless_a_step_was_allowed(tmp_path: Path) -> None:
    async with (
        Controller(data_dir=tmp_path) as controller,
        ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id) as cluster,
    ):
        with pytest.raises(IdentityError, match="give one") as refused:
            await resolve(HostFile(tmp_path), "stranger", cluster)
        assert refused.value.refusal is Refusal.NO_NEW_ONE


async def test_an_entry_goes_when_its_broker_lives_elsewhere(tmp_path: Path) -> None:
    entries = {"old-machine": {"version": 0, "broker.id": 1}, "127.0.0.1": {"version": 0, "broker.id": 1}}
    (tmp_path / "hosts.json").write_text(json.dumps(entries))
    async with (
        Controller(data_dir=tmp_path) as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker,
        ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id) as cluster,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        assert await cluster.wait_for(lambda: 1 in cluster.alive, timeout_ms=5000)
        assert collect_garbage(HostFile(tmp_path), cluster, remove=True) == {"old-machine": 1}
        assert HostFile(tmp_path).read().ids == {"127.0.0.1": 1}
