"""EndQuorumEpoch (54), versions 0-1: KIP-595, KIP-853 (directory ids, leader endpoints).

Order of checks as in KafkaRaftClient.handleEndQuorumEpochRequest. An unknown leader in the epoch there is is answered
as in BeginQuorumEpoch.
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import hear_leader, leader_and_epoch, node_endpoints, only_partition
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import NO_DIRECTORY_ID, TOPIC_NAME, ReplicaKey
from mockraft.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from mockraft.wire.messages.end_quorum_epoch_response import (
    EndQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)

_NODE_ENDPOINTS_VERSION = 1


def handle(request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """The leader leads no more: elect soon, the sooner the further in front among the successors."""
    partition = only_partition(request, controller)
    raft = controller.raft
    refused = hear_leader(raft, request, partition, ctx.now_ms)
    if not refused:
        raft.epoch_ends(partition.leader_id, _successors(partition), ctx.now_ms)
    data = leader_and_epoch(PartitionData, raft)
    data.error_code = refused
    response = EndQuorumEpochResponse(topics=[TopicData(topic_name=TOPIC_NAME, partitions=[data])])
    if ctx.api_version >= _NODE_ENDPOINTS_VERSION:
        response.node_endpoints = node_endpoints(NodeEndpoint, raft)
    return response


def error(_request: Any, error_code: int, _message: str | None) -> Any:
    """A top-level error."""
    return EndQuorumEpochResponse(error_code=error_code)


def _successors(partition: Any) -> list[ReplicaKey]:
    """Version 0 names ids alone."""
    if partition.preferred_candidates:
        return [ReplicaKey(key.candidate_id, key.candidate_directory_id) for key in partition.preferred_candidates]
    return [ReplicaKey(node_id, NO_DIRECTORY_ID) for node_id in partition.preferred_successors]


API = Api(
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    handle,
    0,
    1,
    error,
    active_only=False,
    operation=AclOperation.CLUSTER_ACTION,
)
