"""DescribeTopicPartitions (75), KIP-966: topics in the order of their names, a page of partitions at a time, with ELR.

The cursor is the position to continue at; earlier topics are left out (DescribeTopicPartitionsRequestHandler).
"""

from __future__ import annotations

from mockraft.brokers.apis import operations
from mockraft.brokers.apis.api import Api, ApiError, RequestContext
from mockraft.brokers.apis.metadata import ReplicaStates, may_describe, unknown_error
from mockraft.brokers.image import Topic
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes, topic_names
from mockraft.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from mockraft.wire.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITIONS_MAX = "max.request.partition.size.limit"
PARTITIONS_MAX_DEFAULT = 2_000


def handle(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> DescribeTopicPartitionsResponse:
    """Return topics and partitions from the cursor on, at most as many partitions as the limits allow."""
    everything = not request.topics
    cursor_name = "" if request.cursor is None else request.cursor.topic_name
    start = _java_order(cursor_name)
    requested = ctx.image.topics_by_name if everything else {topic.name for topic in request.topics}
    names = sorted((name for name in requested if _java_order(name) >= start), key=_java_order)
    if request.cursor is not None:
        if not everything and cursor_name not in requested:
            raise ApiError(error_codes.INVALID_REQUEST)
        if request.cursor.partition_index < 0:
            raise ApiError(error_codes.INVALID_REQUEST)
    hidden = [] if everything else [name for name in names if not may_describe(ctx, name)]
    names = [name for name in names if may_describe(ctx, name)]
    limit = int(ctx.broker.config.properties.get(PARTITIONS_MAX, PARTITIONS_MAX_DEFAULT))
    remaining = max(min(limit, request.response_partition_limit), 1)
    states = ReplicaStates(ctx.image, ctx.listener)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if remaining == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = ctx.image.topics_by_name.get(name)
        if topic is None:
            response.topics.append(_unknown(ctx, name))
            continue
        first = request.cursor.partition_index if request.cursor is not None and name == cursor_name else 0
        after = min(len(topic.partitions), first + remaining)
        partitions = [_partition(topic, index, states) for index in range(first, after) if index in topic.partitions]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in topic_names.INTERNAL,
                partitions=partitions,
                topic_authorized_operations=operations.on_topic(ctx, name),
            )
        )
        if after < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=after)
            break
        remaining -= len(partitions)
    response.topics += [
        DescribeTopicPartitionsResponseTopic(error_code=error_codes.TOPIC_AUTHORIZATION_FAILED, name=name)
        for name in hidden
    ]
    return response


error = error_for_each(DescribeTopicPartitionsResponse, Items("topics", "topics", ("name",)))


def _java_order(name: str) -> bytes:
    """Return the sort key of Java's String.compareTo: UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def _unknown(ctx: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=unknown_error(name),
        name=name,
        is_internal=name in topic_names.INTERNAL,
        topic_authorized_operations=operations.on_topic(ctx, name),
    )


def _partition(topic: Topic, index: int, states: ReplicaStates) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader if partition.leader in states.listening else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=states.offline(partition),
    )


API = Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, handle, error)
