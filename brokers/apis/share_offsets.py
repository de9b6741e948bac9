"""DescribeShareGroupOffsets (90), AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92): KIP-932, KIP-1226 (lag).

The group's coordinator asks the leaders of the partitions, which have the state, in the APIs that Kafka's coordinators
use among themselves: InitializeShareGroupState (83), DeleteShareGroupState (86), ReadShareGroupStateSummary (87). Here
a leader answers them for its partitions, and a coordinator of share state, which Kafka has besides, does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Need, Parked, RequestContext
from mockraft.brokers.apis.leaders import partition_error
from mockraft.brokers.apis.list_offsets import LATEST
from mockraft.brokers.apis.metadata import may_describe
from mockraft.brokers.apis.share_groups import check_enabled, find_share_group
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.config import REQUEST_TIMEOUT_MS
from mockraft.brokers.coordinators.share_groups import ShareGroup
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.partition import NO_EPOCH
from mockraft.brokers.shares.leaders import Keys
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message
from mockraft.wire.messages import alter_share_group_offsets_response as altered_as
from mockraft.wire.messages import delete_share_group_offsets_response as deleted_as
from mockraft.wire.messages import delete_share_group_state_request as deleting
from mockraft.wire.messages import describe_share_group_offsets_response as described_as
from mockraft.wire.messages import initialize_share_group_state_request as initializing
from mockraft.wire.messages import read_share_group_state_summary_request as reading
from mockraft.wire.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from mockraft.wire.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from mockraft.wire.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from mockraft.wire.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from mockraft.wire.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from mockraft.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from mockraft.wire.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from mockraft.wire.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest

ResponseT = TypeVar("ResponseT", bound=Message)
KeyT = TypeVar("KeyT")
TopicT = TypeVar("TopicT")
Answer: TypeAlias = (
    altered_as.AlterShareGroupOffsetsResponsePartition
    | deleted_as.DeleteShareGroupOffsetsResponseTopic
    | described_as.DescribeShareGroupOffsetsResponsePartition
)
NO_OFFSET: Final = -1
_STATES: Final = (Items("topics", "results", ("topic_id",)), Items("partitions", "partitions", ("partition",)))


def describe(
    request: DescribeShareGroupOffsetsRequest, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponse | Parked[DescribeShareGroupOffsetsResponse]:
    """Return where groups are in partitions; without topics, in all to which they have subscribed."""
    check_enabled(ctx)
    described = [_Described(ctx, each) for each in request.groups]
    response = DescribeShareGroupOffsetsResponse(groups=[each.answer for each in described])
    return _when(lambda _: all(each.is_known() for each in described), response, ctx)


def alter(
    request: AlterShareGroupOffsetsRequest, ctx: RequestContext
) -> AlterShareGroupOffsetsResponse | Parked[AlterShareGroupOffsetsResponse]:
    """Let a group without members begin at other offsets."""
    group = _idle_group(ctx, request.group_id, AclOperation.READ, may_create=True)
    response = AlterShareGroupOffsetsResponse()
    offsets: dict[ReplicaKey, int] = {}
    pending: dict[ReplicaKey, altered_as.AlterShareGroupOffsetsResponsePartition] = {}
    for topic in request.topics:
        known = ctx.image.topics_by_name.get(topic.topic_name)
        answer = altered_as.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
        answer.topic_id = bytes(16) if known is None else known.topic_id
        response.responses.append(answer)
        for partition in topic.partitions:
            index = partition.partition_index
            code = partition_error(ctx, AclOperation.READ, topic.topic_name, index)
            altered = altered_as.AlterShareGroupOffsetsResponsePartition(partition_index=index)
            _refuse_with(altered, code)
            answer.partitions.append(altered)
            if code == error_codes.NONE:
                offsets[answer.topic_id, index] = partition.start_offset
                pending[answer.topic_id, index] = altered
    group.partitions |= offsets.keys()

    def make(keys: Keys) -> InitializeShareGroupStateRequest:
        topics = [
            initializing.InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    initializing.PartitionData(partition=each, start_offset=offsets[topic_id, each]) for each in indexes
                ],
            )
            for topic_id, indexes in keys.items()
        ]
        return InitializeShareGroupStateRequest(group_id=request.group_id, topics=topics)

    asked = ctx.broker.share_leaders.ask(offsets, make)
    return _when(lambda expired: _settle(pending, _errors(asked, offsets, expired)), response, ctx)


def delete(
    request: DeleteShareGroupOffsetsRequest, ctx: RequestContext
) -> DeleteShareGroupOffsetsResponse | Parked[DeleteShareGroupOffsetsResponse]:
    """Let a group without members forget topics."""
    group = _idle_group(ctx, request.group_id, AclOperation.DELETE)
    response = DeleteShareGroupOffsetsResponse()
    pending: dict[bytes, deleted_as.DeleteShareGroupOffsetsResponseTopic] = {}
    for topic in request.topics:
        known = ctx.image.topics_by_name.get(topic.topic_name)
        code = partition_error(ctx, AclOperation.READ, topic.topic_name, 0)
        answer = deleted_as.DeleteShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
        answer.topic_id = bytes(16) if known is None else known.topic_id
        _refuse_with(answer, code)
        response.responses.append(answer)
        if code == error_codes.NONE:
            pending[answer.topic_id] = answer
    forgetting = forget(ctx, group, pending)
    return _when(lambda expired: _settle(pending, forgetting(expired)), response, ctx)


def forget(
    ctx: RequestContext, group: ShareGroup, topic_ids: Iterable[bytes]
) -> Callable[[bool], dict[bytes, int] | None]:
    """Let the leaders delete a group's state of topics; the result returns the topics' errors, None before the end."""
    topics = ctx.image.topics.keys() & topic_ids
    forgotten = frozenset(key for key in group.partitions if key[0] in topics)

    def make(keys: Keys) -> DeleteShareGroupStateRequest:
        topics = _named(keys, deleting.DeleteStateData, deleting.PartitionData)
        return DeleteShareGroupStateRequest(group_id=group.group_id, topics=topics)

    asked = ctx.broker.share_leaders.ask(forgotten, make)

    def errors(expired: bool) -> dict[bytes, int] | None:
        if (found := _errors(asked, forgotten, expired)) is None:
            return None
        group.partitions -= {key for key, code in found.items() if code == error_codes.NONE}
        return {key[0]: code for key, code in sorted(found.items(), key=lambda each: each[1])}

    return errors


class _Described:
    """The answer for one group, once the leaders of its partitions have answered."""

    def __init__(self, ctx: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup) -> None:
        self.answer = described_as.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
        self._partitions: dict[ReplicaKey, described_as.DescribeShareGroupOffsetsResponsePartition] = {}
        self._ids: dict[str, bytes] = {}
        try:
            ctx.check(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id)
            group = ctx.broker.groups.find_any(asked.group_id)
        except ApiError as refused:
            self.answer.error_code, self.answer.error_message = refused.error_code, refused.message
        else:
            self._ask(ctx, asked, group.partitions if isinstance(group, ShareGroup) else frozenset())

    def _ask(
        self, ctx: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup, known: frozenset[ReplicaKey]
    ) -> None:
        named: dict[str, list[int]] = {}
        if asked.topics is not None:
            named = {topic.topic_name: topic.partitions for topic in asked.topics}
        else:
            for topic_id, index in sorted(known):
                if topic_id in ctx.image.topics and may_describe(ctx, name := ctx.image.topics[topic_id].name):
                    named.setdefault(name, []).append(index)
        for name, indexes in named.items():
            topic = ctx.image.topics_by_name.get(name)
            topic_id = bytes(16) if topic is None else topic.topic_id
            code = error_codes.NONE if may_describe(ctx, name) else error_codes.TOPIC_AUTHORIZATION_FAILED
            answers = [
                described_as.DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
                for index in indexes
            ]
            for each in answers:
                _refuse_with(each, code)
            self.answer.topics.append(
                described_as.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name, topic_id=topic_id, partitions=answers
                )
            )
            if code == error_codes.NONE:
                keyed = {(topic_id, each.partition_index): each for each in answers}
                self._partitions.update({key: each for key, each in keyed.items() if key in known})
                self._ids[name] = topic_id
        names = {topic_id: name for name, topic_id in self._ids.items()}

        def states(keys: Keys) -> ReadShareGroupStateSummaryRequest:
            topics = _named(keys, reading.ReadStateSummaryData, reading.PartitionData)
            return ReadShareGroupStateSummaryRequest(group_id=asked.group_id, topics=topics)

        def ends(keys: Keys) -> ListOffsetsRequest:
            topics = [
                ListOffsetsTopic(
                    name=names[topic_id],
                    partitions=[ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in indexes],
                )
                for topic_id, indexes in keys.items()
            ]
            return ListOffsetsRequest(topics=topics)

        self._states = ctx.broker.share_leaders.ask(self._partitions, states)
        self._ends = ctx.broker.share_leaders.ask(self._partitions, ends)

    def is_known(self) -> bool:
        """Return True once the offsets are in the answer."""
        if not self._partitions:
            return True
        states, ends = self._states.result(), self._ends.result()
        if states is None or ends is None:
            return False
        end_offsets = {
            (self._ids[topic.name], each.partition_index): each.offset
            for response in ends
            for topic in response.topics
            for each in topic.partitions
        }
        for response in states:
            for topic in response.results:
                for each in topic.partitions:
                    answer, end_offset = self._partitions[key := (topic.topic_id, each.partition)], end_offsets.get(key)
                    answer.start_offset, answer.leader_epoch = each.start_offset, each.leader_epoch
                    if end_offset is not None and each.start_offset != NO_OFFSET:
                        answer.lag = end_offset - each.start_offset - each.delivery_complete_count
        return True


def _idle_group(ctx: RequestContext, group_id: str, operation: AclOperation, *, may_create: bool = False) -> ShareGroup:
    """Return a group without members, perhaps a new one. Raises ApiError."""
    check_enabled(ctx)
    ctx.check(operation, ResourceType.GROUP, group_id)
    if not group_id:
        raise ApiError(error_codes.INVALID_GROUP_ID, error_codes.message(error_codes.INVALID_GROUP_ID))
    if may_create and ctx.broker.groups.find_any(group_id) is None:
        ctx.broker.groups.create_share_group(group_id)
    group = find_share_group(ctx, group_id)
    if group.snapshot.members:
        raise ApiError(error_codes.NON_EMPTY_GROUP, error_codes.message(error_codes.NON_EMPTY_GROUP))
    return group


def _errors(asked: Waiting[list[Any]], keys: Iterable[ReplicaKey], expired: bool) -> dict[ReplicaKey, int] | None:
    """Return the error of each partition, its leader's or that the leader has not answered; None before the end."""
    responses = asked.result()
    if responses is None and not expired:
        return None
    codes = dict.fromkeys(keys, error_codes.COORDINATOR_NOT_AVAILABLE)
    for topic in (topic for response in responses or () for topic in response.results):
        codes.update(((topic.topic_id, each.partition), each.error_code) for each in topic.partitions)
    return codes


def _settle(pending: Mapping[KeyT, Answer], errors: Mapping[KeyT, int] | None) -> bool:
    """Put errors into the answers that wait for them; return True if there are answers."""
    for key, code in (errors or {}).items():
        _refuse_with(pending[key], code)
    return errors is not None


def _named(keys: Keys, topic: Callable[..., TopicT], partition: Callable[..., object]) -> list[TopicT]:
    """Return the topics of a request that names partitions."""
    return [
        topic(topic_id=topic_id, partitions=[partition(partition=each) for each in indexes])
        for topic_id, indexes in keys.items()
    ]


def _refuse_with(answer: Answer, code: int) -> None:
    answer.error_code, answer.error_message = code, error_codes.message(code) if code else None


def _when(is_done: Callable[[bool], bool], response: ResponseT, ctx: RequestContext) -> ResponseT | Parked[ResponseT]:
    """Return the response once the leaders have answered, or the time is over."""
    if is_done(False):
        return response
    timeout_ms = int(ctx.broker.config.properties.get(*REQUEST_TIMEOUT_MS))
    return Parked(ctx.now_ms + timeout_ms, lambda _, expired: response if is_done(expired) or expired else None)


# The leaders.


Act = Callable[[RequestContext, str, ReplicaKey, int], Mapping[str, int]]
"""Called with the group, the partition and the start offset of the request; returns fields of the answer."""


def _on_state(name: str, act: Act) -> AnyApi:
    """Return an API of the state of share groups."""
    request_class, response_class = messages.by_name(f"{name}Request"), messages.by_name(f"{name}Response")
    form = error_for_each(response_class, *_STATES)

    def handle(request: Any, ctx: RequestContext) -> Message:
        response: Any = form(request, error_codes.NONE, None)
        for topic, answers in zip(request.topics, response.results, strict=True):
            for partition, answer in zip(topic.partitions, answers.partitions, strict=True):
                key, start_offset = (topic.topic_id, partition.partition), getattr(partition, "start_offset", NO_OFFSET)
                try:
                    ctx.broker.replicas.find(key).check_epoch(NO_EPOCH, only_leader=True)
                    for field, value in act(ctx, request.group_id, key, start_offset).items():
                        setattr(answer, field, value)
                except LogError:
                    answer.error_code = error_codes.NOT_COORDINATOR
        message: Message = response
        return message

    api: AnyApi = Api(request_class, response_class, handle, form, needs=(Need(AclOperation.CLUSTER_ACTION),))
    return api


def _initialize(ctx: RequestContext, group_id: str, key: ReplicaKey, start_offset: int) -> Mapping[str, int]:
    # Without an offset the group begins where it says.
    ctx.broker.shares.reset(group_id, key, None if start_offset == NO_OFFSET else start_offset)
    return {}


def _delete(ctx: RequestContext, group_id: str, key: ReplicaKey, _start_offset: int) -> Mapping[str, int]:
    ctx.broker.shares.reset(group_id, key, None)
    return {}


def _summarize(ctx: RequestContext, group_id: str, key: ReplicaKey, _start_offset: int) -> Mapping[str, int]:
    share = ctx.broker.shares.partitions.get((group_id, key))
    if share is None:
        return {"start_offset": NO_OFFSET}
    return {
        "start_offset": share.start_offset,
        "delivery_complete_count": share.done_count,
        "leader_epoch": ctx.broker.replicas.find(key).state.leader_epoch,
    }


def _refuse(ctx: RequestContext, _group_id: str, _key: ReplicaKey, _start_offset: int) -> Mapping[str, int]:
    ctx.remark = "simulated brokers do not coordinate the state of share groups"
    raise LogError(error_codes.NOT_COORDINATOR, ctx.remark)


_describe_error = error_for_each(DescribeShareGroupOffsetsResponse, Items("groups", "groups", ("group_id",)))

APIS: Final[tuple[AnyApi, ...]] = (
    Api(DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, describe, _describe_error),
    Api(AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, alter),
    Api(DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, delete),
    _on_state("InitializeShareGroupState", _initialize),
    _on_state("DeleteShareGroupState", _delete),
    _on_state("ReadShareGroupStateSummary", _summarize),
    _on_state("ReadShareGroupState", _refuse),
    _on_state("WriteShareGroupState", _refuse),
)
