"""Produce (0): KIP-13, KIP-98 (idempotent producers), KIP-467 (errors of records), KIP-516 (topic ids from version 13
on), KIP-951 (the new leader beside the error).

As in Kafka versions 0 to 2 are offered: old clients request them by number. Transactional batches are verified first
(`transactional_writes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mockraft.brokers.apis import transactional_writes
from mockraft.brokers.apis.api import NO_RESPONSE, Api, ApiError, ConnectionClosedError, Parked, RequestContext
from mockraft.brokers.apis.leaders import NEWS_OF_LEADER, current_leader, leader_endpoints, replication_error
from mockraft.brokers.apis.transactional_writes import Verified, check, topic_of
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.batch_headers import begins_transactional
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from mockraft.wire.topic_names import INTERNAL

LEADERS_FROM = 10
UNKNOWN_OFFSET = -1
REQUIRED_ACKS = (-1, 0, 1)
ADMIN_CLIENT = "__admin_client"
"""The client id with which Kafka lets clients append to internal topics."""
WITHOUT_LOG_START = frozenset(
    {
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.MESSAGE_TOO_LARGE,
        error_codes.RECORD_LIST_TOO_LARGE,
        error_codes.CORRUPT_MESSAGE,
        error_codes.KAFKA_STORAGE_ERROR,
        error_codes.INVALID_TOPIC_EXCEPTION,
    }
)
"""Errors of an append that leave the log start offset out of the response (ReplicaManager.appendRecordsToLeader)."""


class _Wait(NamedTuple):
    """A partition whose in-sync replicas must have everything below this offset."""

    key: ReplicaKey
    end_offset: int
    answer: PartitionProduceResponse


def handle(request: ProduceRequest, ctx: RequestContext) -> ProduceResponse | bytes | Parked[ProduceResponse | bytes]:
    """Append the batches of each partition, and wait for the replicas with acks=all."""
    batches = (bytes(partition.records or b"") for topic in request.topic_data for partition in topic.partition_data)
    request.topic_data = _each_once(request.topic_data)
    try:
        if any(map(begins_transactional, batches)):
            if request.transactional_id is None:
                # As in Kafka the error for an id that the client may not use.
                raise ApiError(error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            ctx.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return transactional_writes.verified(request, ctx, lambda verified: _append_all(request, ctx, verified))
    except ApiError as refused:
        code = refused.error_code
        return _finish(request, ctx, error(request, code, error_codes.message(code)))


def _append_all(
    request: ProduceRequest, ctx: RequestContext, verified: Verified
) -> ProduceResponse | bytes | Parked[ProduceResponse | bytes]:
    response = error(request, error_codes.NONE, None)
    waits: list[_Wait] = []
    for topic, answers in zip(request.topic_data, response.responses, strict=True):
        for partition, answer in zip(topic.partition_data, answers.partition_responses, strict=True):
            wait = _append(ctx, topic, partition, request.acks, answer, verified)
            if wait is not None:
                waits.append(wait)

    def retry(_now_ms: int, expired: bool) -> ProduceResponse | bytes | None:
        waits[:] = [wait for wait in waits if not _is_done(ctx, wait, expired)]
        return None if waits else _finish(request, ctx, response)

    result = retry(ctx.now_ms, False)
    return Parked(ctx.now_ms + request.timeout_ms, retry) if result is None else result


error = error_for_each(
    ProduceResponse,
    Items("topic_data", "responses", ("name", "topic_id")),
    Items("partition_data", "partition_responses", ("index",)),
    base_offset=-1,
)


def _each_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics with each partition once, with the records that are named last."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        partitions.update((partition.index, partition) for partition in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def _append(
    ctx: RequestContext,
    topic: TopicProduceData,
    partition: PartitionProduceData,
    acks: int,
    answer: PartitionProduceResponse,
    verified: Verified,
) -> _Wait | None:
    """Append to one partition and fill in its answer; return what to wait for, if anything."""
    try:
        known = topic_of(ctx, topic)
        key = (known.topic_id, partition.index)
        if partition.index not in known.partitions:
            raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "")
        records = bytes(partition.records or b"")
        check(records, ctx.api_version)
        verified.check(key)
        if acks not in REQUIRED_ACKS:
            raise LogError(error_codes.INVALID_REQUIRED_ACKS, "")
        if known.name in INTERNAL and ctx.client_id != ADMIN_CLIENT:
            raise LogError(error_codes.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {known.name}")
        hosted = ctx.broker.replicas.find(key)
        answer.log_start_offset = hosted.log.start_offset
        appended = hosted.append(records, acks, ctx.now_ms, is_verified=verified.is_verified(hosted))
    except LogError as refused:
        answer.error_code = refused.error_code
        answer.error_message = str(refused) or error_codes.message(refused.error_code)
        if answer.error_code in WITHOUT_LOG_START:
            answer.log_start_offset = UNKNOWN_OFFSET
        return None
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.log_append_time_ms
    answer.log_start_offset = appended.log_start_offset
    return _Wait(key, appended.end_offset, answer) if acks == -1 else None


def _replicas(request: ProduceRequest, ctx: RequestContext) -> Iterator[ReplicaKey]:
    for topic in request.topic_data:
        try:
            topic_id = topic_of(ctx, topic).topic_id
        except LogError:
            continue
        yield from ((topic_id, partition.index) for partition in topic.partition_data)


def _is_done(ctx: RequestContext, wait: _Wait, expired: bool) -> bool:
    """Return True once the in-sync replicas have the records, or put the error into the answer."""
    code = replication_error(ctx, wait.key, wait.end_offset, expired=expired)
    if code:
        wait.answer.error_code = code
        wait.answer.base_offset = -1
        wait.answer.error_message = error_codes.message(code)
    return code is not None


def _finish(request: ProduceRequest, ctx: RequestContext, response: ProduceResponse) -> ProduceResponse | bytes:
    failed = [(t, p) for t in response.responses for p in t.partition_responses if p.error_code != error_codes.NONE]
    if request.acks == 0:
        if failed:
            # The client reads no responses: closing the connection is the only signal.
            raise ConnectionClosedError(f"Produce with acks=0 failed: {error_codes.name(failed[0][1].error_code)}")
        return NO_RESPONSE
    if failed and ctx.api_version >= LEADERS_FROM:
        _add_leaders(response, ctx, failed)
    return response


def _add_leaders(
    response: ProduceResponse, ctx: RequestContext, failed: list[tuple[TopicProduceResponse, PartitionProduceResponse]]
) -> None:
    leaders = set()
    for topic, answered in failed:
        if answered.error_code in NEWS_OF_LEADER:
            found = current_leader(ctx, topic.topic_id, topic.name, answered.index)
            if found is not None:
                answered.current_leader = LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
                leaders.add(found[0])
    response.node_endpoints = leader_endpoints(ctx, leaders, NodeEndpoint)


API = Api(ProduceRequest, ProduceResponse, handle, error, min_version=0, replicas=_replicas)
