"""Responses from other nodes (KafkaRaftClient.handle…Response).

Each function returns True for a good response; after a bad one its node is not asked again for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from mockraft.server.controller.log import limits
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.quorum.election_state import PARTITION
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.request_manager import Target
from mockraft.server.raft.states import Role
from mockraft.server.raft.transitions import Quorum
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

if TYPE_CHECKING:
    from mockraft.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
    from mockraft.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
    from mockraft.wire.messages.fetch_response import FetchResponse
    from mockraft.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
    from mockraft.wire.messages.update_raft_voter_response import UpdateRaftVoterResponse
    from mockraft.wire.messages.vote_response import VoteResponse

_LOGGER = logging.getLogger("mockraft.raft")

_SNAPSHOT_BYTES_MAX = 2**31 - 1

T = TypeVar("T")


class _Endpoint(Protocol):
    node_id: int
    host: str
    port: int


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


def vote(quorum: Quorum, target: Target, response: VoteResponse, now_ms: int) -> bool:
    """Handle a vote that was granted or rejected."""
    if response.error_code == error_codes.UNSUPPORTED_VERSION and quorum.role is Role.PROSPECTIVE:
        # The voter does not support pre-votes: hold elections without them.
        quorum.to_candidate(now_ms)
        return True
    partition, settled = _voters_partition(quorum, target, response, now_ms)
    if settled is not None or partition is None:
        return bool(settled)
    if quorum.role in (Role.PROSPECTIVE, Role.CANDIDATE):
        quorum.record_vote(target.id, partition.vote_granted, now_ms)
    return True


def begin_epoch(quorum: Quorum, target: Target, response: BeginQuorumEpochResponse, now_ms: int) -> bool:
    """Handle a response to BeginQuorumEpoch."""
    _, settled = _voters_partition(quorum, target, response, now_ms)
    return settled is None or settled


def end_epoch(quorum: Quorum, target: Target, response: EndQuorumEpochResponse, now_ms: int) -> bool:
    """Handle a response to EndQuorumEpoch."""
    _, settled = _voters_partition(quorum, target, response, now_ms)
    if settled is not None:
        return settled
    quorum.unacknowledged.discard(target.id)
    return True


def fetch(quorum: Quorum, target: Target, response: FetchResponse, now_ms: int) -> bool:
    """Handle a Fetch response: records, a diverging epoch or a snapshot id."""
    if response.error_code != error_codes.NONE:
        return _unexpected(target, response.error_code)
    topics = response.responses
    if len(topics) != 1 or topics[0].topic_id != CLUSTER_METADATA_ID or len(topics[0].partitions) != 1:
        return False
    partition = topics[0].partitions[0]
    handled = _common(quorum, response.node_endpoints, partition.error_code, partition.current_leader, now_ms)
    if handled is not None:
        return handled
    following = quorum.following
    if following is None:
        return False
    if partition.error_code != error_codes.NONE:
        return _unexpected(target, partition.error_code)
    log = quorum.log
    if partition.diverging_epoch.epoch >= 0:
        log.truncate(EpochEndOffset(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset))
        quorum.changes += 1
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


def fetch_snapshot(quorum: Quorum, target: Target, response: FetchSnapshotResponse, now_ms: int) -> bool:
    """Handle a chunk of a snapshot; the log restarts after its last chunk."""
    partition = _only(response.error_code, [(topic.name, topic.partitions) for topic in response.topics])
    if partition is None or partition.index != PARTITION:
        return False
    handled = _common(quorum, response.node_endpoints, partition.error_code, partition.current_leader, now_ms)
    if handled is not None:
        return handled
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
        quorum.changes += 1
        if quorum.listener is not None:
            quorum.listener.truncated()
            quorum.listener.committed(now_ms)
    _followed(quorum, now_ms)
    return True


def update_voter(quorum: Quorum, target: Target, response: UpdateRaftVoterResponse, now_ms: int) -> bool:
    """Handle a response to UpdateRaftVoter."""
    leader = response.current_leader
    address = None
    if leader.leader_id >= 0 and leader.host:
        address = NodeEndpoint(leader.leader_id, leader.host, leader.port)
    handled = _common_to(quorum, response.error_code, leader.leader_id, leader.leader_epoch, address, now_ms)
    if handled is not None:
        return handled
    if response.error_code not in (error_codes.NONE, error_codes.UNSUPPORTED_VERSION):
        return _unexpected(target, response.error_code)
    if quorum.following is not None:
        quorum.following.has_updated_leader = True
        _followed(quorum, now_ms)
    return True


def _followed(quorum: Quorum, now_ms: int) -> None:
    """Record an answer of the leader."""
    assert quorum.following is not None
    quorum.failure = None
    quorum.deadline_ms = now_ms + quorum.following.fetch_timeout_ms
    quorum.following.has_fetched = True


def _commit(quorum: Quorum, high_watermark: int, now_ms: int) -> None:
    committed = min(high_watermark, quorum.log.end_offset)
    if committed > quorum.log.high_watermark:
        quorum.log.high_watermark = committed
        if quorum.listener is not None:
            quorum.listener.committed(now_ms)


def _voters_partition(
    quorum: Quorum, target: Target, response: _Response[PartitionT], now_ms: int
) -> tuple[PartitionT | None, bool | None]:
    """Return a voter's partition, or whether the response was good if there is nothing more in it."""
    topics = [(topic.topic_name, topic.partitions) for topic in response.topics]
    partition = _only(response.error_code, topics)
    if partition is None or partition.partition_index != PARTITION:
        return None, False
    settled = _common(quorum, response.node_endpoints, partition.error_code, partition, now_ms)
    if settled is None and partition.error_code != error_codes.NONE:
        settled = _unexpected(target, partition.error_code)
    return partition, settled


def _only(error_code: int, topics: Sequence[tuple[str, Sequence[T]]]) -> T | None:
    """Return the only partition of a response; None for an error or another topic than the metadata log."""
    if error_code != error_codes.NONE or len(topics) != 1:
        return None
    name, partitions = topics[0]
    return partitions[0] if name == CLUSTER_METADATA and len(partitions) == 1 else None


def _common(quorum: Quorum, endpoints: Sequence[_Endpoint], error: int, leader: _Leader, now_ms: int) -> bool | None:
    """Apply leader and epoch of a partition's response (maybeHandleCommonResponse); None: there is more in it."""
    leader_id = leader.leader_id
    endpoint = next((found for found in endpoints if found.node_id == leader_id), None)
    address = NodeEndpoint(leader_id, endpoint.host, endpoint.port) if endpoint else None
    return _common_to(quorum, error, leader_id, leader.leader_epoch, address, now_ms)


def _common_to(
    quorum: Quorum, error: int, leader_id: int, epoch: int, address: NodeEndpoint | None, now_ms: int
) -> bool | None:
    leader = leader_id if leader_id >= 0 else None
    if leader is not None and address is None:
        address = quorum.address_of(leader)
    if epoch < quorum.epoch or error == error_codes.UNKNOWN_LEADER_EPOCH:
        return True
    if not limits.is_reachable(epoch, quorum.epoch):
        _LOGGER.error("a response with leader epoch %d is ignored: no election could follow it", epoch)
        return False
    if epoch > quorum.epoch or error in (error_codes.FENCED_LEADER_EPOCH, error_codes.NOT_LEADER_OR_FOLLOWER):
        changes = quorum.changes
        quorum.maybe_transition(leader, epoch, address, now_ms)
        # Do not ask a node without news again at once.
        return quorum.changes > changes
    if leader is not None and quorum.leader_id is None:
        quorum.maybe_transition(leader, epoch, address, now_ms)
        return None if error == error_codes.NONE else True
    if error == error_codes.INVALID_VOTER_KEY:
        return True
    return None


def _unexpected(target: Target, error_code: int) -> bool:
    _LOGGER.warning("node %d answered %s", target.id, error_codes.name(error_code))
    return False
