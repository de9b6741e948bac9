"""Examples for docs/broker-ids.md."""

from pathlib import Path

from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import endpoint_of
from mockraft.brokers.ids.broker_ids import resolve
from mockraft.brokers.ids.host_map import HostFile
from mockraft.brokers.ids.identity import Source, Steps
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
