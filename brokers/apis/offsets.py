"""OffsetCommit (8), OffsetFetch (9): KIP-447 (stable offsets), KIP-709 (several groups), KIP-848 (topic ids).

The offsets are kept by `brokers.coordinators.group_coordinator`. Members of the consumer protocol name their epochs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

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

GROUP_ERRORS_FROM = 2
SEVERAL_GROUPS_FROM = 8
GROUP_ID_NOT_FOUND_FROM = 9
MEMBER_EPOCHS_FROM = 9
TOPIC_IDS_FROM = 10
METADATA_MAX: Final = ("offset.metadata.max.bytes", 4096)
NO_OFFSET = Offset(-1, -1, "")
REFUSED_TOPIC = frozenset({error_codes.UNKNOWN_TOPIC_ID, error_codes.TOPIC_AUTHORIZATION_FAILED})


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
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    if request.topics is not None:
        asked.topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = _fetched(ctx, asked, is_stable=is_stable)
    response = OffsetFetchResponse(error_code=group.error_code)
    for topic in group.topics:
        partitions = [
            OffsetFetchResponsePartition(
                partition_index=each.partition_index,
                committed_offset=each.committed_offset,
                committed_leader_epoch=each.committed_leader_epoch,
                metadata=each.metadata,
                error_code=each.error_code,
            )
            for each in topic.partitions
        ]
        response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return response


TopicT = TypeVar("TopicT", OffsetCommitRequestTopic, TxnOffsetCommitRequestTopic)
AnswerT = TypeVar("AnswerT", OffsetCommitResponseTopic, TxnOffsetCommitResponseTopic)


def _fetched(ctx: RequestContext, requested: OffsetFetchRequestGroup, *, is_stable: bool) -> OffsetFetchResponseGroup:
    """Return the offsets of the requested partitions; of all committed ones when none are named.

    With `is_stable` those that a transaction may still change are errors. As in Kafka refused topics come last.
    """
    group_id, group_error = requested.group_id, error_codes.NONE
    offsets: Mapping[TopicPartition, Offset] = {}
    try:
        ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = ctx.broker.groups.find_any(group_id)
        if group is not None:
            offsets = group.offsets
            if ctx.api_version >= MEMBER_EPOCHS_FROM:
                group.check_fetch(requested.member_id, requested.member_epoch)
    except ApiError as refused:
        if ctx.api_version >= GROUP_ERRORS_FROM:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=refused.error_code)
        group_error = refused.error_code

    def found(name: str | None, index: int) -> OffsetFetchResponsePartitions:
        committed, code = NO_OFFSET, group_error
        if code != error_codes.NONE:
            pass
        elif name is None:
            code = error_codes.UNKNOWN_TOPIC_ID
        elif not ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            code = error_codes.TOPIC_AUTHORIZATION_FAILED
        elif is_stable and ctx.broker.groups.is_unstable(group_id, (name, index)):
            code = error_codes.UNSTABLE_OFFSET_COMMIT
        else:
            committed = offsets.get((name, index), NO_OFFSET)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )

    answers = []
    for topic in _committed(ctx, offsets) if requested.topics is None else requested.topics:
        name = name_of(ctx, topic, TOPIC_IDS_FROM)
        partitions = [found(name, index) for index in topic.partition_indexes]
        answers.append(OffsetFetchResponseTopics(name=name or "", topic_id=topic.topic_id, partitions=partitions))
    answers.sort(key=lambda topic: any(each.error_code in REFUSED_TOPIC for each in topic.partitions))
    return OffsetFetchResponseGroup(group_id=group_id, topics=answers)


def _committed(ctx: RequestContext, offsets: Iterable[TopicPartition]) -> list[OffsetFetchRequestTopics]:
    """Return the topics of these offsets of which the client may know."""
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, index in offsets:
        if ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            known = ctx.image.topics_by_name.get(name)
            topic = OffsetFetchRequestTopics(name=name, topic_id=known.topic_id if known else bytes(16))
            topics.setdefault(name, topic).partition_indexes.append(index)
    return list(topics.values())


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


def checked(
    ctx: RequestContext, topics: Sequence[TopicT], answers: list[AnswerT], ids_from: int
) -> tuple[list[OffsetCommitResponsePartition | TxnOffsetCommitResponsePartition], dict[TopicPartition, Offset]]:
    """Return the answers for partitions that may be read, and the offsets to commit; the others get their errors.

    The length of metadata is counted in UTF-16 units. As in Kafka refused partitions come first, and then each topic
    once.
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
    accepted = {id(answer) for answer in known}
    if len(accepted) < sum(len(topic.partitions) for topic in topics):
        merged: dict[tuple[str, bytes], AnswerT] = {}
        for is_accepted, answered in itertools.product((False, True), answers):
            if chosen := [each for each in answered.partitions if (id(each) in accepted) == is_accepted]:
                empty = type(answered)(name=answered.name, topic_id=answered.topic_id)
                merged.setdefault((answered.name, answered.topic_id), empty).partitions.extend(chosen)
        answers[:] = merged.values()
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
