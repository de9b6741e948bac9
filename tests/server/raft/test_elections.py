"""Elections and the states of a node."""

import itertools
from typing import Any

import pytest
from mockraft.server.controller.log.limits import EPOCH_PEER_MAX
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ElectionState, ReplicaKey
from mockraft.server.raft.quorum_state import InconsistentLeaderError
from mockraft.server.raft.states import Role, Votes, Voting, can_step, grants
from mockraft.wire import error_codes, record_batch
from mockraft.wire.messages import begin_quorum_epoch_response, end_quorum_epoch_response
from mockraft.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from mockraft.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.vote_request import VoteRequest
from mockraft.wire.messages.vote_response import VoteResponse
from mockraft.wire.records.leader_change_message import LeaderChangeMessage

from ...rows import each_row

TOPIC = "__cluster_metadata"
TWO, THREE = ReplicaKey(2, bytes([2]) * 16), ReplicaKey(3, bytes([3]) * 16)


def kinds(sent: list[Any]) -> list[tuple[int | None, type]]:
    return [(outgoing.node_id, type(outgoing.message)) for outgoing in sent]


def test_alone_a_node_leads_at_once_and_commits_all(new_node: Any) -> None:
    node = new_node(voters=1)
    assert (node.raft.role, node.raft.epoch, node.raft.high_watermark) == (Role.LEADER, 1, node.log.end_offset)
    assert node.poll() == []
    assert node.raft.next_ms == 1 << 62


def test_alone_a_node_that_resigned_leads_again(new_node: Any) -> None:
    node = new_node(voters=1)
    node.raft.resign(node.now_ms)
    assert node.listener.calls == ["lost"]
    assert not node.log.commits_alone
    assert node.poll() == []
    assert node.raft.leader_id == 1, "it says who led"
    node.poll_at_deadline()
    assert (node.raft.role, node.raft.epoch) == (Role.LEADER, 3)
    assert node.listener.calls == ["lost", "committed", "leads 3"]


def test_voter_without_a_leader_sends_pre_votes_and_then_becomes_candidate(new_node: Any) -> None:
    node = new_node()
    assert kinds(node.poll())[0][1] is FetchRequest, "somebody may know a leader"
    election_ms = node.raft.deadline_ms - node.now_ms
    assert 1000 <= election_ms < 2000
    pre_votes = node.poll_at_deadline()
    assert kinds(pre_votes) == [(2, VoteRequest), (3, VoteRequest)]
    assert [(o.host, o.port, o.version_min) for o in pre_votes] == [("node2", 9002, 2), ("node3", 9003, 2)]
    asked = pre_votes[0].message
    assert (asked.voter_id, asked.topics[0].partitions[0].pre_vote) == (2, True)
    assert (asked.topics[0].partitions[0].replica_epoch, node.raft.epoch) == (0, 0)
    votes = node.vote(pre_votes[0], True)
    assert (node.raft.role, node.raft.epoch) == (Role.CANDIDATE, 1)
    assert node.log.election == ElectionState(1, None, node.raft.key), "remembered before anybody is asked"
    assert [(o.message.topics[0].partitions[0].pre_vote, o.version_min) for o in votes] == [(False, 0), (False, 0)]
    assert votes[0].message.topics[0].partitions[0].voter_directory_id == TWO.directory_id
    begins = node.vote(votes[1], True)
    assert node.raft.role is Role.LEADER
    assert kinds(begins) == [(2, BeginQuorumEpochRequest), (3, BeginQuorumEpochRequest)]
    assert node.listener.calls == [], "nothing of this epoch is committed yet"
    (batch,) = record_batch.read_batches(node.log.read(0, 1 << 20))
    change = LeaderChangeMessage.read(batch.records[0][1] or b"", 0)
    assert [voter.voter_id for voter in change.voters] == [1, 2, 3]
    assert [voter.voter_id for voter in change.granting_voters] == [1, 3]
    assert len(batch.records) == 3, "a new log says its voters"


@each_row(
    ("follows", "state"),
    {"without a leader": (None, (Role.UNATTACHED, None, 0)), "with a leader": (2, (Role.FOLLOWER, 2, 5))},
)
def test_a_lost_pre_vote_keeps_the_epoch_and_its_leader(new_node: Any, follows: int | None, state: Any) -> None:
    node = new_node()
    if follows is not None:
        node.follow(epoch=5)
    for outgoing in node.poll_at_deadline():
        node.vote(outgoing, False, **({} if follows is None else {"leader_id": follows}))
    assert (node.raft.role, node.raft.leader_id, node.raft.epoch) == state


@each_row("supports_pre_votes", [True, False])
def test_a_granted_pre_vote_makes_a_candidate_whatever_comes_later(new_node: Any, supports_pre_votes: bool) -> None:
    node = new_node()
    first, second = node.poll_at_deadline()
    if supports_pre_votes:
        node.vote(first, True)
    else:
        node.answer(first, VoteResponse(error_code=error_codes.UNSUPPORTED_VERSION))
    epoch = node.raft.epoch
    node.vote(second, False)
    assert (node.raft.role, node.raft.epoch) == (Role.CANDIDATE, epoch)


def test_unelected_candidate_sends_pre_votes_again(new_node: Any) -> None:
    node = new_node()
    node.raft.elect(node.now_ms)
    for outgoing in node.poll():
        node.vote(outgoing, False)
    assert node.raft.role is Role.CANDIDATE, "it waits"
    node.poll_at_deadline()
    assert (node.raft.role, node.raft.epoch) == (Role.PROSPECTIVE, 1)


def test_not_automatic_no_timeout_elects(new_node: Any) -> None:
    node = new_node()
    node.raft.automatic = False
    node.poll(60_000)
    assert node.raft.role == Role.UNATTACHED
    node.follow()
    node.poll(60_000)
    assert node.raft.role == Role.FOLLOWER
    node.raft.elect(node.now_ms)
    assert (node.raft.role, node.raft.epoch) == (Role.CANDIDATE, 6)
    node.poll_at_deadline()
    assert (node.raft.role, node.raft.epoch) == (Role.UNATTACHED, 6), "an election that came to nothing is over"


def test_not_automatic_a_leader_stays_without_a_majority(new_node: Any) -> None:
    node = new_node()
    node.lead()
    node.raft.automatic = False
    node.poll(60_000)
    assert node.raft.is_leader


def test_only_a_voter_stands_and_only_a_leader_resigns(new_node: Any) -> None:
    observer = new_node(node_id=4)
    with pytest.raises(ValueError, match="is no voter"):
        observer.raft.elect(observer.now_ms)
    with pytest.raises(ValueError, match="does not lead"):
        observer.raft.resign(observer.now_ms)
    observer.poll(60_000)
    assert observer.raft.role is Role.UNATTACHED


def test_a_leader_without_majority_contact_resigns(new_node: Any) -> None:
    node = new_node()
    node.lead()
    node.fetch_from(3)
    assert node.listener.calls == ["committed", "leads 1"]
    node.poll(2_999)
    assert node.raft.is_leader
    ends = node.poll(1)
    assert node.listener.calls[-1] == "lost"
    assert kinds(ends) == [(2, EndQuorumEpochRequest), (3, EndQuorumEpochRequest)]
    partition = ends[0].message.topics[0].partitions[0]
    assert [key.candidate_id for key in partition.preferred_candidates] == [3, 2], "who has more first"
    said = end_quorum_epoch_response.PartitionData(partition_index=0, leader_id=1, leader_epoch=1)
    topics = [end_quorum_epoch_response.TopicData(topic_name=TOPIC, partitions=[said])]
    node.answer(ends[0], end_quorum_epoch_response.EndQuorumEpochResponse(topics=topics))
    assert node.raft.unacknowledged == {3}
    assert node.raft.requests.is_ready(2, node.now_ms)
    node.poll_at_deadline()
    assert node.raft.epoch == 2
    assert node.raft.role in (Role.UNATTACHED, Role.PROSPECTIVE)


def test_a_leader_repeats_begin_quorum_epoch_to_idle_voters(new_node: Any) -> None:
    node = new_node()
    first, _ = node.lead()
    said = begin_quorum_epoch_response.PartitionData(partition_index=0, leader_id=1, leader_epoch=1)
    topics = [begin_quorum_epoch_response.TopicData(topic_name=TOPIC, partitions=[said])]
    assert node.answer(first, begin_quorum_epoch_response.BeginQuorumEpochResponse(topics=topics)) == []
    node.now_ms += 500
    node.fetch_from(3)
    assert kinds(node.poll(500)) == [(2, BeginQuorumEpochRequest)]


def test_a_resigned_leaders_first_successor_elects_at_once_the_others_later(new_node: Any) -> None:
    waits = {}
    for node_id, successors in ((1, [ReplicaKey(1, bytes([1]) * 16), THREE]), (3, [TWO, THREE]), (4, [TWO, THREE])):
        node = new_node(voters=4, node_id=node_id)
        node.follow(leader_id=2)
        node.raft.epoch_ends(2, successors, node.now_ms)
        waits[node_id] = node.raft.deadline_ms - node.now_ms
    assert waits == {1: 0, 3: 500, 4: 1000}


def test_only_a_leader_can_end_an_epoch(new_node: Any) -> None:
    node = new_node()
    node.follow(leader_id=2)
    deadline_ms = node.raft.deadline_ms
    node.raft.epoch_ends(3, [node.raft.key], node.now_ms)
    assert node.raft.deadline_ms == deadline_ms


def test_a_second_leader_of_an_epoch_is_not_believed(new_node: Any) -> None:
    node = new_node()
    node.follow(leader_id=2, epoch=5)
    for leader_id, epoch in ((3, 5), (1, 5), (1, 6)):
        with pytest.raises(InconsistentLeaderError, match="known is 2 in epoch 5"):
            node.raft.maybe_transition(leader_id, epoch, node.raft.address_of(leader_id), node.now_ms)
    with pytest.raises(InconsistentLeaderError, match="without an address"):
        node.raft.maybe_transition(9, 6, None, node.now_ms)
    assert (node.raft.leader_id, node.raft.epoch) == (2, 5)


def test_a_vote_is_remembered_over_a_restart(new_node: Any) -> None:
    node = new_node()
    node.raft.to_unattached(4, node.now_ms)
    assert node.raft.vote(TWO, 0, 0, pre_vote=False, now_ms=node.now_ms)
    again = new_node(log=node.log)
    assert (again.raft.role, again.raft.epoch, again.raft.voted) == (Role.UNATTACHED, 4, TWO)
    assert not again.raft.vote(THREE, 9, 9, pre_vote=False, now_ms=node.now_ms)
    assert again.raft.vote(TWO, 0, 0, pre_vote=False, now_ms=node.now_ms)


@each_row(
    ("election", "role"),
    [
        (ElectionState(5, 1, None), Role.RESIGNED),
        (ElectionState(5, None, ReplicaKey(1, bytes([1]) * 16)), Role.CANDIDATE),
        (ElectionState(5, 2, TWO), Role.FOLLOWER),
        (ElectionState(5, 9, TWO), Role.UNATTACHED),
        (ElectionState(5, None, TWO), Role.UNATTACHED),
    ],
)
def test_restart_restores_the_quorum_state(new_node: Any, election: ElectionState, role: Role) -> None:
    log = new_node().log
    log.save_election(election)
    raft = new_node(log=log).raft
    assert (raft.role, raft.epoch, raft.leader_id) == (role, 5, election.leader_id)
    assert log.election == election


def test_an_epoch_of_the_log_counts_where_none_is_remembered(new_node: Any) -> None:
    log = new_node(voters=1).log
    log.save_election(ElectionState())
    assert new_node(log=log).raft.epoch == log.last_epoch == 2, "elected again, above epoch 1 of the log"


def test_an_up_to_date_candidate_is_granted(new_node: Any) -> None:
    node = new_node(voters=1)
    node.raft.to_unattached(7, node.now_ms)
    end, epoch = node.log.end_offset, node.log.last_epoch
    for last_epoch, last_offset, granted in ((epoch, end - 1, False), (epoch - 1, end + 9, False), (epoch, end, True)):
        found = node.raft.vote(TWO, last_epoch, last_offset, pre_vote=True, now_ms=node.now_ms)
        assert found == granted
    assert node.raft.vote(TWO, epoch + 1, 0, pre_vote=False, now_ms=node.now_ms)


U, P, C, F, L, R = Role
ME, YOU = ReplicaKey(1, bytes(15) + b"\1"), ReplicaKey(2, bytes(15) + b"\2")

IN_SAME_EPOCH = {
    (U, P), (U, F),
    (P, U), (P, F),
    (C, P), (C, F), (C, L),
    (F, P), (F, F),
    (L, R),
    (R, P), (R, F),
}  # fmt: skip
IN_HIGHER_EPOCH = {(role, to) for role in Role for to in (U, F)} | {(P, C)}
VOTERS_ONLY = {(role, to) for role in Role for to in (P, C, L)}


@each_row(("role", "to"), list(itertools.product(Role, Role)))
def test_every_way_from_role_to_role(role: Role, to: Role) -> None:
    same, higher = (role, to) in IN_SAME_EPOCH, (role, to) in IN_HIGHER_EPOCH
    assert can_step(role, to, 5, 5, is_voter=True) == same
    assert can_step(role, to, 5, 6, is_voter=True) == higher
    assert not can_step(role, to, 5, 4, is_voter=True)
    assert can_step(role, to, 5, 5, is_voter=False) == (same and (role, to) not in VOTERS_ONLY)
    assert can_step(role, to, 5, 6, is_voter=False) == (higher and (role, to) not in VOTERS_ONLY)


@each_row("role", list(Role))
@each_row("has_fetched", [True, False])
def test_pre_votes_are_granted_by_role_and_log(role: Role, has_fetched: bool) -> None:
    voting = Voting(role, has_leader=True, voted=YOU, has_fetched=has_fetched)
    expected = role is not L and not (role is F and has_fetched)
    assert grants(voting, ME, is_up_to_date=True, pre_vote=True) == expected
    assert not grants(voting, ME, is_up_to_date=False, pre_vote=True)


@each_row("role", list(Role))
def test_votes_are_granted_by_role_and_log(role: Role) -> None:
    voting = Voting(role)
    assert grants(voting, ME, is_up_to_date=True, pre_vote=False) == (role in (U, P))
    assert not grants(voting, ME, is_up_to_date=False, pre_vote=False)
    assert not grants(Voting(role, has_leader=True), ME, is_up_to_date=True, pre_vote=False)


@each_row("role", [U, P])
def test_a_vote_is_granted_once_and_repeated(role: Role) -> None:
    for is_up_to_date in (True, False):
        assert grants(Voting(role, voted=ME), ME, is_up_to_date=is_up_to_date, pre_vote=False)
        assert not grants(Voting(role, voted=YOU), ME, is_up_to_date=is_up_to_date, pre_vote=False)
        assert not grants(
            Voting(role, voted=ME), ME._replace(directory_id=bytes(16)), is_up_to_date=True, pre_vote=False
        )
    forgotten = Voting(role, voted=ReplicaKey(ME.id, NO_DIRECTORY_ID))
    assert grants(forgotten, ME, is_up_to_date=True, pre_vote=False)


@each_row(("voters", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_elects(voters: int, majority: int) -> None:
    votes = Votes({voter: ReplicaKey(voter, bytes(16)) for voter in range(1, voters + 1)}, 1)
    for voter in range(2, majority + 1):
        assert not votes.is_granted
        votes.record(voter, True)
    assert votes.is_granted
    assert votes.granting == list(range(1, majority + 1))
    assert [key.id for key in votes.unrecorded] == list(range(majority + 1, voters + 1))


def test_election_is_lost_without_a_possible_majority() -> None:
    votes = Votes({voter: ReplicaKey(voter, bytes(16)) for voter in range(1, 6)}, 1)
    votes.record(2, False)
    votes.record(3, False)
    votes.record(9, False)
    assert not votes.is_rejected
    votes.record(4, False)
    assert votes.is_rejected


def test_an_up_to_date_log_is_compared_by_epoch_first(new_node: Any) -> None:
    node = new_node()
    node.follow(epoch=5)
    assert (node.log.last_epoch, node.log.end_offset) == (0, 0)
    assert node.raft.vote(THREE, 0, 0, pre_vote=True, now_ms=node.now_ms) is True
    assert node.raft.vote(THREE, -1, 99, pre_vote=True, now_ms=node.now_ms) is False


def test_a_leader_names_its_topic_and_epoch(new_node: Any) -> None:
    node = new_node()
    begin, *_ = node.lead()
    (topic,) = begin.message.topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == (TOPIC, 0)
    assert (partition.leader_id, partition.leader_epoch) == (1, node.raft.epoch)
    node.raft.received(begin.id, None, node.now_ms)
    node.raft.resign(node.now_ms)
    end = next(each for each in node.poll(1000) if isinstance(each.message, EndQuorumEpochRequest))
    (topic,) = end.message.topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == (TOPIC, 0)
    assert (partition.leader_id, partition.leader_epoch) == (1, node.raft.epoch)
    assert [each.candidate_id for each in partition.preferred_candidates] == [2, 3]


@pytest.mark.parametrize("follows", [None, 2])
def test_no_election_begins_after_the_last_epoch_of_a_quorum(
    new_node: Any, caplog: pytest.LogCaptureFixture, follows: int | None
) -> None:
    node = new_node()
    if follows is None:
        node.raft.to_unattached(EPOCH_PEER_MAX, node.now_ms)
    else:
        node.raft.to_follower(EPOCH_PEER_MAX, node.raft.address_of(follows), node.now_ms)
    for _ in range(3):
        pre_votes = [each for each in node.poll_at_deadline() if type(each.message) is VoteRequest]
        assert len(pre_votes) == 2
        assert not [each for each in node.vote(pre_votes[0], True) if type(each.message) is VoteRequest]
        assert (node.raft.role, node.raft.epoch) == (Role.FOLLOWER if follows else Role.UNATTACHED, EPOCH_PEER_MAX)
    assert node.raft.failure == (
        "no leader can be elected after epoch 2147418111, the last one that nodes of a quorum vote in: start new"
        " controllers with empty data directories"
    )
    assert [each.levelname for each in caplog.records if node.raft.failure in each.message] == ["ERROR"]
    with pytest.raises(ValueError, match="in epoch 2147418111, the last one of a quorum"):
        node.raft.elect(node.now_ms)


def test_a_leader_that_resigns_the_last_epoch_of_a_quorum_stays_resigned(new_node: Any) -> None:
    node = new_node()
    node.raft.to_unattached(EPOCH_PEER_MAX - 1, node.now_ms)
    (vote, _) = node.vote(next(each for each in node.poll_at_deadline() if type(each.message) is VoteRequest), True)
    node.vote(vote, True)
    assert (node.raft.is_leader, node.raft.epoch) == (True, EPOCH_PEER_MAX)
    node.raft.resign(node.now_ms)
    for _ in range(3):
        node.poll_at_deadline()
        assert (node.raft.role, node.raft.epoch) == (Role.RESIGNED, EPOCH_PEER_MAX)
    assert node.raft.failure is not None
