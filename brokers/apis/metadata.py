"""Metadata (3): KIP-107 … KIP-516 (topic ids), KIP-430 (authorized operations), KIP-1102 (rebootstrap).

Returns all topics when none is named (in version 0 when the list is empty); topics can be requested by id from version
12 on. An unknown topic is created by the controller if the client and auto.create.topics.enable allow it, and is still
unknown in this response. The controller id is the id of some live broker: clients send to it the requests that brokers
forward (KRaftMetadataCache).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mockraft.brokers.apis import operations
from mockraft.brokers.apis.api import Api, ApiError, RequestContext
from mockraft.brokers.image import ClusterImage, Partition, Topic
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.wire import error_codes, topic_names
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

AUTO_CREATE_TOPICS_ENABLE = "auto.create.topics.enable"
TOPIC_IDS_FROM = 12
NO_CONTROLLER = -1
_NO_ID = bytes(16)
_NO_TOPIC = Topic("", _NO_ID, {})


def handle(request: MetadataRequest, ctx: RequestContext) -> MetadataResponse:
    """Return brokers, topics and partitions as this broker knows them."""
    _check(request, ctx)
    if request.topics is None or (not request.topics and ctx.api_version == 0):
        topics = _known((each for each in ctx.image.topics_by_name.values() if may_describe(ctx, each.name)), ctx)
    else:
        topics = _requested(request.topics, request, ctx)
    if request.include_topic_authorized_operations and ctx.api_version >= 8:
        for topic in topics:
            if topic.error_code not in (error_codes.UNKNOWN_TOPIC_ID, error_codes.TOPIC_AUTHORIZATION_FAILED):
                topic.topic_authorized_operations = operations.on_topic(ctx, topic.name or "")
    alive = ctx.image.alive()
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for broker in alive
            if (endpoint := broker.endpoints.get(ctx.listener)) is not None
        ],
        cluster_id=ctx.broker.config.cluster_id,
        controller_id=ctx.broker.rng.choice(alive).broker_id if alive else NO_CONTROLLER,
        topics=topics,
    )
    if request.include_cluster_authorized_operations and 8 <= ctx.api_version <= 10:
        response.cluster_authorized_operations = operations.on_cluster(ctx)
    return response


def error(request: MetadataRequest, error_code: int, _message: str | None) -> MetadataResponse:
    """Return the error for each topic and for the whole request."""
    return MetadataResponse(
        error_code=error_code,
        topics=[
            MetadataResponseTopic(error_code=error_code, name=each.name or "", topic_id=each.topic_id)
            for each in request.topics or ()
        ],
    )


def _check(request: MetadataRequest, ctx: RequestContext) -> None:
    if ctx.api_version >= TOPIC_IDS_FROM:
        return
    for each in request.topics or ():
        if each.name is None or each.topic_id != _NO_ID:
            raise ApiError(error_codes.INVALID_REQUEST)


def _requested(
    topics: Sequence[MetadataRequestTopic], request: MetadataRequest, ctx: RequestContext
) -> list[MetadataResponseTopic]:
    """Return the topics given by name or, if any is given by id, those given by id."""
    image = ctx.image
    ids = dict.fromkeys(each.topic_id for each in topics if each.topic_id != _NO_ID)
    if ids:
        unknown = [
            MetadataResponseTopic(error_code=error_codes.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            for topic_id in ids
            if topic_id not in image.topics
        ]
        found = [image.topics[topic_id] for topic_id in ids if topic_id in image.topics]
        hidden = [_denied(None, topic.topic_id) for topic in found if not may_describe(ctx, topic.name)]
        return unknown + _known([topic for topic in found if may_describe(ctx, topic.name)], ctx) + hidden
    names = [name for name in dict.fromkeys(each.name for each in topics) if name is not None]
    if any(each.name is None for each in topics):
        # Neither a name nor an id: Kafka's own broker fails on it.
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    denied = [_denied(name, _NO_ID) for name in names if not may_describe(ctx, name)]
    names = [name for name in names if may_describe(ctx, name)]
    known = _known([image.topics_by_name[name] for name in names if name in image.topics_by_name], ctx)
    described = {topic.name for topic in known}
    missing = [name for name in names if name not in described]
    creates = ctx.broker.config.properties.get(AUTO_CREATE_TOPICS_ENABLE, "true").lower() == "true"
    if missing and request.allow_auto_topic_creation and creates:
        create, on_cluster = AclOperation.CREATE, ctx.may(AclOperation.CREATE, ResourceType.CLUSTER)
        creatable = [name for name in missing if on_cluster or ctx.may(create, ResourceType.TOPIC, name)]
        denied = [_denied(name, _NO_ID) for name in missing if name not in creatable] + denied
        ctx.broker.create_topics([name for name in creatable if topic_names.reason_invalid(name) is None], ctx)
        return known + [_unknown(name, _NO_ID) for name in creatable] + denied
    unknown = [_unknown(name, image.topics_by_name.get(name, _NO_TOPIC).topic_id) for name in missing]
    return known + unknown + denied


def may_describe(ctx: RequestContext, name: str) -> bool:
    """Return True if the client may know of the topic."""
    return ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _denied(name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error_codes.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=topic_id)


def _unknown(name: str, topic_id: bytes) -> MetadataResponseTopic:
    internal = name in topic_names.INTERNAL
    return MetadataResponseTopic(error_code=unknown_error(name), name=name, topic_id=topic_id, is_internal=internal)


def unknown_error(name: str) -> int:
    """Return the error for a topic that does not exist."""
    if topic_names.reason_invalid(name):
        return error_codes.INVALID_TOPIC_EXCEPTION
    return error_codes.UNKNOWN_TOPIC_OR_PARTITION


def _known(topics: Iterable[Topic], ctx: RequestContext) -> list[MetadataResponseTopic]:
    """Return the topics with their partitions."""
    states = ReplicaStates(ctx.image, ctx.listener)
    return [
        MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in topic_names.INTERNAL,
            partitions=_partitions(topic, states, ctx.api_version),
        )
        for topic in topics
        if topic.partitions
    ]


def _partitions(topic: Topic, states: ReplicaStates, version: int) -> list[MetadataResponsePartition]:
    found = []
    for index, partition in topic.partitions.items():
        replicas, isr = list(partition.replicas), list(partition.isr)
        if version == 0:
            # Version 0 leaves out unreachable replicas, and reports them as an error.
            replicas = [each for each in replicas if each in states.reachable]
            isr = [each for each in isr if each in states.reachable]
        has_leader = partition.leader in states.listening
        if has_leader:
            missing = len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)
            code = error_codes.REPLICA_NOT_AVAILABLE if missing else error_codes.NONE
        else:
            is_known = partition.leader in states.brokers and version >= 6
            code = error_codes.LISTENER_NOT_FOUND if is_known else error_codes.LEADER_NOT_AVAILABLE
        found.append(
            MetadataResponsePartition(
                error_code=code,
                partition_index=index,
                leader_id=partition.leader if has_leader else -1,
                leader_epoch=partition.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=states.offline(partition),
            )
        )
    return found


API = Api(MetadataRequest, MetadataResponse, handle, error)


class ReplicaStates:
    """The reachability of the brokers of an image, computed once for a response about many partitions.

    `listening` are the brokers with a listener of this name; `reachable` those of them that are not fenced.
    """

    def __init__(self, image: ClusterImage, listener_name: str) -> None:
        self.brokers = image.brokers
        self.listening = {each.broker_id for each in self.brokers.values() if listener_name in each.endpoints}
        self.reachable = {broker_id for broker_id in self.listening if not self.brokers[broker_id].fenced}

    def offline(self, partition: Partition) -> list[int]:
        """Return the replicas whose broker is unreachable or whose directory is offline."""
        return [
            broker_id
            for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
            if broker_id not in self.reachable or not self.brokers[broker_id].has_online_dir(directory)
        ]
