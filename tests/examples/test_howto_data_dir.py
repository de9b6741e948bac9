"""Example for docs/data-dir.md: restart a controller with its data directory."""

from pathlib import Path

from mockraft import BrokerState, Controller, SimulatedBroker


async def test_restarted_controller_keeps_registrations(tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path) as controller:
        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        first_epoch = controller.running.controller.log.leader_epoch
        cluster_id = controller.cluster_id

    async with Controller(data_dir=tmp_path, cluster_id=cluster_id) as controller:
        assert 1 in controller.running.controller.image.cluster.brokers
        assert controller.running.controller.log.leader_epoch == first_epoch + 1

    assert (tmp_path / "__cluster_metadata-0" / "00000000000000000000.log").stat().st_size > 0
