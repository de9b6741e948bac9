"""Lookup of a request's partitions and of their leaders for responses of a broker that does not lead (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from mockraft.brokers.apis.api import RequestContext
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.image import Topic
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_records_request import DeleteRecordsRequest, DeleteRecordsTopic
from mockraft.wire.messages.list_offsets_request import ListOffsetsRequest, ListOffsetsTopic

NEWS_OF_LEADER: Final = (error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.FENCED_LEADER_EPOCH)
"""Errors whose response includes the current leader, so that the client needs no Metadata request."""
NodeT = TypeVar("NodeT")
TopicT = TypeVar("TopicT", DeleteRecordsTopic, ListOffsetsTopic)


def topic_by_id(ctx: RequestContext, topic_id: bytes) -> Topic:
    """Return the topic with this id. Raises LogError (UNKNOWN_TOPIC_ID)."""
    topic = ctx.image.topics.get(topic_id)
    if topic is None:
        raise LogError(error_codes.UNKNOWN_TOPIC_ID, error_codes.message(error_codes.UNKNOWN_TOPIC_ID))
    return topic


def topic_by_name(ctx: RequestContext, name: str) -> Topic:
    """Return the topic with this name. Raises LogError (UNKNOWN_TOPIC_OR_PARTITION)."""
    topic = ctx.image.topics_by_name.get(name)
    if topic is None:
        code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
        raise LogError(code, error_codes.message(code))
    return topic


def check_topic(ctx: RequestContext, operation: AclOperation, name: str) -> None:
    """Raise LogError (TOPIC_AUTHORIZATION_FAILED) unless the client may do this with the topic."""
    if not ctx.may(operation, ResourceType.TOPIC, name):
        code = error_codes.TOPIC_AUTHORIZATION_FAILED
        raise LogError(code, error_codes.message(code))


def partition_error(ctx: RequestContext, operation: AclOperation, topic: str, index: int) -> int:
    """Return the error for a partition with whose topic the client may not do this, or that does not exist."""
    if not ctx.may(operation, ResourceType.TOPIC, topic):
        return error_codes.TOPIC_AUTHORIZATION_FAILED
    known = ctx.image.topics_by_name.get(topic)
    return error_codes.NONE if known and index in known.partitions else error_codes.UNKNOWN_TOPIC_OR_PARTITION


def replication_error(ctx: RequestContext, key: ReplicaKey, end_offset: int, *, expired: bool) -> int | None:
    """Return NONE once the in-sync replicas have everything below the offset, or the error; None before."""
    try:
        hosted = ctx.broker.replicas.find(key)
        done, code = hosted.state.reached(end_offset)
        if not done:
            _ = hosted.log
    except LogError as refused:
        return refused.error_code
    return code if done else error_codes.REQUEST_TIMED_OUT if expired else None


def each_once(topics: list[TopicT]) -> list[TopicT]:
    """Return the topics with each partition once, as it is named last, and without topics that have none.

    The first topic of a name gets the partitions of the others.
    """
    merged: dict[str, TopicT] = {}
    for topic in topics:
        first: TopicT = merged.setdefault(topic.name, topic)
        named = list(first.partitions)
        if first is not topic:
            named.extend(topic.partitions)
        first.partitions = list({each.partition_index: each for each in named}.values())
    return [topic for topic in merged.values() if topic.partitions]


def replicas_of(request: DeleteRecordsRequest | ListOffsetsRequest, ctx: RequestContext) -> Iterator[ReplicaKey]:
    """Return the keys of the request's partitions, without topics that do not exist."""
    topics = ctx.image.topics_by_name
    return (
        (topics[topic.name].topic_id, partition.partition_index)
        for topic in request.topics
        if topic.name in topics
        for partition in topic.partitions
    )


def current_leader(ctx: RequestContext, topic_id: bytes, name: str, partition: int) -> tuple[int, int] | None:
    """Return (leader, leader epoch) from the metadata; None when the partition is unknown."""
    topic = ctx.image.topics.get(topic_id) or ctx.image.topics_by_name.get(name)
    found = None if topic is None else topic.partitions.get(partition)
    return None if found is None else (found.leader, found.leader_epoch)


def leader_endpoints(ctx: RequestContext, broker_ids: Iterable[int], node: Callable[..., NodeT]) -> list[NodeT]:
    """Return the endpoints of those of the brokers that have the listener that the client used."""
    found = []
    for broker_id in sorted(broker_ids):
        broker = ctx.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoints.get(ctx.listener)
        if broker is not None and endpoint is not None:
            found.append(node(node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack))
    return found
