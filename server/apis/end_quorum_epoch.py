"""EndQuorumEpoch (54), versions 0-1: KIP-595, KIP-853 (directory ids, leader endpoints).

Order of checks as in KafkaRaftClient.handleEndQuorumEpochRequest. An unknown leader in the current epoch is answered
as in BeginQuorumEpoch.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import apply_reported_leader, leader_and_epoch, node_endpoints, only_partition
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey
from mockraft.wire.messages import end_quorum_epoch_request
from mockraft.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from mockraft.wire.messages.end_quorum_epoch_response import (
    EndQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)
from mockraft.wire.topic_names import CLUSTER_METADATA


def handle(request: EndQuorumEpochRequest, ctx: RequestContext, controller: Controller) -> EndQuorumEpochResponse:
    """Handle the leader's resignation: elect soon, the sooner the earlier among the successors."""
    requested = [(topic.topic_name, topic.partitions) for topic in request.topics]
    partition = only_partition(request.cluster_id, requested, controller, lambda each: each.leader_id, ctx.now_ms)
    raft = controller.raft
    refused = apply_reported_leader(raft, request, partition, ctx.now_ms)
    if not refused:
        raft.epoch_ends(partition.leader_id, _successors(partition), ctx.now_ms)
    data = leader_and_epoch(PartitionData, raft, error_code=refused)
    topics = [TopicData(topic_name=CLUSTER_METADATA, partitions=[data])]
    return EndQuorumEpochResponse(
        topics=topics, node_endpoints=node_endpoints(NodeEndpoint, raft, ctx, since_version=1)
    )


def _successors(partition: end_quorum_epoch_request.PartitionData) -> list[ReplicaKey]:
    """Return the successors of version 0, which has ids alone."""
    if partition.preferred_candidates:
        return [ReplicaKey(key.candidate_id, key.candidate_directory_id) for key in partition.preferred_candidates]
    return [ReplicaKey(node_id, NO_DIRECTORY_ID) for node_id in partition.preferred_successors]


API = Api(
    EndQuorumEpochRequest, EndQuorumEpochResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION
)
