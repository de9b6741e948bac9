from typing import Any

import pytest
from mockraft.server.apis import describe_quorum
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import ReplicaKey
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData

DIRECTORY_ID = bytes(15) + b"\x09"


def request(topic_name: str = "__cluster_metadata", *partitions: int) -> DescribeQuorumRequest:
    indexes = partitions or (0,)
    topic = TopicData(topic_name=topic_name, partitions=[PartitionData(partition_index=index) for index in indexes])
    return DescribeQuorumRequest(topics=[topic])


def test_the_leader_is_the_only_voter(rig: Any, controller: Controller) -> None:
    response = rig.ask(rig.connect(), request(), 2)
    (topic,) = response.topics
    (partition,) = topic.partitions
    end_offset = controller.log.end_offset
    assert (response.error_code, response.error_message, topic.topic_name) == (0, "", "__cluster_metadata")
    assert (partition.partition_index, partition.error_code, partition.error_message) == (0, 0, "")
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (3000, 1, end_offset)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.replica_directory_id) == (3000, controller.log.directory_id)
    assert voter.log_end_offset == end_offset
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == rig.now_ms
    assert partition.observers == []
    (node,) = response.nodes
    (listener,) = node.listeners
    assert (node.node_id, listener.name, listener.host) == (3000, "CONTROLLER", "127.0.0.1")
    assert listener.port == controller.config.port


def test_a_voter_that_is_configuration_has_no_directory(make_rig: Any, make_controller: Any) -> None:
    rig = make_rig(describe_quorum.API, controller=make_controller(ControllerConfig(kraft_version=0)))
    (voter,) = rig.ask(rig.connect(), request(), 2).topics[0].partitions[0].current_voters
    assert (voter.replica_id, voter.replica_directory_id) == (3000, bytes(16))


def test_observers_are_the_brokers_that_fetched(rig: Any, controller: Controller) -> None:
    end_offset = controller.log.end_offset
    controller.raft.fetched(ReplicaKey(1, DIRECTORY_ID), end_offset, rig.now_ms - 10)
    controller.raft.fetched(ReplicaKey(2, DIRECTORY_ID), 3, rig.now_ms - 20)
    controller.raft.fetched(ReplicaKey(3, DIRECTORY_ID), 3, rig.now_ms - 300_000)
    observers = rig.ask(rig.connect(), request(), 2).topics[0].partitions[0].observers
    described = [
        (each.replica_id, each.replica_directory_id, each.log_end_offset, each.last_fetch_timestamp)
        for each in observers
    ]
    assert described == [(1, DIRECTORY_ID, end_offset, rig.now_ms - 10), (2, DIRECTORY_ID, 3, rig.now_ms - 20)]
    assert [each.last_caught_up_timestamp for each in observers] == [rig.now_ms - 10, -1]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_contains_its_fields(rig: Any, controller: Controller, version: int) -> None:
    controller.raft.fetched(ReplicaKey(1, DIRECTORY_ID), 5, rig.now_ms)
    response = rig.ask(rig.connect(), request(), version)
    (observer,) = response.topics[0].partitions[0].observers
    assert (observer.replica_id, observer.log_end_offset) == (1, 5)
    assert observer.last_fetch_timestamp == (rig.now_ms if version >= 1 else -1)
    assert observer.replica_directory_id == (DIRECTORY_ID if version >= 2 else bytes(16))
    assert len(response.nodes) == (1 if version >= 2 else 0)


@pytest.mark.parametrize(
    "asked", [request("other"), request("__cluster_metadata", 1), request("__cluster_metadata", 0, 1)]
)
def test_another_topic_is_unknown_in_each_partition(rig: Any, asked: DescribeQuorumRequest) -> None:
    response = rig.ask(rig.connect(), asked, 2)
    (topic,) = response.topics
    code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert (response.error_code, topic.topic_name, response.nodes) == (0, asked.topics[0].topic_name, [])
    assert [partition.partition_index for partition in topic.partitions] == [
        partition.partition_index for partition in asked.topics[0].partitions
    ]
    assert all(each.error_code == code and each.error_message for each in topic.partitions)


def test_no_topic_is_answered_with_none(rig: Any) -> None:
    response = rig.ask(rig.connect(), DescribeQuorumRequest(), 2)
    assert (response.error_code, response.topics) == (0, [])
