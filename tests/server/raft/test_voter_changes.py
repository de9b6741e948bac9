import logging
import re
from typing import Any

import pytest
from mockraft.server.controller.log.limits import EPOCH_MAX, EPOCH_PEER_MAX
from mockraft.server.controller.quorum.voter_set import ReplicaKey, VoterEndpoint, VoterNode
from mockraft.server.controller.result import ApiError
from mockraft.server.raft import voter_changes
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey

from ...rows import each_row

NEW = ReplicaKey(7, bytes([7]) * 16)
ENDPOINTS = (VoterEndpoint("CONTROLLER", "node7", 9007),)
TIMED_OUT = error_codes.REQUEST_TIMED_OUT


def versions(lowest: int = 0, highest: int = 1) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        supported_features=[SupportedFeatureKey(name="kraft.version", min_version=lowest, max_version=highest)]
    )


def begin(node: Any, key: ReplicaKey = NEW, *, ack_when_committed: bool = True) -> Any:
    """Begin to add a voter; gives the change and the question to the newcomer."""
    change = node.raft.add_voter(key, ENDPOINTS, ack_when_committed, node.now_ms)
    assert node.raft.next_ms <= node.now_ms
    (asked,) = node.poll()
    assert asked.message == ApiVersionsRequest(client_software_name="mockraft", client_software_version="1")
    assert (asked.host, asked.port) == ("node7", 9007)
    return change, asked


def refusal(node: Any, key: ReplicaKey = NEW) -> ApiError:
    with pytest.raises(ApiError) as refused:
        node.raft.add_voter(key, ENDPOINTS, True, node.now_ms)
    return refused.value


@pytest.fixture
def alone(new_node: Any) -> Any:
    """The leader of a quorum of one, at kraft.version 1; node 7 follows it."""
    node = new_node(voters=1)
    node.raft.fetched(NEW, node.log.end_offset, node.now_ms)
    return node


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("lowest", [0, 1])
def test_a_newcomer_that_fits_and_is_caught_up_becomes_a_voter(alone: Any, waits: bool, lowest: int) -> None:
    change, asked = begin(alone, ack_when_committed=waits)
    offset = alone.log.end_offset
    alone.answer(asked, versions(lowest))
    assert list(alone.raft.voters.nodes) == [1, 7]
    assert (alone.log.voters_offset, change.result) == (offset, None if waits else (error_codes.NONE, None))
    assert alone.raft.voter_change is change, "it is under way"
    assert not alone.log.commits_alone
    assert alone.log.high_watermark == offset, "the new voter counts at once"
    alone.raft.fetched(NEW, offset + 1, alone.now_ms)
    assert change.result == (error_codes.NONE, None)
    assert (alone.raft.voter_change, alone.log.high_watermark) == (None, offset + 1)


def test_the_second_voter_has_time_to_fetch_however_long_the_first_led_alone(alone: Any) -> None:
    alone.poll(60_000)
    alone.raft.fetched(NEW, alone.log.end_offset, alone.now_ms)
    _, asked = begin(alone)
    alone.answer(asked, versions())
    alone.poll(alone.config.controller_quorum_fetch_timeout_ms)
    assert alone.raft.is_leader
    alone.poll(alone.config.controller_quorum_fetch_timeout_ms)
    assert not alone.raft.is_leader, "the voter never fetched"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (None, TIMED_OUT, "API_VERSIONS returned an error BROKER_NOT_AVAILABLE"),
        (ApiVersionsResponse(error_code=35), TIMED_OUT, "API_VERSIONS returned an error UNSUPPORTED_VERSION"),
        (versions(0, 0), error_codes.INVALID_REQUEST, r"kraft.version range \(min: 0, max: 0 doesn't support"),
        (ApiVersionsResponse(), error_codes.INVALID_REQUEST, r"range \(min: 0, max: 0\) doesn't support"),
    ],
)
def test_a_newcomer_that_does_not_fit_is_not_added(alone: Any, answer: Any, code: int, message: str) -> None:
    change, asked = begin(alone)
    alone.answer(asked, answer)
    assert change.result[0] == code
    assert re.search(message, change.result[1])
    assert list(alone.raft.voters.nodes) == [1]


def test_a_newcomer_that_lags_behind_is_not_added(new_node: Any) -> None:
    node = new_node(voters=1)
    change, asked = begin(node)
    node.answer(asked, versions())
    assert change.result == (TIMED_OUT, f"Aborted add voter operation for {NEW} since it is lagging behind")


@each_row("epoch", [EPOCH_PEER_MAX - 1, EPOCH_PEER_MAX, EPOCH_PEER_MAX + 9, EPOCH_MAX - 1])
def test_second_voter_is_added_only_while_two_could_still_elect_one(new_node: Any, epoch: int) -> None:
    node = new_node(voters=1)
    node.raft.to_unattached(epoch - 1, node.now_ms)
    node.poll_at_deadline()
    assert (node.raft.is_leader, node.raft.epoch) == (True, epoch)
    node.raft.fetched(NEW, node.log.end_offset, node.now_ms)
    if epoch < EPOCH_PEER_MAX:
        _, asked = begin(node)
        node.answer(asked, versions())
        assert list(node.raft.voters.nodes) == [1, 7]
        return
    refused = refusal(node)
    assert refused.error_code == error_codes.INVALID_REQUEST
    assert f"the leader epoch {epoch} is too near to the last one" in str(refused.message)
    assert (node.raft.is_leader, node.raft.voter_change, list(node.raft.voters.nodes)) == (True, None, [1])


def test_one_change_at_a_time(alone: Any) -> None:
    begin(alone)
    assert "previous voter change" in str(refusal(alone, ReplicaKey(8, bytes([8]) * 16)).message)
    alone.now_ms += 2000
    assert refusal(alone, ReplicaKey(1, bytes(16))).error_code == error_codes.DUPLICATE_VOTER, "that one took too long"


def test_a_change_that_takes_too_long_is_given_up_but_not_undone(alone: Any) -> None:
    change, asked = begin(alone)
    alone.answer(asked, versions())
    alone.poll(2000)
    assert change.result == (TIMED_OUT, error_codes.message(TIMED_OUT))
    assert list(alone.raft.voters.nodes) == [1, 7]
    refused = refusal(alone, ReplicaKey(8, bytes([8]) * 16))
    assert refused.error_code == TIMED_OUT
    assert "to commit the latest voter change at Optional[3] with HWM 3" in str(refused.message)


def test_a_leader_without_a_high_watermark_changes_no_voters(new_node: Any) -> None:
    node = new_node()
    node.lead()
    refused = refusal(node)
    assert (refused.error_code, "establish HWM" in str(refused.message)) == (TIMED_OUT, True)
    assert voter_changes.update(node.raft, node.log.local_voter, node.now_ms) == TIMED_OUT


def test_a_lost_leadership_is_the_answer(alone: Any) -> None:
    change, asked = begin(alone)
    alone.answer(asked, versions())
    alone.raft.to_unattached(9, alone.now_ms)
    assert change.result[0] == error_codes.NOT_LEADER_OR_FOLLOWER
    assert alone.raft.voter_change is None


def test_a_leader_that_is_removed_resigns_once_that_is_committed(new_node: Any) -> None:
    node = new_node()
    node.lead()
    for node_id in (2, 3):
        node.fetch_from(node_id)
    change = voter_changes.remove(node.raft, node.raft.key, node.now_ms)
    assert list(node.raft.voters.nodes) == [2, 3]
    assert node.raft.next_ms <= node.now_ms
    node.poll()
    node.fetch_from(2)
    assert change.result is None, "its own log does not count any more"
    node.fetch_from(3)
    assert change.result == (error_codes.NONE, None)
    assert node.raft.next_ms <= node.now_ms
    node.poll()
    assert node.raft.role is Role.RESIGNED


def test_two_voters_become_one(new_node: Any) -> None:
    node = new_node(voters=2)
    node.lead()
    node.fetch_from(2)
    change = voter_changes.remove(node.raft, ReplicaKey(2, bytes([2]) * 16), node.now_ms)
    assert change.result == (error_codes.NONE, None)
    assert node.log.commits_alone
    assert node.log.high_watermark == node.log.end_offset


def test_a_voter_that_moved_is_written_down(new_node: Any) -> None:
    node = new_node()
    node.lead()
    node.fetch_from(2)
    moved = VoterNode(ReplicaKey(2, bytes([2]) * 16), (VoterEndpoint("CONTROLLER", "there", 1),))
    changes = node.raft.changes
    assert voter_changes.update(node.raft, moved, node.now_ms) == error_codes.NONE
    assert node.raft.voters.nodes[2] == moved
    assert node.raft.changes > changes
    assert voter_changes.update(node.raft, moved, node.now_ms) == TIMED_OUT, "until that is committed"
    node.fetch_from(2)
    stranger = VoterNode(NEW, ENDPOINTS)
    assert voter_changes.update(node.raft, stranger, node.now_ms) == error_codes.VOTER_NOT_FOUND
    too_new = VoterNode(moved.key, moved.endpoints, 2, 3)
    assert voter_changes.update(node.raft, too_new, node.now_ms) == error_codes.INVALID_REQUEST


def test_an_upgrade_waits_for_every_voters_directory_and_versions(new_node: Any) -> None:
    node = new_node(controller_quorum_voters="1@node1:9001,2@node2:9002")
    node.lead()
    node.fetch_from(2)
    with pytest.raises(ApiError, match="not all of the voters support it") as refused:
        voter_changes.upgrade_kraft_version(node.raft, 1, node.now_ms)
    assert refused.value.error_code == error_codes.INVALID_UPDATE_VERSION
    two = VoterNode(ReplicaKey(2, bytes(16)), (VoterEndpoint("CONTROLLER", "node2", 9002),))
    assert voter_changes.update(node.raft, two, node.now_ms) == error_codes.NONE
    with pytest.raises(ApiError) as refused:
        voter_changes.upgrade_kraft_version(node.raft, 1, node.now_ms)
    assert refused.value.error_code == error_codes.UNKNOWN_SERVER_ERROR
    two = VoterNode(ReplicaKey(2, bytes([2]) * 16), two.endpoints)
    assert voter_changes.update(node.raft, two, node.now_ms) == error_codes.NONE
    assert node.log.kraft_version == 0
    voter_changes.upgrade_kraft_version(node.raft, 1, node.now_ms)
    assert (node.log.kraft_version, node.raft.voters.nodes[2]) == (1, two)
    assert node.raft.voters.nodes[1] == node.log.local_voter
    node.fetch_from(2)
    assert node.log.high_watermark == node.log.end_offset


def test_a_newcomer_that_did_not_respond_is_asked_again_after_the_back_off(alone: Any) -> None:
    _, asked = begin(alone)
    alone.answer(asked, None)
    refused = refusal(alone)
    assert (refused.error_code, refused.message) == (TIMED_OUT, f"New voter {NEW} is not ready to receive requests")
    alone.poll(20)
    change, asked = begin(alone)
    alone.answer(asked, versions())
    assert (change.last_offset, list(alone.raft.voters.nodes)) == (alone.log.end_offset - 1, [1, 7])


@pytest.mark.parametrize(("release", "named"), [("4.4", ""), ("4.5", f"{NEW} ")])
def test_an_aborted_addition_names_the_voter_since_4_5(new_node: Any, release: str, named: str) -> None:
    node = new_node(voters=1, release=release)
    change, asked = begin(node)
    node.answer(asked, None)
    text = f"Aborted add voter operation for {named}since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
    assert change.result == (TIMED_OUT, text)


def test_the_response_of_a_newcomer_whose_change_is_over_is_ignored(alone: Any) -> None:
    change, asked = begin(alone)
    alone.poll(2000)
    assert change.result == (TIMED_OUT, error_codes.message(TIMED_OUT))
    alone.answer(asked, versions())
    assert list(alone.raft.voters.nodes) == [1]


def test_the_response_of_another_newcomer_is_ignored(alone: Any) -> None:
    _, asked = begin(alone)
    alone.poll(2000)
    change, _ = begin(alone, ReplicaKey(8, bytes([8]) * 16))
    alone.answer(asked, versions())
    assert (list(alone.raft.voters.nodes), alone.raft.voter_change) == ([1], change)


def test_only_a_leader_upgrades_the_kraft_version(new_node: Any) -> None:
    node = new_node()
    with pytest.raises(ApiError) as refused:
        voter_changes.upgrade_kraft_version(node.raft, 1, node.now_ms)
    assert refused.value.error_code == error_codes.NOT_CONTROLLER
    assert voter_changes.update(node.raft, node.log.local_voter, node.now_ms) == error_codes.NOT_LEADER_OR_FOLLOWER


def test_each_step_of_a_change_is_news_for_parked_requests(alone: Any) -> None:
    """`changes` grows: what waits for it compares it with an earlier value."""
    counts = [alone.raft.changes]
    _, asked = begin(alone, ack_when_committed=False)
    alone.answer(asked, versions())
    counts.append(alone.raft.changes)
    alone.raft.fetched(NEW, alone.log.end_offset, alone.now_ms)
    counts.append(alone.raft.changes)
    alone.raft.resign(alone.now_ms)
    counts.append(alone.raft.changes)
    assert sorted(set(counts)) == counts


def test_voters_that_come_and_go_are_lines_of_the_log(alone: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mockraft.raft")
    _, asked = begin(alone)
    alone.answer(asked, versions(2, 2))
    _, asked = begin(alone)
    offset = alone.log.end_offset
    alone.answer(asked, versions())
    alone.raft.fetched(NEW, alone.log.end_offset, alone.now_ms)
    voter_changes.remove(alone.raft, NEW, alone.now_ms)
    own, new = alone.raft.key, NEW
    refused = "Aborted add voter operation for .* doesn't support the finalized version 1"
    wanted = [
        f"node 1: voter {new} is not added: INVALID_REQUEST: {refused}",
        f"node 1: latest set of voters is .* at offset {offset}",
        f"node 1: voter {new} is added",
        f"node 1: latest set of voters is .* at offset {offset + 1}",
        f"node 1: voter {new} is removed",
    ]
    assert own.id == 1
    assert len(caplog.messages) == len(wanted), caplog.messages
    for pattern, line in zip(wanted, caplog.messages, strict=True):
        assert re.fullmatch(pattern.replace("(", r"\(").replace(")", r"\)").replace("[", r"\["), line), (pattern, line)


@each_row(
    ("answer", "code", "port"),
    [
        (versions(), error_codes.NONE, 9007),
        (None, TIMED_OUT, 9001),
        (ApiVersionsResponse(error_code=35), TIMED_OUT, 9001),
        (versions(1, 1), error_codes.INVALID_REQUEST, 9001),
        (ApiVersionsResponse(), error_codes.INVALID_REQUEST, 9001),
    ],
)
def test_a_voter_that_moved_is_updated_once_it_answers(new_node: Any, answer: Any, code: int, port: int) -> None:
    node = new_node(voters=1)
    (known,) = node.raft.voters.nodes.values()
    change = node.raft.update_voter(VoterNode(known.key, ENDPOINTS, 0, 1), node.now_ms)
    with pytest.raises(ApiError) as second:
        node.raft.update_voter(VoterNode(known.key, ENDPOINTS, 0, 1), node.now_ms)
    assert second.value.error_code == TIMED_OUT
    (asked,) = node.poll()
    assert (asked.host, asked.port) == ("node7", 9007)
    node.answer(asked, answer)
    assert change.result[0] == code
    (known,) = node.raft.voters.nodes.values()
    assert (known.endpoints[0].port, node.raft.voter_change) == (port, None)
