"""Examples for docs/broker-ids.md."""

import json
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import endpoint_of
from mockraft.brokers.ids.broker_ids import collect_garbage, resolve
from mockraft.brokers.ids.host_map import HostFile
from mockraft.brokers.ids.identity import IdentityError, Refusal, Source, Steps
from mockraft.brokers.ids.observed_cluster import ObservedCluster


async def test_broker_id_is_recovered_after_losing_all_disks(tmp_path: Path) -> None:
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


async def test_operator_must_decide_without_optional_steps(tmp_path: Path) -> None:
    async with (
        Controller(data_dir=tmp_path) as controller,
        ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id) as cluster,
    ):
        with pytest.raises(IdentityError, match="give one") as refused:
            await resolve(HostFile(tmp_path), "stranger", cluster)
        assert refused.value.refusal is Refusal.NO_NEW_ONE


async def test_garbage_collection_removes_entry_of_broker_on_another_host(tmp_path: Path) -> None:
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
