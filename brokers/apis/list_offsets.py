"""ListOffsets (2): KIP-79 (by time), KIP-207 (OFFSET_NOT_AVAILABLE), KIP-734 (max timestamp), KIP-405 (local offsets).

-2 and -4 are the log start offset (there is no tiered storage), -1 the end that the reader may see, -3 the record with
the largest timestamp; -5 and -6 request tiered offsets, of which there are none. Other negative times are refused, and
each before its first version.
"""

from __future__ import annotations

from collections import Counter

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.apis.leaders import check_topic, each_once, replicas_of, topic_by_name
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from mockraft.wire.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
TIERED = (-5, -6)
FIRST_VERSIONS = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
"""As in ReplicaManager.isListOffsetsTimestampUnsupported."""
NO_VERSION = 1 << 15
READ_COMMITTED = 1
CONSUMER, DEBUGGER = -1, -2
UNKNOWN = -1
LEADER_EPOCHS_FROM = 4


def handle(request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse:
    """Return each partition's offset for the requested time."""
    asked = Counter((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
    request.topics = each_once(request.topics)
    response = error(request, error_codes.NONE, None)
    for topic, answers in zip(request.topics, response.topics, strict=True):
        for partition, answer in zip(topic.partitions, answers.partitions, strict=True):
            try:
                check_topic(ctx, AclOperation.DESCRIBE, topic.name)
                if asked[topic.name, partition.partition_index] > 1:
                    raise LogError(error_codes.INVALID_REQUEST, "the partition is named twice")
                if partition.timestamp < 0 and ctx.api_version < FIRST_VERSIONS.get(partition.timestamp, NO_VERSION):
                    raise LogError(error_codes.UNSUPPORTED_VERSION, "the time has no meaning in this version")
                key = (topic_by_name(ctx, topic.name).topic_id, partition.partition_index)
                _find(ctx.broker.replicas.find(key), partition, request, answer)
            except LogError as refused:
                answer.error_code = refused.error_code
                if answer.error_code == error_codes.OFFSET_NOT_AVAILABLE and ctx.api_version < 5:
                    answer.error_code = error_codes.LEADER_NOT_AVAILABLE
            if ctx.api_version < LEADER_EPOCHS_FROM:
                answer.leader_epoch = UNKNOWN
    return response


error = error_for_each(
    ListOffsetsResponse, Items("topics", "topics", ("name",)), Items("partitions", "partitions", ("partition_index",))
)


def _find(
    hosted: HostedPartition,
    requested: ListOffsetsPartition,
    request: ListOffsetsRequest,
    answer: ListOffsetsPartitionResponse,
) -> None:
    """Return the offset as Kafka's Partition.fetchOffsetForTimestamp does. Raises LogError."""
    log, state = hosted.log, hosted.state
    hosted.check_epoch(requested.current_leader_epoch, only_leader=request.replica_id != DEBUGGER)
    is_client = request.replica_id == CONSUMER
    end_offset = log.end_offset
    if is_client:
        end_offset = hosted.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    epoch_start = state.epoch_start_offset
    lags = is_client and epoch_start is not None and epoch_start > log.high_watermark
    if requested.timestamp == LATEST:
        if lags:
            raise LogError(error_codes.OFFSET_NOT_AVAILABLE, "the high watermark is behind this leader's start")
        found: tuple[int, int] | None = (end_offset, UNKNOWN)
        answer.leader_epoch = state.leader_epoch
    elif requested.timestamp in (EARLIEST, EARLIEST_LOCAL):
        found = (log.start_offset, UNKNOWN)
        answer.leader_epoch = hosted.epoch_at(log.start_offset)
    elif requested.timestamp in TIERED:
        found = None
    else:
        found = (
            log.max_timestamp()
            if requested.timestamp == MAX_TIMESTAMP
            else log.offset_for_timestamp(requested.timestamp)
        )
        if found is None or found[0] >= end_offset:
            if lags:
                raise LogError(error_codes.OFFSET_NOT_AVAILABLE, "the high watermark is behind this leader's start")
            found = None
        if found is not None:
            answer.leader_epoch = hosted.epoch_at(found[0])
    if found is not None:
        answer.offset, answer.timestamp = found


API = Api(ListOffsetsRequest, ListOffsetsResponse, handle, error, replicas=replicas_of)
