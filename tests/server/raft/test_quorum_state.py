"""State that a node keeps or forgets when its role or its epoch changes."""

from typing import Any

import pytest
from mockraft.server.controller.quorum.voter_set import ElectionState
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.quorum_state import InconsistentLeaderError
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages import begin_quorum_epoch_response as begin
from mockraft.wire.messages import end_quorum_epoch_response as end
from mockraft.wire.messages import vote_response as vote

from ...rows import each_row
from .conftest import TOPIC
from .test_elections import TWO

ELSEWHERE = NodeEndpoint(9, "node9", 9009)


def test_a_vote_is_kept_within_its_epoch_only(new_node: Any) -> None:
    node = new_node()
    node.raft.to_unattached(4, node.now_ms)
    assert node.raft.vote(TWO, 0, 0, pre_vote=False, now_ms=node.now_ms)
    node.raft.to_prospective(node.now_ms)
    node.raft.lose_election(node.now_ms)
    assert (node.raft.role, node.raft.voted) == (Role.UNATTACHED, TWO)
    node.raft.to_follower(4, node.raft.address_of(3), node.now_ms)
    assert (node.raft.voted, node.log.election) == (TWO, ElectionState(4, 3, TWO))
    node.raft.to_follower(5, node.raft.address_of(3), node.now_ms)
    assert (node.raft.voted, node.log.election) == (None, ElectionState(5, 3, None))


def test_a_vote_is_forgotten_by_an_unattached_node_in_a_higher_epoch(new_node: Any) -> None:
    node = new_node()
    node.raft.to_unattached(4, node.now_ms)
    assert node.raft.vote(TWO, 0, 0, pre_vote=False, now_ms=node.now_ms)
    node.raft.to_unattached(5, node.now_ms)
    assert (node.raft.voted, node.log.election) == (None, ElectionState(5, None, None))


def test_a_leader_whose_address_was_unknown_is_followed_once_it_is_reported(new_node: Any) -> None:
    log = new_node().log
    log.save_election(ElectionState(5, 9, None))
    node = new_node(log=log)
    node.raft.maybe_transition(9, 5, None, node.now_ms)
    assert (node.raft.role, node.raft.leader_id, node.raft.leader_endpoint) == (Role.UNATTACHED, 9, None)
    node.raft.maybe_transition(9, 5, ELSEWHERE, node.now_ms)
    assert (node.raft.role, node.raft.leader_endpoint) == (Role.FOLLOWER, ELSEWHERE)


def test_an_unknown_leader_of_the_epoch_needs_an_address(new_node: Any) -> None:
    node = new_node()
    node.raft.to_unattached(5, node.now_ms)
    with pytest.raises(InconsistentLeaderError, match="leader 9 of epoch 5 was reported without an address"):
        node.raft.maybe_transition(9, 5, None, node.now_ms)


def test_the_epoch_of_the_log_is_persisted_at_a_restart(new_node: Any) -> None:
    node = new_node()
    node.lead()
    node.log.save_election(ElectionState())
    again = new_node(log=node.log)
    assert (again.raft.role, again.raft.epoch, again.log.election) == (Role.UNATTACHED, 1, ElectionState(1, None, None))


def partition_of(module: Any) -> Any:
    return module.PartitionData(leader_id=3, leader_epoch=9, error_code=error_codes.FENCED_LEADER_EPOCH)


@each_row(
    ("role", "response"),
    [
        (Role.CANDIDATE, vote.VoteResponse(topics=[vote.TopicData(topic_name=TOPIC, partitions=[partition_of(vote)])])),
        (
            Role.LEADER,
            begin.BeginQuorumEpochResponse(
                topics=[begin.TopicData(topic_name=TOPIC, partitions=[partition_of(begin)])],
                node_endpoints=[begin.NodeEndpoint(node_id=3, host="moved", port=1234)],
            ),
        ),
        (
            Role.RESIGNED,
            end.EndQuorumEpochResponse(topics=[end.TopicData(topic_name=TOPIC, partitions=[partition_of(end)])]),
        ),
    ],
)
def test_the_leader_of_a_higher_epoch_in_any_response_is_followed(new_node: Any, role: Role, response: Any) -> None:
    node = new_node(controller_quorum_election_timeout_ms=60_000)
    if role is Role.CANDIDATE:
        node.raft.elect(node.now_ms)
    else:
        node.lead()
    if role is Role.RESIGNED:
        node.raft.resign(node.now_ms)
    outgoing = (node.poll() if role is not Role.LEADER else node.sent)[0]
    assert node.raft.role is role
    (fetch,) = node.answer(outgoing, response)
    assert (node.raft.role, node.raft.leader_id, node.raft.epoch) == (Role.FOLLOWER, 3, 9)
    assert 2000 <= node.raft.deadline_ms - node.now_ms <= 2050
    assert (fetch.host, fetch.port) == (("moved", 1234) if role is Role.LEADER else ("node3", 9003))


def test_a_leader_that_is_followed_already_changes_nothing(new_node: Any) -> None:
    node = new_node()
    node.follow(leader_id=2, epoch=5)
    node.now_ms += 100
    before = (node.raft.changes, node.raft.deadline_ms)
    node.raft.maybe_transition(2, 5, node.raft.address_of(2), node.now_ms)
    assert (node.raft.changes, node.raft.deadline_ms) == before


def test_resignation_and_pre_vote_write_nothing(new_node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They change no persisted state (as in Kafka)."""
    node = new_node()
    node.lead()
    written: list[ElectionState] = []
    monkeypatch.setattr(node.log, "save_election", written.append)
    node.raft.resign(node.now_ms)
    node.raft.to_prospective(node.now_ms)
    assert (node.raft.role, written) == (Role.PROSPECTIVE, [])
    node.raft.to_candidate(node.now_ms)
    assert written == [ElectionState(2, None, node.raft.key)]
