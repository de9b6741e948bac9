"""JoinGroup (11), SyncGroup (14), Heartbeat (12), LeaveGroup (13), OffsetCommit (8), OffsetFetch (9).

The classic group protocol with the wire changes of KIP-62, KIP-345 (an instance id only names a member), KIP-394
(member ids are assigned first), KIP-559 and KIP-709 (several groups). The groups are in `brokers.consumer_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.apis.find_coordinator import check_coordinator
from mockraft.brokers.consumer_groups import Group, Joining, Offset
from mockraft.serving.parked import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.heartbeat_response import HeartbeatResponse
from mockraft.wire.messages.join_group_request import JoinGroupRequest
from mockraft.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest
from mockraft.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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
from mockraft.wire.messages.sync_group_request import SyncGroupRequest
from mockraft.wire.messages.sync_group_response import SyncGroupResponse

MEMBER_ID_FIRST_FROM = 4
PROTOCOL_TYPE_FROM = 7
SEVERAL_MEMBERS_FROM = 3
SEVERAL_GROUPS_FROM = 8
GROUP_ID_NOT_FOUND_FROM = 9
TOPIC_IDS_FROM = 10
METADATA_BYTES_MAX = 4096
"""Kafka's default of offset.metadata.max.bytes."""
NO_OFFSET = Offset(-1, -1, "")


def join(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """Join the group and wait for the other members."""
    group = _group(ctx, request.group_id)
    member_id = request.member_id
    if not member_id:
        member_id = f"{ctx.client_id or ''}-{ctx.broker.rng.randbytes(16).hex()}"
        if ctx.api_version >= MEMBER_ID_FIRST_FROM and request.group_instance_id is None:
            return _join_refused(error_codes.MEMBER_ID_REQUIRED, member_id, ctx.api_version)
    timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    joining = Joining(
        member_id,
        request.group_instance_id,
        request.session_timeout_ms,
        timeout_ms,
        request.protocol_type,
        protocols,
        ctx.client_id or "",
        f"/{ctx.client_address}",
    )
    try:
        waiting = group.join(joining, ctx.now_ms)
    except ApiError as refused:
        return _join_refused(refused.error_code, member_id, ctx.api_version)

    def retry(_now_ms: int, _expired: bool) -> JoinGroupResponse | None:
        try:
            joined = waiting.result()
        except ApiError as refused:
            return _join_refused(refused.error_code, member_id, ctx.api_version)
        if joined is None:
            return None
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

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def sync(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """Return the member's assignment; the leader's request carries all assignments."""
    group = _joined_group(ctx, request.group_id)
    assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
    waiting = group.sync(request.member_id, request.generation_id, assignments, ctx.now_ms)

    def retry(_now_ms: int, _expired: bool) -> SyncGroupResponse | None:
        assignment = waiting.result()
        if assignment is None:
            return None
        return SyncGroupResponse(assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol)

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def heartbeat(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Renew the member's session."""
    _joined_group(ctx, request.group_id).heartbeat(request.member_id, request.generation_id, ctx.now_ms)
    return HeartbeatResponse()


def leave(request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse:
    """Remove members."""
    group = _joined_group(ctx, request.group_id)
    if ctx.api_version < SEVERAL_MEMBERS_FROM:
        return LeaveGroupResponse(error_code=_left(group, request.member_id, None, ctx.now_ms))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=_left(group, each.member_id, each.group_instance_id, ctx.now_ms),
            )
            for each in request.members
        ]
    )


def commit(request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Commit offsets."""
    code = error_codes.NONE
    try:
        if request.generation_id_or_member_epoch >= 0 and _find(ctx, request.group_id) is None:
            is_new = ctx.api_version >= GROUP_ID_NOT_FOUND_FROM
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND if is_new else error_codes.ILLEGAL_GENERATION)
        group = _group(ctx, request.group_id)
        group.check_commit(request.member_id, request.generation_id_or_member_epoch, ctx.now_ms)
    except ApiError as refused:
        code, group = refused.error_code, Group()
    response = _commit_error(request, code, None)
    for topic, answers in zip(request.topics, response.topics, strict=True):
        name = _name_of(ctx, topic)
        for partition, answer in zip(topic.partitions, answers.partitions, strict=True):
            answer.error_code = code or _check_offset(ctx, name, partition)
            if answer.error_code == error_codes.NONE and name is not None:
                group.offsets[name, partition.partition_index] = Offset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata
                )
    return response


def fetch(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    """Return committed offsets; -1 for a partition without one."""
    if ctx.api_version >= SEVERAL_GROUPS_FROM:
        return OffsetFetchResponse(groups=[_fetched(ctx, group) for group in request.groups])
    offsets = _offsets(ctx, request.group_id)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=_partitions(OffsetFetchResponsePartition, partitions),
            )
            for name, partitions in _wanted(offsets, _by_name(request.topics))
        ]
    )


PartitionT = TypeVar("PartitionT", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)


def _partitions(kind: type[PartitionT], found: Sequence[tuple[int, Offset]]) -> list[PartitionT]:
    """Return these offsets by partition, in the class for one group or for several."""
    return [
        kind(partition_index=index, committed_offset=offset, committed_leader_epoch=epoch, metadata=metadata)
        for index, (offset, epoch, metadata) in found
    ]


def _fetched(ctx: RequestContext, requested: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    try:
        offsets = _offsets(ctx, requested.group_id)
    except ApiError as refused:
        return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=refused.error_code)
    named: dict[str, Sequence[int]] | None
    if ctx.api_version >= TOPIC_IDS_FROM and requested.topics is not None:
        named = {
            name: topic.partition_indexes for topic in requested.topics if (name := _name_of(ctx, topic)) is not None
        }
        unknown = [_unknown(topic) for topic in requested.topics if _name_of(ctx, topic) is None]
    else:
        named, unknown = _by_name(requested.topics), []
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=unknown
        + [
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if (topic := ctx.image.topics_by_name.get(name)) else bytes(16),
                partitions=_partitions(OffsetFetchResponsePartitions, partitions),
            )
            for name, partitions in _wanted(offsets, named)
        ],
    )


def _by_name(
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
) -> dict[str, Sequence[int]] | None:
    return None if topics is None else {topic.name: topic.partition_indexes for topic in topics}


def _name_of(ctx: RequestContext, topic: OffsetFetchRequestTopics | OffsetCommitRequestTopic) -> str | None:
    """Return the name of a topic given by name or, from version 10 on, by id; None when no topic has the id."""
    if ctx.api_version < TOPIC_IDS_FROM:
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


def _wanted(
    offsets: dict[tuple[str, int], Offset], named: dict[str, Sequence[int]] | None
) -> list[tuple[str, list[tuple[int, Offset]]]]:
    """Return (topic, [(partition, offset)]) for the requested topics; for all committed ones when `topics` is None."""
    requested: dict[str, list[int]] = {}
    if named is None:
        for name, index in offsets:
            requested.setdefault(name, []).append(index)
    else:
        requested = {name: list(indexes) for name, indexes in named.items()}
    return [(name, [(at, offsets.get((name, at), NO_OFFSET)) for at in indexes]) for name, indexes in requested.items()]


def _check_offset(ctx: RequestContext, topic: str | None, partition: OffsetCommitRequestPartition) -> int:
    if topic is None:
        return error_codes.UNKNOWN_TOPIC_ID
    found = ctx.image.topics_by_name.get(topic)
    if found is None or partition.partition_index not in found.partitions:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if len((partition.committed_metadata or "").encode()) > METADATA_BYTES_MAX:
        return error_codes.OFFSET_METADATA_TOO_LARGE
    return error_codes.NONE


def _left(group: Group, member_id: str, instance_id: str | None, now_ms: int) -> int:
    try:
        group.leave(member_id, instance_id, now_ms)
    except ApiError as refused:
        return refused.error_code
    return error_codes.NONE


def _find(ctx: RequestContext, group_id: str) -> Group | None:
    """Return the group if there is one. Raises ApiError when another broker coordinates it."""
    if not group_id:
        raise ApiError(error_codes.INVALID_GROUP_ID)
    check_coordinator(ctx, group_id)
    return ctx.broker.groups.groups.get(group_id)


def _group(ctx: RequestContext, group_id: str) -> Group:
    """Return the group, creating it if needed. Raises ApiError as `_find` does, or when it cannot be created."""
    return _find(ctx, group_id) or ctx.broker.groups.find(group_id)


def _joined_group(ctx: RequestContext, group_id: str) -> Group:
    """Return the group of a member. Raises ApiError as `_find` does, or when there is no such group."""
    group = _find(ctx, group_id)
    if group is None:
        raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
    return group


def _offsets(ctx: RequestContext, group_id: str) -> dict[tuple[str, int], Offset]:
    group = _find(ctx, group_id)
    return {} if group is None else group.offsets


def _join_refused(error_code: int, member_id: str, version: int) -> JoinGroupResponse:
    name = None if version >= PROTOCOL_TYPE_FROM else ""
    return JoinGroupResponse(error_code=error_code, protocol_name=name, member_id=member_id)


def _join_error(request: JoinGroupRequest, error_code: int, _message: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error_code, protocol_name="", member_id=request.member_id)


def _commit_error(request: OffsetCommitRequest, error_code: int, _message: str | None) -> OffsetCommitResponse:
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


def _fetch_error(request: OffsetFetchRequest, error_code: int, _message: str | None) -> OffsetFetchResponse:
    groups = [OffsetFetchResponseGroup(group_id=each.group_id, error_code=error_code) for each in request.groups]
    return OffsetFetchResponse(groups=groups) if groups else OffsetFetchResponse(error_code=error_code)


APIS: Final[tuple[AnyApi, ...]] = (
    Api(JoinGroupRequest, JoinGroupResponse, join, _join_error),
    Api(SyncGroupRequest, SyncGroupResponse, sync),
    Api(HeartbeatRequest, HeartbeatResponse, heartbeat),
    Api(LeaveGroupRequest, LeaveGroupResponse, leave),
    Api(OffsetCommitRequest, OffsetCommitResponse, commit, _commit_error),
    Api(OffsetFetchRequest, OffsetFetchResponse, fetch, _fetch_error),
)
"""In the order of the protocol's message exchange."""
