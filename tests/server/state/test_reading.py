"""Reading the state, and the file it is kept in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.controller.log.state_file import read_state
from mockraft.wire import uuids
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.partition_record import PartitionRecord

from ...rows import each_row
from .conftest import TOPIC_ID, directory


async def test_brokers_show_identity_and_listeners(controller: Controller) -> None:
    first = controller.state.brokers()[0]
    assert (first.broker_id, first.rack, first.fenced) == (1, "rack-1", False)
    assert [(each.name, each.port, each.security_protocol) for each in first.listeners] == [
        ("PLAINTEXT", 9093, "PLAINTEXT")
    ]
    assert first.incarnation_id == uuids.text_of(bytes(15) + b"\x01")


async def test_log_dirs_show_which_are_offline_and_which_are_cordoned(controller: Controller) -> None:
    state = controller.state
    cordon = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=state.broker(1).epoch, cordoned_log_dirs=[directory(1, 2)]
    )
    state.append([cordon])
    state.fail_log_dir(1, directory(1))
    assert {each.id: each.state for each in state.broker(1).log_dirs} == {
        uuids.text_of(directory(1, 2)): "cordoned",
        uuids.text_of(directory(1)): "offline",
    }


async def test_simulated_broker_is_caught_up_and_its_lag_is_shown() -> None:
    async with Controller(brokers=1) as controller:
        broker = controller.state.broker(1)
        assert broker.caught_up
        assert broker.lag is not None
        assert broker.last_contact_ms is not None


async def test_topics_show_their_partitions(controller: Controller) -> None:
    (topic,) = controller.state.topics()
    assert topic.name == "orders"
    assert topic.topic_id == uuids.text_of(TOPIC_ID)
    (partition,) = topic.partitions
    assert (partition.leader, partition.replicas, partition.isr) == (1, (1, 2, 3), (1, 2, 3))
    assert partition.directories[0] == uuids.text_of(directory(1))


async def test_features_and_configs_follow_the_records(controller: Controller) -> None:
    state = controller.state
    state.append([ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5")])
    assert state.features()["metadata.version"] == 33
    assert state.features()["kraft.version"] == 1
    assert [(each.type, each.name, each.values) for each in state.configs()] == [
        ("topic", "orders", {"retention.ms": "5"}),
        ("broker", "", {"min.insync.replicas": "1"}),
    ]


async def test_the_quorum_shows_its_leader_and_the_ends_of_its_log(controller: Controller) -> None:
    quorum = controller.state.quorum()
    assert quorum.leader_id == controller.node_id
    assert quorum.high_watermark == quorum.log_end_offset > quorum.log_start_offset == 0
    assert [voter.node_id for voter in quorum.voters] == [controller.node_id]
    assert [(node.node_id, node.role) for node in quorum.nodes] == [(controller.node_id, "leader")]


async def test_the_metadata_log_has_every_record_with_its_offset_and_control_records_too(
    controller: Controller,
) -> None:
    lines = controller.state.metadata_log()
    assert [line.offset for line in lines] == list(range(controller.state.quorum().log_end_offset))
    assert [line.type for line in lines[:3]] == ["LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"]
    assert lines[-1].type == "PartitionRecord"
    record = lines[-1].record
    assert isinstance(record, PartitionRecord)
    assert record.topic_id == TOPIC_ID


async def test_metadata_log_is_sliced_by_offset_from_either_end(controller: Controller) -> None:
    state = controller.state
    end = state.quorum().log_end_offset
    assert [line.offset for line in state.metadata_log(4, 3)] == [4, 5, 6]
    assert [line.offset for line in state.metadata_log(-2)] == [end - 2, end - 1]
    assert state.metadata_log(end + 5) == []


async def test_json_of_the_state_is_in_camel_case_with_uuids_as_text(controller: Controller) -> None:
    tree: Any = controller.state.to_json()
    assert tree["brokers"][0]["brokerId"] == 1
    assert tree["brokers"][0]["logDirs"][0] == {"id": uuids.text_of(directory(1)), "state": "online"}
    assert tree["topics"][0]["partitions"][0]["leaderEpoch"] == 0
    assert tree["quorum"]["leaderId"] == controller.node_id
    line: Any = controller.state.metadata_log(-1)[0].to_json()
    assert line["type"] == "PartitionRecord"
    assert line["record"]["topicId"] == uuids.text_of(TOPIC_ID)


async def test_a_controller_begins_with_a_saved_state(controller: Controller, saved: Callable[[], Path]) -> None:
    before = controller.state
    async with Controller(state=saved(), clock=VirtualClock()) as other:
        state = other.state
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
        assert [voter.node_id for voter in other.state.quorum().voters] == [4000]
        assert list(other.running.controller.image.cluster.controllers) == [4000]


async def test_a_running_controller_takes_a_saved_state_on_the_same_port_and_returns_to_it(
    controller: Controller, saved: Callable[[], Path]
) -> None:
    path, port = saved(), controller.port
    state = controller.state
    state.unregister(1)
    controller.load(path)
    assert [broker.broker_id for broker in state.brokers()] == [1, 2, 3]
    assert controller.port == port
    async with Controller(state=path) as other:
        other.state.unregister(1)
        other.reset(state=True)
        assert [broker.broker_id for broker in other.state.brokers()] == [1, 2, 3]
        await other.start_broker(9)
        joined = other.state.broker(9)
        assert joined.epoch > max(broker.epoch for broker in other.state.brokers()[:3])
        assert not joined.fenced


async def test_all_nodes_of_a_quorum_begin_with_a_state(saved: Callable[[], Path]) -> None:
    async with Quorum(3, state=saved()) as quorum:
        await quorum.wait_for_leader()
        assert [broker.broker_id for broker in quorum.state.brokers()] == [1, 2, 3]
        assert [voter.node_id for voter in quorum.state.quorum().voters] == quorum.node_ids


async def test_a_snapshot_of_a_data_directory_is_a_state_too(tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path / "data", brokers=1) as controller:
        taken = controller.state.snapshot()
    (checkpoint,) = (tmp_path / "data").rglob(taken.file_name)
    async with Controller(state=checkpoint) as other:
        assert [broker.broker_id for broker in other.state.brokers()] == [1]
        assert other.state.quorum().log_start_offset == taken.end_offset


async def test_existing_data_directory_takes_precedence(saved: Callable[[], Path], tmp_path: Path) -> None:
    async with Controller(state=saved(), data_dir=tmp_path / "data") as first:
        first.state.unregister(1)
        port = first.port
    async with Controller(state=saved(), data_dir=tmp_path / "data", port=port) as again:
        assert [broker.broker_id for broker in again.state.brokers()] == [2, 3]


@each_row("name", [f"{2**63 - 1:020d}-0000000001", f"{10**20 - 1:020d}-0000000001"])
def test_a_state_after_which_no_record_could_follow_is_refused(tmp_path: Path, name: str) -> None:
    with Controller.sync(data_dir=tmp_path / "data") as controller:
        taken = controller.state.snapshot()
    (checkpoint,) = (tmp_path / "data").rglob(taken.file_name)
    path = checkpoint.rename(tmp_path / f"{name}.checkpoint")
    with pytest.raises(ValueError, match=rf"{name}\.checkpoint: offset 9\d+ is not"):
        read_state(path)


def test_a_file_that_is_no_state_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"settings\.json: no saved state and no snapshot"):
        Controller(state=path)
    with pytest.raises(FileNotFoundError):
        Controller(state=tmp_path / "nothing")
