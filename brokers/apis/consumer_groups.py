"""JoinGroup (11), SyncGroup (14), Heartbeat (12), LeaveGroup (13): members of consumer groups.

The classic group protocol with the wire changes of KIP-62, KIP-345 (static members), KIP-394 (member ids are assigned
first), KIP-559 and KIP-814. The groups are in `brokers.coordinators.consumer_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mockraft.brokers.apis.api import READ_GROUP, AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.apis.offsets import find_group
from mockraft.brokers.coordinators import classic_members
from mockraft.brokers.coordinators.consumer_protocol import ConsumerGroup, Timer
from mockraft.brokers.coordinators.group_coordinator import AnyGroup
from mockraft.brokers.coordinators.members import CONSUMER, Joining
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.heartbeat_response import HeartbeatResponse
from mockraft.wire.messages.join_group_request import JoinGroupRequest
from mockraft.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest
from mockraft.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from mockraft.wire.messages.sync_group_request import SyncGroupRequest
from mockraft.wire.messages.sync_group_response import SyncGroupResponse

MEMBER_ID_FIRST_FROM = 4
PROTOCOL_TYPE_FROM = 7
PROTOCOL_IN_SYNC_FROM = 5
SEVERAL_MEMBERS_FROM = 3
SKIPS_ASSIGNMENT_FROM = 9
WITHOUT_MEMBER_ID: Final = frozenset(
    {
        error_codes.GROUP_MAX_SIZE_REACHED,
        error_codes.UNKNOWN_SERVER_ERROR,
        error_codes.NOT_COORDINATOR,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors of JoinGroup that leave the member's id out of the response."""


def join(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """Join the group and wait for the other members."""
    try:
        return _join(request, ctx)
    except ApiError as refused:
        member_id = "" if refused.error_code in WITHOUT_MEMBER_ID else request.member_id
        return _join_refused(refused.error_code, member_id, ctx.api_version)


def _join(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    name = request.group_instance_id or ctx.client_id
    member_id = request.member_id or f"{name}-{ctx.broker.rng.randbytes(16).hex()}"
    timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    joining = Joining(
        member_id,
        request.group_instance_id,
        request.session_timeout_ms,
        timeout_ms,
        request.protocol_type,
        protocols,
        ctx.client_id,
        f"/{ctx.client_address}",
    )
    if request.group_id:
        ctx.broker.groups.check_session(request.session_timeout_ms)
    try:
        group = find_group(ctx, request.group_id)
    except ApiError as refused:
        if refused.error_code == error_codes.GROUP_ID_NOT_FOUND:  # a share group
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL) from None
        raise
    if isinstance(group, ConsumerGroup) and group.snapshot.members:
        return _join_consumers(group, joining, request, ctx)
    if group is None or isinstance(group, ConsumerGroup):
        if request.member_id:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
        group = ctx.broker.groups.create_classic(request.group_id)
    if request.member_id:
        group.check_known(joining, ctx.now_ms)
    elif ctx.api_version >= MEMBER_ID_FIRST_FROM and request.group_instance_id is None:
        group.expect(joining, ctx.now_ms)
        return _join_refused(error_codes.MEMBER_ID_REQUIRED, member_id, ctx.api_version)
    waiting = group.join(joining, ctx.now_ms, can_skip=ctx.api_version >= SKIPS_ASSIGNMENT_FROM)

    def retry(_now_ms: int, _expired: bool) -> JoinGroupResponse | None:
        try:
            joined = waiting.result()
        except ApiError as refused:
            has_left = refused.error_code == error_codes.UNKNOWN_MEMBER_ID
            return _join_refused(refused.error_code, "" if has_left else member_id, ctx.api_version)
        if joined is None:
            return None
        return JoinGroupResponse(
            generation_id=joined.generation,
            protocol_type=group.protocol_type,
            protocol_name=joined.protocol,
            leader=joined.leader,
            skip_assignment=joined.skips,
            member_id=member_id,
            members=[
                JoinGroupResponseMember(member_id=each_id, group_instance_id=instance_id, metadata=metadata)
                for each_id, instance_id, metadata in joined.members
            ],
        )

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def _join_consumers(
    group: ConsumerGroup, joining: Joining, request: JoinGroupRequest, ctx: RequestContext
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """Join a group of the consumer protocol: the coordinator assigns, nobody leads."""
    if not request.member_id:
        joining = joining._replace(member_id=group.draw_member_id())
    needs_id = ctx.api_version >= MEMBER_ID_FIRST_FROM and request.group_instance_id is None
    try:
        classic_members.check_join(group, joining)
        if needs_id and not request.member_id:
            return _join_refused(error_codes.MEMBER_ID_REQUIRED, joining.member_id, ctx.api_version)
        joined, waiting = classic_members.join(group, joining, ctx.now_ms, is_new=not request.member_id)
    except ApiError as refused:  # Kafka throws here, and its answer has no member id
        return JoinGroupResponse(error_code=refused.error_code, protocol_name="")
    response = JoinGroupResponse(
        generation_id=joined.epoch, protocol_type=CONSUMER, protocol_name=joined.protocol, member_id=joined.member_id
    )
    return waiting.answer(lambda _: response, lambda refused: _join_refused(refused.error_code, "", ctx.api_version))


def sync(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """Return the member's assignment; the leader's request carries all assignments."""
    if ctx.api_version >= PROTOCOL_IN_SYNC_FROM and None in (request.protocol_type, request.protocol_name):
        raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
    group = _joined_group(ctx, request.group_id)
    if isinstance(group, ConsumerGroup):
        return _sync_consumers(group, request, ctx)
    assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
    agreed = (request.protocol_type, request.protocol_name)
    waiting = group.sync(
        request.member_id, request.generation_id, assignments, ctx.now_ms, agreed, request.group_instance_id
    )

    def retry(_now_ms: int, _expired: bool) -> SyncGroupResponse | None:
        assignment = waiting.result()
        if assignment is None:
            return None
        return SyncGroupResponse(assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol)

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def _sync_consumers(group: ConsumerGroup, request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse:
    member_id, agreed = request.member_id, (request.protocol_type, request.protocol_name)
    try:
        assignment, session_ms = classic_members.sync(
            group, member_id, request.group_instance_id, request.generation_id, agreed
        )
    except ApiError as refused:
        if refused.error_code == error_codes.REBALANCE_IN_PROGRESS:
            classic_members.expect_join(group, member_id, ctx.now_ms)
        raise
    group.stop_timer(Timer.SYNC, member_id)
    group.start_timer(Timer.SESSION, member_id, ctx.now_ms + session_ms)
    return SyncGroupResponse(
        assignment=assignment, protocol_type=request.protocol_type, protocol_name=request.protocol_name
    )


def heartbeat(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Renew the member's session. While the coordinator loads its log, nobody is refused."""
    try:
        group = _joined_group(ctx, request.group_id)
    except ApiError as refused:
        if refused.error_code == error_codes.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    if isinstance(group, ConsumerGroup):
        classic_members.heartbeat(
            group, request.member_id, request.group_instance_id, request.generation_id, ctx.now_ms
        )
    else:
        group.heartbeat(request.member_id, request.generation_id, ctx.now_ms, request.group_instance_id)
    return HeartbeatResponse()


def leave(request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse | Parked[LeaveGroupResponse]:
    """Remove members."""
    group = find_group(ctx, request.group_id)
    members = [(each.member_id, each.group_instance_id) for each in request.members]
    if ctx.api_version < SEVERAL_MEMBERS_FROM:
        members = [(request.member_id, None)]
    if isinstance(group, ConsumerGroup):
        codes, waiting = classic_members.leave(group, members)
        response = _left(members, codes, ctx)
        return response if waiting is None else waiting.answer(lambda _: response)
    codes = [error_codes.UNKNOWN_MEMBER_ID] * len(members) if group is None else group.leave(members, ctx.now_ms)
    return _left(members, codes, ctx)


def _left(members: Sequence[tuple[str, str | None]], codes: Sequence[int], ctx: RequestContext) -> LeaveGroupResponse:
    if ctx.api_version < SEVERAL_MEMBERS_FROM:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for (member_id, instance_id), code in zip(members, codes, strict=True)
        ]
    )


def _joined_group(ctx: RequestContext, group_id: str) -> AnyGroup:
    """Return the group of a member. Raises ApiError as `_find` does, or when there is no such group."""
    group = find_group(ctx, group_id)
    if group is None:
        raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
    return group


def _join_refused(error_code: int, member_id: str, version: int) -> JoinGroupResponse:
    name = None if version >= PROTOCOL_TYPE_FROM else ""
    return JoinGroupResponse(error_code=error_code, protocol_name=name, member_id=member_id)


def _join_error(request: JoinGroupRequest, error_code: int, _message: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error_code, protocol_name="", member_id=request.member_id)


APIS: Final[tuple[AnyApi, ...]] = (
    Api(JoinGroupRequest, JoinGroupResponse, join, _join_error, needs=(READ_GROUP,)),
    Api(SyncGroupRequest, SyncGroupResponse, sync, needs=(READ_GROUP,)),
    Api(HeartbeatRequest, HeartbeatResponse, heartbeat, needs=(READ_GROUP,)),
    Api(LeaveGroupRequest, LeaveGroupResponse, leave, needs=(READ_GROUP,)),
)
"""In the order of the protocol's message exchange."""
