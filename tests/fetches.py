"""Fetches of the metadata log and of its snapshots."""

from typing import Any, TypeVar

from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.wire.messages import fetch_snapshot_request
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

R = TypeVar("R")
TOPIC_ID = bytes(15) + b"\x01"
"""Id of __cluster_metadata (KIP-631), written down and not imported."""


def fetch_request(offset: int = 0, epoch: int = 1, **fields: Any) -> FetchRequest:
    """A fetch by a reader that has the log up to an offset; `fields` are of the partition or else of the request."""
    partition = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=epoch if offset else 0
    )
    topic = FetchTopic(topic_id=TOPIC_ID, partitions=[partition])
    return _changed(FetchRequest(max_wait_ms=500, max_bytes=1 << 20, topics=[topic]), partition, fields)


def snapshot_request(snapshot_id: SnapshotId, /, **fields: Any) -> fetch_snapshot_request.FetchSnapshotRequest:
    """A fetch of a snapshot by broker 1; `fields` are of the partition or else of the request."""
    partition = fetch_snapshot_request.PartitionSnapshot(
        partition=0,
        current_leader_epoch=1,
        snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
    )
    topic = fetch_snapshot_request.TopicSnapshot(name="__cluster_metadata", partitions=[partition])
    request = fetch_snapshot_request.FetchSnapshotRequest(replica_id=1, max_bytes=1 << 20, topics=[topic])
    return _changed(request, partition, fields)


def _changed(request: R, partition: object, fields: dict[str, Any]) -> R:
    for name, value in fields.items():
        setattr(partition if hasattr(partition, name) else request, name, value)
    return request
