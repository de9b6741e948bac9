"""FetchSnapshot (59), versions 0-1: KIP-630, KIP-853 (leader endpoint).

Order of checks as in KafkaRaftClient.handleFetchSnapshotRequest. Kafka intends partition errors but cannot write
such a response (its records are null) and sends UNKNOWN_SERVER_ERROR instead; here they are sent as intended.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.server.apis import refusals
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import leader_and_epoch, node_endpoints
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.snapshot import BOOTSTRAP, SnapshotId
from mockraft.server.controller.quorum.voter_set import PARTITION, ReplicaKey
from mockraft.server.controller.result import ApiError
from mockraft.server.raft.voter_changes import check_leads
from mockraft.wire import error_codes
from mockraft.wire.messages import fetch_snapshot_request
from mockraft.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from mockraft.wire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    TopicSnapshot,
)
from mockraft.wire.messages.fetch_snapshot_response import SnapshotId as ResponseSnapshotId
from mockraft.wire.topic_names import CLUSTER_METADATA

_CHUNK_BYTES_MAX = 8 << 20


def handle(request: FetchSnapshotRequest, ctx: RequestContext, controller: Controller) -> FetchSnapshotResponse:
    """Return up to maxBytes of a snapshot from a position on, not aligned to batches."""
    if request.cluster_id is not None and request.cluster_id != controller.config.cluster_id:
        raise refusals.other_cluster(controller, request.cluster_id, request.replica_id, refusals.FETCH, ctx.now_ms)
    if not _is_readable(request, controller):
        raise ApiError(error_codes.INVALID_REQUEST)
    asked = [each for topic in request.topics if topic.name == CLUSTER_METADATA for each in topic.partitions]
    partition = next((each for each in asked if each.partition == PARTITION), None)
    if partition is None:
        index = request.topics[0].partitions[0].partition
        unknown = PartitionSnapshot(index=index, error_code=error_codes.UNKNOWN_TOPIC_OR_PARTITION)
        return _response(request.topics[0].name, unknown, ctx, controller)
    answer = _read(request, partition, controller, ctx.now_ms)
    answer.current_leader = leader_and_epoch(LeaderIdAndEpoch, controller.raft)
    return _response(CLUSTER_METADATA, answer, ctx, controller)


def _is_readable(request: FetchSnapshotRequest, controller: Controller) -> bool:
    """Return True for one partition of one topic; before 4.2.2 and 4.4, also for one topic or one first partition.

    Older controllers of Kafka do not refuse all others (apache/kafka#23185); here they are refused in every release.
    """
    partitions = len(request.topics[0].partitions) if request.topics else 0
    if controller.has(Behaviour.SNAPSHOTS_ARE_FETCHED_SINGLY):
        return len(request.topics) == partitions == 1
    return partitions == 1 or (partitions > 1 and len(request.topics) == 1)


def _read(
    request: FetchSnapshotRequest,
    partition: fetch_snapshot_request.PartitionSnapshot,
    controller: Controller,
    now_ms: int,
) -> PartitionSnapshot:
    refused = check_leads(controller.raft, partition.current_leader_epoch)
    if refused:
        return PartitionSnapshot(error_code=refused)
    snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    snapshot = controller.log.find_snapshot(snapshot_id)
    if snapshot is None or snapshot_id == BOOTSTRAP:
        return PartitionSnapshot(error_code=error_codes.SNAPSHOT_NOT_FOUND)
    if not 0 <= partition.position < snapshot.size:
        return PartitionSnapshot(error_code=error_codes.POSITION_OUT_OF_RANGE)
    if request.max_bytes < 0:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    leading = controller.raft.leading
    if leading is not None and request.replica_id >= 0:
        leading.contacted(ReplicaKey(request.replica_id, partition.replica_directory_id), now_ms)
    return PartitionSnapshot(
        snapshot_id=ResponseSnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        size=snapshot.size,
        position=partition.position,
        unaligned_records=snapshot.read(partition.position, min(request.max_bytes, _CHUNK_BYTES_MAX)),
    )


def _response(
    topic_name: str, partition: PartitionSnapshot, ctx: RequestContext, controller: Controller
) -> FetchSnapshotResponse:
    if partition.unaligned_records is None:
        partition.unaligned_records = b""
    topics = [TopicSnapshot(name=topic_name, partitions=[partition])]
    endpoints = node_endpoints(NodeEndpoint, controller.raft, ctx, since_version=1)
    return FetchSnapshotResponse(topics=topics, node_endpoints=endpoints)


API = Api(FetchSnapshotRequest, FetchSnapshotResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION)
