"""BeginQuorumEpoch (53), versions 0-1: KIP-595, KIP-853 (leader endpoints).

Order of checks as in KafkaRaftClient.handleBeginQuorumEpochRequest. A second leader in the current epoch ends Kafka's
process; here it is answered with UNKNOWN_SERVER_ERROR and ignored.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import (
    apply_reported_leader,
    is_recipient,
    leader_and_epoch,
    node_endpoints,
    only_partition,
)
from mockraft.server.controller.controller import Controller
from mockraft.wire import error_codes
from mockraft.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from mockraft.wire.messages.begin_quorum_epoch_response import (
    BeginQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)
from mockraft.wire.topic_names import CLUSTER_METADATA


def handle(request: BeginQuorumEpochRequest, ctx: RequestContext, controller: Controller) -> BeginQuorumEpochResponse:
    """Follow the reported leader, and return the known leader."""
    requested = [(topic.topic_name, topic.partitions) for topic in request.topics]
    partition = only_partition(request.cluster_id, requested, controller, lambda each: each.leader_id, ctx.now_ms)
    raft = controller.raft
    refused = apply_reported_leader(raft, request, partition, ctx.now_ms)
    if not refused and not is_recipient(raft, request.voter_id, partition.voter_directory_id):
        refused = error_codes.INVALID_VOTER_KEY
    data = leader_and_epoch(PartitionData, raft, error_code=refused)
    topics = [TopicData(topic_name=CLUSTER_METADATA, partitions=[data])]
    return BeginQuorumEpochResponse(
        topics=topics, node_endpoints=node_endpoints(NodeEndpoint, raft, ctx, since_version=1)
    )


API = Api(
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION
)
