"""What the requests of raft are checked for alike, and what their responses say alike (RaftUtil, KafkaRaftClient)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockraft.server.apis.api import Parked
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import PARTITION, TOPIC_NAME, ReplicaKey
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.voter_set import Endpoint
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.server.raft.raft import Raft
from mockraft.server.raft.voter_changes import VoterChange
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
    return voter_id < 0 or ReplicaKey(voter_id, directory_id) in (own, ReplicaKey(own.id, bytes(16)))


def leader_among(endpoints: Sequence[Any], raft: Raft, leader_id: int) -> NodeEndpoint | None:
    """Where a leader says that it listens, or the voters do."""
    if not endpoints:
        return raft.address_of(leader_id)
    name = raft.config.controller_listener_name
    return next((NodeEndpoint(leader_id, found.host, found.port) for found in endpoints if found.name == name), None)


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


def check_cluster_id(request: Any, controller: Controller) -> None:
    """ApiError INCONSISTENT_CLUSTER_ID, in the words of requests that change voters."""
    cluster_id = controller.config.cluster_id
    if request.cluster_id not in (None, cluster_id):
        told = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        raise ApiError(error_codes.INCONSISTENT_CLUSTER_ID, told)


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
