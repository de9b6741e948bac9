"""Whole states saved and loaded on another controller, as Kafka checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft import Controller, Quorum
from mockraft.server.clock import VirtualClock


async def test_a_controller_begins_with_a_saved_state(controller: Controller, saved: Callable[[], Path]) -> None:
    before = controller.double.state
    async with Controller(state=saved(), clock=VirtualClock()) as other:
        state = other.double.state
        assert state.topics() == before.topics()
        assert [(b.broker_id, b.epoch, b.fenced) for b in state.brokers()] == [
            (b.broker_id, b.epoch, b.fenced) for b in before.brokers()
        ]
        assert state.features() == before.features()
        assert state.quorum().log_start_offset == before.quorum().log_end_offset
        assert other.cluster_id == controller.cluster_id
        assert [voter.node_id for voter in state.quorum().voters] == [3000]


async def test_state_is_loaded_under_another_node_id_with_its_own_voter(saved: Callable[[], Path]) -> None:
    async with Controller(state=saved(), node_id=4000) as other:
        assert [voter.node_id for voter in other.double.state.quorum().voters] == [4000]
        assert list(other.running.controller.image.cluster.controllers) == [4000]


async def test_brokers_join_a_controller_that_began_with_a_saved_state(saved: Callable[[], Path]) -> None:
    async with Controller(state=saved()) as other:
        await other.start_broker(9)
        joined = other.double.state.broker(9)
        assert joined.epoch > max(broker.epoch for broker in other.double.state.brokers()[:3])
        assert not joined.fenced


async def test_a_running_controller_takes_a_saved_state_on_the_same_port(
    controller: Controller, saved: Callable[[], Path]
) -> None:
    path, port = saved(), controller.port
    controller.double.state.unregister(1)
    controller.double.load(path)
    assert [broker.broker_id for broker in controller.double.state.brokers()] == [1, 2, 3]
    assert controller.port == port


async def test_reset_restores_the_initial_state(saved: Callable[[], Path]) -> None:
    async with Controller(state=saved()) as other:
        other.double.state.unregister(1)
        other.double.reset(state=True)
        assert [broker.broker_id for broker in other.double.state.brokers()] == [1, 2, 3]


async def test_all_nodes_of_a_quorum_begin_with_a_state(saved: Callable[[], Path]) -> None:
    async with Quorum(3, state=saved()) as quorum:
        await quorum.wait_for_leader()
        assert [broker.broker_id for broker in quorum.double.state.brokers()] == [1, 2, 3]
        assert [voter.node_id for voter in quorum.double.state.quorum().voters] == quorum.node_ids


async def test_a_snapshot_of_a_data_directory_is_a_state_too(tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path / "data", brokers=1) as controller:
        taken = controller.double.state.snapshot()
    (checkpoint,) = (tmp_path / "data").rglob(taken.file_name)
    async with Controller(state=checkpoint) as other:
        assert [broker.broker_id for broker in other.double.state.brokers()] == [1]
        assert other.double.state.quorum().log_start_offset == taken.end_offset


async def test_existing_data_directory_takes_precedence(saved: Callable[[], Path], tmp_path: Path) -> None:
    async with Controller(state=saved(), data_dir=tmp_path / "data") as first:
        first.double.state.unregister(1)
        port = first.port
    async with Controller(state=saved(), data_dir=tmp_path / "data", port=port) as again:
        assert [broker.broker_id for broker in again.double.state.brokers()] == [2, 3]


def test_a_file_that_is_no_state_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"settings\.json: no saved state and no snapshot"):
        Controller(state=path)
    with pytest.raises(FileNotFoundError):
        Controller(state=tmp_path / "nothing")
