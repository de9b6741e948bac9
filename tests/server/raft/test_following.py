from pathlib import Path
from typing import Any

import pytest
from mockraft.releases import release
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.settings import features
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.messages import fetch_response, fetch_snapshot_response
from mockraft.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from mockraft.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from mockraft.wire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse

from ..controller.log.conftest import topic

TOPIC = "__cluster_metadata"


@pytest.fixture
def leaders_log(new_node: Any) -> Any:
    """The log of node 2 of three, which leads epoch 1 and has two topics."""
    leader = new_node(node_id=2)
    leader.lead()
    leader.log.append([topic(1)], 0)
    leader.log.append([topic(2)], 0)
    return leader.log


@pytest.fixture
def node(new_node: Any) -> Any:
    """Node 1, which follows node 2."""
    node = new_node()
    node.follow(leader_id=2, epoch=1)
    return node


def test_a_node_that_is_told_that_it_leads_a_later_epoch_keeps_its_own(node: Any) -> None:
    node.fetched(node.sent[0], leader_id=1, epoch=4, error_code=error_codes.NOT_LEADER_OR_FOLLOWER)
    assert (node.raft.role, node.raft.leader_id, node.raft.epoch) == (Role.FOLLOWER, 2, 1)


def test_a_follower_fetches_from_its_leader_one_fetch_at_a_time(node: Any) -> None:
    (outgoing,) = node.sent
    assert (outgoing.node_id, outgoing.host, outgoing.port, outgoing.version_min) == (2, "node2", 9002, 13)
    partition = outgoing.message.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (0, 0, 1)
    assert (outgoing.message.replica_state.replica_id, partition.replica_directory_id) == (1, bytes([1]) * 16)
    assert node.poll(100) == []


def test_fetched_records_are_appended_and_committed_up_to_the_high_watermark(node: Any, leaders_log: Any) -> None:
    data = leaders_log.read(0, 1 << 20)
    (again,) = node.fetched(node.sent[0], leader_id=2, records=data, high_watermark=3)
    assert node.log.read(0, 1 << 20) == data
    assert (node.log.high_watermark, node.listener.calls) == (3, ["committed"])
    assert again.message.topics[0].partitions[0].fetch_offset == leaders_log.end_offset
    (again,) = node.fetched(again, leader_id=2, high_watermark=3)
    assert node.listener.calls == ["committed"], "it did not move"
    deadline_ms = node.raft.deadline_ms
    node.now_ms += 100
    node.fetched(again, leader_id=2, high_watermark=1000)
    assert node.log.high_watermark == node.log.end_offset
    assert node.raft.deadline_ms == deadline_ms + 100


def test_a_batch_that_is_cut_off_or_damaged_is_fetched_again(node: Any, leaders_log: Any) -> None:
    data = leaders_log.read(0, 1 << 20)
    (again,) = node.fetched(node.sent[0], leader_id=2, records=data[:-1])
    assert node.log.end_offset == leaders_log.end_offset - 1
    damaged = bytearray(leaders_log.read(node.log.end_offset, 1 << 20))
    damaged[-1] ^= 1
    node.fetched(again, leader_id=2, records=bytes(damaged))
    assert node.log.end_offset == leaders_log.end_offset - 1


def test_batches_that_do_not_follow_are_left_out(node: Any, leaders_log: Any) -> None:
    node.fetched(node.sent[0], leader_id=2, records=leaders_log.read(4, 1 << 20))
    assert node.log.end_offset == 0


def joining(node: Any, response: Any = None) -> Any:
    """Return what is sent after a fetch and its timeout, and answer that, if a response is given."""
    (fetch,) = node.sent
    node.now_ms += 2_000
    (sent,) = node.fetched(fetch, leader_id=2)
    if response is not None:
        node.answer(sent, response)
    return sent.message


def test_an_observer_has_the_voter_of_its_id_removed_before_it_joins(new_node: Any) -> None:
    node = new_node(node_id=3, controller_quorum_auto_join_enable=True)
    node.log.directory_id = bytes(16)
    node.follow(leader_id=2, epoch=1)
    removal = joining(node, RemoveRaftVoterResponse())
    assert (removal.voter_id, removal.voter_directory_id) == (3, bytes([3]) * 16)
    assert [type(each.message) for each in node.sent] == [FetchRequest], "not again at once"


@pytest.mark.parametrize(
    ("error_code", "asks_leader"),
    [
        (error_codes.NONE, True),
        (error_codes.REQUEST_TIMED_OUT, True),
        (error_codes.DUPLICATE_VOTER, True),
        (error_codes.INVALID_REQUEST, False),
    ],
)
def test_an_observer_that_joins_asks_again_after_the_fetch_timeout(
    new_node: Any, error_code: int, asks_leader: bool
) -> None:
    node = new_node(node_id=4, controller_quorum_auto_join_enable=True)
    node.follow(leader_id=2, epoch=1)
    message = joining(node, AddRaftVoterResponse(error_code=error_code))
    assert (message.voter_id, message.voter_directory_id) == (4, node.log.directory_id)
    assert [(each.host, each.port) for each in message.listeners] == [("node4", 9004)]
    assert not message.ack_when_committed
    (fetch,) = node.sent
    assert (fetch.node_id == 2) is asks_leader, "an unexpected error has it ask another node for the leader"
    assert joining(node) == message


def test_truncates_a_diverging_log_and_notifies_the_controller_but_never_committed_records(
    node: Any, leaders_log: Any
) -> None:
    data = leaders_log.read(0, 1 << 20)
    (again,) = node.fetched(node.sent[0], leader_id=2, records=data, high_watermark=3)
    changes = node.raft.changes
    (again,) = node.fetched(again, leader_id=2, diverging_epoch=fetch_response.EpochEndOffset(epoch=1, end_offset=4))
    assert (node.log.end_offset, node.listener.calls[-1]) == (4, "truncated")
    assert node.raft.changes > changes
    with pytest.raises(ValueError, match="committed up to 3"):
        node.fetched(again, leader_id=2, diverging_epoch=fetch_response.EpochEndOffset(epoch=1, end_offset=2))
    assert node.log.end_offset == 4


def test_a_log_of_which_the_leader_has_nothing_is_truncated_to_its_start(node: Any, leaders_log: Any) -> None:
    (again,) = node.fetched(node.sent[0], leader_id=2, records=leaders_log.read(0, 1 << 20))
    node.fetched(again, leader_id=2, diverging_epoch=fetch_response.EpochEndOffset(epoch=0, end_offset=0))
    assert (node.log.end_offset, node.listener.calls) == (0, ["truncated"])


def snapshot_part(node: Any, outgoing: Any, snapshot_id: SnapshotId, data: bytes, part: slice, **fields: Any) -> Any:
    leader = fetch_snapshot_response.LeaderIdAndEpoch(leader_id=2, leader_epoch=node.raft.epoch)
    partition = fetch_snapshot_response.PartitionSnapshot(
        index=0,
        current_leader=leader,
        snapshot_id=fetch_snapshot_response.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        size=len(data),
        position=part.start,
        unaligned_records=data[part],
        **fields,
    )
    topics = [fetch_snapshot_response.TopicSnapshot(name=TOPIC, partitions=[partition])]
    return node.answer(outgoing, fetch_snapshot_response.FetchSnapshotResponse(topics=topics))


def sent_to_a_snapshot(node: Any, leaders_log: Any) -> tuple[SnapshotId, bytes, Any]:
    snapshot_id = leaders_log.write_snapshot([topic(1), topic(2)], 0)
    data = leaders_log.snapshots[0].read(0, 1 << 20)
    result = fetch_response.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
    (asked,) = node.fetched(node.sent[0], leader_id=2, snapshot_id=result)
    return snapshot_id, data, asked


def test_a_snapshot_is_fetched_in_parts_and_the_log_begins_after_it(node: Any, leaders_log: Any) -> None:
    snapshot_id, data, asked = sent_to_a_snapshot(node, leaders_log)
    assert isinstance(asked.message, FetchSnapshotRequest)
    (asked,) = snapshot_part(node, asked, snapshot_id, data, slice(0, 100))
    assert asked.message.topics[0].partitions[0].position == 100
    changes = node.raft.changes
    (asked,) = snapshot_part(node, asked, snapshot_id, data, slice(100, len(data)))
    assert node.raft.changes > changes
    assert isinstance(asked.message, FetchRequest)
    end = snapshot_id.end_offset
    assert (node.log.start_offset, node.log.end_offset, node.log.high_watermark) == (end, end, end)
    assert [record for _, record in node.log.records()] == [topic(1), topic(2)]
    assert node.listener.calls == ["truncated", "committed"]
    assert list(node.log.voters.nodes) == [1, 2, 3]
    partition = asked.message.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (end, 1)


def test_snapshot_deleted_by_the_leader_is_not_requested_again(node: Any, leaders_log: Any) -> None:
    snapshot_id, data, asked = sent_to_a_snapshot(node, leaders_log)
    gone = {"error_code": error_codes.SNAPSHOT_NOT_FOUND}
    deadline_ms = node.raft.deadline_ms
    node.now_ms += 100
    (asked,) = snapshot_part(node, asked, snapshot_id, data, slice(0, 0), **gone)
    assert isinstance(asked.message, FetchRequest)
    assert (asked.node_id, node.raft.deadline_ms) == (2, deadline_ms + 100), "the leader responded"


def test_a_snapshot_of_epoch_0_is_fetched_too(node: Any) -> None:
    """Kafka's `format` writes one, bootstrap.checkpoint."""
    (asked,) = node.fetched(node.sent[0], leader_id=2, snapshot_id=fetch_response.SnapshotId(end_offset=10, epoch=0))
    (asked,) = snapshot_part(node, asked, SnapshotId(10, 0), bytes(100), slice(0, 60))
    assert (type(asked.message), asked.message.topics[0].partitions[0].position) == (FetchSnapshotRequest, 60)


def test_a_new_log_begins_with_the_initial_state(new_node: Any, leaders_log: Any, tmp_path: Path) -> None:
    records = [*features.bootstrap_records(25, release()), topic(1), topic(2)]
    snapshot_id = leaders_log.write_snapshot(records, 0)
    state = tmp_path / snapshot_id.file_name
    state.write_bytes(leaders_log.snapshots[0].read(0, 1 << 20))
    node = new_node(initial_state=state)
    assert [record for _, record in node.log.records()] == records
    assert node.log.start_offset == node.log.end_offset == len(records), "as if each had an offset of its own"
    assert list(node.log.voters.nodes) == [1, 2, 3]


def test_a_damaged_snapshot_leaves_the_log_as_it_was(node: Any, leaders_log: Any) -> None:
    snapshot_id, data, asked = sent_to_a_snapshot(node, leaders_log)
    (elsewhere,) = snapshot_part(node, asked, snapshot_id, data[:-1], slice(0, len(data) - 1))
    assert (node.log.end_offset, node.listener.calls) == (0, [])
    assert elsewhere.node_id == 3


@pytest.mark.parametrize(("other", "start"), [((9, 1), 0), ((10, 2), 0), ((10, 1), 1)])
def test_a_chunk_of_another_snapshot_or_position_is_not_kept(node: Any, other: tuple[int, int], start: int) -> None:
    (asked,) = node.fetched(node.sent[0], leader_id=2, snapshot_id=fetch_response.SnapshotId(end_offset=10, epoch=1))
    (elsewhere,) = snapshot_part(node, asked, SnapshotId(*other), bytes(100), slice(start, 60))
    assert (elsewhere.node_id, node.raft.following.snapshot) == (3, b"")


@pytest.mark.parametrize(
    "snapshot_id",
    [(2**63 - 1, 1), (10, 2**31 - 1), (10, -1), (0, -1), (-1, 1), (-1, 0)],
    ids=["offset", "epoch", "no epoch", "no epoch at 0", "no offset", "no offset in epoch 0"],
)
def test_a_snapshot_after_which_nothing_could_follow_is_not_fetched(node: Any, snapshot_id: tuple[int, int]) -> None:
    named = fetch_response.SnapshotId(end_offset=snapshot_id[0], epoch=snapshot_id[1])
    (elsewhere,) = node.fetched(node.sent[0], leader_id=2, snapshot_id=named)
    assert elsewhere.node_id == 3, "its response counts as a failure"
    assert node.raft.following.snapshot_id is None


def test_a_snapshot_that_is_too_large_for_memory_is_left_out(node: Any, leaders_log: Any) -> None:
    snapshot_id, data, asked = sent_to_a_snapshot(node, leaders_log)
    leader = fetch_snapshot_response.LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
    result = fetch_snapshot_response.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
    partition = fetch_snapshot_response.PartitionSnapshot(
        index=0, current_leader=leader, snapshot_id=result, size=2**63 - 1, position=0, unaligned_records=data
    )
    topics = [fetch_snapshot_response.TopicSnapshot(name=TOPIC, partitions=[partition])]
    (elsewhere,) = node.answer(asked, fetch_snapshot_response.FetchSnapshotResponse(topics=topics))
    assert elsewhere.node_id == 3
    assert (len(node.raft.following.snapshot), node.log.end_offset) == (0, 0)


@pytest.mark.parametrize("epoch", [2**31 - 1, 2**31 - 2])
@pytest.mark.parametrize("error_code", [error_codes.NONE, error_codes.FENCED_LEADER_EPOCH])
def test_an_answer_of_an_epoch_without_a_successor_is_ignored(node: Any, epoch: int, error_code: int) -> None:
    (elsewhere,) = node.fetched(node.sent[0], leader_id=3, epoch=epoch, error_code=error_code)
    assert elsewhere.node_id == 3
    assert (node.raft.role, node.raft.leader_id, node.raft.epoch) == (Role.FOLLOWER, 2, 1)


def test_unresponsive_leader_is_looked_up_elsewhere(node: Any) -> None:
    (elsewhere,) = node.answer(node.sent[0], None)
    assert elsewhere.node_id == 3
    refused = {"error_code": error_codes.FENCED_LEADER_EPOCH}
    (outgoing,) = node.fetched(elsewhere, leader_id=3, epoch=7, **refused)
    assert (node.raft.leader_id, node.raft.epoch, outgoing.node_id) == (3, 7, 3)


def test_a_request_that_is_not_answered_in_time_is_given_up(node: Any) -> None:
    (first,) = node.sent
    deadline_ms = node.raft.deadline_ms
    node.raft.automatic = False
    (again,) = node.poll(2000)
    assert again.id != first.id
    node.fetched(first, leader_id=2, high_watermark=0)
    assert node.raft.deadline_ms == deadline_ms, "its answer comes too late"


def test_a_follower_without_contact_starts_a_pre_vote(node: Any) -> None:
    node.poll(1999)
    node.poll(node.raft.deadline_ms - node.now_ms - 1)
    assert node.raft.role == Role.FOLLOWER
    assert len(node.poll(1)) == 2
    assert node.raft.role == Role.PROSPECTIVE


def test_followers_that_are_answered_at_once_start_their_pre_votes_at_different_times(node: Any) -> None:
    timeouts_ms = set()
    for epoch in range(5, 25):
        node.follow(epoch=epoch)
        timeouts_ms.add(node.raft.deadline_ms - node.now_ms)
    assert timeouts_ms <= set(range(2000, 2051))
    assert len(timeouts_ms) > 10


def test_an_answer_of_an_earlier_epoch_is_ignored(node: Any) -> None:
    (outgoing,) = node.sent
    (again,) = node.fetched(outgoing, leader_id=3, epoch=0)
    assert again.node_id == 2
    assert (node.raft.leader_id, node.raft.epoch) == (2, 1)


def test_observer_without_a_leader_sends_to_the_bootstrap_servers(new_node: Any) -> None:
    node = new_node(node_id=9, controller_quorum_bootstrap_servers="here:1,node9:9009,there:2")
    (outgoing,) = node.poll()
    assert (outgoing.node_id, (outgoing.host, outgoing.port)) in ((None, ("here", 1)), (None, ("there", 2)))
    assert outgoing.version_min == 13
    refused = {"error_code": error_codes.NOT_LEADER_OR_FOLLOWER}
    (other,) = node.fetched(outgoing, leader_id=-1, epoch=0, **refused)
    assert (other.host, other.port) != (outgoing.host, outgoing.port)
    assert node.fetched(other, leader_id=-1, epoch=0, **refused) == [], "who knows nothing is left alone for a while"
    (outgoing,) = node.poll(20)
    node.fetched(outgoing, leader_id=2, epoch=4, error_code=error_codes.FENCED_LEADER_EPOCH)
    assert (node.raft.role, node.raft.leader_id) == (Role.FOLLOWER, 2)
    node.poll(60_000)
    assert node.raft.role is Role.FOLLOWER, "it has no vote, so it never elects"


def test_a_moved_voter_updates_its_endpoints_before_its_next_fetch(new_node: Any) -> None:
    node = new_node(advertised_port=1234)
    (fetch,) = node.follow()
    node.now_ms += 1900
    (fetch,) = node.fetched(fetch, leader_id=2)
    assert isinstance(fetch.message, FetchRequest)
    assert node.poll(100) == [], "one request at a time"
    (outgoing,) = node.fetched(fetch, leader_id=2)
    (listener,) = outgoing.message.listeners
    assert (listener.name, listener.host, listener.port) == ("CONTROLLER", "node1", 1234)
    assert (outgoing.message.voter_id, outgoing.message.current_leader_epoch) == (1, 5)


def test_at_kraft_version_0_every_voter_updates_its_leader_once(new_node: Any) -> None:
    node = new_node(controller_quorum_voters="1@node1:9001,2@node2:9002")
    (fetch,) = node.follow()
    node.now_ms += 1000
    (fetch,) = node.fetched(fetch, leader_id=2)
    node.now_ms += 1000
    (outgoing,) = node.fetched(fetch, leader_id=2)
    assert isinstance(outgoing.message, UpdateRaftVoterRequest)
    leader = CurrentLeader(leader_id=2, leader_epoch=5, host="node2", port=9002)
    (fetch,) = node.answer(outgoing, UpdateRaftVoterResponse(current_leader=leader))
    assert (fetch.node_id, type(fetch.message)) == (2, FetchRequest)
    for _ in range(5):
        node.now_ms += 1000
        (fetch,) = node.fetched(fetch, leader_id=2)
        assert isinstance(fetch.message, FetchRequest)
