"""State that a node keeps or forgets when its role or its epoch changes, and the times at which it has work."""

import random
from typing import Any

import pytest
from mockraft.server.controller.quorum.voter_set import ElectionState
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.quorum_state import InconsistentLeaderError
from mockraft.server.raft.request_manager import RequestManager, Target
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages import begin_quorum_epoch_response as begin
from mockraft.wire.messages import end_quorum_epoch_response as end
from mockraft.wire.messages import vote_response as vote

from ...rows import each_row
from .conftest import TOPIC
from .test_elections import THREE, TWO

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


NODE = Target(2, "node2", 9002)


def wait_ms(node: Any) -> int:
    return int(node.raft.next_ms - node.now_ms)


def test_an_observer_fetches_again_once_its_request_timed_out(new_node: Any) -> None:
    node = new_node(node_id=9, controller_quorum_bootstrap_servers="here:1")
    (fetch,) = node.poll()
    assert wait_ms(node) == node.config.controller_quorum_request_timeout_ms
    node.answer(fetch, None)
    assert wait_ms(node) == node.config.controller_quorum_retry_backoff_ms


def test_an_observer_that_follows_fetches_again_once_its_request_timed_out(new_node: Any) -> None:
    node = new_node(node_id=9)
    node.follow(leader_id=2)
    assert wait_ms(node) == 2000


def test_a_voter_without_a_leader_waits_for_its_election_timeout(new_node: Any) -> None:
    node = new_node()
    node.poll()
    assert node.raft.next_ms == node.raft.deadline_ms


def test_a_follower_waits_for_the_time_to_update_its_leader(new_node: Any) -> None:
    node = new_node()
    (fetch,) = node.follow()
    node.now_ms += 100
    node.fetched(fetch, leader_id=2)
    assert wait_ms(node) == 1900, "the fetch timeout and that of the request come 100 ms later"


def test_a_rejected_candidate_waits_for_its_election_timeout(new_node: Any) -> None:
    node = new_node()
    node.raft.elect(node.now_ms)
    for outgoing in node.poll():
        node.vote(outgoing, False)
    assert node.raft.next_ms == node.raft.deadline_ms


def test_a_candidate_asks_again_once_its_request_timed_out(new_node: Any) -> None:
    node = new_node(controller_quorum_election_timeout_ms=60_000)
    node.raft.elect(node.now_ms)
    node.poll()
    assert wait_ms(node) == 2000
    assert {outgoing.node_id for outgoing in node.poll(2000)} == {2, 3}


def test_a_leader_waits_for_the_next_begin_quorum_epoch_or_the_end_of_its_leadership(new_node: Any) -> None:
    node = new_node()
    node.lead()
    assert wait_ms(node) == 1000
    node.poll(2500)
    assert wait_ms(node) == 500, "without a majority for one and a half fetch timeouts"
    node.raft.automatic = False
    node.poll()
    assert wait_ms(node) == 1000


def test_a_resigned_leader_waits_for_its_election_timeout_or_a_lost_request(new_node: Any) -> None:
    node = new_node(controller_quorum_election_timeout_ms=60_000)
    node.lead()
    node.raft.resign(node.now_ms)
    node.poll()
    assert wait_ms(node) == 2000
    node.raft.unacknowledged.clear()
    node.poll()
    assert node.raft.next_ms == node.raft.deadline_ms


@each_row("change", ["response", "vote", "end of the epoch", "leader", "election"])
def test_work_is_due_at_once_after_a_change(new_node: Any, change: str) -> None:
    node = new_node()
    node.raft.to_unattached(3, node.now_ms)
    (fetch,) = node.poll()
    if change == "end of the epoch":
        node.follow(leader_id=2)
    assert wait_ms(node) > 0
    match change:
        case "response":
            node.raft.received(fetch.id, None, node.now_ms)
        case "vote":
            assert node.raft.vote(TWO, 0, 0, pre_vote=False, now_ms=node.now_ms)
        case "end of the epoch":
            node.raft.epoch_ends(2, [THREE], node.now_ms)
        case "leader":
            node.raft.maybe_transition(2, 5, node.raft.address_of(2), node.now_ms)
        case _:
            node.raft.elect(node.now_ms)
    assert wait_ms(node) <= 0


def test_a_request_is_over_at_its_timeout() -> None:
    requests = RequestManager(retry_backoff_ms=20, request_timeout_ms=2000, rng=random.Random(1))
    requests.sent(2, 1, 10_000)
    for now_ms, is_over in ((11_999, False), (12_000, True)):
        assert requests.has_timed_out(2, now_ms) == is_over
        assert requests.is_ready(2, now_ms) == is_over
        assert requests.any_in_flight(now_ms) == (not is_over)
        assert requests.next_ms(now_ms) == (None if is_over else 12_000)
        assert requests.ready_one([NODE], now_ms) == (NODE if is_over else None)
    assert not requests.has_timed_out(3, 12_000)
    assert not requests.is_backing_off(2, 11_000)


def test_a_node_that_failed_is_left_alone_for_the_back_off() -> None:
    requests = RequestManager(retry_backoff_ms=20, request_timeout_ms=2000, rng=random.Random(1))
    requests.sent(2, 1, 10_000)
    requests.answered(2, 9, False, 10_100)
    assert requests.expects(2, 1), "that was the response to another request"
    requests.answered(2, 1, False, 10_100)
    for now_ms, is_over in ((10_119, False), (10_120, True)):
        assert requests.is_backing_off(2, now_ms) == (not is_over)
        assert requests.is_ready(2, now_ms) == is_over
        assert requests.next_ms(now_ms) == (None if is_over else 10_120)
    assert not requests.any_in_flight(10_100)
    assert not requests.has_timed_out(2, 99_999)
    assert not requests.expects(2, 1)


def test_a_single_voter_draws_no_random_number(new_node: Any) -> None:
    node = new_node(voters=1)
    node.raft.resign(node.now_ms)
    assert node.raft.deadline_ms == node.now_ms + 1500
    assert node.raft.rng.getstate() == random.Random(1).getstate()


def test_a_prospective_voter_keeps_its_deadline_in_a_higher_epoch_but_not_after_a_lost_pre_vote(new_node: Any) -> None:
    node = new_node()
    node.poll_at_deadline()
    deadline_ms = node.raft.deadline_ms
    node.raft.to_unattached(4, node.now_ms)
    assert node.raft.deadline_ms == deadline_ms
    for outgoing in node.poll_at_deadline():
        node.vote(outgoing, False)
    assert (node.raft.role, node.raft.epoch) == (Role.UNATTACHED, 4)
    assert node.raft.deadline_ms >= node.now_ms + 1000
