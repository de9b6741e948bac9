"""Shared checks of raft requests, and shared parts of their responses (RaftUtil, KafkaRaftClient)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mockraft.kafka_api.api import Parked, ResponseT
from mockraft.server.apis import refusals
from mockraft.server.apis.api import RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log import limits
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, PARTITION, ReplicaKey, VoterEndpoint
from mockraft.server.controller.result import ApiError
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.quorum_state import InconsistentLeaderError, VoterChange
from mockraft.server.raft.raft import Raft
from mockraft.server.raft.voter_changes import check_leads
from mockraft.wire import error_codes
from mockraft.wire.message import Message
from mockraft.wire.messages import begin_quorum_epoch_request, end_quorum_epoch_request
from mockraft.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from mockraft.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from mockraft.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.topic_names import CLUSTER_METADATA

_LOGGER = logging.getLogger("mockraft.raft")

EndpointT = TypeVar("EndpointT")
LeaderT = TypeVar("LeaderT")


class _Listener(Protocol):
    name: str
    host: str
    port: int


class _Partition(Protocol):
    partition_index: int


PartitionT = TypeVar("PartitionT", bound=_Partition)


def only_partition(
    cluster_id: str | None,
    topics: Sequence[tuple[str, Sequence[PartitionT]]],
    controller: Controller,
    sender: Callable[[PartitionT], int],
    now_ms: int,
) -> PartitionT:
    """Return the metadata log's partition of a request's topics, each a name and its partitions.

    `sender` returns the id of the node that sent the request. ApiError INCONSISTENT_CLUSTER_ID, or INVALID_REQUEST if
    the request is not about that partition alone.
    """
    partitions = [(name, each) for name, of_topic in topics for each in of_topic]
    if cluster_id is not None and cluster_id != controller.config.cluster_id:
        node_id = sender(partitions[0][1]) if partitions else -1
        raise refusals.other_cluster(controller, cluster_id, node_id, refusals.QUORUM, now_ms)
    named = [(name, each.partition_index) for name, each in partitions]
    if len(topics) != 1 or named != [(CLUSTER_METADATA, PARTITION)]:
        raise ApiError(error_codes.INVALID_REQUEST)
    return partitions[0][1]


def voter_refusal(raft: Raft, node_id: int, epoch: int) -> int:
    """Return the error code for a request between voters (validateVoterOnlyRequest)."""
    if epoch < raft.epoch:
        return error_codes.FENCED_LEADER_EPOCH
    is_invalid = node_id < 0 or not limits.is_reachable(epoch, raft.epoch)
    return error_codes.INVALID_REQUEST if is_invalid else error_codes.NONE


def is_recipient(raft: Raft, voter_id: int, directory_id: bytes) -> bool:
    """Return True if a request names this node or none."""
    own = raft.key
    return voter_id < 0 or ReplicaKey(voter_id, directory_id) in (own, ReplicaKey(own.id, NO_DIRECTORY_ID))


def apply_reported_leader(
    raft: Raft,
    request: BeginQuorumEpochRequest | EndQuorumEpochRequest,
    partition: begin_quorum_epoch_request.PartitionData | end_quorum_epoch_request.PartitionData,
    now_ms: int,
) -> int:
    """Apply the leader and epoch of BeginQuorumEpoch or EndQuorumEpoch, or return the error code.

    ApiError UNKNOWN_SERVER_ERROR for a second leader of one epoch.
    """
    leader_id, epoch = partition.leader_id, partition.leader_epoch
    refused = voter_refusal(raft, leader_id, epoch)
    if refused:
        return refused
    try:
        raft.maybe_transition(leader_id, epoch, _leader_among(request.leader_endpoints, raft, leader_id), now_ms)
    except InconsistentLeaderError as wrong:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR, str(wrong)) from wrong
    return error_codes.NONE


def _leader_among(listeners: Sequence[_Listener], raft: Raft, leader_id: int) -> NodeEndpoint | None:
    """Return the leader's endpoint from the request, or from the voters."""
    if not listeners:
        return raft.address_of(leader_id)
    found = listener_of(endpoints_of(listeners), raft)
    return NodeEndpoint(leader_id, found.host, found.port) if found else None


def node_endpoints(
    node_endpoint: Callable[..., EndpointT], raft: Raft, ctx: RequestContext, *, since_version: int
) -> list[EndpointT]:
    """Return the leader's endpoint in the response's class; empty while none is known, and in older versions."""
    leader = raft.leader_address
    if leader is None or ctx.api_version < since_version:
        return []
    return [node_endpoint(node_id=leader.id, host=leader.host, port=leader.port)]


def leader_and_epoch(leader_id_and_epoch: Callable[..., LeaderT], raft: Raft, **more: object) -> LeaderT:
    """Return the leader of a partition in the response's class, which may have more fields."""
    leader_id = -1 if raft.leader_id is None else raft.leader_id
    return leader_id_and_epoch(leader_id=leader_id, leader_epoch=raft.epoch, **more)


def log_refusal(controller: Controller, replica: ReplicaKey, error_code: int, what: str, now_ms: int) -> None:
    """Log, as leader, that a replica is refused again and again: once a minute for each cause."""
    leading = controller.raft.leading
    if leading is not None and leading.refused.due((replica, error_code), now_ms):
        _LOGGER.warning("replica %s is refused again and again: %s: %s", replica, error_codes.name(error_code), what)


def endpoints_of(listeners: Sequence[_Listener]) -> tuple[VoterEndpoint, ...]:
    """Return a voter's listeners."""
    return tuple(VoterEndpoint(listener.name, listener.host, listener.port) for listener in listeners)


def listener_of(endpoints: Sequence[VoterEndpoint], raft: Raft) -> VoterEndpoint | None:
    """Return the endpoint of the controller listener."""
    return next((found for found in endpoints if found.name == raft.config.controller_listener_name), None)


def voter_to_change(
    request: AddRaftVoterRequest | RemoveRaftVoterRequest, controller: Controller, doing: str
) -> ReplicaKey:
    """Return the voter in an AddRaftVoter or RemoveRaftVoter request.

    ApiError INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER, or INVALID_REQUEST if it is invalid; `doing` names the
    change.
    """
    cluster_id, raft = controller.config.cluster_id, controller.raft
    if request.cluster_id not in (None, cluster_id):
        message = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        raise ApiError(error_codes.INCONSISTENT_CLUSTER_ID, message)
    refused = check_leads(raft, raft.epoch)
    if refused:
        raise ApiError(refused, "")
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.id < 0 or key.directory_id == NO_DIRECTORY_ID:
        raise ApiError(error_codes.INVALID_REQUEST, f"{doing} voter request didn't include a valid voter")
    return key


def when_changed(change: VoterChange, response: Callable[..., ResponseT]) -> ResponseT | Parked[ResponseT]:
    """Return the response to a voter change once its outcome is known, in this class."""

    def answered(error_code: int, message: str | None) -> ResponseT:
        return response(error_code=error_code, error_message=message)

    if change.result is not None:
        return answered(*change.result)

    def retry(_now_ms: int, expired: bool) -> ResponseT | None:
        if change.result is not None:
            return answered(*change.result)
        code = error_codes.REQUEST_TIMED_OUT
        return answered(code, error_codes.message(code)) if expired else None

    return Parked(change.deadline_ms, retry)


def voter_change_error(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of a voter change: authorization failures have the code's default message."""

    def error(_request: Message, error_code: int, message: str | None) -> ResponseT:
        has_default = error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED
        text = error_codes.message(error_code) if has_default else message
        return response(error_code=error_code, error_message=text)

    return error
