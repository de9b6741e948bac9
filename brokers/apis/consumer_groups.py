"""JoinGroup (11), SyncGroup (14), Heartbeat (12), LeaveGroup (13), OffsetCommit (8), OffsetFetch (9).

The classic group protocol with what KIP-62, KIP-345 (instance ids name a member, nothing more), KIP-394 (member ids are
given first), KIP-559 and KIP-709 (several groups) put on the wire. The groups are `brokers.consumer_groups`.
"""

from __future__ import annotations

from typing import Any, Final

from mockraft.brokers.apis.api import Api, ApiError, RequestContext
from mockraft.brokers.apis.find_coordinator import coordinator_of
from mockraft.brokers.consumer_groups import Group, GroupError, Groups, Joining, Offset
from mockraft.wire import error_codes, messages
from mockraft.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from mockraft.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from mockraft.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockraft.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MEMBER_ID_FIRST_FROM = 4
PROTOCOL_TYPE_FROM = 7
SEVERAL_MEMBERS_FROM = 3
SEVERAL_GROUPS_FROM = 8
TOPIC_IDS_FROM = 10
METADATA_BYTES_MAX = 4096
"""Kafka's default of offset.metadata.max.bytes."""
NO_OFFSET = Offset(-1, -1, "")


async def join(request: Any, ctx: RequestContext) -> Any:
    """Join, and wait for the others."""
    groups, group = _groups(ctx), _group(ctx, request.group_id)
    member_id = request.member_id
    if not member_id:
        member_id = groups.new_member_id(ctx.client_id)
        if ctx.api_version >= MEMBER_ID_FIRST_FROM and request.group_instance_id is None:
            return _join_refused(error_codes.MEMBER_ID_REQUIRED, member_id, ctx.api_version)
    timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    says = Joining(
        member_id, request.group_instance_id, request.session_timeout_ms, timeout_ms, request.protocol_type, protocols
    )
    try:
        joined = await group.join(says)
    except GroupError as refused:
        return _join_refused(refused.error_code, member_id, ctx.api_version)
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=group.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=member_id,
        members=[
            JoinGroupResponseMember(member_id=each_id, group_instance_id=instance_id, metadata=metadata)
            for each_id, instance_id, metadata in joined.members
        ],
    )


async def sync(request: Any, ctx: RequestContext) -> Any:
    """The member's assignment; from the leader, everybody's."""
    group = _group(ctx, request.group_id)
    assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
    try:
        assignment = await group.sync(request.member_id, request.generation_id, assignments)
    except GroupError as refused:
        raise ApiError(refused.error_code) from refused
    return _response_of(request)(assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol)


async def heartbeat(request: Any, ctx: RequestContext) -> Any:
    """The member is alive."""
    try:
        _group(ctx, request.group_id).heartbeat(request.member_id, request.generation_id)
    except GroupError as refused:
        raise ApiError(refused.error_code) from refused
    return _response_of(request)()


async def leave(request: Any, ctx: RequestContext) -> Any:
    """Members go."""
    group = _group(ctx, request.group_id)
    if ctx.api_version < SEVERAL_MEMBERS_FROM:
        return LeaveGroupResponse(error_code=_left(group, request.member_id, None))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=_left(group, each.member_id, each.group_instance_id),
            )
            for each in request.members
        ]
    )


async def commit(request: Any, ctx: RequestContext) -> Any:
    """Keep offsets."""
    code = error_codes.NONE
    try:
        group = _group(ctx, request.group_id)
        group.check_commit(request.member_id, request.generation_id_or_member_epoch)
    except (GroupError, ApiError) as refused:
        code, group = refused.error_code, Group()
    topics = []
    for topic in request.topics:
        answered = []
        name = _name_of(ctx, topic)
        for partition in topic.partitions:
            each = code or _check_offset(ctx, name, partition)
            if each == error_codes.NONE and name is not None:
                group.offsets[name, partition.partition_index] = Offset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata
                )
            answered.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=each))
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answered))
    return OffsetCommitResponse(topics=topics)


async def fetch(request: Any, ctx: RequestContext) -> Any:
    """What was committed; -1 where nothing was."""
    if ctx.api_version >= SEVERAL_GROUPS_FROM:
        return OffsetFetchResponse(groups=[_fetched(ctx, group) for group in request.groups])
    offsets = _group(ctx, request.group_id).offsets
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                    )
                    for index, found in partitions
                ],
            )
            for name, partitions in _wanted(offsets, _by_name(request.topics))
        ]
    )


def _fetched(ctx: RequestContext, asked: Any) -> OffsetFetchResponseGroup:
    try:
        offsets = _group(ctx, asked.group_id).offsets
    except ApiError as refused:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=refused.error_code)
    named: dict[str, Any] | None
    if ctx.api_version >= TOPIC_IDS_FROM and asked.topics is not None:
        named = {name: topic.partition_indexes for topic in asked.topics if (name := _name_of(ctx, topic)) is not None}
        unknown = [_unknown(topic) for topic in asked.topics if _name_of(ctx, topic) is None]
    else:
        named, unknown = _by_name(asked.topics), []
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=unknown
        + [
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if (topic := ctx.image.topics_by_name.get(name)) else bytes(16),
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                    )
                    for index, found in partitions
                ],
            )
            for name, partitions in _wanted(offsets, named)
        ],
    )


def _by_name(topics: Any) -> dict[str, Any] | None:
    return None if topics is None else {topic.name: topic.partition_indexes for topic in topics}


def _name_of(ctx: RequestContext, topic: Any) -> str | None:
    """The name of a topic that is asked for by name or, from version 10 on, by id; None when no topic has the id."""
    if ctx.api_version < TOPIC_IDS_FROM:
        return str(topic.name)
    known = ctx.image.topics.get(topic.topic_id)
    return None if known is None else known.name


def _unknown(topic: Any) -> OffsetFetchResponseTopics:
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


def _wanted(
    offsets: dict[tuple[str, int], Offset], named: dict[str, Any] | None
) -> list[tuple[str, list[tuple[int, Offset]]]]:
    """(topic, [(partition, offset)]) of what is asked for, of all that was committed when that is None."""
    asked: dict[str, list[int]] = {}
    if named is None:
        for name, index in offsets:
            asked.setdefault(name, []).append(index)
    else:
        asked = {name: list(indexes) for name, indexes in named.items()}
    return [(name, [(at, offsets.get((name, at), NO_OFFSET)) for at in indexes]) for name, indexes in asked.items()]


def _check_offset(ctx: RequestContext, topic: str | None, partition: Any) -> int:
    if topic is None:
        return error_codes.UNKNOWN_TOPIC_ID
    found = ctx.image.topics_by_name.get(topic)
    if found is None or partition.partition_index not in found.partitions:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if len((partition.committed_metadata or "").encode()) > METADATA_BYTES_MAX:
        return error_codes.OFFSET_METADATA_TOO_LARGE
    return error_codes.NONE


def _left(group: Group, member_id: str, instance_id: str | None) -> int:
    try:
        group.leave(member_id, instance_id)
    except GroupError as refused:
        return refused.error_code
    return error_codes.NONE


def _groups(ctx: RequestContext) -> Groups:
    groups = ctx.broker.groups
    assert groups is not None, "a broker that serves clients has groups"
    return groups


def _group(ctx: RequestContext, group_id: str) -> Group:
    """The group. ApiError when its coordinator is another broker, or it cannot be had."""
    if not group_id:
        raise ApiError(error_codes.INVALID_GROUP_ID)
    if coordinator_of(ctx, group_id) != ctx.broker.config.broker_id:
        raise ApiError(error_codes.NOT_COORDINATOR)
    try:
        return _groups(ctx).find(group_id)
    except GroupError as refused:
        raise ApiError(refused.error_code) from refused


def _join_refused(error_code: int, member_id: str, version: int) -> JoinGroupResponse:
    name = None if version >= PROTOCOL_TYPE_FROM else ""
    return JoinGroupResponse(error_code=error_code, protocol_name=name, member_id=member_id)


def _join_error(request: Any, error_code: int, _message: str | None) -> Any:
    return JoinGroupResponse(error_code=error_code, protocol_name="", member_id=request.member_id)


def _response_of(request: Any) -> Any:
    return messages.response(request.api_key)


def _error(request: Any, error_code: int, _message: str | None) -> Any:
    return _response_of(request)(error_code=error_code)


def _commit_error(request: Any, error_code: int, _message: str | None) -> Any:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error_code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _fetch_error(request: Any, error_code: int, _message: str | None) -> Any:
    groups = [OffsetFetchResponseGroup(group_id=each.group_id, error_code=error_code) for each in request.groups]
    return OffsetFetchResponse(groups=groups) if groups else OffsetFetchResponse(error_code=error_code)


def _api(name: str, handle: Any, error: Any) -> Api:
    return Api(messages.by_name(f"{name}Request"), messages.by_name(f"{name}Response"), handle, error)


APIS: Final = (
    _api("JoinGroup", join, _join_error),
    _api("SyncGroup", sync, _error),
    _api("Heartbeat", heartbeat, _error),
    _api("LeaveGroup", leave, _error),
    _api("OffsetCommit", commit, _commit_error),
    _api("OffsetFetch", fetch, _fetch_error),
)
"""In the order of the protocol."""
