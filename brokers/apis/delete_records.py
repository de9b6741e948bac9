"""DeleteRecords (21): KIP-107. Raises the log start offset and waits until the live replicas have done the same."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.brokers.apis.api import Api, Parked, RequestContext
from mockraft.brokers.apis.leaders import check_topic, each_once, replicas_of, topic_by_name
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_records_request import DeleteRecordsRequest
from mockraft.wire.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsResponse
from mockraft.wire.topic_names import INTERNAL

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


class _Wait(NamedTuple):
    """A partition whose records are deleted here, but perhaps not on every replica."""

    key: ReplicaKey
    offset: int
    answer: DeleteRecordsPartitionResult


def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse | Parked[DeleteRecordsResponse]:
    """Delete all records before the given offset of each partition; -1 is its high watermark."""
    request.topics = each_once(request.topics)
    response = error(request, error_codes.NONE, None)
    waits: list[_Wait] = []
    for topic, answers in zip(request.topics, response.topics, strict=True):
        for partition, answer in zip(topic.partitions, answers.partitions, strict=True):
            try:
                check_topic(ctx, AclOperation.DELETE, topic.name)
                known = topic_by_name(ctx, topic.name)
                if topic.name in INTERNAL and partition.partition_index in known.partitions:
                    raise LogError(error_codes.INVALID_TOPIC_EXCEPTION, "records of internal topics are not deleted")
                key = (known.topic_id, partition.partition_index)
                hosted = ctx.broker.replicas.find(key)
                offset = hosted.log.high_watermark if partition.offset == HIGH_WATERMARK else partition.offset
                hosted.delete_before(offset)
                waits.append(_Wait(key, offset, answer))
            except LogError as refused:
                answer.error_code = refused.error_code

    def retry(_now_ms: int, expired: bool) -> DeleteRecordsResponse | None:
        waits[:] = [wait for wait in waits if not _is_done(ctx, wait, expired)]
        return None if waits else response

    return retry(ctx.now_ms, False) or Parked(ctx.now_ms + request.timeout_ms, retry)


error = error_for_each(
    DeleteRecordsResponse,
    Items("topics", "topics", ("name",)),
    Items("partitions", "partitions", ("partition_index",)),
    low_watermark=INVALID_LOW_WATERMARK,
)


def _is_done(ctx: RequestContext, wait: _Wait, expired: bool) -> bool:
    """Put the low watermark into the answer once the log of every live replica starts at the offset, or an error."""
    try:
        hosted = ctx.broker.replicas.find(wait.key)
        hosted.check_epoch(-1, only_leader=True)
        low_watermark = hosted.low_watermark
    except LogError as refused:
        wait.answer.error_code = refused.error_code
        return True
    if low_watermark >= wait.offset:
        wait.answer.low_watermark = low_watermark
        return True
    if expired:
        wait.answer.error_code = error_codes.REQUEST_TIMED_OUT
    return expired


API = Api(DeleteRecordsRequest, DeleteRecordsResponse, handle, error, replicas=replicas_of)
