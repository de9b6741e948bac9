"""ShareFetch (78), ShareAcknowledge (79): KIP-932, KIP-1206 (acquire modes), KIP-1222 (renewed locks).

A member opens a share session with its first fetch (epoch 0), which names all partitions; later ones name changes, and
both APIs count the session's epochs. Any member id may fetch: as in Kafka membership is the coordinator's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import deepcopy
from typing import Final, NamedTuple, TypeAlias

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.apis.leaders import check_topic, current_leader, leader_endpoints, topic_by_id
from mockraft.brokers.apis.share_groups import check_enabled, check_member_id
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import HostedPartition, Read, ReadBy
from mockraft.brokers.partitions.partition import NO_EPOCH
from mockraft.brokers.shares.share_partition import AcknowledgedRange, Acknowledgement, SharePartition, Wanted
from mockraft.brokers.shares.shares import ShareSession
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.wire import error_codes
from mockraft.wire.messages import share_acknowledge_response as acknowledged_as
from mockraft.wire.messages import share_fetch_response as fetched_as
from mockraft.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from mockraft.wire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from mockraft.wire.messages.share_fetch_request import FetchPartition, FetchTopic, ShareFetchRequest
from mockraft.wire.messages.share_fetch_response import ShareFetchResponse

OPENS, CLOSES = 0, -1
"""Session epochs that are no epochs."""

Error: TypeAlias = ApiError | LogError | None
Errors = dict[ReplicaKey, Error]
"""The result of each partition: what refused it, or None."""


class _Readable(NamedTuple):
    """Batches of the log from which a member may acquire records."""

    hosted: HostedPartition
    share: SharePartition
    read: Read


def fetch(request: ShareFetchRequest, ctx: RequestContext) -> ShareFetchResponse | Parked[ShareFetchResponse]:
    """Acknowledge, then acquire records, and wait for some."""
    group_id, member_id = _checked(request, ctx)
    shares, asked = ctx.broker.shares, ctx.asked if isinstance(ctx.asked, ShareFetchRequest) else request
    keys = list(_keys(asked, ctx))
    if request.is_renew_ack and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise ApiError(error_codes.INVALID_REQUEST)
    acknowledges = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    match request.share_session_epoch:
        case 0 if acknowledges:
            raise ApiError(error_codes.INVALID_REQUEST)
        case 0:
            session = shares.open(group_id, member_id, ctx.connection_id, keys)
        case -1:
            session = shares.session(group_id, member_id)
        case epoch:
            session = shares.session(group_id, member_id, epoch)
            session.update(keys, _forgotten(request))
    withheld = session.partitions.keys() - set(_keys(request, ctx)) if asked is not request else frozenset()
    fetching = _ShareFetch(request, ctx, session, _acknowledge(request, ctx) if acknowledges else {}, withheld)
    if request.share_session_epoch == CLOSES:
        shares.close(group_id, member_id)
    if request.share_session_epoch == CLOSES or request.is_renew_ack or not session.partitions:
        return fetching.answer({}, [])
    return fetching.retry(ctx.now_ms, request.max_wait_ms <= 0) or Parked(
        ctx.now_ms + request.max_wait_ms, fetching.retry
    )


def acknowledge(request: ShareAcknowledgeRequest, ctx: RequestContext) -> ShareAcknowledgeResponse:
    """Acknowledge records that the member has acquired."""
    group_id, member_id = _checked(request, ctx)
    shares, epoch = ctx.broker.shares, request.share_session_epoch
    if epoch == OPENS:
        raise ApiError(error_codes.INVALID_SHARE_SESSION_EPOCH)
    shares.session(group_id, member_id, None if epoch == CLOSES else epoch)
    results = _acknowledge(request, ctx)
    if epoch == CLOSES:
        shares.close(group_id, member_id)
    topics: dict[bytes, list[acknowledged_as.PartitionData]] = {}
    for (topic_id, index), error in results.items():
        code, message = _error(error)
        data = acknowledged_as.PartitionData(partition_index=index, error_code=code, error_message=message)
        topics.setdefault(topic_id, []).append(data)
        if (led := _leader(ctx, topic_id, index, code)) is not None:
            data.current_leader = acknowledged_as.LeaderIdAndEpoch(leader_id=led[0], leader_epoch=led[1])
    leaders = {each.current_leader.leader_id for topic in topics.values() for each in topic}
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=shares.settings(group_id).lock_ms,
        responses=[
            acknowledged_as.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=leader_endpoints(ctx, leaders, acknowledged_as.NodeEndpoint),
    )


class _ShareFetch:
    """One fetch in progress; its acknowledgements are done. A stub refuses the `withheld` partitions."""

    def __init__(
        self,
        request: ShareFetchRequest,
        ctx: RequestContext,
        session: ShareSession,
        acknowledged: Errors,
        withheld: Collection[ReplicaKey],
    ) -> None:
        self._request = request
        self._ctx = ctx
        self._session = session
        self._acknowledged = acknowledged
        self._withheld = withheld
        self._group_id, self._member_id = request.group_id or "", request.member_id or ""
        self._settings = ctx.broker.shares.settings(self._group_id)
        self._seen: list[object] = []

    def retry(self, now_ms: int, expired: bool) -> ShareFetchResponse | None:
        """Return the response once there is enough to acquire, or the time is over."""
        if self._ctx.broker.shares.sessions.get((self._group_id, self._member_id)) is not self._session:
            return self.answer({}, [])
        before, self._seen = self._seen, self._changes()
        if self._seen == before and not expired:
            return None
        errors, found = self._read(now_ms)
        size = sum(len(each.read.records) for each in found)
        bytes_min = max(min(self._request.min_bytes, self._request.max_bytes), 1)
        is_enough = size >= bytes_min or len(errors) == len(self._session.partitions)
        return self.answer(errors, found, now_ms) if expired or is_enough else None

    def _changes(self) -> list[object]:
        broker, keys = self._ctx.broker, self._session.partitions
        shares = [broker.shares.partitions.get((self._group_id, key)) for key in keys]
        hosted = [broker.replicas.hosted(key) for key in keys]
        return [*shares, *(each.changes for each in (*shares, *hosted) if each is not None)]

    def _read(self, now_ms: int) -> tuple[Errors, list[_Readable]]:
        """Read each partition from where records are available; a later request begins with another one."""
        errors: Errors = {}
        found: list[_Readable] = []
        left = min(self._request.max_bytes, self._ctx.broker.replicas.settings.fetch_max_bytes)
        keys = [key for key in self._session.partitions if key not in self._withheld]
        start = max(self._request.share_session_epoch, 0) % max(len(keys), 1)
        for key in keys[start:] + keys[:start]:
            try:
                hosted = _led(self._ctx, key)
                share = self._ctx.broker.shares.partition(self._group_id, hosted, now_ms)
                offset = share.next_offset(self._settings, hosted.log.start_offset)
                if offset is None:
                    continue
                by = ReadBy(read_committed=self._settings.read_committed)
                read = hosted.read(offset, left, at_least_one=not found, by=by)
            except LogError as refused:
                # Kafka's leader refuses no offset behind the log's end: the records may come.
                if refused.error_code != error_codes.OFFSET_OUT_OF_RANGE:
                    errors[key] = refused
                continue
            if read.records:
                found.append(_Readable(hosted, share, read))
                left = max(left - len(read.records), 0)
        return errors, found

    def answer(self, errors: Errors, found: list[_Readable], now_ms: int = 0) -> ShareFetchResponse:
        """Acquire what was found; return the response."""
        data: dict[ReplicaKey, fetched_as.PartitionData] = {}
        leaders = set()
        records_left = self._request.max_records
        for each in found:
            part = self._acquired(each, records_left, now_ms)
            if part.acquired_records:
                records_left -= sum(1 + each.last_offset - each.first_offset for each in part.acquired_records)
                data[each.hosted.key] = part
        for key, error in errors.items():
            code, message = _error(error)
            data[key] = _empty(key)
            data[key].error_code, data[key].error_message = code, message
            if (led := _leader(self._ctx, *key, code)) is not None:
                data[key].current_leader = fetched_as.LeaderIdAndEpoch(leader_id=led[0], leader_epoch=led[1])
                leaders.add(led[0])
        for key, must_answer in self._session.partitions.items():
            if key in self._withheld:
                continue
            if must_answer and self._request.share_session_epoch != CLOSES and not self._request.is_renew_ack:
                data.setdefault(key, _empty(key))
                self._session.partitions[key] = False
            if key in errors:
                self._session.partitions[key] = True
        for key, error in self._acknowledged.items():
            part = data.setdefault(key, _empty(key))
            part.acknowledge_error_code, part.acknowledge_error_message = _error(error)
        topics: dict[bytes, list[fetched_as.PartitionData]] = {}
        for (topic_id, _), part in data.items():
            topics.setdefault(topic_id, []).append(part)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._settings.lock_ms,
            responses=[
                fetched_as.ShareFetchableTopicResponse(topic_id=topic_id, partitions=parts)
                for topic_id, parts in topics.items()
            ],
            node_endpoints=leader_endpoints(self._ctx, leaders, fetched_as.NodeEndpoint),
        )

    def _acquired(self, each: _Readable, records_max: int, now_ms: int) -> fetched_as.PartitionData:
        """Acquire records, and return the batches that have them."""
        records, request = each.read.records, self._request
        headers = read_headers(records, check_crc=False)
        wanted = Wanted(self._member_id, records_max, request.batch_size, request.share_acquire_mode)
        acquired = each.share.acquire(wanted, headers, each.read.aborted, self._settings, now_ms)
        self._ctx.broker.shares.acquired(each.share)
        part = _empty(each.hosted.key)
        if acquired:
            taken = [
                header
                for header in headers
                if header.last_offset >= acquired[0].first and header.base_offset <= acquired[-1].last
            ]
            part.records = records[taken[0].position : taken[-1].end]
            part.acquired_records = [
                fetched_as.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
                for first, last, deliveries in acquired
            ]
        return part


def _checked(request: ShareFetchRequest | ShareAcknowledgeRequest, ctx: RequestContext) -> tuple[str, str]:
    """Return the group's and the member's ids. Raises ApiError."""
    check_enabled(ctx)
    group_id, member_id = request.group_id, request.member_id or ""
    if group_id is None:
        raise ApiError(error_codes.INVALID_REQUEST)
    ctx.check(AclOperation.READ, ResourceType.GROUP, group_id)
    check_member_id(member_id)
    return group_id, member_id


def _keys(request: ShareFetchRequest, _ctx: RequestContext) -> Iterator[ReplicaKey]:
    return ((topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions)


def _forgotten(request: ShareFetchRequest) -> set[ReplicaKey]:
    return {(topic.topic_id, each) for topic in request.forgotten_topics_data for each in topic.partitions}


def in_session(request: ShareFetchRequest, ctx: RequestContext) -> ShareFetchRequest:
    """Return a copy of a fetch that names all partitions of its session."""
    whole = deepcopy(request)
    session = ctx.broker.shares.sessions.get((request.group_id or "", request.member_id or ""))
    if session is not None and request.share_session_epoch > OPENS:
        for topic_id, index in session.partitions.keys() - set(_keys(request, ctx)) - _forgotten(request):
            whole.topics.append(FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=index)]))
    return whole


def _led(ctx: RequestContext, key: ReplicaKey) -> HostedPartition:
    """Return a partition that the client may read, and that this broker leads. Raises LogError."""
    topic = topic_by_id(ctx, key[0])
    check_topic(ctx, AclOperation.READ, topic.name)
    hosted = ctx.broker.replicas.find(key)
    hosted.check_epoch(NO_EPOCH, only_leader=True)
    return hosted


def _acknowledge(request: ShareFetchRequest | ShareAcknowledgeRequest, ctx: RequestContext) -> Errors:
    """Acknowledge records; return the result of each partition of the request if one has acknowledgements."""
    shares, group_id = ctx.broker.shares, request.group_id or ""
    settings = shares.settings(group_id)
    last_type = Acknowledgement.RENEW if request.is_renew_ack else Acknowledgement.REJECT
    results: Errors = {}
    acknowledged: dict[ReplicaKey, list[AcknowledgedRange]] = {}
    for topic_id, partition in [(topic.topic_id, each) for topic in request.topics for each in topic.partitions]:
        key = (topic_id, partition.partition_index)
        ranges = [
            AcknowledgedRange(each.first_offset, each.last_offset, each.acknowledge_types)
            for each in partition.acknowledgement_batches
        ]
        results[key] = None
        try:
            topic = topic_by_id(ctx, topic_id)
            _check(ranges, last_type)
            check_topic(ctx, AclOperation.READ, topic.name)
            if partition.partition_index not in topic.partitions:
                raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "")
        except (ApiError, LogError) as refused:
            results[key] = refused
        else:
            if ranges:
                acknowledged[key] = ranges
    if not acknowledged:
        # Kafka leaves out the partitions without acknowledgements.
        return {key: error for key, error in results.items() if error is not None}
    for key, ranges in acknowledged.items():
        try:
            share = shares.partitions.get((group_id, _led(ctx, key).key))
            if share is None:
                code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
                raise ApiError(code, error_codes.message(code))
            share.acknowledge(request.member_id or "", ranges, settings, ctx.now_ms)
        except (ApiError, LogError) as refused:
            results[key] = refused
    if any(results[key] is None for key in acknowledged):
        shares.wake()
    return results


def _check(ranges: list[AcknowledgedRange], last_type: int) -> None:
    """Refuse ranges that are not in order, and unknown types (validateAcknowledgementBatches)."""
    end = -1
    for first, last, types in ranges:
        is_whole = end <= first <= last and len(types) in (1, last - first + 1)
        if not is_whole or not all(0 <= each <= last_type for each in types):
            raise ApiError(error_codes.INVALID_REQUEST)
        end = last


def _empty(key: ReplicaKey) -> fetched_as.PartitionData:
    return fetched_as.PartitionData(partition_index=key[1], records=b"")


def _error(error: Error) -> tuple[int, str | None]:
    if error is None:
        return error_codes.NONE, None
    return error.error_code, error.message if isinstance(error, ApiError) else None


def _leader(ctx: RequestContext, topic_id: bytes, index: int, code: int) -> tuple[int, int] | None:
    """Return the leader of a partition and its epoch if the client has to know them."""
    return current_leader(ctx, topic_id, "", index) if code == error_codes.NOT_LEADER_OR_FOLLOWER else None


APIS: Final[tuple[AnyApi, ...]] = (
    Api(ShareFetchRequest, ShareFetchResponse, fetch, in_session=in_session, replicas=_keys),
    Api(ShareAcknowledgeRequest, ShareAcknowledgeResponse, acknowledge),
)
