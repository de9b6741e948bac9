"""What a node does with the answers of other nodes (KafkaRaftClient.handle…Response).

Each function gives whether the answer was a good one; after a bad one its node is left alone for a while.
"""

from __future__ import annotations

import logging
from typing import Any

from mockraft.server.controller.log_positions import EpochEndOffset
from mockraft.server.controller.quorum import PARTITION, TOPIC_ID, TOPIC_NAME
from mockraft.server.controller.snapshot import SnapshotId
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.peers import Peer
from mockraft.server.raft.states import Role
from mockraft.server.raft.transitions import Quorum
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError

_LOGGER = logging.getLogger("mockraft.raft")


def vote(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """A voter granted its vote, or did not."""
    if response.error_code == error_codes.UNSUPPORTED_VERSION and quorum.role is Role.PROSPECTIVE:
        # A voter that knows no pre-votes: elections are held without them.
        quorum.to_candidate(now_ms)
        return True
    partition, settled = _heard(quorum, peer, response, now_ms)
    if settled is not None:
        return settled
    if quorum.role in (Role.PROSPECTIVE, Role.CANDIDATE):
        quorum.record_vote(peer.id, partition.vote_granted, now_ms)
    return True


def begin_epoch(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """A voter knows that this node leads."""
    _, settled = _heard(quorum, peer, response, now_ms)
    return settled is None or settled


def end_epoch(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """A voter knows that this node leads no more."""
    _, settled = _heard(quorum, peer, response, now_ms)
    if settled is not None:
        return settled
    quorum.unacknowledged.discard(peer.id)
    return True


def fetch(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """What follows in the leader's log, or where this one parts from it."""
    if response.error_code != error_codes.NONE:
        return _unexpected(peer, response.error_code)
    topics = response.responses
    if len(topics) != 1 or topics[0].topic_id != TOPIC_ID or len(topics[0].partitions) != 1:
        return False
    partition = topics[0].partitions[0]
    handled = _common(quorum, response, partition, partition.current_leader, now_ms)
    if handled is not None:
        return handled
    following = quorum.following
    if following is None:
        return False
    if partition.error_code != error_codes.NONE:
        return _unexpected(peer, partition.error_code)
    log = quorum.log
    if partition.diverging_epoch.epoch >= 0:
        log.truncate(EpochEndOffset(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset))
        quorum.changes += 1
        if quorum.listener is not None:
            quorum.listener.truncated(now_ms)
    elif partition.snapshot_id.epoch >= 0 or partition.snapshot_id.end_offset >= 0:
        if partition.snapshot_id.epoch < 0 or partition.snapshot_id.end_offset < 0:
            return False
        following.snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        following.snapshot = bytearray()
    else:
        if partition.records:
            log.append_fetched(partition.records, quorum.epoch)
        _commit(quorum, partition.high_watermark, now_ms)
    _followed(quorum, now_ms)
    return True


def fetch_snapshot(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """The next part of a snapshot; the log begins anew after its last one."""
    partition = _partition(response)
    if partition is None:
        return False
    handled = _common(quorum, response, partition, partition.current_leader, now_ms)
    if handled is not None:
        return handled
    following = quorum.following
    if following is None:
        return False
    snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if partition.error_code == error_codes.SNAPSHOT_NOT_FOUND or min(snapshot_id) < 0:
        following.snapshot_id = None
        _followed(quorum, now_ms)
        return True
    if partition.error_code != error_codes.NONE:
        return _unexpected(peer, partition.error_code)
    if snapshot_id != following.snapshot_id or partition.position != len(following.snapshot):
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
            quorum.listener.truncated(now_ms)
            quorum.listener.committed(now_ms)
    _followed(quorum, now_ms)
    return True


def update_voter(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> bool:
    """The leader knows where this voter listens."""
    leader = response.current_leader
    address = None
    if leader.leader_id >= 0 and leader.host:
        address = NodeEndpoint(leader.leader_id, leader.host, leader.port)
    handled = _common_to(quorum, response.error_code, leader.leader_id, leader.leader_epoch, address, now_ms)
    if handled is not None:
        return handled
    if response.error_code not in (error_codes.NONE, error_codes.UNSUPPORTED_VERSION):
        return _unexpected(peer, response.error_code)
    if quorum.following is not None:
        quorum.following.has_updated_leader = True
        _followed(quorum, now_ms)
    return True


def _followed(quorum: Quorum, now_ms: int) -> None:
    """The leader is there."""
    assert quorum.following is not None
    quorum.deadline_ms = now_ms + quorum.config.controller_quorum_fetch_timeout_ms
    quorum.following.has_fetched = True


def _commit(quorum: Quorum, high_watermark: int, now_ms: int) -> None:
    committed = min(high_watermark, quorum.log.end_offset)
    if committed > quorum.log.high_watermark:
        quorum.log.high_watermark = committed
        if quorum.listener is not None:
            quorum.listener.committed(now_ms)


def _heard(quorum: Quorum, peer: Peer, response: Any, now_ms: int) -> tuple[Any, bool | None]:
    """The partition of a voter's answer, and whether that was a good one where there is no more in it, else None."""
    partition = _partition(response)
    if partition is None:
        return None, False
    settled = _common(quorum, response, partition, partition, now_ms)
    if settled is None and partition.error_code != error_codes.NONE:
        settled = _unexpected(peer, partition.error_code)
    return partition, settled


def _common(quorum: Quorum, response: Any, partition: Any, leader: Any, now_ms: int) -> bool | None:
    """What every partition's answer says of leader and epoch (maybeHandleCommonResponse); None: there is more in it."""
    leader_id = leader.leader_id
    endpoint = next((found for found in response.node_endpoints if found.node_id == leader_id), None)
    address = NodeEndpoint(leader_id, endpoint.host, endpoint.port) if endpoint else None
    return _common_to(quorum, partition.error_code, leader_id, leader.leader_epoch, address, now_ms)


def _common_to(
    quorum: Quorum, error: int, leader_id: int, epoch: int, address: NodeEndpoint | None, now_ms: int
) -> bool | None:
    leader = leader_id if leader_id >= 0 else None
    if leader is not None and address is None:
        address = quorum.address_of(leader)
    if epoch < quorum.epoch or error == error_codes.UNKNOWN_LEADER_EPOCH:
        return True
    if epoch > quorum.epoch or error in (error_codes.FENCED_LEADER_EPOCH, error_codes.NOT_LEADER_OR_FOLLOWER):
        changes = quorum.changes
        quorum.hear_of_leader(leader, epoch, address, now_ms)
        # Who knows nothing new is not asked again at once.
        return quorum.changes > changes
    if leader is not None and quorum.leader_id is None:
        quorum.hear_of_leader(leader, epoch, address, now_ms)
        return None if error == error_codes.NONE else True
    if error == error_codes.INVALID_VOTER_KEY:
        return True
    return None


def _partition(response: Any) -> Any:
    """The answer's one partition; None where the answer is an error or not about the metadata log."""
    if response.error_code != error_codes.NONE or len(response.topics) != 1:
        return None
    topic = response.topics[0]
    name = topic.name if hasattr(topic, "name") else topic.topic_name
    if name != TOPIC_NAME or len(topic.partitions) != 1:
        return None
    partition = topic.partitions[0]
    index = partition.index if hasattr(partition, "index") else partition.partition_index
    return partition if index == PARTITION else None


def _unexpected(peer: Peer, error_code: int) -> bool:
    _LOGGER.warning("node %d answered %s", peer.id, error_codes.name(error_code))
    return False
