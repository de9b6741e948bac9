"""WriteTxnMarkers (27): KIP-98, KIP-1228 (the transaction.version). A coordinator ends transactions in partitions."""

from __future__ import annotations

import functools
from typing import NamedTuple

from mockraft.brokers.apis.api import Api, ApiError, Parked, RequestContext
from mockraft.brokers.apis.leaders import replication_error
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.config import REQUEST_TIMEOUT_MS
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.transaction_markers import Marker
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from mockraft.wire.messages.write_txn_markers_response import WritableTxnMarkerPartitionResult, WriteTxnMarkersResponse
from mockraft.wire.topic_names import GROUP_METADATA


class _Wait(NamedTuple):
    """A marker that the in-sync replicas must have, by its end offset."""

    key: ReplicaKey
    end_offset: int
    answer: WritableTxnMarkerPartitionResult


def handle(
    request: WriteTxnMarkersRequest, ctx: RequestContext
) -> WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]:
    """Write the markers and wait for the replicas."""
    if not ctx.may(AclOperation.ALTER, ResourceType.CLUSTER):
        ctx.check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if any(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in request.markers):
        # Kafka cannot build the batch, after it has written those before.
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    response = error(request, error_codes.NONE, None)
    waits: list[_Wait] = []
    groups: list[WritableTxnMarkerPartitionResult] = []
    for marker, result in zip(request.markers, response.markers, strict=True):
        for topic in result.topics:
            for answer in topic.partitions:
                if topic.name == GROUP_METADATA:
                    groups.append(answer)
                    written = functools.partial(_written, groups, answer)
                    ctx.broker.groups.end_transaction(answer.partition_index, _marker(marker), written)
                else:
                    _append(ctx, topic.name, marker, answer, waits)

    def retry(_now_ms: int, expired: bool) -> WriteTxnMarkersResponse | None:
        waits[:] = [wait for wait in waits if not _is_done(ctx, wait, expired)]
        if expired:
            for answer in groups:
                answer.error_code = error_codes.REQUEST_TIMED_OUT
        return response if expired or not (waits or groups) else None

    timeout_ms = int(ctx.broker.config.properties.get(*REQUEST_TIMEOUT_MS))
    return retry(ctx.now_ms, False) or Parked(ctx.now_ms + timeout_ms, retry)


error = error_for_each(
    WriteTxnMarkersResponse,
    Items("markers", "markers", ("producer_id",)),
    Items("topics", "topics", ("name",)),
    Items("partition_indexes", "partitions", ("partition_index",)),
)


def _marker(marker: WritableTxnMarker) -> Marker:
    return Marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        marker.transaction_version,
    )


def _append(
    ctx: RequestContext,
    topic: str,
    marker: WritableTxnMarker,
    answer: WritableTxnMarkerPartitionResult,
    waits: list[_Wait],
) -> None:
    known = ctx.image.topics_by_name.get(topic)
    hosted = None if known is None else ctx.broker.replicas.hosted((known.topic_id, answer.partition_index))
    if hosted is None:
        # Kafka looks for the log first, and takes a missing one for an unknown partition.
        answer.error_code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
        return
    try:
        waits.append(_Wait(hosted.key, hosted.append_marker(_marker(marker), ctx.now_ms), answer))
    except LogError as refused:
        answer.error_code = refused.error_code


def _is_done(ctx: RequestContext, wait: _Wait, expired: bool) -> bool:
    """Return True once the in-sync replicas have the marker, or put the error into the answer."""
    code = replication_error(ctx, wait.key, wait.end_offset, expired=expired)
    wait.answer.error_code = code or error_codes.NONE
    return code is not None


def _written(
    groups: list[WritableTxnMarkerPartitionResult], answer: WritableTxnMarkerPartitionResult, code: int
) -> None:
    answer.error_code = code
    # By identity: equal answers may be there for two markers.
    groups[:] = [each for each in groups if each is not answer]


API = Api(WriteTxnMarkersRequest, WriteTxnMarkersResponse, handle, error)
