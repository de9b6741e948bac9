"""A broker's raft side without sockets: produces the next request and processes its response.

A broker is an observer of `__cluster_metadata`: it finds the leader, fetches batches, checks them, and hands committed
records to its view; it truncates on the leader's request and starts over from a snapshot when the log begins later. The
rules and their order are those of Kafka's `KafkaRaftClient` (handleFetchResponse, maybeHandleCommonResponse,
handleFetchSnapshotResponse). Where its raft thread would exit the process, `FatalError` is raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from mockraft.brokers.image import NO_LEADER, ClusterImage
from mockraft.wire import error_codes, metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.messages import fetch_response, fetch_snapshot_response
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.record_batch import Batch
from mockraft.wire.records.voters_record import VotersRecord
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

FETCH_WAIT_MS = 500
FETCH_BYTES_MAX, SNAPSHOT_BYTES_MAX = 1 << 20, 1 << 30
RETRY_BACKOFF_MS = 20
CORRUPT_BACKOFF_MS = 500
"""Kafka retries at once and fills its log; a simulated broker waits."""

Endpoint = tuple[str, int]
_Response: TypeAlias = fetch_response.FetchResponse | fetch_snapshot_response.FetchSnapshotResponse
_Partition: TypeAlias = fetch_response.PartitionData | fetch_snapshot_response.PartitionSnapshot
_NodeEndpoint: TypeAlias = fetch_response.NodeEndpoint | fetch_snapshot_response.NodeEndpoint


class FatalError(Exception):
    """The response makes a real broker's raft thread exit the process; the text is Kafka's where it has one."""


class Leader(NamedTuple):
    """The leader of the metadata quorum and its endpoint for brokers."""

    node_id: int
    epoch: int
    endpoint: Endpoint


class Outcome(NamedTuple):
    """The result of one response.

    Without `useful` the request is repeated after `backoff_ms`, perhaps at another node; `note` is the reason.
    """

    useful: bool = True
    backoff_ms: int = 0
    note: str = ""


class View(Protocol):
    """A consumer of the committed records, in their order."""

    def clear(self) -> None:
        """Clear everything before a snapshot is read."""

    def apply(self, at: RecordAt) -> None:
        """Apply one committed record."""


class _Snapshot(NamedTuple):
    end_offset: int
    epoch: int
    data: bytearray


_FINE = Outcome()


class Observer:
    """The replicated log of one broker. Keeps batches only until they are committed and passed to the view.

    `end_offset` is the next offset to fetch, `applied_offset` the last committed one the view has seen (-1: none), the
    heartbeat's CurrentMetadataOffset. `leader_high_watermark` is the last one received from the leader. `voters` maps
    node id to listener name to (host, port). `image` gets the same records as the view, for a broker that serves
    clients.
    """

    def __init__(
        self,
        broker_id: int,
        cluster_id: str,
        directory_id: bytes,
        view: View,
        listener_name: str = "CONTROLLER",
        decode: Callable[[bytes], RecordAt] = metadata_log_frame.decode,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        self.view = view
        self.listener_name = listener_name
        self.image: ClusterImage | None = None
        self._decode = decode
        self.epoch = 0
        self.leader: Leader | None = None
        self.end_offset = 0
        self.high_watermark = -1
        self.leader_high_watermark = -1
        self.applied_offset = -1
        self._uncommitted: deque[Batch] = deque()
        self._epochs: list[tuple[int, int]] = []
        self._voters: list[tuple[int, Mapping[int, Mapping[str, Endpoint]]]] = []
        self._snapshot: _Snapshot | None = None

    @property
    def voters(self) -> Mapping[int, Mapping[str, Endpoint]]:
        """The newest voter set in the log, committed or not; empty before any (and always under kraft.version 0)."""
        return self._voters[-1][1] if self._voters else {}

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch of the last batch in the log, 0 when there is none."""
        return self._epochs[-1][0] if self._epochs else 0

    def request(self) -> FetchRequest | FetchSnapshotRequest:
        """Return the next request: a Fetch, or the next piece of the snapshot that is being fetched."""
        return self._fetch_snapshot(self._snapshot) if self._snapshot else self._fetch()

    def receive(self, response: _Response) -> Outcome:
        """Process the response to the last request. Raises FatalError."""
        if response.error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED:
            raise FatalError("received cluster authorization error")
        if response.error_code != error_codes.NONE:
            other = response.error_code == error_codes.INCONSISTENT_CLUSTER_ID
            about = f": the controller's cluster is not {self.cluster_id!r}" if other else ""
            return _again(f"unexpected error {error_codes.name(response.error_code)}{about}")
        if isinstance(response, fetch_response.FetchResponse):
            return self._receive_fetch(response)
        return self._receive_snapshot(response)

    def _fetch(self) -> FetchRequest:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self.epoch,
            fetch_offset=self.end_offset,
            last_fetched_epoch=self.last_fetched_epoch,
            replica_directory_id=self.directory_id,
            high_watermark=self.high_watermark,
        )
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica_state=ReplicaState(replica_id=self.broker_id),
            max_wait_ms=FETCH_WAIT_MS,
            max_bytes=FETCH_BYTES_MAX,
            topics=[FetchTopic(topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_ID, partitions=[partition])],
        )

    def _fetch_snapshot(self, snapshot: _Snapshot) -> FetchSnapshotRequest:
        partition = PartitionSnapshot(
            partition=0,
            current_leader_epoch=self.epoch,
            snapshot_id=SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
            position=len(snapshot.data),
            replica_directory_id=self.directory_id,
        )
        return FetchSnapshotRequest(
            cluster_id=self.cluster_id,
            replica_id=self.broker_id,
            max_bytes=FETCH_BYTES_MAX,
            topics=[TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
        )

    def _receive_fetch(self, response: fetch_response.FetchResponse) -> Outcome:
        topics = response.responses
        if len(topics) != 1 or topics[0].topic_id != CLUSTER_METADATA_ID or len(topics[0].partitions) != 1:
            return _again("the answer is not about the metadata log")
        partition = topics[0].partitions[0]
        if partition.partition_index != 0:
            return _again("the answer is not about partition 0")
        handled = self._check_leader(partition, response.node_endpoints)
        if handled is not None:
            return handled
        if partition.error_code != error_codes.NONE:
            return _again(f"unexpected error {error_codes.name(partition.error_code)}")
        if partition.diverging_epoch.epoch >= 0:
            self._truncate(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
            return _FINE
        snapshot_id = partition.snapshot_id
        if snapshot_id.epoch >= 0 or snapshot_id.end_offset >= 0:
            if snapshot_id.epoch < 0 or snapshot_id.end_offset < 0:
                return _again(f"half a snapshot id: {snapshot_id.end_offset}, {snapshot_id.epoch}")
            self._snapshot = _Snapshot(snapshot_id.end_offset, snapshot_id.epoch, bytearray())
            return _FINE
        outcome = self._append(partition.records or b"")
        self.leader_high_watermark = partition.high_watermark
        if partition.high_watermark >= 0:
            self._commit(min(self.end_offset, partition.high_watermark))
        return outcome

    def _check_leader(self, partition: _Partition, endpoints: Sequence[_NodeEndpoint]) -> Outcome | None:
        """Return None when the response comes from the current leader (perhaps since now) and may be used."""
        error, leader_id = partition.error_code, partition.current_leader.leader_id
        epoch = partition.current_leader.leader_epoch
        if epoch < self.epoch or error == error_codes.UNKNOWN_LEADER_EPOCH:
            return _again(f"a response from epoch {epoch}, ours is {self.epoch}")
        moved = (error_codes.FENCED_LEADER_EPOCH, error_codes.NOT_LEADER_OR_FOLLOWER)
        if epoch > self.epoch or error in moved:
            self._check_consistent(leader_id, epoch)
            news = epoch > self.epoch or (leader_id != NO_LEADER and self.leader is None)
            if news:
                self._follow(leader_id, epoch, endpoints)
            return _FINE if news and self.leader else _again("no leader is known")
        if leader_id != NO_LEADER and self.leader is None:
            self._check_consistent(leader_id, epoch)
            self._follow(leader_id, epoch, endpoints)
            return None if error == error_codes.NONE else _FINE
        if error == error_codes.BROKER_NOT_AVAILABLE:
            return _again("the controller is shutting down")
        if error == error_codes.INVALID_REQUEST:
            raise FatalError("Received unexpected invalid request error")
        if self.leader is None:
            raise FatalError("Expected to be Follower, but the current state is Unattached")
        return None

    def _check_consistent(self, leader_id: int, epoch: int) -> None:
        known = self.leader.node_id if self.leader is not None and epoch == self.epoch else leader_id
        if leader_id == self.broker_id != NO_LEADER or leader_id not in (known, NO_LEADER):
            raise FatalError(
                f"Received request or response with leader {leader_id} and epoch {epoch} which is inconsistent with "
                f"current leader {self.leader.node_id if self.leader else None} and epoch {self.epoch}"
            )

    def _follow(self, leader_id: int, epoch: int, endpoints: Sequence[_NodeEndpoint]) -> None:
        self.epoch = epoch
        self.leader = None
        # Each leader has its own snapshots: the next leader may not have this one.
        self._snapshot = None
        if leader_id == NO_LEADER:
            return
        endpoint = next(((e.host, e.port) for e in endpoints if e.node_id == leader_id), None)
        endpoint = endpoint or self.voters.get(leader_id, {}).get(self.listener_name)
        if endpoint is None:
            old = " (controllers before Kafka 3.9 have no endpoints in Fetch: simulated brokers need 3.9 or newer)"
            about = f"Unknown leader endpoints for leader {leader_id}; voters {sorted(self.voters)}"
            raise FatalError(about if endpoints else about + old)
        self.leader = Leader(leader_id, epoch, endpoint)

    def _append(self, data: bytes) -> Outcome:
        if not data:
            return _FINE
        try:
            batches = list(record_batch.read_batches(data, allow_partial_tail=True))
        except WireError as error:
            return Outcome(False, CORRUPT_BACKOFF_MS, f"corrupt records: {error}")
        if not batches:
            return Outcome(False, CORRUPT_BACKOFF_MS, "no complete batch in the response")
        if any(batch.leader_epoch > self.epoch for batch in batches):
            return Outcome(False, CORRUPT_BACKOFF_MS, "corrupt records: a batch is newer than its leader")
        for batch in batches:
            if batch.base_offset < self.end_offset:
                raise FatalError(f"Unexpected offset in append: {batch.base_offset} is below {self.end_offset}")
            if batch.leader_epoch < self.last_fetched_epoch:
                raise FatalError(
                    f"Epoch {batch.leader_epoch} at offset {batch.base_offset} is older than the one before"
                )
            if batch.leader_epoch > self.last_fetched_epoch or not self._epochs:
                self._epochs.append((batch.leader_epoch, batch.base_offset))
            if batch.is_control:
                self._take_voters(batch)
            self._uncommitted.append(batch)
            self.end_offset = batch.last_offset + 1
        return _FINE

    def _take_voters(self, batch: Batch) -> None:
        for key, value in batch.records:
            try:
                if record_batch.control_type(key) == record_batch.KRAFT_VOTERS:
                    self._voters.append((batch.base_offset, _read_voters(value or b"")))
            except WireError as error:
                raise FatalError(f"Could not read a control record: {error}") from error

    def _commit(self, high_watermark: int) -> None:
        if high_watermark < self.high_watermark:
            return
        self.high_watermark = high_watermark
        while self._uncommitted and self._uncommitted[0].last_offset < high_watermark:
            batch = self._uncommitted.popleft()
            self._apply(batch)
            self.applied_offset = batch.last_offset

    def _apply(self, batch: Batch) -> None:
        if batch.is_control:
            return
        for key, value in batch.records:
            if key is not None or value is None:
                raise FatalError("Got key in the record when no key was expected")
            try:
                record_at = self._decode(value)
            except WireError as error:
                raise FatalError(f"Could not deserialize metadata record: {error}") from error
            self.view.apply(record_at)
            if self.image is not None:
                self.image.apply(record_at)

    def _truncate(self, epoch: int, end_offset: int) -> None:
        if end_offset < max(self.high_watermark, 0):
            raise FatalError(
                f"The leader requested truncation to offset {end_offset}, which is below the current high watermark "
                f"{self.high_watermark}"
            )
        ours = self._end_of_epoch(epoch)
        offset = min(end_offset, ours[1]) if ours[0] == epoch else ours[1]
        if offset < self.high_watermark:
            raise FatalError(f"Attempt to truncate to offset {offset}, which is below the high watermark")
        self.end_offset = min(self.end_offset, offset)
        while self._uncommitted and self._uncommitted[-1].last_offset >= offset:
            self.end_offset = min(self.end_offset, self._uncommitted.pop().base_offset)
        self._epochs = [entry for entry in self._epochs if entry[1] < self.end_offset]
        self._voters = [entry for entry in self._voters if entry[0] < self.end_offset]

    def _end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch of our log that is not above `epoch`, and its end offset."""
        end = self.end_offset
        for ours, start in reversed(self._epochs):
            if ours <= epoch:
                return ours, end
            end = start
        return epoch, end

    def _receive_snapshot(self, response: fetch_snapshot_response.FetchSnapshotResponse) -> Outcome:
        snapshot = self._snapshot
        if snapshot is None or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
            return _again("the answer is not about the snapshot")
        partition = response.topics[0].partitions[0]
        if response.topics[0].name != CLUSTER_METADATA or partition.index != 0:
            return _again("the answer is not about the metadata log")
        handled = self._check_leader(partition, response.node_endpoints)
        if handled is not None:
            return handled
        got = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        if partition.error_code == error_codes.SNAPSHOT_NOT_FOUND or min(got) < 0:
            self._snapshot = None
            return _again("the leader has dropped the snapshot")
        if partition.error_code != error_codes.NONE:
            return _again(f"unexpected error {error_codes.name(partition.error_code)}")
        if got != (snapshot.end_offset, snapshot.epoch) or partition.position != len(snapshot.data):
            raise FatalError(
                f"Received fetch snapshot response with an invalid id or position: {got} at {partition.position}, "
                f"expected {(snapshot.end_offset, snapshot.epoch)} at {len(snapshot.data)}"
            )
        snapshot.data.extend(partition.unaligned_records or b"")
        if len(snapshot.data) > SNAPSHOT_BYTES_MAX or len(snapshot.data) > partition.size:
            raise FatalError(f"the snapshot is larger than its announced size of {partition.size} bytes")
        if len(snapshot.data) == partition.size:
            self._load_snapshot(snapshot)
        elif not partition.unaligned_records:
            return _again("an empty piece of a snapshot")
        return _FINE

    def _load_snapshot(self, snapshot: _Snapshot) -> None:
        self._snapshot = None
        try:
            batches = list(record_batch.read_batches(bytes(snapshot.data)))
        except WireError as error:
            raise FatalError(f"the snapshot is corrupt: {error}") from error
        # KafkaRaftLog.truncateToLatestSnapshot: one of a later epoch replaces a longer log too, which is uncommitted.
        if (snapshot.epoch, snapshot.end_offset) <= (self.last_fetched_epoch, self.end_offset):
            raise FatalError("Full log truncation expected but didn't happen")
        self.view.clear()
        if self.image is not None:
            self.image.clear()
        self._uncommitted.clear()
        self._voters.clear()
        for batch in batches:
            if batch.is_control:
                self._take_voters(batch)
            self._apply(batch)
        self._voters = [(-1, voters) for _, voters in self._voters]
        self._epochs = [(snapshot.epoch, snapshot.end_offset - 1)]
        self.end_offset = self.high_watermark = snapshot.end_offset
        self.applied_offset = snapshot.end_offset - 1


def _again(note: str) -> Outcome:
    return Outcome(False, RETRY_BACKOFF_MS, note)


def _read_voters(value: bytes) -> dict[int, dict[str, Endpoint]]:
    version = int.from_bytes(value[:2], signed=True)
    record = VotersRecord.read(value, min(max(version, VotersRecord.min_version), VotersRecord.max_version))
    return {voter.voter_id: {e.name: (e.host, e.port) for e in voter.endpoints} for voter in record.voters}
