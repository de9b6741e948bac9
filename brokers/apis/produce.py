"""Produce (0): KIP-13, KIP-98 (idempotent producers), KIP-467 (errors of records), KIP-516 (topic ids from version 13
on), KIP-951 (the new leader beside the error).

Versions 0 to 2 are offered because old clients request them by a fixed number, as Kafka does; transactional batches are
refused.
"""

from __future__ import annotations

import asyncio
import time

from mockraft.brokers.apis.api import Api, ConnectionClosedError, RequestContext
from mockraft.brokers.apis.leaders import NEWS_OF_LEADER, current_leader, leader_endpoints, replicas_of
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.batch_headers import COMPRESSION
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import read_produced
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC_IDS_FROM = 13
LEADERS_FROM = 10
ZSTD_FROM = 7
UNKNOWN_OFFSET = -1
WITHOUT_LOG_START = frozenset(
    {
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.MESSAGE_TOO_LARGE,
        error_codes.RECORD_LIST_TOO_LARGE,
        error_codes.CORRUPT_MESSAGE,
        error_codes.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of an append that leave the log start offset out of the response (ReplicaManager.appendRecordsToLeader)."""
ZSTD = 4


async def handle(request: ProduceRequest, ctx: RequestContext) -> ProduceResponse | None:
    """Append the batches of each partition, and wait for the replicas with acks=all."""
    if request.acks not in (-1, 0, 1):
        return _all_refused(request, ctx, error_codes.INVALID_REQUIRED_ACKS)
    topics = [TopicProduceResponse(name=topic.name, topic_id=topic.topic_id) for topic in request.topic_data]
    waits = []
    for topic, answer in zip(request.topic_data, topics, strict=True):
        for partition in topic.partition_data:
            answered, wait = await _append(ctx, topic, partition, request)
            answer.partition_responses.append(answered)
            if wait is not None:
                waits.append(wait)
    if waits:
        deadline_s = asyncio.get_running_loop().time() + request.timeout_ms / 1000
        for key, end_offset, answered in waits:
            answered.error_code = await _replicated(replicas_of(ctx), key, end_offset, deadline_s)
            if answered.error_code != error_codes.NONE:
                answered.base_offset = -1
                answered.error_message = error_codes.message(answered.error_code)
    response = ProduceResponse(responses=topics)
    failed = [(t, p) for t in topics for p in t.partition_responses if p.error_code != error_codes.NONE]
    if request.acks == 0:
        if failed:
            # The client reads no responses: closing the connection is the only signal.
            raise ConnectionClosedError(f"Produce with acks=0 failed: {error_codes.name(failed[0][1].error_code)}")
        return None
    if failed and ctx.api_version >= LEADERS_FROM:
        _add_leaders(response, ctx, failed)
    return response


def error(request: ProduceRequest, error_code: int, message: str | None) -> ProduceResponse:
    """Return the error for every partition."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index, error_code=error_code, base_offset=-1, error_message=message
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


async def _append(
    ctx: RequestContext, topic: TopicProduceData, partition: PartitionProduceData, request: ProduceRequest
) -> tuple[PartitionProduceResponse, tuple[ReplicaKey, int, PartitionProduceResponse] | None]:
    """Return the partition's response so far, and (key, required offset, response) when replicas have to be
    waited for.
    """
    replicas = replicas_of(ctx)
    log_start_offset = UNKNOWN_OFFSET
    try:
        known = ctx.image.topics.get(topic.topic_id) if ctx.api_version >= TOPIC_IDS_FROM else None
        if ctx.api_version >= TOPIC_IDS_FROM and known is None:
            raise LogError(error_codes.UNKNOWN_TOPIC_ID, "no topic has this id")
        known = known or ctx.image.topics_by_name.get(topic.name)
        if known is None:
            raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
        key = (known.topic_id, partition.index)
        records = bytes(partition.records or b"")
        _check(records, ctx.api_version)
        replicas.find(key)
        await replicas.disk_ready(key)
        wall_clock_ms = time.time_ns() // 1_000_000
        hosted = replicas.find(key)
        log_start_offset = hosted.log.start_offset
        appended = hosted.append(records, request.acks, replicas.now_ms(), wall_clock_ms)
    except LogError as refused:
        code = refused.error_code
        return PartitionProduceResponse(
            index=partition.index,
            error_code=code,
            base_offset=UNKNOWN_OFFSET,
            log_start_offset=UNKNOWN_OFFSET if code in WITHOUT_LOG_START else log_start_offset,
            error_message=str(refused) or error_codes.message(code),
        ), None
    answered = PartitionProduceResponse(
        index=partition.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    return answered, (key, appended.end_offset, answered) if request.acks == -1 else None


def _check(records: bytes, version: int) -> None:
    """Reject what Kafka rejects before it looks up the partition (ProduceRequest.validateRecords). Raises LogError."""
    headers = read_produced(records)
    if len(headers) != 1:
        raise LogError(
            error_codes.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain exactly one record batch per"
            " partition",
        )
    if headers[0].attributes & COMPRESSION == ZSTD and version < ZSTD_FROM:
        raise LogError(
            error_codes.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if headers[0].is_transactional:
        raise LogError(error_codes.INVALID_TXN_STATE, "simulated brokers do not support transactions")


async def _replicated(replicas: Replicas, key: ReplicaKey, end_offset: int, deadline_s: float) -> int:
    """Wait until the in-sync replicas have everything below this offset; return the resulting error code."""
    event = asyncio.Event()
    while True:
        try:
            hosted = replicas.find(key)
            done, code = hosted.state.reached(end_offset)
            if not done:
                _ = hosted.log
        except LogError as refused:
            return refused.error_code
        if done:
            return code
        hosted.waiting.add(event)
        try:
            async with asyncio.timeout_at(deadline_s):
                await event.wait()
        except TimeoutError:
            return error_codes.REQUEST_TIMED_OUT
        finally:
            hosted.waiting.discard(event)
        event.clear()


def _add_leaders(
    response: ProduceResponse,
    ctx: RequestContext,
    failed: list[tuple[TopicProduceResponse, PartitionProduceResponse]],
) -> None:
    leaders = set()
    for topic, answered in failed:
        if answered.error_code in NEWS_OF_LEADER:
            found = current_leader(ctx, topic.topic_id, topic.name, answered.index)
            if found is not None:
                answered.current_leader = LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
                leaders.add(found[0])
    response.node_endpoints = [
        NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in leader_endpoints(ctx, leaders)
    ]


def _all_refused(request: ProduceRequest, ctx: RequestContext, error_code: int) -> ProduceResponse:
    if request.acks == 0:
        raise ConnectionClosedError(f"Produce: {error_codes.name(error_code)}")
    return error(request, error_code, error_codes.message(error_code))


API = Api(ProduceRequest, ProduceResponse, handle, error, min_version=0)
