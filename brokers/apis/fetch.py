"""Fetch (1): KIP-74 (size of the whole response), KIP-101 and KIP-320 (leader epochs), KIP-392 (from followers),
KIP-516 (topic ids from version 13 on), KIP-595 (diverging epochs), KIP-903 (replica epochs), KIP-951 (new leader).

Consumers get committed records, followers get all. No fetch session is created (KIP-227): clients receive session id 0
and continue with full requests. There are no transactions, so both isolation levels read the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.apis.leaders import (
    NEWS_OF_LEADER,
    current_leader,
    leader_endpoints,
    replicas_of,
    topic_by_id,
    topic_by_name,
)
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, Read
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.fetch_response import (
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
READ_COMMITTED = 1
UNKNOWN = (error_codes.UNKNOWN_TOPIC_OR_PARTITION, error_codes.UNKNOWN_TOPIC_ID)


class _Requested(NamedTuple):
    """One partition of the request; `key` is None when the topic is unknown, and `code` is the error then."""

    topic: FetchTopic
    partition: FetchPartition
    key: ReplicaKey | None
    code: int


class _Found(NamedTuple):
    """The result for one partition."""

    read: Read | None
    code: int


async def handle(request: FetchRequest, ctx: RequestContext) -> FetchResponse:
    """Read until there is enough data, a partition has an error or the time is over."""
    if request.session_id != NO_SESSION and request.session_epoch > 0:
        return FetchResponse(error_code=error_codes.FETCH_SESSION_ID_NOT_FOUND)
    replicas = replicas_of(ctx)
    requested = list(_requested(request, ctx))
    follower_id, broker_epoch = request.replica_id, -1
    if ctx.api_version >= REPLICA_STATE_FROM:
        follower_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    fetch = _Fetch(request, ctx.api_version, replicas, requested, follower_id, broker_epoch)
    found = await fetch.run()
    return _answer(request, ctx, requested, found)


def error(request: FetchRequest, error_code: int, _message: str | None) -> FetchResponse:
    """Return the error for the whole request."""
    return FetchResponse(error_code=error_code)


class _Fetch:
    """One request in progress."""

    def __init__(
        self,
        request: FetchRequest,
        version: int,
        replicas: Replicas,
        requested: list[_Requested],
        follower_id: int,
        broker_epoch: int,
    ) -> None:
        self._request = request
        self._version = version
        self._replicas = replicas
        self._requested = requested
        self._follower_id = follower_id
        self._broker_epoch = broker_epoch
        self._bytes_max = min(request.max_bytes, replicas.settings.fetch_max_bytes)

    async def run(self) -> list[_Found]:
        """Read, and wait for more while there is too little."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._request.max_wait_ms / 1000
        for key in {each.key for each in self._requested if each.key is not None}:
            await self._replicas.disk_ready(key)
        found = self._read_all(is_first=True)
        event = asyncio.Event()
        while not self._is_enough(found) and loop.time() < deadline_s:
            hosted = [
                each
                for requested in self._requested
                if requested.key and (each := self._replicas.hosted(requested.key))
            ]
            for each in hosted:
                each.waiting.add(event)
            try:
                async with asyncio.timeout_at(deadline_s):
                    await event.wait()
            except TimeoutError:
                pass
            finally:
                for each in hosted:
                    each.waiting.discard(event)
            event.clear()
            found = self._read_all(is_first=False)
        return found

    def _is_enough(self, found: list[_Found]) -> bool:
        if not found or any(each.read is None or each.read.diverging for each in found):
            return True
        size = sum(len(each.read.records) for each in found if each.read is not None)
        return bool(size >= self._request.min_bytes)

    def _read_all(self, *, is_first: bool) -> list[_Found]:
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
                        requested.partition.fetch_offset, self._follower(requested.partition), self._replicas.now_ms()
                    )
                found.append(_Found(read, error_codes.NONE))
                has_records = has_records or bool(read.records)
                left = max(left - len(read.records), 0)
            except LogError as refused:
                found.append(_Found(None, refused.error_code))
        return found

    def _read(self, hosted: HostedPartition, partition: FetchPartition, left: int, *, at_least_one: bool) -> Read:
        return hosted.read(
            partition.fetch_offset,
            min(left, partition.partition_max_bytes),
            claimed_epoch=partition.current_leader_epoch,
            last_fetched_epoch=partition.last_fetched_epoch,
            at_least_one=at_least_one,
            only_leader=self._version < FOLLOWERS_SERVE_FROM,
            follower=self._follower(partition) if self._follower_id >= 0 else None,
        )

    def _follower(self, partition: FetchPartition) -> FollowerFetch:
        return FollowerFetch(self._follower_id, self._broker_epoch, partition.log_start_offset)


def _requested(request: FetchRequest, ctx: RequestContext) -> Iterator[_Requested]:
    for topic in request.topics:
        try:
            by_id = ctx.api_version >= TOPIC_IDS_FROM
            known = topic_by_id(ctx, topic.topic_id) if by_id else topic_by_name(ctx, topic.topic)
        except LogError as unknown:
            for partition in topic.partitions:
                yield _Requested(topic, partition, None, unknown.error_code)
        else:
            for partition in topic.partitions:
                yield _Requested(topic, partition, (known.topic_id, partition.partition), error_codes.NONE)


def _answer(
    request: FetchRequest, ctx: RequestContext, requested: list[_Requested], found: list[_Found]
) -> FetchResponse:
    topics: dict[int, FetchableTopicResponse] = {}
    leaders = set()
    for each, (read, code) in zip(requested, found, strict=True):
        data = PartitionData(
            partition_index=each.partition.partition, error_code=code, high_watermark=-1, aborted_transactions=None
        )
        is_committed = request.isolation_level == READ_COMMITTED and read is not None and read.diverging is None
        if code in UNKNOWN or is_committed:
            data.aborted_transactions = []
        data.records = b""
        if read is not None:
            data.high_watermark = data.last_stable_offset = read.high_watermark
            data.log_start_offset = read.log_start_offset
            data.records = read.records
            if read.diverging is not None:
                data.diverging_epoch = EpochEndOffset(epoch=read.diverging[0], end_offset=read.diverging[1])
        elif code in NEWS_OF_LEADER and ctx.api_version >= LEADERS_FROM:
            led = current_leader(ctx, each.topic.topic_id, each.topic.topic, each.partition.partition)
            if led is not None:
                data.current_leader = LeaderIdAndEpoch(leader_id=led[0], leader_epoch=led[1])
                leaders.add(led[0])
        topic = topics.setdefault(
            id(each.topic), FetchableTopicResponse(topic=each.topic.topic, topic_id=each.topic.topic_id)
        )
        topic.partitions.append(data)
    return FetchResponse(
        session_id=NO_SESSION,
        responses=list(topics.values()),
        node_endpoints=[
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in leader_endpoints(ctx, leaders)
        ],
    )


API = Api(FetchRequest, FetchResponse, handle, error)
