"""ShareGroupHeartbeat (76), ShareGroupDescribe (77): share groups, KIP-932. Both are refused while share.version is 0.

The groups are in `brokers.coordinators.share_groups`, the records that their members acquire in `brokers.shares`.
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis import operations
from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext, invalid
from mockraft.brokers.apis.consumer_protocol import check_names, check_shown, heartbeat_answer, named_partitions
from mockraft.brokers.apis.metadata import may_describe
from mockraft.brokers.coordinators.consumer_protocol import JOINS, LEAVES, MemberHeartbeat
from mockraft.brokers.coordinators.group_snapshot import GroupMember
from mockraft.brokers.coordinators.share_groups import ShareGroup
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.releases import Behaviour
from mockraft.wire import error_codes
from mockraft.wire.messages import share_group_describe_response as described_as
from mockraft.wire.messages import share_group_heartbeat_response as answered_as
from mockraft.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from mockraft.wire.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from mockraft.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from mockraft.wire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse

MEMBER_ID_MAX: Final = 36


def heartbeat(
    request: ShareGroupHeartbeatRequest, ctx: RequestContext
) -> ShareGroupHeartbeatResponse | Parked[ShareGroupHeartbeatResponse]:
    """Join, stay in or leave a group."""
    check_enabled(ctx)
    ctx.check(AclOperation.READ, ResourceType.GROUP, request.group_id)
    topics = request.subscribed_topic_names
    if not all(may_describe(ctx, name) for name in topics or ()):
        raise ApiError(error_codes.TOPIC_AUTHORIZATION_FAILED)
    check_member_id(request.member_id)
    check_names(("GroupId", request.group_id), ("RackId", request.rack_id))
    if request.member_epoch == JOINS and not topics:
        raise invalid("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVES:
        raise invalid("MemberEpoch is invalid.")
    beat = MemberHeartbeat(
        request.member_id,
        request.member_epoch,
        rack_id=request.rack_id,
        # Nothing is revoked: members have no time for that, and need not say what they have.
        rebalance_timeout_ms=0,
        owned={},
        topics=None if topics is None else frozenset(topics),
        client_id=ctx.client_id,
        client_host=f"/{ctx.client_address}",
    )
    followed, waiting = ctx.broker.groups.share_heartbeat(request.group_id, beat)
    kinds = (ShareGroupHeartbeatResponse, answered_as.Assignment, answered_as.TopicPartitions)
    return waiting.answer(lambda _: heartbeat_answer(followed, *kinds))


def describe(request: ShareGroupDescribeRequest, ctx: RequestContext) -> ShareGroupDescribeResponse:
    """Describe groups with their members."""
    check_enabled(ctx)
    groups = [_described(ctx, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        operations.add_to_groups(ctx, groups)
    return ShareGroupDescribeResponse(groups=groups)


def check_enabled(ctx: RequestContext) -> None:
    """Raise ApiError while the cluster has no share groups."""
    if not ctx.image.has(Behaviour.SHARE_GROUPS):
        ctx.remark = "share.version is 0: this cluster has no share groups"
        raise ApiError(error_codes.UNSUPPORTED_VERSION)


def check_member_id(member_id: str) -> None:
    """Raise ApiError for an id that no member has."""
    if not 0 < len(member_id) <= MEMBER_ID_MAX:
        raise ApiError(error_codes.INVALID_REQUEST)


def find_share_group(ctx: RequestContext, group_id: str) -> ShareGroup:
    """Return a share group. Raises ApiError, also when another broker coordinates it."""
    group = ctx.broker.groups.find_any(group_id)
    if not isinstance(group, ShareGroup):
        kind = "not found" if group is None else "is not a share group"
        raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} {kind}.")
    return group


def _described(ctx: RequestContext, group_id: str) -> DescribedGroup:
    try:
        if not group_id:
            raise ApiError(error_codes.INVALID_GROUP_ID)
        ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = find_share_group(ctx, group_id)
        check_shown(ctx, group)
    except ApiError as refused:
        return DescribedGroup(group_id=group_id, error_code=refused.error_code, error_message=refused.message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.snapshot.epoch,
        assignment_epoch=group.snapshot.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(ctx, member_id, member) for member_id, member in group.snapshot.members.items()],
    )


def _member(ctx: RequestContext, member_id: str, member: GroupMember) -> described_as.Member:
    described, standing = member
    return described_as.Member(
        member_id=member_id,
        rack_id=described.rack_id,
        member_epoch=standing.epoch,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topics),
        assignment=described_as.Assignment(
            topic_partitions=[
                described_as.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
                for topic_id, name, indexes in named_partitions(ctx, standing.assigned)
            ]
        ),
    )


_describe_error = error_for_each(ShareGroupDescribeResponse, Items("group_ids", "groups", ("group_id",)))


APIS: Final[tuple[AnyApi, ...]] = (
    Api(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, heartbeat),
    Api(ShareGroupDescribeRequest, ShareGroupDescribeResponse, describe, _describe_error),
)
