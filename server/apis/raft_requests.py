"""What the requests of raft are checked for alike, and what their responses say alike (RaftUtil, KafkaRaftClient)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockraft.server.apis.api import Parked
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import NO_DIRECTORY_ID, PARTITION, TOPIC_NAME, ReplicaKey
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.voter_set import Endpoint
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.raft import Raft
from mockraft.server.raft.transitions import InconsistentLeaderError
from mockraft.server.raft.voter_changes import VoterChange, check_leads
from mockraft.wire import error_codes


def only_partition(request: Any, controller: Controller) -> Any:
    """The metadata log's partition in a Vote, BeginQuorumEpoch or EndQuorumEpoch request.

    ApiError INCONSISTENT_CLUSTER_ID, or INVALID_REQUEST where the request is not about that partition alone.
    """
    if request.cluster_id not in (None, controller.config.cluster_id):
        raise ApiError(error_codes.INCONSISTENT_CLUSTER_ID)
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_name != TOPIC_NAME or len(topics[0].partitions) != 1:
        raise ApiError(error_codes.INVALID_REQUEST)
    partition = topics[0].partitions[0]
    if partition.partition_index != PARTITION:
        raise ApiError(error_codes.INVALID_REQUEST)
    return partition


def voter_refusal(raft: Raft, node_id: int, epoch: int) -> int:
    """The error code for a request that voters send each other (validateVoterOnlyRequest)."""
    if epoch < raft.epoch:
        return error_codes.FENCED_LEADER_EPOCH
    return error_codes.INVALID_REQUEST if node_id < 0 else error_codes.NONE


def is_meant(raft: Raft, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request is for this node; one that names nobody is."""
    own = raft.key
    return voter_id < 0 or ReplicaKey(voter_id, directory_id) in (own, ReplicaKey(own.id, NO_DIRECTORY_ID))


def hear_leader(raft: Raft, request: Any, partition: Any, now_ms: int) -> int:
    """Believe who says in BeginQuorumEpoch or EndQuorumEpoch that it leads, or led, an epoch; else the error code.

    ApiError UNKNOWN_SERVER_ERROR for a second leader of one epoch.
    """
    leader_id, epoch = partition.leader_id, partition.leader_epoch
    refused = voter_refusal(raft, leader_id, epoch)
    if refused:
        return refused
    try:
        raft.hear_of_leader(leader_id, epoch, _leader_among(request.leader_endpoints, raft, leader_id), now_ms)
    except InconsistentLeaderError as wrong:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR, str(wrong)) from wrong
    return error_codes.NONE


def _leader_among(listeners: Sequence[Any], raft: Raft, leader_id: int) -> NodeEndpoint | None:
    """Where a leader says that it listens, or the voters do."""
    if not listeners:
        return raft.address_of(leader_id)
    found = listener_of(endpoints_of(listeners), raft)
    return NodeEndpoint(leader_id, found.host, found.port) if found else None


def node_endpoints(node_endpoint: Any, raft: Raft) -> list[Any]:
    """The leader's address as the responses of raft say it, in the class of the response; none while none is known."""
    leader = raft.leader_address
    return [node_endpoint(node_id=leader.id, host=leader.host, port=leader.port)] if leader is not None else []


def leader_and_epoch(leader_id_and_epoch: Any, raft: Raft) -> Any:
    """The leader as partitions say it, in the class of the response."""
    return leader_id_and_epoch(leader_id=-1 if raft.leader_id is None else raft.leader_id, leader_epoch=raft.epoch)


def endpoints_of(listeners: Sequence[Any]) -> tuple[Endpoint, ...]:
    """The listeners that a voter was given."""
    return tuple(Endpoint(listener.name, listener.host, listener.port) for listener in listeners)


def listener_of(endpoints: Sequence[Endpoint], raft: Raft) -> Endpoint | None:
    """The one for controllers."""
    return next((found for found in endpoints if found.name == raft.config.controller_listener_name), None)


def voter_to_change(request: Any, controller: Controller, doing: str) -> ReplicaKey:
    """The voter in an AddRaftVoter or RemoveRaftVoter request.

    ApiError INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER, or INVALID_REQUEST where it is none; `doing` says what.
    """
    cluster_id, raft = controller.config.cluster_id, controller.raft
    if request.cluster_id not in (None, cluster_id):
        told = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        raise ApiError(error_codes.INCONSISTENT_CLUSTER_ID, told)
    refused = check_leads(raft, raft.epoch)
    if refused:
        raise ApiError(refused, "")
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.id < 0 or key.directory_id == NO_DIRECTORY_ID:
        raise ApiError(error_codes.INVALID_REQUEST, f"{doing} voter request didn't include a valid voter")
    return key


def when_changed(change: VoterChange, response: Any, deadline_ms: int) -> Any:
    """The response to a change of voters once its outcome is known; `response(error_code, message)` makes it."""
    if change.result is not None:
        return response(*change.result)

    def retry(_now_ms: int, expired: bool) -> Any:
        if change.result is not None:
            return response(*change.result)
        code = error_codes.REQUEST_TIMED_OUT
        return response(code, error_codes.message(code)) if expired else None

    return Parked(deadline_ms, retry)


def refusal_text(error_code: int, message: str | None) -> str | None:
    """The message; who may not change voters is told so in the code's own words (the requests' getErrorResponse)."""
    return error_codes.message(error_code) if error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED else message
