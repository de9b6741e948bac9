"""ListGroups (16), DescribeGroups (15), DeleteGroups (42), OffsetDelete (47): groups as administrators see them.

KIP-222, KIP-229, KIP-496 (offsets are deleted only of topics to which nobody subscribes), KIP-518 and KIP-848 (filters
by state and type). DescribeGroups is for groups of the classic protocol, ConsumerGroupDescribe for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mockraft.brokers.apis import operations, share_offsets
from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Need, Parked, RequestContext
from mockraft.brokers.apis.leaders import partition_error
from mockraft.brokers.coordinators.consumer_groups import Group
from mockraft.brokers.coordinators.consumer_protocol import ConsumerGroup
from mockraft.brokers.coordinators.group_coordinator import AnyGroup
from mockraft.brokers.coordinators.members import GroupState
from mockraft.brokers.coordinators.share_groups import SHARE, ShareGroup
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.describe_groups_response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from mockraft.wire.messages.list_groups_request import ListGroupsRequest
from mockraft.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse
from mockraft.wire.messages.offset_delete_request import OffsetDeleteRequest
from mockraft.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

CLASSIC, NEW = "classic", "consumer"
DEAD = "Dead"
NOT_FOUND_FROM = 6
"""The first version of DescribeGroups in which an unknown group is an error."""


def list_groups(request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse:
    """List the groups that this broker coordinates and the client may describe; an empty filter lets all pass."""
    if ctx.broker.groups.log.is_loading:
        raise ApiError(error_codes.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    sees_all = ctx.may(AclOperation.DESCRIBE, ResourceType.CLUSTER)
    types = {group_type.lower() for group_type in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=_type(group),
            )
            for group_id, group in ctx.broker.groups.groups.groups.items()
            if (not states or group.state.value.lower() in states)
            and (not types or _type(group) in types)
            and (sees_all or ctx.may(AclOperation.DESCRIBE, ResourceType.GROUP, group_id))
        ]
    )


def describe(request: DescribeGroupsRequest, ctx: RequestContext) -> DescribeGroupsResponse:
    """Describe groups with their members."""
    groups = [_described(ctx, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        operations.add_to_groups(ctx, groups)
    return DescribeGroupsResponse(groups=groups)


def delete(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse | Parked[DeleteGroupsResponse]:
    """Delete groups without members, with their offsets."""
    results: dict[str, DeletableGroupResult] = {}
    waiting: dict[str, Waiting[bool]] = {}
    forgetting: dict[str, Callable[[bool], dict[bytes, int] | None]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        results[group_id] = DeletableGroupResult(group_id=group_id)
        try:
            ctx.check(AclOperation.DELETE, ResourceType.GROUP, group_id)
            group = _any(ctx, group_id)
            group.check_delete()
            if isinstance(group, ShareGroup):
                forgetting[group_id] = share_offsets.forget(ctx, group, ctx.image.topics)
            else:
                waiting[group_id] = ctx.broker.groups.delete(group_id)
        except ApiError as refused:
            results[group_id].error_code = refused.error_code

    def retry(_now_ms: int, expired: bool) -> DeleteGroupsResponse | None:
        for group_id, errors_of in list(forgetting.items()):
            if (errors := errors_of(expired)) is None:
                return None
            del forgetting[group_id]
            results[group_id].error_code = max(errors.values(), default=error_codes.NONE)
            try:
                if not results[group_id].error_code:
                    _any(ctx, group_id).check_delete()
                    waiting[group_id] = ctx.broker.groups.delete(group_id)
            except ApiError as refused:
                results[group_id].error_code = refused.error_code
        for group_id, result in list(waiting.items()):
            try:
                if result.result() is None:
                    return None
            except ApiError as refused:
                results[group_id].error_code = refused.error_code
            del waiting[group_id]
        return DeleteGroupsResponse(results=list(results.values()))

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def delete_offsets(
    request: OffsetDeleteRequest, ctx: RequestContext
) -> OffsetDeleteResponse | Parked[OffsetDeleteResponse]:
    """Delete committed offsets of a group."""
    if not request.group_id:
        raise ApiError(error_codes.INVALID_GROUP_ID)
    group = ctx.broker.groups.find(request.group_id)
    if group is None:
        raise ApiError(error_codes.GROUP_ID_NOT_FOUND)
    group.check_delete_offsets()
    found = [
        (partition_error(ctx, AclOperation.READ, topic.name, each.partition_index), topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    # As in Kafka refused partitions come first, and each topic once.
    found.sort(key=lambda each: each[0] == error_codes.NONE)
    answers: dict[str, OffsetDeleteResponseTopic] = {}
    deleted = []
    for code, name, index in found:
        if code == error_codes.NONE and group.is_subscribed_to(name):
            code = error_codes.GROUP_SUBSCRIBED_TO_TOPIC
        topic = answers.setdefault(name, OffsetDeleteResponseTopic(name=name))
        topic.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        is_pending = ctx.broker.groups.is_unstable(request.group_id, (name, index))
        if code == error_codes.NONE and ((name, index) in group.offsets or is_pending):
            deleted.append((name, index))
    response = OffsetDeleteResponse(topics=list(answers.values()))
    return ctx.broker.groups.delete_offsets(request.group_id, deleted).answer(lambda _: response)


def _described(ctx: RequestContext, group_id: str) -> DescribedGroup:
    try:
        ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = _any(ctx, group_id)
        if not isinstance(group, Group):
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    except ApiError as refused:
        if refused.error_code != error_codes.GROUP_ID_NOT_FOUND:
            return DescribedGroup(group_id=group_id, error_code=refused.error_code)
        if ctx.api_version < NOT_FOUND_FROM:
            return DescribedGroup(group_id=group_id, group_state=DEAD)
        return DescribedGroup(
            group_id=group_id, group_state=DEAD, error_code=refused.error_code, error_message=refused.message
        )
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member_id,
                group_instance_id=member.joining.instance_id,
                client_id=member.joining.client_id,
                client_host=member.joining.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member_id, member in group.members.items()
        ],
    )


def _type(group: AnyGroup | ShareGroup) -> str:
    if isinstance(group, ShareGroup):
        return SHARE
    return NEW if isinstance(group, ConsumerGroup) else CLASSIC


def _any(ctx: RequestContext, group_id: str) -> AnyGroup | ShareGroup:
    """Return the group; its id may be empty, as groups of old clients. Raises ApiError."""
    group = ctx.broker.groups.find_any(group_id)
    if group is None:
        raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return group


_DELETE_GROUP = Need(AclOperation.DELETE, ResourceType.GROUP, "group_id")
_describe_error = error_for_each(DescribeGroupsResponse, Items("groups", "groups", ("group_id",)))
_delete_error = error_for_each(DeleteGroupsResponse, Items("groups_names", "results", ("group_id",)))


APIS: Final[tuple[AnyApi, ...]] = (
    Api(ListGroupsRequest, ListGroupsResponse, list_groups),
    Api(DescribeGroupsRequest, DescribeGroupsResponse, describe, _describe_error),
    Api(DeleteGroupsRequest, DeleteGroupsResponse, delete, _delete_error),
    Api(OffsetDeleteRequest, OffsetDeleteResponse, delete_offsets, needs=(_DELETE_GROUP,)),
)
