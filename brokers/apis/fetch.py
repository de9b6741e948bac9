"""Fetch (1): KIP-74 (size of the whole response), KIP-101 and KIP-320 (leader epochs), KIP-392 (from followers),
KIP-516 (topic ids from version 13 on), KIP-595 (diverging epochs), KIP-903 (replica epochs), KIP-951 (new leader).

Consumers get committed records, followers get all. No fetch session is created (KIP-227): clients receive session id 0
and continue with full requests. Readers of committed records (KIP-98) get those below the last stable offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mockraft.brokers.apis.api import Api, Parked, RequestContext
from mockraft.brokers.apis.leaders import (
    NEWS_OF_LEADER,
    check_topic,
    current_leader,
    leader_endpoints,
    topic_by_id,
    topic_by_name,
)
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, Read, ReadBy
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.wire import error_codes
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

TOPIC_IDS_FROM = 13
REPLICA_STATE_FROM = 15
LEADERS_FROM = 16
FOLLOWERS_SERVE_FROM = 11
"""Consumers may read from followers from this version on."""
NO_SESSION = 0
FULL_FETCH_EPOCHS = (0, -1)
"""Session epochs of requests that name all partitions; others continue a session."""
READ_COMMITTED = 1
UNKNOWN = (error_codes.UNKNOWN_TOPIC_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION)
ORDER = (error_codes.NONE, *UNKNOWN, error_codes.TOPIC_AUTHORIZATION_FAILED)
"""A response begins with the partitions that exist."""


class _Requested(NamedTuple):
    """One partition of the request; `key` is None when there is no such partition, and `code` is the error then."""

    topic: FetchTopic
    partition: FetchPartition
    key: ReplicaKey | None
    code: int


class _Found(NamedTuple):
    """The result for one partition."""

    read: Read | None
    code: int


def handle(request: FetchRequest, ctx: RequestContext) -> FetchResponse | Parked[FetchResponse]:
    """Read, and park until there is enough data, a partition has an error or the time is over."""
    if request.session_epoch not in FULL_FETCH_EPOCHS:
        return FetchResponse(error_code=error_codes.FETCH_SESSION_ID_NOT_FOUND)
    follower_id, broker_epoch = request.replica_id, -1
    if ctx.api_version >= REPLICA_STATE_FROM:
        follower_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    fetch = _Fetch(request, ctx, follower_id, broker_epoch)
    found = fetch.read_all(is_first=True)
    if fetch.is_enough(found) or request.max_wait_ms <= 0:
        return fetch.answer(found)
    seen = fetch.changes()

    def retry(now_ms: int, expired: bool) -> FetchResponse | None:
        nonlocal seen
        fetch.now_ms = now_ms
        before, seen = seen, fetch.changes()
        if seen == before and not expired:
            return None
        found = fetch.read_all(is_first=False)
        return fetch.answer(found) if expired or fetch.is_enough(found) else None

    return Parked(ctx.now_ms + request.max_wait_ms, retry)


class _Fetch:
    """One request in progress."""

    def __init__(self, request: FetchRequest, ctx: RequestContext, follower_id: int, broker_epoch: int) -> None:
        self._request = request
        self._ctx = ctx
        self.now_ms = ctx.now_ms
        self._replicas = ctx.broker.replicas
        self._requested = _requested(request, ctx, is_follower=follower_id >= 0)
        self._follower_id = follower_id
        self._broker_epoch = broker_epoch
        self._bytes_max = min(request.max_bytes, self._replicas.settings.fetch_max_bytes)

    def changes(self) -> list[int]:
        """Return the number of changes of each replica so far: a fetch is only worth a retry when one has grown."""
        keys = (each.key for each in self._requested if each.key is not None)
        return [hosted.changes if (hosted := self._replicas.hosted(key)) else 0 for key in keys]

    def is_enough(self, found: list[_Found]) -> bool:
        """Return True if the fetch must not wait for more."""
        # As in Kafka partitions that do not exist end no wait for the others.
        known = [result.read for each, result in zip(self._requested, found, strict=True) if each.key is not None]
        reads = [read for read in known if read is not None and not read.diverging]
        size = sum(len(read.records) for read in reads)
        return not known or len(reads) < len(known) or size >= min(self._request.min_bytes, self._bytes_max)

    def read_all(self, *, is_first: bool) -> list[_Found]:
        """Read every partition; the first time of a follower is its progress."""
        found = []
        left = self._bytes_max
        has_records = False
        for requested in self._requested:
            if requested.key is None:
                found.append(_Found(None, requested.code))
                continue
            try:
                hosted = self._replicas.find(requested.key)
                # The first batch of a response is returned whole, however large, so that every reader makes progress.
                read = self._read(hosted, requested.partition, left, at_least_one=not has_records)
                if is_first and self._follower_id >= 0 and not read.diverging:
                    hosted.fetched(
                        requested.partition.fetch_offset, self._follower(requested.partition), self._ctx.now_ms
                    )
                if self._is_held(hosted):
                    read = read._replace(records=b"")
                found.append(_Found(read, error_codes.NONE))
                has_records = has_records or bool(read.records)
                left = max(left - len(read.records), 0)
            except LogError as refused:
                found.append(_Found(None, refused.error_code))
        return found

    def _is_held(self, hosted: HostedPartition) -> bool:
        """Return True if a follower that is not in sync gets no records now (ReplicaManager.shouldLeaderThrottle)."""
        if self._follower_id < 0 or self._follower_id in hosted.state.isr:
            return False
        return self._replicas.leader_throttle.holds(hosted.topic, hosted.key[1], self.now_ms)

    def answer(self, found: list[_Found]) -> FetchResponse:
        """Return the response with what was found."""
        request, ctx = self._request, self._ctx
        topics: list[FetchableTopicResponse] = []
        leaders = set()
        if self._follower_id >= 0:
            self._record(found)
        for each, (read, code) in zip(self._requested, found, strict=True):
            data = PartitionData(
                partition_index=each.partition.partition, error_code=code, high_watermark=-1, aborted_transactions=None
            )
            is_committed = request.isolation_level == READ_COMMITTED and read is not None and read.diverging is None
            if code in UNKNOWN or is_committed:
                data.aborted_transactions = []
            data.records = b""
            if read is not None:
                data.high_watermark, data.last_stable_offset = read.high_watermark, read.last_stable_offset
                if is_committed:
                    data.aborted_transactions = [
                        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                        for each in read.aborted
                    ]
                data.log_start_offset = read.log_start_offset
                data.records = read.records
                if read.diverging is not None:
                    data.diverging_epoch = EpochEndOffset(epoch=read.diverging[0], end_offset=read.diverging[1])
            elif code in NEWS_OF_LEADER and ctx.api_version >= LEADERS_FROM:
                led = current_leader(ctx, each.topic.topic_id, each.topic.topic, each.partition.partition)
                if led is not None:
                    data.current_leader = LeaderIdAndEpoch(leader_id=led[0], leader_epoch=led[1])
                    leaders.add(led[0])
            name, topic_id = each.topic.topic, each.topic.topic_id
            if not topics or (topics[-1].topic, topics[-1].topic_id) != (name, topic_id):
                topics.append(FetchableTopicResponse(topic=name, topic_id=topic_id))
            topics[-1].partitions.append(data)
        return FetchResponse(
            session_id=NO_SESSION, responses=topics, node_endpoints=leader_endpoints(ctx, leaders, NodeEndpoint)
        )

    def _record(self, found: list[_Found]) -> None:
        """Count what a follower gets against the leader's throttle."""
        for requested, result in zip(self._requested, found, strict=True):
            hosted = None if requested.key is None else self._replicas.hosted(requested.key)
            if hosted is not None and result.read is not None:
                size = len(result.read.records)
                self._replicas.leader_throttle.record(hosted.topic, hosted.key[1], size, self.now_ms)

    def _read(self, hosted: HostedPartition, partition: FetchPartition, left: int, *, at_least_one: bool) -> Read:
        return hosted.read(
            partition.fetch_offset,
            min(left, partition.partition_max_bytes),
            claimed_epoch=partition.current_leader_epoch,
            last_fetched_epoch=partition.last_fetched_epoch,
            at_least_one=at_least_one,
            by=ReadBy(
                only_leader=self._ctx.api_version < FOLLOWERS_SERVE_FROM,
                read_committed=self._request.isolation_level == READ_COMMITTED,
                follower=self._follower(partition) if self._follower_id >= 0 else None,
            ),
        )

    def _follower(self, partition: FetchPartition) -> FollowerFetch:
        return FollowerFetch(self._follower_id, self._broker_epoch, partition.log_start_offset)


def _replicas(request: FetchRequest, ctx: RequestContext) -> Iterator[ReplicaKey]:
    is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return (each.key for each in _requested(request, ctx, is_follower=is_follower) if each.key is not None)


def _requested(request: FetchRequest, ctx: RequestContext, *, is_follower: bool) -> list[_Requested]:
    """Return each partition once, as it is named last, in the order of its code (KafkaApis.handleFetchRequest)."""
    found = _named(request, ctx, is_follower=is_follower)
    named = {(each.topic.topic, each.topic.topic_id, each.partition.partition): each for each in found}
    return sorted(named.values(), key=lambda each: ORDER.index(each.code))


def _check(ctx: RequestContext, topic: str, *, is_follower: bool) -> None:
    """Raise LogError unless a consumer may read the topic, or a follower act for the cluster."""
    if not is_follower:
        check_topic(ctx, AclOperation.READ, topic)
    elif not ctx.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER):
        raise LogError(error_codes.TOPIC_AUTHORIZATION_FAILED, "")


def _named(request: FetchRequest, ctx: RequestContext, *, is_follower: bool) -> Iterator[_Requested]:
    for topic in request.topics:
        try:
            by_id = ctx.api_version >= TOPIC_IDS_FROM
            if not by_id:
                _check(ctx, topic.topic, is_follower=is_follower)
            known = topic_by_id(ctx, topic.topic_id) if by_id else topic_by_name(ctx, topic.topic)
            if by_id:
                _check(ctx, known.name, is_follower=is_follower)
        except LogError as unknown:
            for partition in topic.partitions:
                yield _Requested(topic, partition, None, unknown.error_code)
        else:
            for partition in topic.partitions:
                if partition.partition in known.partitions:
                    yield _Requested(topic, partition, (known.topic_id, partition.partition), error_codes.NONE)
                else:
                    yield _Requested(topic, partition, None, error_codes.UNKNOWN_TOPIC_OR_PARTITION)


API = Api(FetchRequest, FetchResponse, handle, replicas=_replicas)
