"""Times at which a raft node has work, and those at which a request is over."""

import random
from typing import Any

from mockraft.server.raft.request_manager import RequestManager, Target
from mockraft.server.raft.states import Role

from ...rows import each_row
from .test_elections import THREE, TWO

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
