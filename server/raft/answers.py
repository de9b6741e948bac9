"""Responses from other nodes (KafkaRaftClient.handle…Response).

Each function returns True for a good response; after a bad one its node is not asked again for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.controller.log import limits
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.quorum.voter_set import PARTITION
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.quorum_state import QuorumState
from mockraft.server.raft.request_manager import Target
from mockraft.server.raft.states import Role
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.printable import printable_line
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

if TYPE_CHECKING:
    from mockraft.wire.messages.add_raft_voter_response import AddRaftVoterResponse
    from mockraft.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
    from mockraft.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
    from mockraft.wire.messages.fetch_response import FetchResponse
    from mockraft.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
    from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
    from mockraft.wire.messages.update_raft_voter_response import UpdateRaftVoterResponse
    from mockraft.wire.messages.vote_response import VoteResponse

_LOGGER = logging.getLogger("mockraft.raft")

_SNAPSHOT_BYTES_MAX = 2**31 - 1

T = TypeVar("T")


class Common(Enum):
    """Outcome of what all responses have in common: leader, epoch and error."""

    GOOD = "there is nothing more in the response"
    BAD = "there is nothing more in it, and its node is not asked again for a while"
    HAS_MORE = "its own part is to be handled"


class _Endpoint(Protocol):
    node_id: int
    host: str
    port: int


class _VoterResponse(Protocol):
    error_code: int
    error_message: str | None


class _Leader(Protocol):
    leader_id: int
    leader_epoch: int


class _Partition(_Leader, Protocol):
    partition_index: int
    error_code: int


PartitionT = TypeVar("PartitionT", bound=_Partition)
PartitionT_co = TypeVar("PartitionT_co", bound=_Partition, covariant=True)


class _Topic(Protocol[PartitionT_co]):
    topic_name: str

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


class _Response(Protocol[PartitionT_co]):
    error_code: int

    @property
    def topics(self) -> Sequence[_Topic[PartitionT_co]]: ...
    @property
    def node_endpoints(self) -> Sequence[_Endpoint]: ...


def vote(quorum: QuorumState, target: Target, response: VoteResponse, now_ms: int) -> bool:
    """Handle a vote that was granted or rejected."""
    if response.error_code == error_codes.UNSUPPORTED_VERSION and quorum.role is Role.PROSPECTIVE:
        # The voter does not support pre-votes: hold elections without them.
        quorum.to_candidate(now_ms)
        return True
    partition, common = _voters_partition(quorum, target, response, now_ms)
    if common is not Common.HAS_MORE or partition is None:
        return common is Common.GOOD
    if quorum.role in (Role.PROSPECTIVE, Role.CANDIDATE):
        quorum.record_vote(target.id, partition.vote_granted, now_ms)
    return True


def begin_epoch(quorum: QuorumState, target: Target, response: BeginQuorumEpochResponse, now_ms: int) -> bool:
    """Handle a response to BeginQuorumEpoch."""
    _, common = _voters_partition(quorum, target, response, now_ms)
    return common is not Common.BAD


def end_epoch(quorum: QuorumState, target: Target, response: EndQuorumEpochResponse, now_ms: int) -> bool:
    """Handle a response to EndQuorumEpoch."""
    _, common = _voters_partition(quorum, target, response, now_ms)
    if common is not Common.HAS_MORE:
        return common is Common.GOOD
    quorum.unacknowledged.discard(target.id)
    return True


def fetch(quorum: QuorumState, target: Target, response: FetchResponse, now_ms: int) -> bool:
    """Handle a Fetch response: records, a diverging epoch or a snapshot id."""
    if response.error_code != error_codes.NONE:
        return _unexpected(target, response.error_code)
    topics = response.responses
    if len(topics) != 1 or topics[0].topic_id != CLUSTER_METADATA_ID or len(topics[0].partitions) != 1:
        return False
    partition = topics[0].partitions[0]
    common = _common(quorum, response.node_endpoints, partition.error_code, partition.current_leader, now_ms)
    if common is not Common.HAS_MORE:
        return common is Common.GOOD
    following = quorum.following
    if following is None:
        return False
    if partition.error_code != error_codes.NONE:
        return _unexpected(target, partition.error_code)
    log = quorum.log
    if partition.diverging_epoch.epoch >= 0:
        log.truncate(EpochEndOffset(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset))
        quorum.changed()
        if quorum.listener is not None:
            quorum.listener.truncated()
    elif partition.snapshot_id.epoch >= 0 or partition.snapshot_id.end_offset >= 0:
        if limits.refusal(epoch=partition.snapshot_id.epoch, offset=partition.snapshot_id.end_offset):
            return False
        following.snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        following.snapshot = bytearray()
    else:
        if partition.records:
            log.append_fetched(partition.records, quorum.epoch)
        _commit(quorum, partition.high_watermark, now_ms)
    _followed(quorum, now_ms)
    return True


def fetch_snapshot(quorum: QuorumState, target: Target, response: FetchSnapshotResponse, now_ms: int) -> bool:
    """Handle a chunk of a snapshot; the log restarts after its last chunk."""
    partition = _only(response.error_code, [(topic.name, topic.partitions) for topic in response.topics])
    if partition is None or partition.index != PARTITION:
        return False
    common = _common(quorum, response.node_endpoints, partition.error_code, partition.current_leader, now_ms)
    if common is not Common.HAS_MORE:
        return common is Common.GOOD
    following = quorum.following
    # Only a follower fetches snapshots, and a change of role drops its requests.
    assert following is not None
    snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if partition.error_code == error_codes.SNAPSHOT_NOT_FOUND or min(snapshot_id) < 0:
        following.snapshot_id = None
        _followed(quorum, now_ms)
        return True
    if partition.error_code != error_codes.NONE:
        return _unexpected(target, partition.error_code)
    if snapshot_id != following.snapshot_id or partition.position != len(following.snapshot):
        return False
    if partition.size > _SNAPSHOT_BYTES_MAX:
        _LOGGER.error("the leader's snapshot of %d bytes is left out: it is held in memory", partition.size)
        return False
    following.snapshot += partition.unaligned_records or b""
    if len(following.snapshot) >= partition.size:
        data, following.snapshot_id, following.snapshot = bytes(following.snapshot), None, bytearray()
        try:
            quorum.log.install_snapshot(snapshot_id, data, now_ms)
        except WireError as error:
            _LOGGER.error("the leader's snapshot is left out: %s", error)
            return False
        quorum.changed()
        if quorum.listener is not None:
            quorum.listener.truncated()
            quorum.listener.committed(now_ms)
    _followed(quorum, now_ms)
    return True


def update_voter(quorum: QuorumState, target: Target, response: UpdateRaftVoterResponse, now_ms: int) -> bool:
    """Handle a response to UpdateRaftVoter."""
    leader = response.current_leader
    address = None
    if leader.leader_id >= 0 and leader.host:
        address = NodeEndpoint(leader.leader_id, leader.host, leader.port)
    common = _reported(quorum, response.error_code, leader.leader_id, leader.leader_epoch, address, now_ms)
    if common is not Common.HAS_MORE:
        return common is Common.GOOD
    if response.error_code not in (error_codes.NONE, error_codes.UNSUPPORTED_VERSION):
        return _unexpected(target, response.error_code)
    if quorum.following is not None:
        quorum.following.has_updated_leader = True
        _followed(quorum, now_ms)
    return True


def add_voter(quorum: QuorumState, target: Target, response: AddRaftVoterResponse, now_ms: int) -> bool:
    """Handle a response to this observer's AddRaftVoter."""
    return _voters_changed(quorum, target, response, "added", error_codes.DUPLICATE_VOTER, now_ms)


def remove_voter(quorum: QuorumState, target: Target, response: RemoveRaftVoterResponse, now_ms: int) -> bool:
    """Handle a response to this observer's RemoveRaftVoter of the voter with its id."""
    return _voters_changed(quorum, target, response, "removed", error_codes.VOTER_NOT_FOUND, now_ms)


def _voters_changed(
    quorum: QuorumState, target: Target, response: _VoterResponse, done: str, done_before: int, now_ms: int
) -> bool:
    """Log a refusal, and send the next request in a while."""
    assert quorum.following is not None
    if response.error_code == error_codes.NONE:
        _LOGGER.info("node %d: %s as voter by leader %d", quorum.config.node_id, done, target.id)
    else:
        _LOGGER.warning(
            "node %d: not %s as voter by leader %d: %s: %s",
            *(quorum.config.node_id, done, target.id, error_codes.name(response.error_code)),
            printable_line(response.error_message or "", SHOWN_MAX),
        )
    if response.error_code not in (error_codes.NONE, error_codes.REQUEST_TIMED_OUT, done_before):
        return False
    quorum.following.update_voters_ms = now_ms + quorum.config.controller_quorum_fetch_timeout_ms
    return True


def _followed(quorum: QuorumState, now_ms: int) -> None:
    """Record an answer of the leader."""
    assert quorum.following is not None
    quorum.failure = None
    quorum.deadline_ms = now_ms + quorum.following.fetch_timeout_ms
    quorum.following.has_fetched = True


def _commit(quorum: QuorumState, high_watermark: int, now_ms: int) -> None:
    committed = min(high_watermark, quorum.log.end_offset)
    if committed > quorum.log.high_watermark:
        quorum.log.high_watermark = committed
        if quorum.listener is not None:
            quorum.listener.committed(now_ms)


def _voters_partition(
    quorum: QuorumState, target: Target, response: _Response[PartitionT], now_ms: int
) -> tuple[PartitionT | None, Common]:
    """Return a voter's partition; None if there is none."""
    topics = [(topic.topic_name, topic.partitions) for topic in response.topics]
    partition = _only(response.error_code, topics)
    if partition is None or partition.partition_index != PARTITION:
        return None, Common.BAD
    common = _common(quorum, response.node_endpoints, partition.error_code, partition, now_ms)
    if common is Common.HAS_MORE and partition.error_code != error_codes.NONE:
        _unexpected(target, partition.error_code)
        common = Common.BAD
    return partition, common


def _only(error_code: int, topics: Sequence[tuple[str, Sequence[T]]]) -> T | None:
    """Return the only partition of a response; None for an error or another topic than the metadata log."""
    if error_code != error_codes.NONE or len(topics) != 1:
        return None
    name, partitions = topics[0]
    return partitions[0] if name == CLUSTER_METADATA and len(partitions) == 1 else None


def _common(quorum: QuorumState, endpoints: Sequence[_Endpoint], error: int, leader: _Leader, now_ms: int) -> Common:
    """Apply leader and epoch of a partition's response (maybeHandleCommonResponse)."""
    leader_id = leader.leader_id
    endpoint = next((found for found in endpoints if found.node_id == leader_id), None)
    address = NodeEndpoint(leader_id, endpoint.host, endpoint.port) if endpoint else None
    return _reported(quorum, error, leader_id, leader.leader_epoch, address, now_ms)


def _reported(
    quorum: QuorumState, error: int, leader_id: int, epoch: int, address: NodeEndpoint | None, now_ms: int
) -> Common:
    """Apply a reported leader and epoch."""
    leader = leader_id if leader_id >= 0 else None
    if leader is not None and address is None:
        address = quorum.address_of(leader)
    if epoch < quorum.epoch or error == error_codes.UNKNOWN_LEADER_EPOCH:
        return Common.GOOD
    if not limits.is_reachable(epoch, quorum.epoch):
        _LOGGER.error("a response with leader epoch %d is ignored: no election could follow it", epoch)
        return Common.BAD
    if leader == quorum.config.node_id and not (epoch == quorum.epoch and quorum.leader_id == leader):
        # One that led, lost its disk and is back before the others notice. Kafka's process ends.
        _LOGGER.error("a response with this node as leader of epoch %d is ignored: it does not lead", epoch)
        return Common.BAD
    if epoch > quorum.epoch or error in (error_codes.FENCED_LEADER_EPOCH, error_codes.NOT_LEADER_OR_FOLLOWER):
        changes = quorum.changes
        quorum.maybe_transition(leader, epoch, address, now_ms)
        # Do not ask a node without news again at once.
        return Common.GOOD if quorum.changes > changes else Common.BAD
    if leader is not None and quorum.leader_id is None:
        quorum.maybe_transition(leader, epoch, address, now_ms)
        return Common.HAS_MORE if error == error_codes.NONE else Common.GOOD
    if error == error_codes.INVALID_VOTER_KEY:
        return Common.GOOD
    return Common.HAS_MORE


def _unexpected(target: Target, error_code: int) -> bool:
    _LOGGER.warning("node %d answered %s", target.id, error_codes.name(error_code))
    return False
