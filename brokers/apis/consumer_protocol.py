"""ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69): groups of the consumer protocol, KIP-848.

Version 1 of the heartbeat has regular expressions, and members that draw their ids themselves (KIP-1082); version 1 of
the description tells which protocol a member uses (KIP-1099). Both are refused while group.version is 0. The groups are
in `brokers.coordinators.consumer_protocol`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeVar

from mockraft.brokers.apis import operations
from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext, invalid
from mockraft.brokers.apis.metadata import may_describe
from mockraft.brokers.apis.offsets import find_group
from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.brokers.coordinators.consumer_protocol import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    ConsumerGroup,
    Followed,
    MemberHeartbeat,
    ModernGroup,
)
from mockraft.brokers.coordinators.group_snapshot import GroupMember
from mockraft.brokers.coordinators.reconciliation import Owned
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.releases import Behaviour
from mockraft.wire import error_codes
from mockraft.wire.messages import consumer_group_describe_response as described_as
from mockraft.wire.messages import consumer_group_heartbeat_response as answered_as
from mockraft.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from mockraft.wire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from mockraft.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from mockraft.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

MEMBER_ID_FROM = 1
"""The first version of the heartbeat whose members draw their ids themselves."""
OF_CLASSIC, OF_CONSUMER = 0, 1
T = TypeVar("T")


def heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: RequestContext
) -> ConsumerGroupHeartbeatResponse | Parked[ConsumerGroupHeartbeatResponse]:
    """Join, stay in or leave a group."""
    _check_enabled(ctx)
    ctx.check(AclOperation.READ, ResourceType.GROUP, request.group_id)
    if not all(may_describe(ctx, name) for name in request.subscribed_topic_names or ()):
        raise ApiError(error_codes.TOPIC_AUTHORIZATION_FAILED)
    _check(request, ctx)
    owned = None
    if request.topic_partitions is not None:
        owned = {each.topic_id: frozenset(each.partitions) for each in request.topic_partitions}
    beat = MemberHeartbeat(
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
        request.subscribed_topic_regex,
        request.server_assignor,
        owned,
        ctx.client_id,
        f"/{ctx.client_address}",
        functools.partial(may_describe, ctx),
    )
    followed, waiting = ctx.broker.groups.heartbeat(request.group_id, beat)
    kinds = (ConsumerGroupHeartbeatResponse, answered_as.Assignment, answered_as.TopicPartitions)
    return waiting.answer(lambda _: heartbeat_answer(followed, *kinds))


def describe(request: ConsumerGroupDescribeRequest, ctx: RequestContext) -> ConsumerGroupDescribeResponse:
    """Describe groups with their members."""
    _check_enabled(ctx)
    groups = [_described(ctx, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        operations.add_to_groups(ctx, groups)
    return ConsumerGroupDescribeResponse(groups=groups)


def _check_enabled(ctx: RequestContext) -> None:
    if not ctx.image.has(Behaviour.CONSUMER_PROTOCOL):
        ctx.remark = "group.version is 0: this cluster has no groups of the consumer protocol"
        raise ApiError(error_codes.UNSUPPORTED_VERSION)


def _check(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> None:
    """Refuse what no group takes (throwIfConsumerGroupHeartbeatRequestIsInvalid)."""
    epoch = request.member_epoch
    needs_id = ctx.api_version >= MEMBER_ID_FROM or epoch > JOINS or epoch == LEAVES
    check_names(
        ("MemberId", request.member_id if needs_id else None),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    if epoch == JOINS:
        if request.rebalance_timeout_ms == -1:
            raise invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        raise invalid("InstanceId can't be null.")
    elif epoch < LEAVES_FOR_A_WHILE:
        raise invalid("MemberEpoch is invalid.")
    supported = ctx.broker.groups.assignors
    if request.server_assignor is not None and request.server_assignor not in supported:
        text = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(supported)}."
        )
        raise ApiError(error_codes.UNSUPPORTED_ASSIGNOR, text)


def check_names(*names: tuple[str, str | None]) -> None:
    """Refuse names that are given, but empty."""
    for field, value in names:
        if value is not None and not value.strip():
            raise invalid(f"{field} can't be empty.")


def heartbeat_answer(
    followed: Followed, response: Callable[..., T], assigned: Callable[..., object], topic: Callable[..., object]
) -> T:
    """Return the response to the heartbeat of a member, of these classes."""
    assignment = None
    if followed.assigned is not None:
        partitions = [
            topic(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in followed.assigned.items()
        ]
        assignment = assigned(topic_partitions=partitions)
    return response(
        member_id=followed.member_id,
        member_epoch=followed.epoch,
        heartbeat_interval_ms=followed.heartbeat_interval_ms,
        assignment=assignment,
    )


def _described(ctx: RequestContext, group_id: str) -> DescribedGroup:
    try:
        ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = find_group(ctx, group_id)
        if not isinstance(group, ConsumerGroup):
            kind = "not found" if group is None else "is not a consumer group"
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} {kind}.")
        check_shown(ctx, group)
    except ApiError as refused:
        return DescribedGroup(group_id=group_id, error_code=refused.error_code, error_message=refused.message)
    snapshot = group.snapshot
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=snapshot.epoch,
        assignment_epoch=snapshot.assignment_epoch,
        assignor_name=group.assignor,
        members=[
            _member(ctx, member_id, member, snapshot.targets.get(member_id, {}))
            for member_id, member in snapshot.members.items()
        ],
    )


def check_shown(ctx: RequestContext, group: ModernGroup) -> None:
    """Refuse to show a group with partitions of topics that the client may not describe."""
    topics, snapshot = ctx.image.topics, group.snapshot
    shown = {topic_id for topic_id, _ in snapshot.taken}.union(*snapshot.targets.values())
    if not all(may_describe(ctx, topics[topic_id].name) for topic_id in shown if topic_id in topics):
        text = "The group has described topic(s) that the client is not authorized to describe."
        raise ApiError(error_codes.TOPIC_AUTHORIZATION_FAILED, text)


def _member(ctx: RequestContext, member_id: str, member: GroupMember, target: Assignment) -> described_as.Member:
    described, standing = member
    owned: dict[bytes, set[int]] = {}
    for each in (standing.assigned, standing.revoking):
        for topic_id, epochs in each.items():
            owned.setdefault(topic_id, set()).update(epochs)
    return described_as.Member(
        member_id=member_id,
        instance_id=described.instance_id,
        rack_id=described.rack_id,
        member_epoch=standing.epoch,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topics),
        subscribed_topic_regex=described.pattern,
        assignment=_partitions(ctx, owned),
        target_assignment=_partitions(ctx, target),
        member_type=OF_CONSUMER if described.classic is None else OF_CLASSIC,
    )


def _partitions(ctx: RequestContext, owned: Assignment | Owned | dict[bytes, set[int]]) -> described_as.Assignment:
    return described_as.Assignment(
        topic_partitions=[
            described_as.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for topic_id, name, indexes in named_partitions(ctx, owned)
        ]
    )


def named_partitions(
    ctx: RequestContext, owned: Assignment | Owned | dict[bytes, set[int]]
) -> list[tuple[bytes, str, list[int]]]:
    """Return partitions with the names of their topics; those of deleted topics are left out."""
    topics = ctx.image.topics
    return [(key, topics[key].name, sorted(indexes)) for key, indexes in owned.items() if key in topics]


_describe_error = error_for_each(ConsumerGroupDescribeResponse, Items("group_ids", "groups", ("group_id",)))


APIS: Final[tuple[AnyApi, ...]] = (
    Api(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, heartbeat),
    Api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, describe, _describe_error),
)
