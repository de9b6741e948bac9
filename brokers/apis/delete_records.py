"""DeleteRecords (21): KIP-107. Raises the log start offset and waits until the live replicas have done the same."""

from __future__ import annotations

import asyncio

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.apis.leaders import replicas_of, topic_by_name
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_records_request import DeleteRecordsRequest
from mockraft.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


async def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """Delete all records before the given offset of each partition; -1 is its high watermark."""
    replicas = replicas_of(ctx)
    deadline_s = asyncio.get_running_loop().time() + request.timeout_ms / 1000
    topics = []
    for topic in request.topics:
        answered = []
        for partition in topic.partitions:
            answer = DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=INVALID_LOW_WATERMARK
            )
            try:
                key = (topic_by_name(ctx, topic.name).topic_id, partition.partition_index)
                hosted = replicas.find(key)
                await replicas.disk_ready(key)
                offset = hosted.log.high_watermark if partition.offset == HIGH_WATERMARK else partition.offset
                hosted.delete_before(offset)
                answer.low_watermark = await _everywhere(replicas, key, offset, deadline_s)
            except LogError as refused:
                answer.error_code = refused.error_code
            answered.append(answer)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answered))
    return DeleteRecordsResponse(topics=topics)


def error(request: DeleteRecordsRequest, error_code: int, _message: str | None) -> DeleteRecordsResponse:
    """Return the error for every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index,
                        low_watermark=INVALID_LOW_WATERMARK,
                        error_code=error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _everywhere(replicas: Replicas, key: ReplicaKey, offset: int, deadline_s: float) -> int:
    """Wait until the log of every live replica starts at `offset` or later; return its low watermark. Raises
    LogError.
    """
    event = asyncio.Event()
    while True:
        hosted = replicas.find(key)
        hosted.check_epoch(-1, only_leader=True)
        low_watermark = hosted.low_watermark
        if low_watermark >= offset:
            return low_watermark
        hosted.waiting.add(event)
        try:
            async with asyncio.timeout_at(deadline_s):
                await event.wait()
        except TimeoutError:
            raise LogError(error_codes.REQUEST_TIMED_OUT, "a replica has not deleted its records in time") from None
        finally:
            hosted.waiting.discard(event)
        event.clear()


API = Api(DeleteRecordsRequest, DeleteRecordsResponse, handle, error)
