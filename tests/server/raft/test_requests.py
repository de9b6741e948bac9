"""Requests of a raft node, field by field."""

from typing import Any

import pytest
from mockraft.server.raft import messages
from mockraft.wire.messages import begin_quorum_epoch_request as begin
from mockraft.wire.messages import end_quorum_epoch_request as end
from mockraft.wire.messages import fetch_request as fetch
from mockraft.wire.messages import fetch_response
from mockraft.wire.messages import fetch_snapshot_request as fetch_snapshot
from mockraft.wire.messages import update_raft_voter_request as update
from mockraft.wire.messages import vote_request as vote

from .conftest import TOPIC, TOPIC_ID, directory_id

ME, TWO, THREE = (directory_id(node_id) for node_id in (1, 2, 3))


@pytest.fixture
def node(new_node: Any) -> Any:
    return new_node(cluster_id="a-cluster")


@pytest.mark.parametrize("pre_vote", [True, False])
def test_vote(node: Any, pre_vote: bool) -> None:
    node.lead()
    node.raft.to_unattached(7, node.now_ms)
    node.raft.to_prospective(node.now_ms)
    if not pre_vote:
        node.raft.to_candidate(node.now_ms)
    partition = vote.PartitionData(
        partition_index=0,
        replica_epoch=7 if pre_vote else 8,
        replica_id=1,
        replica_directory_id=ME,
        voter_directory_id=TWO,
        last_offset_epoch=1,
        last_offset=3,
        pre_vote=pre_vote,
    )
    topics = [vote.TopicData(topic_name=TOPIC, partitions=[partition])]
    assert node.poll()[0].message == vote.VoteRequest(cluster_id="a-cluster", voter_id=2, topics=topics)


def test_begin_quorum_epoch(node: Any) -> None:
    partition = begin.PartitionData(partition_index=0, voter_directory_id=TWO, leader_id=1, leader_epoch=1)
    assert node.lead()[0].message == begin.BeginQuorumEpochRequest(
        cluster_id="a-cluster",
        voter_id=2,
        topics=[begin.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[begin.LeaderEndpoint(name="CONTROLLER", host="node1", port=9001)],
    )


def test_end_quorum_epoch(node: Any) -> None:
    node.lead()
    node.fetch_from(3)
    node.raft.resign(node.now_ms)
    partition = end.PartitionData(
        partition_index=0,
        leader_id=1,
        leader_epoch=1,
        preferred_successors=[3, 2],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=3, candidate_directory_id=THREE),
            end.ReplicaInfo(candidate_id=2, candidate_directory_id=TWO),
        ],
    )
    topics = [end.TopicData(topic_name=TOPIC, partitions=[partition])]
    assert node.poll()[0].message == end.EndQuorumEpochRequest(cluster_id="a-cluster", topics=topics)


@pytest.mark.parametrize("high_watermark", [-1, 3])
def test_fetch(node: Any, new_node: Any, high_watermark: int) -> None:
    leader = new_node(node_id=2)
    leader.lead()
    (asked,) = node.follow(leader_id=2, epoch=1)
    (asked,) = node.fetched(asked, leader_id=2, records=leader.log.read(0, 1 << 20), high_watermark=high_watermark)
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=1,
        fetch_offset=3,
        last_fetched_epoch=1,
        replica_directory_id=ME,
        high_watermark=high_watermark,
    )
    assert asked.message == fetch.FetchRequest(
        cluster_id="a-cluster",
        replica_state=fetch.ReplicaState(replica_id=1),
        max_wait_ms=500,
        max_bytes=8 * 1024 * 1024,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def test_fetch_snapshot(node: Any) -> None:
    (asked,) = node.follow(leader_id=2, epoch=5)
    (asked,) = node.fetched(asked, leader_id=2, snapshot_id=fetch_response.SnapshotId(end_offset=10, epoch=3))
    node.raft.following.snapshot += b"1234"
    partition = fetch_snapshot.PartitionSnapshot(
        partition=0,
        current_leader_epoch=5,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=10, epoch=3),
        position=4,
        replica_directory_id=ME,
    )
    assert messages.fetch_rest_of_snapshot(node.raft) == fetch_snapshot.FetchSnapshotRequest(
        cluster_id="a-cluster",
        replica_id=1,
        max_bytes=8 * 1024 * 1024,
        topics=[fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def test_update_raft_voter(node: Any) -> None:
    node.follow(leader_id=2, epoch=5)
    assert messages.update_voter(node.raft) == update.UpdateRaftVoterRequest(
        cluster_id="a-cluster",
        current_leader_epoch=5,
        voter_id=1,
        voter_directory_id=ME,
        listeners=[update.Listener(name="CONTROLLER", host="node1", port=9001)],
        k_raft_version_feature=update.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )


def test_a_node_with_id_0_is_named(new_node: Any) -> None:
    """Unlike a bootstrap server, of which only the address is known."""
    node = new_node(controller_quorum_voters="0@node0:9000,1@node1:9001")
    (outgoing,) = node.poll_at_deadline()
    assert (outgoing.node_id, outgoing.host, outgoing.port) == (0, "node0", 9000)
