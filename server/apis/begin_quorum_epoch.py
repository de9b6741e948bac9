"""BeginQuorumEpoch (53), versions 0-1: KIP-595, KIP-853 (leader endpoints).

Order of checks as in KafkaRaftClient.handleBeginQuorumEpochRequest. A second leader for the epoch there is ends Kafka's
process; here it is answered with UNKNOWN_SERVER_ERROR and not believed.
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import hear_leader, is_meant, leader_and_epoch, node_endpoints, only_partition
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import TOPIC_NAME
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes
from mockraft.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from mockraft.wire.messages.begin_quorum_epoch_response import (
    BeginQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)

_NODE_ENDPOINTS_VERSION = 1


def handle(request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """Follow the leader that says it is one, and say who leads."""
    partition = only_partition(request, controller)
    raft = controller.raft
    refused = _begin(raft, request, partition, ctx.now_ms)
    data = leader_and_epoch(PartitionData, raft)
    data.error_code = refused
    response = BeginQuorumEpochResponse(topics=[TopicData(topic_name=TOPIC_NAME, partitions=[data])])
    if ctx.api_version >= _NODE_ENDPOINTS_VERSION:
        response.node_endpoints = node_endpoints(NodeEndpoint, raft)
    return response


def error(_request: Any, error_code: int, _message: str | None) -> Any:
    """A top-level error."""
    return BeginQuorumEpochResponse(error_code=error_code)


def _begin(raft: Raft, request: Any, partition: Any, now_ms: int) -> int:
    refused = hear_leader(raft, request, partition, now_ms)
    if not refused and not is_meant(raft, request.voter_id, partition.voter_directory_id):
        return error_codes.INVALID_VOTER_KEY
    return refused


API = Api(
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    handle,
    0,
    1,
    error,
    active_only=False,
    operation=AclOperation.CLUSTER_ACTION,
)
