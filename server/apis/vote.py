"""Vote (52), versions 0-2: KIP-595, KIP-853 (directory ids), KIP-996 (pre-vote).

Order of checks as in KafkaRaftClient.handleVoteRequest: a higher epoch is accepted even of a pre-vote.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import (
    is_recipient,
    leader_and_epoch,
    node_endpoints,
    only_partition,
    voter_refusal,
)
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import ReplicaKey
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes
from mockraft.wire.messages import vote_request
from mockraft.wire.messages.vote_request import VoteRequest
from mockraft.wire.messages.vote_response import NodeEndpoint, PartitionData, TopicData, VoteResponse
from mockraft.wire.topic_names import CLUSTER_METADATA


def handle(request: VoteRequest, ctx: RequestContext, controller: Controller) -> VoteResponse:
    """Return the vote and the known leader."""
    requested = [(topic.topic_name, topic.partitions) for topic in request.topics]
    partition = only_partition(request.cluster_id, requested, controller, lambda each: each.replica_id, ctx.now_ms)
    raft = controller.raft
    refused, granted = _vote(raft, request, partition, ctx.now_ms)
    data = leader_and_epoch(PartitionData, raft, error_code=refused, vote_granted=granted)
    topics = [TopicData(topic_name=CLUSTER_METADATA, partitions=[data])]
    return VoteResponse(topics=topics, node_endpoints=node_endpoints(NodeEndpoint, raft, ctx, since_version=1))


def _vote(raft: Raft, request: VoteRequest, partition: vote_request.PartitionData, now_ms: int) -> tuple[int, bool]:
    epoch, last_epoch, pre_vote = partition.replica_epoch, partition.last_offset_epoch, partition.pre_vote
    # A vote request begins an epoch; a pre-vote request does not.
    is_illegal_epoch = last_epoch > epoch if pre_vote else last_epoch >= epoch
    if partition.last_offset < 0 or last_epoch < 0 or is_illegal_epoch:
        return error_codes.INVALID_REQUEST, False
    refused = voter_refusal(raft, partition.replica_id, epoch)
    if refused:
        return refused, False
    if epoch > raft.epoch:
        raft.to_unattached(epoch, now_ms)
    if not is_recipient(raft, request.voter_id, partition.voter_directory_id):
        return error_codes.INVALID_VOTER_KEY, False
    candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    granted = raft.vote(candidate, last_epoch, partition.last_offset, pre_vote=pre_vote, now_ms=now_ms)
    return error_codes.NONE, granted


API = Api(VoteRequest, VoteResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION)
