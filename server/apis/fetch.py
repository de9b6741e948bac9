"""Fetch (1), versions 4-18, of the metadata log: KIP-595 (raft), KIP-630 (snapshots), KIP-853, KIP-1166.

Order of checks and answers as in KafkaRaftClient.handleFetchRequest. As there, the log is asked for by topic id, so
versions below 13 are refused with INVALID_REQUEST, there are no fetch sessions, and minBytes and partitionMaxBytes are
ignored: a request that finds nothing new waits for an append or maxWaitMs. NodeEndpoints are in versions 17 and up,
as Kafka fills them, although version 16 could hold them.
"""

import logging

from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis import refusals
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import leader_and_epoch, log_refusal, node_endpoints
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.quorum.voter_set import PARTITION, ReplicaKey
from mockraft.server.raft.voter_changes import check_leads
from mockraft.wire import error_codes
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest
from mockraft.wire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mockraft.wire.messages.fetch_response import SnapshotId as ResponseSnapshotId
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

_LOGGER = logging.getLogger(__name__)
_RECORDS_BYTES_MAX = 8 << 20
_NODE_ENDPOINTS_VERSION = 17


def handle(request: FetchRequest, ctx: RequestContext, controller: Controller) -> FetchResponse | Parked[FetchResponse]:
    """Return records after the follower's offset, or an error; `Parked` if there is nothing new.

    A parked request is answered when the log grows, when the high watermark moves, and when the leadership is lost.
    """
    log, raft = controller.log, controller.raft
    if request.cluster_id is not None and request.cluster_id != controller.config.cluster_id:
        raise refusals.other_cluster(controller, request.cluster_id, _replica_id(request), refusals.FETCH, ctx.now_ms)
    partition = _metadata_partition(request)
    if partition is None:
        return FetchResponse(error_code=error_codes.INVALID_REQUEST)
    data, settled = _complete(request, partition, controller, ctx.now_ms)
    if settled or request.max_wait_ms == 0 or raft.high_watermark > partition.high_watermark:
        return _response(data, ctx, controller)
    seen = (log.high_watermark, raft.epoch, raft.role)

    def retry(now_ms: int, expired: bool) -> FetchResponse | None:
        if log.end_offset > partition.fetch_offset or (log.high_watermark, raft.epoch, raft.role) != seen:
            return _response(_complete(request, partition, controller, now_ms)[0], ctx, controller)
        return _response(data, ctx, controller) if expired else None

    return Parked(ctx.now_ms + request.max_wait_ms, retry)


def _replica_id(request: FetchRequest) -> int:
    return request.replica_id if request.replica_id != -1 else request.replica_state.replica_id


def _metadata_partition(request: FetchRequest) -> FetchPartition | None:
    """Return the requested partition, None unless it is the metadata log's (RaftUtil.hasValidTopicPartition)."""
    if len(request.topics) != 1 or request.topics[0].topic_id != CLUSTER_METADATA_ID:
        return None
    partitions = request.topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == PARTITION else None


def _complete(
    request: FetchRequest, partition: FetchPartition, controller: Controller, now_ms: int
) -> tuple[PartitionData, bool]:
    """Return the partition's current response, and whether it must be sent without waiting."""
    log, raft = controller.log, controller.raft
    offset, last_epoch = partition.fetch_offset, partition.last_fetched_epoch
    replica = ReplicaKey(_replica_id(request), partition.replica_directory_id)
    refused = _refusal(request, partition, controller, replica)
    if refused:
        epoch = partition.current_leader_epoch
        log_refusal(controller, replica, refused, f"Fetch at offset {offset} in leader epoch {epoch}", now_ms)
        return PartitionData(error_code=refused, high_watermark=-1), True
    data = PartitionData()
    differs = log.check(offset, last_epoch)
    if isinstance(differs, SnapshotId):
        data.snapshot_id = ResponseSnapshotId(end_offset=differs.end_offset, epoch=differs.epoch)
    elif differs is not None:
        data.diverging_epoch = EpochEndOffset(epoch=differs.epoch, end_offset=differs.end_offset)
        if raft.leading is not None and raft.leading.diverged(replica.id, offset):
            _LOGGER.warning(
                "replica %d has the log up to %d, epoch %d; this log ends at %d, epoch %d: it must truncate to %d"
                " (a broker exits when that is below its high watermark)",
                *(replica.id, offset, last_epoch, log.end_offset, log.last_epoch, differs.end_offset),
            )
    else:
        data.records = log.read(offset, min(request.max_bytes, _RECORDS_BYTES_MAX))
        if replica.id >= 0:
            # Kafka notes where the data that it read begins, not what was asked for (LogSegment.read).
            raft.fetched(replica, log.base_offset_of(offset), now_ms)
    data.high_watermark = raft.high_watermark
    return data, differs is not None or bool(data.records)


def _refusal(request: FetchRequest, partition: FetchPartition, controller: Controller, replica: ReplicaKey) -> int:
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        return error_codes.INVALID_REQUEST
    refused = check_leads(controller.raft, partition.current_leader_epoch)
    if refused:
        return refused
    if replica.id == controller.config.node_id:
        # Kafka's leader breaks on a follower with its own id (LeaderState.updateReplicaState).
        return error_codes.UNKNOWN_SERVER_ERROR
    return error_codes.NONE


def _response(data: PartitionData, ctx: RequestContext, controller: Controller) -> FetchResponse:
    raft = controller.raft
    data.partition_index = PARTITION
    data.log_start_offset = controller.log.start_offset
    data.current_leader = leader_and_epoch(LeaderIdAndEpoch, raft)
    if data.records is None:
        data.records = b""
    topic = FetchableTopicResponse(topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_ID, partitions=[data])
    endpoints = node_endpoints(NodeEndpoint, raft, ctx, since_version=_NODE_ENDPOINTS_VERSION)
    return FetchResponse(responses=[topic], node_endpoints=endpoints)


API = Api(FetchRequest, FetchResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION)
