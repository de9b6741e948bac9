"""Fetch, FetchSnapshot and DescribeQuorum in a quorum of two: leadership and committed offsets."""

from typing import Any

import pytest
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages import describe_quorum_request
from mockraft.wire.messages.fetch_request import FetchRequest, ReplicaState

from ...fetches import fetch_request, snapshot_request
from ..conftest import controller_in_memory

TOPIC = "__cluster_metadata"
NOT_LEADER = error_codes.NOT_LEADER_OR_FOLLOWER
DIRECTORIES = {node_id: bytes([node_id]) * 16 for node_id in (1, 2)}
VOTERS = ",".join(f"{n}@node{n}:{9000 + n}:{uuids.text_of(d)}" for n, d in DIRECTORIES.items())


@pytest.fixture
def quorum(make_rig: Any) -> Any:
    """Node 1 of two, behind its listener."""
    config = ControllerConfig(node_id=1, host="node1", port=9001, initial_controllers=VOTERS)
    rig = make_rig(*APIS.values(), controller=controller_in_memory(config, 1000))
    rig.now_ms = 1000
    return rig


@pytest.fixture
def leader(quorum: Any) -> Any:
    raft = quorum.controller.raft
    raft.elect(quorum.now_ms)
    raft.record_vote(2, True, quorum.now_ms)
    assert raft.is_leader
    return quorum


def fetched(rig: Any, *, replica_id: int = -1, offset: int = 0, **fields: Any) -> FetchRequest:
    state, directory_id = ReplicaState(replica_id=replica_id), DIRECTORIES.get(replica_id, bytes(16))
    epoch = rig.controller.raft.epoch
    return fetch_request(offset, epoch, replica_state=state, replica_directory_id=directory_id, **fields)


def partition_of(response: Any) -> Any:
    return response.responses[0].partitions[0]


def test_a_node_that_is_not_leader_returns_the_leader(quorum: Any) -> None:
    quorum.controller.raft.to_follower(5, NodeEndpoint(2, "node2", 9002), quorum.now_ms)
    response = quorum.ask(quorum.connect(), fetched(quorum), 17)
    found = partition_of(response)
    assert (found.error_code, found.current_leader.leader_id, found.current_leader.leader_epoch) == (NOT_LEADER, 2, 5)
    assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(2, "node2", 9002)]
    request = snapshot_request(SnapshotId(0, 0), current_leader_epoch=5)
    found = quorum.ask(quorum.connect(), request, 1).topics[0].partitions[0]
    assert (found.error_code, found.current_leader.leader_id) == (NOT_LEADER, 2)


def test_fetch_is_refused_before_an_election(quorum: Any) -> None:
    found = partition_of(quorum.ask(quorum.connect(), fetched(quorum), 17))
    assert (found.error_code, found.current_leader.leader_id) == (NOT_LEADER, -1)


def test_leader_without_a_majority_has_no_high_watermark(leader: Any) -> None:
    found = partition_of(leader.ask(leader.connect(), fetched(leader), 18))
    assert (len(found.records) > 0, found.high_watermark) == (True, -1)


def test_high_watermark_is_the_majoritys_offset(leader: Any) -> None:
    end_offset = leader.controller.log.end_offset
    found = partition_of(leader.ask(leader.connect(), fetched(leader, replica_id=2, offset=end_offset), 18))
    assert found.high_watermark == end_offset, "told to whom it is owed"
    assert leader.controller.log.end_offset > end_offset, "and the controller is active"
    assert leader.controller.log.high_watermark == end_offset


def test_a_fetch_waits_for_the_commit(leader: Any) -> None:
    log = leader.controller.log
    leader.ask(leader.connect(), fetched(leader, replica_id=2, offset=log.end_offset), 18)
    end_offset = log.end_offset
    assert log.high_watermark < end_offset
    reader, voter = leader.connect(), leader.connect()
    waiting = fetched(leader, offset=end_offset, high_watermark=log.high_watermark)
    assert leader.send(reader, leader.frame(waiting, 18)) == []
    leader.send(voter, leader.frame(fetched(leader, replica_id=2, offset=end_offset), 18))
    assert len(leader.sends(reader)) == 1
    assert log.high_watermark == end_offset


def test_a_parked_fetch_is_answered_when_the_leadership_is_lost(leader: Any) -> None:
    log = leader.controller.log
    connection = leader.connect()
    assert leader.send(connection, leader.frame(fetched(leader, offset=log.end_offset), 18)) == []
    leader.controller.raft.resign(leader.now_ms)
    leader.tick(leader.now_ms + 1)
    (exchange,) = leader.node.journal.exchanges()
    assert partition_of(exchange.response).error_code == NOT_LEADER


def described(rig: Any) -> Any:
    topic = describe_quorum_request.TopicData(
        topic_name=TOPIC, partitions=[describe_quorum_request.PartitionData(partition_index=0)]
    )
    return rig.ask(rig.connect(), describe_quorum_request.DescribeQuorumRequest(topics=[topic]), 2)


def test_a_quorum_is_described_by_its_leader_alone(quorum: Any) -> None:
    found = described(quorum).topics[0].partitions[0]
    assert (found.error_code, found.error_message) == (NOT_LEADER, error_codes.message(NOT_LEADER))


def test_the_voters_are_described_as_far_as_they_are(leader: Any) -> None:
    end_offset = leader.controller.log.end_offset
    response = described(leader)
    found = response.topics[0].partitions[0]
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 1, -1)
    assert [(v.replica_id, v.replica_directory_id, v.log_end_offset) for v in found.current_voters] == [
        (1, DIRECTORIES[1], end_offset),
        (2, DIRECTORIES[2], -1),
    ]
    assert [(n.node_id, n.listeners[0].port) for n in response.nodes] == [(1, 9001), (2, 9002)]
