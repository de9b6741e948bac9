"""OffsetCommit (8), OffsetFetch (9): KIP-447 (stable offsets), KIP-709 (several groups), KIP-848 (topic ids).

The offsets are kept by `brokers.coordinators.group_coordinator`. Members of the consumer protocol name their epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from mockraft.brokers.apis.api import READ_GROUP, AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.apis.leaders import partition_error
from mockraft.brokers.coordinators.group_coordinator import AnyGroup
from mockraft.brokers.coordinators.members import Commit, Offset
from mockraft.brokers.coordinators.transaction import TopicPartition
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.java_values import utf16_length
from mockraft.wire.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from mockraft.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mockraft.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from mockraft.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequestTopic
from mockraft.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

SEVERAL_GROUPS_FROM = 8
GROUP_ID_NOT_FOUND_FROM = 9
MEMBER_EPOCHS_FROM = 9
TOPIC_IDS_FROM = 10
METADATA_MAX: Final = ("offset.metadata.max.bytes", 4096)
NO_OFFSET = Offset(-1, -1, "")


def commit(request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    """Commit offsets. Unknown partitions are refused before the group is looked up."""
    response = _commit_error(request, error_codes.NONE, None)
    known, offsets = checked(ctx, request.topics, response.topics, TOPIC_IDS_FROM)
    if not known:
        return response

    def refuse(refused: ApiError) -> OffsetCommitResponse:
        for answer in known:
            answer.error_code = refused.error_code
        return response

    try:
        # As in Kafka the group with the empty id takes offsets.
        group = ctx.broker.groups.find(request.group_id)
        if request.generation_id_or_member_epoch >= 0 and group is None:
            is_new = ctx.api_version >= GROUP_ID_NOT_FOUND_FROM
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND if is_new else error_codes.ILLEGAL_GENERATION)
        group = group or ctx.broker.groups.create(request.group_id)
        epoch = request.generation_id_or_member_epoch
        committing = Commit(request.member_id, epoch, request.group_instance_id, ctx.api_version)
        group.check_commit(committing, offsets, ctx.now_ms)
    except ApiError as refused:
        return refuse(refused)
    return ctx.broker.groups.commit(request.group_id, offsets).answer(lambda _: response, refuse)


def fetch(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    """Return committed offsets; -1 for a partition without one."""
    is_stable = request.require_stable
    if ctx.api_version >= SEVERAL_GROUPS_FROM:
        return OffsetFetchResponse(groups=[_fetched(ctx, group, is_stable=is_stable) for group in request.groups])
    ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, request.group_id)
    wanted = _wanted(ctx, request.group_id, _by_name(request.topics), is_stable=is_stable)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(name=name, partitions=_partitions(OffsetFetchResponsePartition, found))
            for name, found in wanted
        ]
    )


class _Found(NamedTuple):
    """The committed offset of a partition, or the error of one whose transaction is not ended."""

    partition: int
    committed: Offset
    error_code: int


_Named = Sequence[tuple[str, Sequence[int]]] | None
"""The topics of a request with their partitions; None for all."""
TopicT = TypeVar("TopicT", OffsetCommitRequestTopic, TxnOffsetCommitRequestTopic)
AnswerT = TypeVar("AnswerT", OffsetCommitResponseTopic, TxnOffsetCommitResponseTopic)
PartitionT = TypeVar("PartitionT", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)


def _partitions(kind: type[PartitionT], found: Sequence[_Found]) -> list[PartitionT]:
    """Return these offsets by partition, in the class for one group or for several."""
    return [
        kind(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )
        for index, committed, code in found
    ]


def _fetched(ctx: RequestContext, requested: OffsetFetchRequestGroup, *, is_stable: bool) -> OffsetFetchResponseGroup:
    named: _Named
    if ctx.api_version >= TOPIC_IDS_FROM and requested.topics is not None:
        named = [
            (name, topic.partition_indexes)
            for topic in requested.topics
            if (name := name_of(ctx, topic, TOPIC_IDS_FROM)) is not None
        ]
        unknown = [_unknown(topic) for topic in requested.topics if name_of(ctx, topic, TOPIC_IDS_FROM) is None]
    else:
        named, unknown = _by_name(requested.topics), []
    try:
        ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, requested.group_id)
        group = ctx.broker.groups.find_any(requested.group_id)
        if group is not None and ctx.api_version >= MEMBER_EPOCHS_FROM:
            group.check_fetch(requested.member_id, requested.member_epoch)
        wanted = _wanted(ctx, requested.group_id, named, is_stable=is_stable)
    except ApiError as refused:
        return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=refused.error_code)
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=unknown
        + [
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if (topic := ctx.image.topics_by_name.get(name)) else bytes(16),
                partitions=_partitions(OffsetFetchResponsePartitions, found),
            )
            for name, found in wanted
        ],
    )


def _by_name(topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None) -> _Named:
    return None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]


def name_of(
    ctx: RequestContext,
    topic: OffsetFetchRequestTopics | OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic,
    ids_from: int,
) -> str | None:
    """Return the name of a topic given by name or, from this version on, by id; None when no topic has the id."""
    if ctx.api_version < ids_from:
        return str(topic.name)
    known = ctx.image.topics.get(topic.topic_id)
    return None if known is None else known.name


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET.offset,
                metadata=NO_OFFSET.metadata,
                error_code=error_codes.UNKNOWN_TOPIC_ID,
            )
            for index in topic.partition_indexes
        ],
    )


def _wanted(ctx: RequestContext, group_id: str, named: _Named, *, is_stable: bool) -> list[tuple[str, list[_Found]]]:
    """Return the offsets of the requested partitions by topic; of all committed ones when none are named.

    With `is_stable` those that a transaction may still change are errors. Raises ApiError when another broker
    coordinates the group.
    """
    group = ctx.broker.groups.find_any(group_id)
    offsets = {} if group is None else group.offsets
    if named is None:
        committed: dict[str, list[int]] = {}
        for name, index in offsets:
            if ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
                committed.setdefault(name, []).append(index)
        named = list(committed.items())

    def found(name: str, index: int) -> _Found:
        if not ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return _Found(index, NO_OFFSET, error_codes.TOPIC_AUTHORIZATION_FAILED)
        if is_stable and ctx.broker.groups.is_unstable(group_id, (name, index)):
            return _Found(index, NO_OFFSET, error_codes.UNSTABLE_OFFSET_COMMIT)
        return _Found(index, offsets.get((name, index), NO_OFFSET), error_codes.NONE)

    return [(name, [found(name, index) for index in indexes]) for name, indexes in named]


def checked(
    ctx: RequestContext, topics: Sequence[TopicT], answers: Sequence[AnswerT], ids_from: int
) -> tuple[list[OffsetCommitResponsePartition | TxnOffsetCommitResponsePartition], dict[TopicPartition, Offset]]:
    """Return the answers for partitions that may be read, and the offsets to commit; the others get their errors.

    The length of metadata is counted in UTF-16 units.
    """
    length_max = int(ctx.broker.config.properties.get(*METADATA_MAX))
    known: list[OffsetCommitResponsePartition | TxnOffsetCommitResponsePartition] = []
    offsets: dict[TopicPartition, Offset] = {}
    for topic, answered in zip(topics, answers, strict=True):
        name = name_of(ctx, topic, ids_from)
        for partition, answer in zip(topic.partitions, answered.partitions, strict=True):
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            if name is None:
                answer.error_code = error_codes.UNKNOWN_TOPIC_ID
                continue
            answer.error_code = partition_error(ctx, AclOperation.READ, name, index)
            if answer.error_code != error_codes.NONE:
                continue
            known.append(answer)
            if utf16_length(metadata) > length_max:
                answer.error_code = error_codes.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[name, index] = Offset(partition.committed_offset, partition.committed_leader_epoch, metadata)
    return known, offsets


def find_group(ctx: RequestContext, group_id: str) -> AnyGroup | None:
    """Return the group if there is one. Raises ApiError when another broker coordinates it."""
    if not group_id:
        raise ApiError(error_codes.INVALID_GROUP_ID)
    return ctx.broker.groups.find(group_id)


_commit_error = error_for_each(
    OffsetCommitResponse,
    Items("topics", "topics", ("name", "topic_id")),
    Items("partitions", "partitions", ("partition_index",)),
)


def _fetch_error(request: OffsetFetchRequest, error_code: int, _message: str | None) -> OffsetFetchResponse:
    groups = [OffsetFetchResponseGroup(group_id=each.group_id, error_code=error_code) for each in request.groups]
    return OffsetFetchResponse(groups=groups) if groups else OffsetFetchResponse(error_code=error_code)


APIS: Final[tuple[AnyApi, ...]] = (
    Api(OffsetCommitRequest, OffsetCommitResponse, commit, _commit_error, needs=(READ_GROUP,)),
    Api(OffsetFetchRequest, OffsetFetchResponse, fetch, _fetch_error),
)
