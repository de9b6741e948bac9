"""Requests that a node of the quorum sends, as KafkaRaftClient and RaftUtil fill them."""

from __future__ import annotations

from mockraft.server.controller.quorum.voter_set import PARTITION, ReplicaKey
from mockraft.server.raft.quorum_state import QuorumState
from mockraft.server.raft.states import Role
from mockraft.wire.messages import add_raft_voter_request as add
from mockraft.wire.messages import begin_quorum_epoch_request as begin
from mockraft.wire.messages import end_quorum_epoch_request as end
from mockraft.wire.messages import fetch_request as fetch
from mockraft.wire.messages import fetch_snapshot_request as fetch_snapshot
from mockraft.wire.messages import update_raft_voter_request as update
from mockraft.wire.messages import vote_request as vote
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

FETCH_MAX_WAIT_MS = 500
FETCH_BYTES_MAX = 8 << 20

PRE_VOTE_VERSION = 2
TOPIC_ID_VERSION = 13


def vote_for(quorum: QuorumState, voter: ReplicaKey) -> vote.VoteRequest:
    """Build a Vote request, a pre-vote while this node is prospective."""
    partition = vote.PartitionData(
        partition_index=PARTITION,
        replica_epoch=quorum.epoch,
        replica_id=quorum.config.node_id,
        replica_directory_id=quorum.log.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=quorum.log.last_epoch,
        last_offset=quorum.log.end_offset,
        pre_vote=quorum.role is Role.PROSPECTIVE,
    )
    topic = vote.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return vote.VoteRequest(cluster_id=quorum.config.cluster_id, voter_id=voter.id, topics=[topic])


def begin_epoch(quorum: QuorumState, voter: ReplicaKey) -> begin.BeginQuorumEpochRequest:
    """Build a BeginQuorumEpoch request: this node leads."""
    config = quorum.config
    partition = begin.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=voter.directory_id,
        leader_id=config.node_id,
        leader_epoch=quorum.epoch,
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=config.cluster_id,
        voter_id=voter.id,
        topics=[begin.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        leader_endpoints=[
            begin.LeaderEndpoint(name=config.controller_listener_name, host=config.voter_host, port=config.voter_port)
        ],
    )


def end_epoch(quorum: QuorumState) -> end.EndQuorumEpochRequest:
    """Build an EndQuorumEpoch request: this node resigned; preferred successors come first."""
    partition = end.PartitionData(
        partition_index=PARTITION,
        leader_id=quorum.config.node_id,
        leader_epoch=quorum.epoch,
        preferred_successors=[key.id for key in quorum.successors],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in quorum.successors
        ],
    )
    topic = end.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return end.EndQuorumEpochRequest(cluster_id=quorum.config.cluster_id, topics=[topic])


def fetch_log(quorum: QuorumState) -> fetch.FetchRequest:
    """Build a Fetch request from the end of this node's log."""
    log = quorum.log
    partition = fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=quorum.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        replica_directory_id=log.directory_id,
        high_watermark=log.high_watermark or -1,
    )
    return fetch.FetchRequest(
        cluster_id=quorum.config.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=quorum.config.node_id),
        max_wait_ms=FETCH_MAX_WAIT_MS,
        max_bytes=FETCH_BYTES_MAX,
        topics=[fetch.FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[partition])],
    )


def fetch_rest_of_snapshot(quorum: QuorumState) -> fetch_snapshot.FetchSnapshotRequest:
    """Build a FetchSnapshot request for the next chunk."""
    following = quorum.following
    assert following is not None
    assert following.snapshot_id is not None
    partition = fetch_snapshot.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=quorum.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(
            end_offset=following.snapshot_id.end_offset, epoch=following.snapshot_id.epoch
        ),
        position=len(following.snapshot),
        replica_directory_id=quorum.log.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=quorum.config.cluster_id,
        replica_id=quorum.config.node_id,
        max_bytes=FETCH_BYTES_MAX,
        topics=[fetch_snapshot.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
    )


def update_voter(quorum: QuorumState) -> update.UpdateRaftVoterRequest:
    """Build an UpdateRaftVoter request with this voter's endpoints and kraft.version range."""
    local = quorum.log.local_voter
    return update.UpdateRaftVoterRequest(
        cluster_id=quorum.config.cluster_id,
        current_leader_epoch=quorum.epoch,
        voter_id=local.key.id,
        voter_directory_id=local.key.directory_id,
        listeners=[update.Listener(name=name, host=host, port=port) for name, host, port in local.endpoints],
        k_raft_version_feature=update.KRaftVersionFeature(
            min_supported_version=local.kraft_version_min, max_supported_version=local.kraft_version_max
        ),
    )


def add_voter(quorum: QuorumState) -> add.AddRaftVoterRequest:
    """Build an AddRaftVoter request of this observer, which fetches the VotersRecord before that is committed."""
    local = quorum.log.local_voter
    return add.AddRaftVoterRequest(
        cluster_id=quorum.config.cluster_id,
        timeout_ms=quorum.config.controller_quorum_request_timeout_ms,
        voter_id=local.key.id,
        voter_directory_id=local.key.directory_id,
        listeners=[add.Listener(name=name, host=host, port=port) for name, host, port in local.endpoints],
        ack_when_committed=False,
    )


def remove_voter(quorum: QuorumState, voter: ReplicaKey) -> RemoveRaftVoterRequest:
    """Build a RemoveRaftVoter request."""
    return RemoveRaftVoterRequest(
        cluster_id=quorum.config.cluster_id, voter_id=voter.id, voter_directory_id=voter.directory_id
    )
