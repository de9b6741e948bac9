"""Examples for docs/log-dirs.md: format directories and start brokers on them."""

import random
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.ensemble import LogDirsError, Refusal
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs


async def test_broker_registers_formatted_directories(tmp_path: Path) -> None:
    paths = [str(tmp_path / "d0"), str(tmp_path / "d1")]
    async with Controller() as controller:
        format_log_dirs(paths, node_id=1, cluster_id=controller.cluster_id, rng=random.Random())
        formatted = open_log_dirs(paths, 1, controller.cluster_id, random.Random())

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, log_dirs=paths) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            registered = controller.running.controller.image.cluster.brokers[1]
            assert set(registered.log_dirs) == {each.directory_id for each in formatted.log_dirs}


def test_refuses_directory_of_another_broker(tmp_path: Path) -> None:
    paths = [str(tmp_path / "d0")]
    format_log_dirs(paths, 1, "T0ta1ly_Mocked-Cluster", random.Random())

    with pytest.raises(LogDirsError, match="Stored node id 1 doesn't match previous node id 2") as refused:
        open_log_dirs(paths, 2, "T0ta1ly_Mocked-Cluster", random.Random())
    assert refused.value.refusal is Refusal.NODE_ID
