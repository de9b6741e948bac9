"""Vote, BeginQuorumEpoch and EndQuorumEpoch to a controller alone in its quorum: every rule in Kafka's order."""

from typing import Any

import pytest
from mockraft.server.controller.log.limits import EPOCH_MAX, EPOCH_PEER_MAX, EPOCH_REPORTED_MAX, EPOCH_STEP_MAX, refusal
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages import begin_quorum_epoch_request as begin
from mockraft.wire.messages import end_quorum_epoch_request as end
from mockraft.wire.messages import vote_request as vote

from ...conftest import Cluster

TOPIC = "__cluster_metadata"
OTHER_ID = bytes(range(16))
NONE, INVALID = error_codes.NONE, error_codes.INVALID_REQUEST


class Voter:
    """Another voter, which asks a controller."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.raft = cluster.raft

    def ask(self, request: Any, version: int) -> Any:
        response = self.cluster.ask(request, version)
        return response.topics[0].partitions[0] if response.topics else response

    def vote(self, version: int = 2, topic: str = TOPIC, index: int = 0, **fields: Any) -> Any:
        top = {"cluster_id": fields.pop("cluster_id", None), "voter_id": fields.pop("voter_id", -1)}
        given = {
            "replica_epoch": self.raft.epoch,
            "replica_id": 7,
            "last_offset": 1 << 40,
            "last_offset_epoch": 0,
            **fields,
        }
        partition = vote.PartitionData(partition_index=index, **given)
        topics = [vote.TopicData(topic_name=topic, partitions=[partition])]
        return self.ask(vote.VoteRequest(topics=topics, **top), version)

    def begin(self, version: int = 1, topic: str = TOPIC, index: int = 0, **fields: Any) -> Any:
        top: dict[str, Any] = {"cluster_id": fields.pop("cluster_id", None), "voter_id": fields.pop("voter_id", -1)}
        if fields.pop("known", True):
            top["leader_endpoints"] = [begin.LeaderEndpoint(name="CONTROLLER", host="there", port=7)]
        given = {"leader_epoch": self.raft.epoch, "leader_id": 3000, **fields}
        topics = [begin.TopicData(topic_name=topic, partitions=[begin.PartitionData(partition_index=index, **given)])]
        return self.ask(begin.BeginQuorumEpochRequest(topics=topics, **top), version)

    def end(self, version: int = 1, topic: str = TOPIC, index: int = 0, **fields: Any) -> Any:
        cluster_id = fields.pop("cluster_id", None)
        given = {"leader_epoch": self.raft.epoch, "leader_id": 3000, **fields}
        topics = [end.TopicData(topic_name=topic, partitions=[end.PartitionData(partition_index=index, **given)])]
        return self.ask(end.EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics), version)


@pytest.fixture
def voter(cluster: Cluster) -> Voter:
    return Voter(cluster)


@pytest.mark.parametrize("name", ["vote", "begin", "end"])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another", "topic": "x"}, error_codes.INCONSISTENT_CLUSTER_ID),
        ({"topic": "x"}, INVALID),
        ({"index": 1}, INVALID),
    ],
)
def test_request_for_another_log_is_refused_as_a_whole(voter: Voter, name: str, fields: Any, code: int) -> None:
    assert getattr(voter, name)(**fields).error_code == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"last_offset": -1, "replica_epoch": 0}, INVALID),
        ({"last_offset_epoch": 1}, INVALID),
        ({"last_offset_epoch": 2, "pre_vote": True}, INVALID),
        ({"last_offset_epoch": 1, "pre_vote": True}, NONE),
        ({"replica_epoch": 0, "pre_vote": True, "replica_id": -1}, error_codes.FENCED_LEADER_EPOCH),
        ({"replica_id": -1, "voter_id": 9}, INVALID),
        ({"voter_id": 3000, "voter_directory_id": OTHER_ID}, error_codes.INVALID_VOTER_KEY),
        ({"voter_id": 3000}, NONE),
        ({}, NONE),
    ],
)
def test_votes_are_checked_in_kafkas_order(voter: Voter, fields: Any, code: int) -> None:
    answer = voter.vote(**fields)
    assert (answer.error_code, answer.vote_granted) == (code, False)
    assert (answer.leader_id, answer.leader_epoch) == (3000, 1)
    assert voter.raft.is_leader


@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_higher_epoch_is_believed_even_beforehand(voter: Voter, pre_vote: bool) -> None:
    answer = voter.vote(replica_epoch=5, last_offset_epoch=1, pre_vote=pre_vote)
    assert (answer.error_code, answer.vote_granted, answer.leader_id, answer.leader_epoch) == (NONE, True, -1, 5)
    assert voter.raft.role is Role.UNATTACHED
    assert voter.raft.voted == (None if pre_vote else (7, bytes(16)))
    assert voter.cluster.controller.epoch == -1, "the controller is a standby"


def test_a_controller_that_stepped_down_leads_again(voter: Voter) -> None:
    voter.vote(replica_epoch=5)
    voter.raft.poll(voter.raft.deadline_ms)
    assert (voter.raft.is_leader, voter.raft.epoch, voter.cluster.controller.epoch) == (True, 6, 6)


@pytest.mark.parametrize("name", ["begin", "end"])
@pytest.mark.parametrize(
    ("fields", "code"),
    [({"leader_epoch": 0, "leader_id": -1}, error_codes.FENCED_LEADER_EPOCH), ({"leader_id": -1}, INVALID), ({}, NONE)],
)
def test_epochs_are_checked_in_kafkas_order(voter: Voter, name: str, fields: Any, code: int) -> None:
    answer = getattr(voter, name)(**fields)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (code, 3000, 1)


@pytest.mark.parametrize("epoch", [EPOCH_REPORTED_MAX + 1, EPOCH_MAX - 1, EPOCH_MAX])
@pytest.mark.parametrize("name", ["vote", "pre_vote", "begin", "end"])
def test_an_epoch_that_leaves_no_room_for_elections_is_refused(voter: Voter, name: str, epoch: int) -> None:
    if "vote" in name:
        answer = voter.vote(replica_epoch=epoch, last_offset_epoch=1, pre_vote=name == "pre_vote")
    else:
        answer = getattr(voter, name)(leader_id=7, leader_epoch=epoch)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (INVALID, 3000, 1)
    assert voter.raft.is_leader


def test_near_the_last_epoch_only_small_steps_are_followed(voter: Voter) -> None:
    for epoch, code in (
        (EPOCH_REPORTED_MAX, NONE),
        (EPOCH_REPORTED_MAX + EPOCH_STEP_MAX, NONE),
        (EPOCH_REPORTED_MAX + 2 * EPOCH_STEP_MAX + 1, INVALID),
    ):
        assert voter.vote(replica_epoch=epoch, last_offset_epoch=1).error_code == code
    voter.raft.poll(voter.raft.deadline_ms)
    assert (voter.raft.is_leader, voter.raft.epoch) == (True, EPOCH_REPORTED_MAX + EPOCH_STEP_MAX + 1)


def test_epochs_remain_for_restarts_whatever_other_nodes_send(voter: Voter) -> None:
    voter.raft.to_unattached(EPOCH_PEER_MAX - 1, voter.cluster.now_ms)
    assert voter.vote(replica_epoch=EPOCH_PEER_MAX + 1, last_offset_epoch=1).error_code == INVALID
    assert voter.vote(replica_epoch=EPOCH_PEER_MAX, last_offset_epoch=1).error_code == NONE
    voter.raft.poll(voter.raft.deadline_ms)
    assert (voter.raft.is_leader, voter.raft.epoch) == (True, EPOCH_PEER_MAX + 1)
    assert voter.vote(replica_epoch=EPOCH_PEER_MAX + 2, last_offset_epoch=1).error_code == INVALID
    assert refusal(epoch=voter.raft.epoch) is None


def test_the_last_epoch_has_no_successor(voter: Voter) -> None:
    voter.raft.to_unattached(EPOCH_MAX - 1, voter.cluster.now_ms)
    voter.raft.poll(voter.raft.deadline_ms)
    assert (voter.raft.is_leader, voter.raft.epoch) == (True, EPOCH_MAX)
    voter.raft.resign(voter.cluster.now_ms)
    with pytest.raises(OverflowError, match="the last epoch, 2147483647"):
        voter.raft.poll(voter.raft.deadline_ms)


@pytest.mark.parametrize("name", ["begin", "end"])
def test_a_second_leader_is_not_believed(voter: Voter, name: str) -> None:
    assert getattr(voter, name)(leader_id=7).error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert getattr(voter, name)(leader_id=7, leader_epoch=4, **({"known": False} if name == "begin" else {})).error_code
    assert voter.raft.is_leader


def test_follows_a_new_leader_and_refuses_requests_to_other_nodes(voter: Voter) -> None:
    answer = voter.begin(leader_id=7, leader_epoch=4, voter_id=9)
    assert (answer.error_code, answer.leader_id) == (error_codes.INVALID_VOTER_KEY, 7)
    assert voter.raft.role is Role.FOLLOWER
    assert voter.raft.leader_endpoint == (7, "there", 7)


@pytest.mark.parametrize("version", [0, 1])
def test_a_leader_that_ends_its_epoch_is_succeeded(voter: Voter, version: int) -> None:
    voter.begin(leader_id=7, leader_epoch=4)
    successors: Any = {"preferred_successors": [3000]}
    if version:
        key = end.ReplicaInfo(candidate_id=3000, candidate_directory_id=voter.cluster.log.directory_id)
        successors = {"preferred_candidates": [key]}
    assert voter.end(version, leader_id=7, **successors).error_code == NONE
    voter.raft.poll(voter.cluster.now_ms)
    assert (voter.raft.is_leader, voter.raft.epoch) == (True, 5)


def test_returns_the_leaders_address_from_version_1_on(cluster: Cluster) -> None:
    for request, version in ((vote.VoteRequest, 1), (begin.BeginQuorumEpochRequest, 1), (end.EndQuorumEpochRequest, 1)):
        topics: Any
        if request is vote.VoteRequest:
            partition = vote.PartitionData(
                replica_epoch=1, replica_id=7, last_offset=0, last_offset_epoch=0, partition_index=0
            )
            topics = [vote.TopicData(topic_name=TOPIC, partitions=[partition])]
        else:
            module: Any = begin if request is begin.BeginQuorumEpochRequest else end
            partition = module.PartitionData(leader_id=3000, leader_epoch=1, partition_index=0)
            topics = [module.TopicData(topic_name=TOPIC, partitions=[partition])]
        for asked, endpoints in ((version, 1), (0, 0)):
            assert len(cluster.ask(request(cluster_id=None, topics=topics), asked).node_endpoints) == endpoints


def test_a_peer_of_another_cluster_is_logged_once(voter: Voter, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        voter.vote(cluster_id="other")
        voter.begin(cluster_id="other", leader_id=7)
        voter.end(cluster_id="other", leader_id=7)
        voter.vote(cluster_id="other", replica_id=8)
    own = voter.cluster.config.cluster_id
    assert caplog.messages == [
        f"node {node_id} may not take part in the quorum: 'INCONSISTENT_CLUSTER_ID: Expected cluster ID {own}, but got "
        "cluster ID other'; format its directories with this cluster id, or serve with --cluster-id"
        for node_id in (7, 8)
    ]
    assert voter.cluster.ask(vote.VoteRequest(cluster_id="other"), 2).error_code == error_codes.INCONSISTENT_CLUSTER_ID
    assert caplog.messages[-1].startswith("node -1 may not take part in the quorum")
