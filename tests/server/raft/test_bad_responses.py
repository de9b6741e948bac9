"""A response that a raft node cannot use changes nothing, and its sender is asked again after the back-off."""

from typing import Any

import pytest
from mockraft.server.raft.outgoing import Outgoing
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages import (
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    vote_response,
)
from mockraft.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from mockraft.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.fetch_response import FetchResponse
from mockraft.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from mockraft.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from mockraft.wire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from mockraft.wire.messages.vote_response import VoteResponse

from ...rows import each_row
from .conftest import TOPIC, TOPIC_ID, LoneNode

FAILED = error_codes.UNKNOWN_SERVER_ERROR
BACKOFF_MS = 20


def bad(module: Any, response: Any, name: Any, **good: Any) -> dict[str, Any]:
    """Responses with one thing wrong; `name` are the fields that name the topic, `good` those of the partition."""
    topic: Any = getattr(module, "TopicData", None) or getattr(module, "TopicSnapshot", None)
    partition: Any = getattr(module, "PartitionData", None) or getattr(module, "PartitionSnapshot", None)
    index = "index" if module is fetch_snapshot_response else "partition_index"
    one = partition(**{index: 0, **good})
    right = topic(**name, partitions=[one])
    return {
        "an error": response(error_code=FAILED, topics=[right]),
        "no topic": response(),
        "two topics": response(topics=[right, right]),
        "another topic": response(topics=[topic(**dict.fromkeys(name, "orders"), partitions=[one])]),
        "no partition": response(topics=[topic(**name)]),
        "two partitions": response(topics=[topic(**name, partitions=[one, one])]),
        "another partition": response(topics=[topic(**name, partitions=[partition(**{**good, index: 1})])]),
        "a partition's error": response(
            topics=[topic(**name, partitions=[partition(**{**good, index: 0, "error_code": FAILED})])]
        ),
    }


VOTES = bad(vote_response, VoteResponse, {"topic_name": TOPIC}, leader_id=-1, leader_epoch=1, vote_granted=True)


@each_row("wrong", VOTES)
def test_a_vote_that_is_not_understood_is_not_counted(new_node: Any, wrong: VoteResponse) -> None:
    node = new_node()
    node.raft.elect(node.now_ms)
    first, second = node.poll()
    assert node.answer(first, wrong) == []
    (again,) = node.poll(BACKOFF_MS)
    assert again.node_id == first.node_id
    assert not node.raft.is_leader
    node.vote(second, True)
    assert node.raft.is_leader


@each_row("granted", [True, False])
def test_a_voter_that_responded_can_be_asked_at_once(new_node: Any, granted: bool) -> None:
    node = new_node(voters=5)
    node.raft.elect(node.now_ms)
    first, *_ = node.poll()
    node.vote(first, granted)
    assert node.raft.role is Role.CANDIDATE
    assert node.raft.requests.is_ready(first.node_id, node.now_ms)


def test_a_voter_that_has_another_directory_can_be_asked_at_once(new_node: Any) -> None:
    node = new_node()
    node.raft.elect(node.now_ms)
    first, _ = node.poll()
    partition = vote_response.PartitionData(leader_id=-1, leader_epoch=1, error_code=error_codes.INVALID_VOTER_KEY)
    topics = [vote_response.TopicData(topic_name=TOPIC, partitions=[partition])]
    (again,) = node.answer(first, VoteResponse(topics=topics))
    assert again.node_id == first.node_id


def test_a_voter_that_knows_no_leader_is_not_asked_again_at_once(new_node: Any) -> None:
    node = new_node()
    (fetch,) = node.poll()
    (other,) = node.fetched(fetch, leader_id=-1)
    assert {fetch.node_id, other.node_id} == {2, 3}
    assert node.fetched(other, leader_id=-1) == []


BEGUN = bad(begin_quorum_epoch_response, BeginQuorumEpochResponse, {"topic_name": TOPIC}, leader_id=1, leader_epoch=1)


@pytest.mark.parametrize("wrong", BEGUN)
def test_a_leader_stays_when_a_voter_does_not_understand_it(new_node: Any, wrong: str) -> None:
    node = new_node()
    begin, *_ = node.lead()
    assert node.answer(begin, BEGUN[wrong]) == []
    assert not node.raft.requests.is_ready(begin.node_id, node.now_ms)
    assert node.raft.requests.is_ready(begin.node_id, node.now_ms + BACKOFF_MS)
    assert node.raft.role is Role.LEADER


ENDED = bad(end_quorum_epoch_response, EndQuorumEpochResponse, {"topic_name": TOPIC}, leader_id=1, leader_epoch=1)


@pytest.mark.parametrize("wrong", ENDED)
def test_the_end_of_an_epoch_is_sent_until_it_is_acknowledged(new_node: Any, wrong: str) -> None:
    node = new_node(controller_quorum_election_timeout_ms=60_000)
    for begin in node.lead():
        node.raft.received(begin.id, None, node.now_ms)
    node.raft.resign(node.now_ms)
    end, *_ = node.poll(BACKOFF_MS * 60)
    node.answer(end, ENDED[wrong])
    assert end.node_id in node.raft.unacknowledged
    partition = end_quorum_epoch_response.PartitionData(leader_id=1, leader_epoch=1)
    topics = [end_quorum_epoch_response.TopicData(topic_name=TOPIC, partitions=[partition])]
    again = next(each for each in node.poll(BACKOFF_MS * 60) if each.node_id == end.node_id)
    node.answer(again, EndQuorumEpochResponse(topics=topics))
    assert end.node_id not in node.raft.unacknowledged


def fetched(*topics: Any, **fields: Any) -> FetchResponse:
    return FetchResponse(responses=list(topics), **fields)


def fetched_topic(topic_id: bytes = TOPIC_ID, partitions: int = 1, **fields: Any) -> Any:
    leader = fetch_response.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    diverging = fetch_response.EpochEndOffset(epoch=0, end_offset=0)
    partition = fetch_response.PartitionData(current_leader=leader, diverging_epoch=diverging, **fields)
    return fetch_response.FetchableTopicResponse(topic_id=topic_id, partitions=[partition] * partitions)


@each_row(
    "response",
    {
        "an error": fetched(fetched_topic(), error_code=FAILED),
        "no topic": fetched(),
        "two topics": fetched(fetched_topic(), fetched_topic()),
        "another topic": fetched(fetched_topic(bytes(15) + b"\2")),
        "no partition": fetched(fetched_topic(partitions=0)),
        "two partitions": fetched(fetched_topic(partitions=2)),
        "a partition's error": fetched(fetched_topic(error_code=FAILED)),
    },
)
def test_a_fetch_that_is_not_understood_is_repeated_at_another_voter(new_node: Any, response: FetchResponse) -> None:
    node = new_node()
    (fetch,) = node.follow()
    deadline_ms = node.raft.deadline_ms
    (again,) = node.answer(fetch, response)
    assert (fetch.node_id, again.node_id, type(again.message)) == (2, 3, type(fetch.message))
    assert (node.listener.calls, node.raft.deadline_ms) == ([], deadline_ms)


SNAPSHOT_ID = fetch_snapshot_response.SnapshotId(end_offset=10, epoch=3)
CHUNKS = bad(
    fetch_snapshot_response,
    FetchSnapshotResponse,
    {"name": TOPIC},
    current_leader=fetch_snapshot_response.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
    snapshot_id=SNAPSHOT_ID,
    size=100,
    unaligned_records=b"x",
)


@each_row("wrong", CHUNKS)
def test_a_chunk_of_a_snapshot_that_is_not_understood_is_not_kept(new_node: Any, wrong: FetchSnapshotResponse) -> None:
    node = new_node()
    (fetch,) = node.follow()
    (chunk,) = node.fetched(fetch, leader_id=2, snapshot_id=fetch_response.SnapshotId(end_offset=10, epoch=3))
    (again,) = node.answer(chunk, wrong)
    assert (chunk.node_id, again.node_id) == (2, 3)
    assert (node.raft.following.snapshot, node.raft.following.snapshot_id) == (b"", (10, 3))


def updating(node: LoneNode) -> Outgoing:
    """Follow until the node sends UpdateRaftVoter."""
    (outgoing,) = node.follow()
    while not isinstance(outgoing.message, UpdateRaftVoterRequest):
        node.now_ms += 1000
        (outgoing,) = node.fetched(outgoing, leader_id=2)
    return outgoing


@each_row(
    ("leader_id", "host", "expected"),
    [(3, "moved", ("moved", 1234)), (3, "", ("node3", 9003)), (0, "moved", ("moved", 1234))],
)
def test_the_leader_in_the_answer_to_a_moved_voter_is_followed(
    new_node: Any, leader_id: int, host: str, expected: tuple[str, int]
) -> None:
    node = new_node(advertised_port=1234)
    outgoing = updating(node)
    leader = CurrentLeader(leader_id=leader_id, leader_epoch=9, host=host, port=1234 if host else 0)
    (fetch,) = node.answer(outgoing, UpdateRaftVoterResponse(current_leader=leader))
    assert (node.raft.leader_id, node.raft.epoch) == (leader_id, 9)
    assert (fetch.node_id, (fetch.host, fetch.port)) == (leader_id, expected)


def test_an_update_of_a_voter_that_fails_is_not_done(new_node: Any) -> None:
    node = new_node(advertised_port=1234)
    outgoing = updating(node)
    leader = CurrentLeader(leader_id=2, leader_epoch=5)
    (fetch,) = node.answer(outgoing, UpdateRaftVoterResponse(error_code=FAILED, current_leader=leader))
    assert (fetch.node_id, type(fetch.message)) == (3, FetchRequest)
    assert node.raft.following.has_updated_leader is False
