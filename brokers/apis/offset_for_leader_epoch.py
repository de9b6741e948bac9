"""OffsetForLeaderEpoch (23): KIP-101, KIP-279, KIP-320. The end offset of a leader epoch in the leader's log."""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.apis.leaders import check_topic, topic_by_name
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from mockraft.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse


def handle(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> OffsetForLeaderEpochResponse:
    """Return the largest epoch up to the requested one, and its end offset."""
    response = error(request, error_codes.NONE, None)
    is_broker = ctx.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
    for topic, answers in zip(request.topics, response.topics, strict=True):
        for partition, answer in zip(topic.partitions, answers.partitions, strict=True):
            try:
                if not is_broker:
                    check_topic(ctx, AclOperation.DESCRIBE, topic.topic)
                key = (topic_by_name(ctx, topic.topic).topic_id, partition.partition)
                hosted = ctx.broker.replicas.find(key)
                log = hosted.log
                hosted.check_epoch(partition.current_leader_epoch, only_leader=True)
                answer.leader_epoch, answer.end_offset = log.end_of_epoch(partition.leader_epoch)
            except LogError as refused:
                answer.error_code = refused.error_code
    return response


error = error_for_each(
    OffsetForLeaderEpochResponse,
    Items("topics", "topics", ("topic",)),
    Items("partitions", "partitions", ("partition",)),
)


API = Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, handle, error)
