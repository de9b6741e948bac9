"""The history in a capture: the metadata log that brokers and controllers fetched, with snapshots."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.formats import CaptureError
from mockraft.spark_replay.regression.captured import Captured
from mockraft.twin.history import History, SourceError, is_whole, longest
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.fetch_response import FetchResponse
from mockraft.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

_Chunks = dict[SnapshotId, dict[int, bytes]]


def read_capture(path: Path) -> History:
    """Return the longest history in the captured responses. SourceError for a file that is no capture."""
    try:
        exchanges = read_exchanges(path)
    except CaptureError as error:
        raise SourceError(f"{path}: {error}") from error
    batches: dict[int, StoredBatch] = {}
    chunks: _Chunks = defaultdict(dict)
    cluster_id, unread = "", 0
    for each in exchanges:
        if each.api_key not in (FetchRequest.api_key, FetchSnapshotResponse.api_key) or each.response is None:
            continue
        try:
            cluster_id = _read(each, batches, chunks) or cluster_id
        except WireError:
            unread += 1
    notes = [f"{unread} captured responses cannot be read"] if unread else []
    base, following = longest(_whole(chunks, notes), batches)
    history = History(path, base, following, cluster_id, notes=notes)
    if batches and history.end_offset <= max(batches):
        notes.append(f"the capture lacks records: those after offset {history.end_offset - 1} are left out")
    if batches and not following and base is None:
        notes.append(
            f"the captured part of the log begins at offset {min(batches)}: capture a broker that starts, and so"
            " fetches from the beginning"
        )
    return history


def _read(each: Captured, batches: dict[int, StoredBatch], chunks: _Chunks) -> str | None:
    """Add what a response has of the log; return the cluster id in its request."""
    response = each.read_response()
    request = each.read_request()[1] if each.request is not None else None
    if isinstance(response, FetchSnapshotResponse):
        _read_chunks(response, chunks)
        return None
    assert isinstance(response, FetchResponse)
    parts = [
        part
        for topic in response.responses
        if topic.topic_id == CLUSTER_METADATA_ID or topic.topic == CLUSTER_METADATA
        for part in topic.partitions
    ]
    for part in parts:
        data = bytes(part.records or b"")
        for header in record_batch.read_headers(data, allow_partial_tail=True):
            batch = data[header.position : header.end]
            batches[header.base_offset] = StoredBatch(header._replace(position=0, end=len(batch)), batch)
    return request.cluster_id if parts and isinstance(request, FetchRequest) else None


def _read_chunks(response: FetchSnapshotResponse, chunks: _Chunks) -> None:
    for topic in response.topics:
        for part in topic.partitions:
            if topic.name == CLUSTER_METADATA and part.error_code == 0 and part.unaligned_records:
                snapshot_id = SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch)
                chunks[snapshot_id][part.position] = bytes(part.unaligned_records)


def _whole(chunks: _Chunks, notes: list[str]) -> list[Snapshot]:
    """Return the snapshots that were captured as a whole."""
    found = []
    for snapshot_id, parts in chunks.items():
        data = bytearray()
        while (part := parts.get(len(data))) is not None:
            data += part
        snapshot = Snapshot(snapshot_id, bytes(data))
        if is_whole(snapshot, "a captured snapshot", notes):
            found.append(snapshot)
    return found
