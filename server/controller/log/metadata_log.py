"""The metadata log: partition 0 of `__cluster_metadata` as bytes, as kept by one controller.

Mirrors Kafka's KafkaRaftLog and KafkaRaftClient. Batches are kept as sent, in memory and, with a data directory, in
Kafka's own files. Records below the oldest kept snapshot may be dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from mockraft.releases import Behaviour, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.batches import LogBatches
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.server.controller.log.files import LogFiles
from mockraft.server.controller.log.snapshot import BOOTSTRAP, EpochEndOffset, Snapshot, SnapshotId, completed
from mockraft.server.controller.quorum.voter_set import (
    NO_DIRECTORY_ID,
    ElectionState,
    ReplicaKey,
    VoterEndpoint,
    VoterHistory,
    VoterNode,
    VoterSet,
)
from mockraft.server.controller.security import scram
from mockraft.server.controller.settings import features
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    import random

    from mockraft.wire.message import Message
    from mockraft.wire.overlay import Overlay


class RecordFrames(Protocol):
    """The functions of `metadata_log_frame`. Both raise WireError."""

    def encode(self, record: Message, version: int) -> bytes:
        """Write a record with its frame."""

    def decode(self, value: bytes) -> RecordAt:
        """Read a record, and its version from the frame."""


def record_frames(overlay: Overlay | None) -> RecordFrames:
    """Return the framing of Kafka's records, or of an overlay's."""
    if overlay is None:
        return metadata_log_frame
    from mockraft.wire.recast import OverlaidRecords

    return OverlaidRecords(overlay)


_LOGGER = logging.getLogger(__name__)
_SNAPSHOT_RETRY_MS = 60_000
_CLEAN_INTERVAL_MS = 60_000


class MetadataLog:
    """The log of one controller, from `start_offset` (the first offset still held) on.

    `high_watermark` is the offset below which all is committed; raft moves it, but with `commits_alone` (the leader is
    the only voter) every append does. `leader_epoch` is the epoch of appended batches. `snapshots` are the kept ones,
    oldest first. `directory_id` is 16 bytes.
    """

    def __init__(self, config: ControllerConfig, files: LogFiles | None, directory_id: bytes) -> None:
        """An empty log; use `open`."""
        self.config, self.directory_id = config, directory_id
        self.leader_epoch = self.start_offset = self.high_watermark = self._last_timestamp_ms = 0
        self.commits_alone = False
        self.snapshots: list[Snapshot] = []
        self.election = ElectionState()
        self._files, self.frames = files, record_frames(config.overlay)
        self._batches = LogBatches()
        self._voters = configured_history(config, self.local_voter)
        self._snapshot_bytes_mark = self._snapshot_time_ms = self._clean_ms = 0

    @classmethod
    def open(cls, config: ControllerConfig, now_ms: int, rng: random.Random) -> MetadataLog:
        """Recover the log from `config.data_dir`, or start an empty one in memory.

        DataDirError if the data directory cannot be used: another's, in use, damaged, or shorter than it once was.
        """
        if config.data_dir is None:
            log = cls(config, None, config.initial_directory_id or draw_uuid(rng))
        else:
            try:
                files = LogFiles(config, rng)
                log = cls(config, files, files.directory_id)
                try:
                    log._recover(files)
                except BaseException:
                    files.close()
                    raise
            except (OSError, StorageError, WireError) as error:
                raise DataDirError(f"data dir {config.data_dir}: cannot be used: {error}") from error
        log._snapshot_time_ms, log._clean_ms = now_ms, now_ms + _CLEAN_INTERVAL_MS
        return log

    @property
    def failure(self) -> str | None:
        """Reason why files cannot be written, or were taken away; None again after a successful append."""
        return None if self._files is None else self._files.failure

    def is_lost(self, *, looks: bool) -> bool:
        """Return True if no record can be written; with `looks`, also if the files were taken away."""
        files = self._files
        return files is not None and (files.writes_stopped or (looks and files.storage.loss() is not None))

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self._batches.end_offset

    @property
    def kraft_version(self) -> int:
        """Finalized kraft.version level, from control records."""
        return self._voters.kraft_version

    @property
    def behaviours(self) -> frozenset[Behaviour]:
        """The rules that the kraft.version brings."""
        return self._voters.behaviours

    @property
    def voters(self) -> VoterSet:
        """Newest voters in the log, committed or not, or in the configuration."""
        return self._voters.voters

    @property
    def voters_offset(self) -> int:
        """Offset of the newest VotersRecord, -1 when the log has none."""
        return self._voters.voters_offset

    @property
    def local_voter(self) -> VoterNode:
        """This controller as a voter: replica and endpoints."""
        config = self.config
        endpoint = VoterEndpoint(config.controller_listener_name, config.voter_host, config.voter_port)
        return VoterNode(ReplicaKey(config.node_id, self.directory_id), (endpoint,))

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; that of the newest snapshot if the log is empty."""
        if not self._batches.epochs and self.snapshots:
            return self.snapshots[-1].id.epoch
        return self._batches.last_epoch

    def append(self, records: Sequence[RecordAt], now_ms: int) -> int:
        """Append the records as one batch and return its base offset.

        With a data dir the batch is written (page cache; disk with `metadata_log_fsync`) before this returns.
        StorageError if it cannot be: nothing was appended. WireError if a record cannot be expressed in its version.
        """
        values = [self.frames.encode(record, version) for record, version in records]
        data = record_batch.encode(
            values, base_offset=self.end_offset, leader_epoch=self.leader_epoch, timestamp_ms=now_ms
        )
        return self._append(data, len(values), now_ms)

    def bootstrap_records(self) -> list[RecordAt]:
        """Return the first records of an empty log: chosen by `kafka-storage format`, or by the configuration."""
        config = self.config
        users = [scram.record_of(user, self.directory_id) for user in config.scram_users]
        formatted = self._files.bootstrap_records(users) if self._files is not None else None
        return formatted or features.bootstrap_records(
            config.metadata_version, release(config.release), config.min_insync_replicas, config.features, users
        )

    def append_control(self, pairs: Sequence[tuple[bytes, bytes]], now_ms: int) -> int:
        """Append control records, (key, value) each; `commits_alone` is the caller's choice when voters change."""
        data = record_batch.encode_control(
            pairs, base_offset=self.end_offset, leader_epoch=self.leader_epoch, timestamp_ms=now_ms
        )
        (batch,) = record_batch.read_batches(data)
        base_offset = self._append(data, len(pairs), now_ms)
        self._voters.apply(batch)
        return base_offset

    def append_fetched(self, data: bytes, epoch_max: int) -> None:
        """Append whole batches of a leader's response; StorageError as `append` (KafkaRaftLog.appendAsFollower).

        A damaged batch, or one of an epoch above `epoch_max`, is dropped with all after it, and so fetched again.
        """
        try:
            for header in record_batch.read_headers(data, allow_partial_tail=True):
                if header.base_offset != self.end_offset or not self.last_epoch <= header.leader_epoch <= epoch_max:
                    raise WireError(f"a batch at {header.base_offset} in epoch {header.leader_epoch} does not follow")
                control = record_batch.read_batch(data, header) if header.is_control else None
                batch = data[header.position : header.end]
                self.leader_epoch = header.leader_epoch
                self._append(batch, header.record_count, header.max_timestamp_ms)
                if control is not None:
                    self._voters.apply(control)
        except WireError as error:
            _LOGGER.error("what the leader sent after %d is left out: %s", self.end_offset, error)

    def truncate(self, leaders: EpochEndOffset) -> int:
        """Truncate to the leader's log, from which this diverges at `leaders`; return the end (truncateToEndOffset).

        ValueError if that would remove committed records.
        """
        end = self._common_end(leaders)
        if end < self.high_watermark:
            raise ValueError(f"the leader's log ends at {end}, and records are committed up to {self.high_watermark}")
        if end < self.end_offset:
            if self._files is not None:
                segment_end = self._files.storage.segment_end(end)
                cut = self._batches.bytes_since(end) - (self._batches.bytes_since(segment_end) if segment_end else 0)
                self._files.truncate(end, cut)
            self._batches.truncate(end)
            self._voters.truncate(end)
            self._save_epochs()
        return end

    def install_snapshot(self, snapshot_id: SnapshotId, data: bytes, now_ms: int) -> None:
        """Restart the log after a leader's snapshot (truncateToLatestSnapshot). WireError if damaged; StorageError."""
        found = Snapshot(snapshot_id, data)
        control = [batch for batch in found.batches() if batch.is_control]
        if self._files is not None:
            found = self._files.install_snapshot(snapshot_id, data)
        self._batches.restart_at(snapshot_id.end_offset)
        for older in self.snapshots:
            older.delete()
        self.snapshots = [found]
        self.start_offset = self.high_watermark = snapshot_id.end_offset
        self._voters.restart()
        for batch in control:
            self._voters.apply(batch, snapshot_id.end_offset - 1)
        self._save_epochs()
        self._snapshot_bytes_mark = self._batches.appended_bytes
        self._snapshot_time_ms = now_ms

    def save_election(self, election: ElectionState) -> None:
        """Persist an election state, on disk if there is one, before anybody is sent it. StorageError on failure."""
        if self._files is not None:
            self._files.save_election(election, self.kraft_version, list(self.voters.nodes))
        self.election = election

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Return whole batches from the one that contains `offset`: at least one, then as many as fit; b"" at the end.

        Callers `check` the offset first.
        """
        return self._batches.read(offset, bytes_max)

    def base_offset_of(self, offset: int) -> int:
        """Return the offset at which a read from `offset` begins: that of the whole batch around it."""
        return self._batches.base_offset_of(offset)

    def check(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | SnapshotId | None:
        """Return None if a follower that ends at `offset` in that epoch may fetch from there.

        Otherwise the point where its log diverges, or the snapshot that it has to fetch first
        (RaftLog.validateOffsetAndEpoch).
        """
        if last_fetched_epoch == self._batches.last_epoch and self.start_offset < offset <= self.end_offset:
            return None
        latest = self.snapshots[-1].id if self.snapshots else None
        if offset == 0 and latest is not None and latest != BOOTSTRAP:
            return latest
        if offset == 0 and self.start_offset == 0:
            return None
        if latest is not None:
            oldest = self.snapshots[0].id
            if (
                offset < self.start_offset
                or (offset == self.start_offset and last_fetched_epoch != oldest.epoch)
                or last_fetched_epoch < oldest.epoch
            ):
                return latest
        end = self.end_of_epoch(last_fetched_epoch)
        return end if end.epoch != last_fetched_epoch or end.end_offset < offset else None

    def _common_end(self, leaders: EpochEndOffset) -> int:
        """Return the end of what this log has in common with the leader's, from which it diverges at `leaders`."""
        if not leaders.epoch:
            return min(leaders.end_offset, self.end_offset)
        own = self.end_of_epoch(leaders.epoch)
        return min(own.end_offset, leaders.end_offset) if own.epoch == leaders.epoch else own.end_offset

    def end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the largest epoch not above `epoch`, and its end (KafkaRaftLog.endOffsetForEpoch)."""
        found = self._batches.end_of_epoch(epoch)
        if found is None:
            return EpochEndOffset(self.last_epoch, self.end_offset)
        if self.snapshots and found == (epoch, self.snapshots[0].id.end_offset):
            return EpochEndOffset(self.snapshots[0].id.epoch, found[1])
        return EpochEndOffset(*found)

    def records(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[tuple[int, RecordAt]]:
        """Return metadata records with their offsets: the newest snapshot's, then those after it in the log.

        Records of a snapshot all have its last contained offset (as Kafka replays them). Records below `from_offset`
        and from `to_offset` (None: the end) on are left out. DataDirError if a record cannot be read: its type or
        version is one of a newer Kafka.
        """
        begin = from_offset
        end = self.end_offset if to_offset is None else to_offset
        try:
            if self.snapshots and self.snapshots[-1].id.end_offset > from_offset:
                begin = self.snapshots[-1].id.end_offset
                for record in self.snapshots[-1].records(self.frames.decode):
                    yield begin - 1, record
            for data in self._batches.since(begin):
                for batch in record_batch.read_batches(data):
                    if batch.base_offset >= end:
                        return
                    if batch.is_control:
                        continue
                    for offset, (_, value) in enumerate(batch.records, batch.base_offset):
                        if begin <= offset < end:
                            yield offset, self.frames.decode(value or b"")
        except WireError as error:
            raise DataDirError(f"the log cannot be replayed: {error}") from error

    def snapshot_due(self, now_ms: int) -> str | None:
        """Return the reason to write a snapshot now, or None.

        Anything new and `metadata_log_max_snapshot_interval_ms` (0: never) since the newest one, or many bytes (Kafka's
        SnapshotGenerator). Not while the end of the log is uncommitted: a snapshot covers committed records.
        """
        is_covered = self.snapshots and self.snapshots[-1].id.end_offset >= self.end_offset
        if is_covered or now_ms < self._snapshot_time_ms or self.high_watermark < self.end_offset:
            return None
        written = self._batches.appended_bytes - self._snapshot_bytes_mark
        if written >= self.config.metadata_log_max_record_bytes_between_snapshots:
            return f"{written} bytes since the last snapshot"
        interval_ms, passed_ms = self.config.metadata_log_max_snapshot_interval_ms, now_ms - self._snapshot_time_ms
        if written and interval_ms and passed_ms >= interval_ms:
            return f"{passed_ms} ms since the last snapshot"
        return None

    def write_snapshot(self, records: Iterable[RecordAt], now_ms: int) -> SnapshotId | None:
        """Write a snapshot of the image (`records`) as of the end of the log, then apply retention.

        None when there is nothing new. StorageError when it cannot be written; it is due again after a minute.
        """
        return completed(self._snapshot_in_steps(records, now_ms))

    def snapshot_in_steps(self, records: Iterable[RecordAt], now_ms: int) -> Generator[None, None, None]:
        """Do as `write_snapshot`, with pauses in which the log may change; only log that it cannot be written."""
        try:
            yield from self._snapshot_in_steps(records, now_ms)
        except StorageError as error:
            _LOGGER.error("%s", error)

    def _snapshot_in_steps(self, records: Iterable[RecordAt], now_ms: int) -> Generator[None, None, SnapshotId | None]:
        snapshot_id, bytes_mark = SnapshotId(self.end_offset, self.last_epoch), self._batches.appended_bytes
        if self.find_snapshot(snapshot_id) is not None:
            return None
        batches = snapshot.encode(
            snapshot_id,
            records,
            voters=self._voters.control_records_at(self.end_offset),
            last_contained_log_timestamp_ms=self._last_timestamp_ms,
            now_ms=now_ms,
            encode_record=self.frames.encode,
        )
        try:
            store = self._files.store_snapshot if self._files is not None else snapshot.in_memory
            written = yield from store(snapshot_id, batches)
            if self._files is not None:
                self._files.begin_segment_after(written, self.end_offset)
        except (OSError, StorageError) as error:
            self._snapshot_time_ms = now_ms + _SNAPSHOT_RETRY_MS
            raise StorageError(f"snapshot {snapshot_id.file_name} cannot be written: {error}") from error
        if self.snapshots and self.snapshots[-1].id >= snapshot_id:
            written.delete()
            return None
        self.snapshots.append(written)
        self._snapshot_bytes_mark, self._snapshot_time_ms = bytes_mark, now_ms
        self._clean(now_ms)
        return snapshot_id

    def clean_if_due(self, now_ms: int) -> None:
        """Apply retention once a minute (KafkaRaftClient.RaftMetadataLogCleanerManager)."""
        if now_ms >= self._clean_ms:
            self._clean(now_ms)

    def find_snapshot(self, snapshot_id: SnapshotId) -> Snapshot | None:
        """Return the kept snapshot with this id."""
        return next((found for found in self.snapshots if found.id == snapshot_id), None)

    def close(self) -> None:
        """Flush to the disk and release files and lock. No appends afterwards."""
        if self._files is not None:
            self._files.close()

    def _append(self, data: bytes, count: int, now_ms: int) -> int:
        base_offset = self.end_offset
        if self._files is not None:
            self._files.append(data, base_offset)
        begins_epoch = self._batches.add(data, base_offset, count, self.leader_epoch)
        if begins_epoch or (self._files is not None and self._files.write_failure is not None):
            self._save_epochs()
        self._last_timestamp_ms = now_ms
        if self.commits_alone:
            self.high_watermark = base_offset + count
        return base_offset

    def _save_epochs(self) -> None:
        if self._files is not None:
            self._files.save_epochs(self._batches.epochs)

    def _clean(self, now_ms: int) -> None:
        """Delete the oldest snapshots, and the log below the first one left, as retention wants; never the newest."""
        self._clean_ms = now_ms + _CLEAN_INTERVAL_MS
        try:
            while len(self.snapshots) > 1 and (reason := self._retention_breach(now_ms)) is not None:
                oldest = self.snapshots.pop(0)
                self.start_offset = max(self.start_offset, self.snapshots[0].id.end_offset)
                self._batches.drop_before(self.start_offset)
                _LOGGER.info("snapshot %s and the log below %d are deleted: %s", oldest.id, self.start_offset, reason)
                if self._files is not None:
                    self._files.storage.delete_before(self.start_offset)
                self._save_epochs()
                oldest.delete()
        except (OSError, WireError) as error:
            _LOGGER.error("log below %d cannot be deleted: %s", self.start_offset, error)

    def _retention_breach(self, now_ms: int) -> str | None:
        """Return why the oldest snapshot is to be deleted (KafkaRaftLog.maybeClean)."""
        bytes_max, age_max_ms = self.config.metadata_max_retention_bytes, self.config.metadata_max_retention_ms
        size = self._batches.held_bytes + sum(found.size for found in self.snapshots)
        if 0 <= bytes_max < size:
            return f"log and snapshots have {size} bytes, and metadata.max.retention.bytes is {bytes_max}"
        if 0 <= age_max_ms < (age_ms := now_ms - self.snapshots[0].last_contained_ms()):
            return f"it is {age_ms} ms old, and metadata.max.retention.ms is {age_max_ms}"
        return None

    def _recover(self, files: LogFiles) -> None:
        self.snapshots, recovered = files.recover()
        self.start_offset = files.storage.start_offset
        self._batches.restart_at(self.start_offset)
        self.election = files.election
        snapshot_end = self.snapshots[-1].id.end_offset if self.snapshots else 0
        for batch in self.snapshots[-1].batches() if self.snapshots else ():
            if batch.is_control:
                self._voters.apply(batch, snapshot_end - 1)
        for header, data in recovered:
            self._batches.add(data, header.base_offset, header.record_count, header.leader_epoch)
            self._last_timestamp_ms = header.max_timestamp_ms
            if header.is_control and header.base_offset >= snapshot_end:
                self._voters.apply(record_batch.read_batch(data, header))
        if self.config.is_alone:
            files.check_not_shorter(self.start_offset, self.end_offset)
        self._take_up_snapshot(files)
        self.high_watermark = max(self.start_offset, snapshot_end)
        if self.config.is_alone and not self.voters.is_voter(self.local_voter.key):
            raise DataDirError(
                f"{files.path}: the voters are {list(self.voters.nodes)}, not this controller ({self.config.node_id},"
                " with its directory id); to follow them it needs controller_quorum_bootstrap_servers"
            )
        files.storage.open_for_append(self.end_offset)

    def _take_up_snapshot(self, files: LogFiles) -> None:
        """Restart after the newest snapshot if the log ends before it (KafkaRaftLog.truncateToLatestSnapshot)."""
        if not self.snapshots:
            if self.start_offset > 0:
                raise DataDirError(f"{files.path}: the log begins at {self.start_offset} and no snapshot covers that")
            return
        newest = self.snapshots[-1].id
        if (newest.epoch, newest.end_offset) > (self._batches.last_epoch, self.end_offset):
            _LOGGER.warning("the log ends at %d, before snapshot %s", self.end_offset, newest.file_name)
            files.storage.restart_at(newest.end_offset)
            self._batches.restart_at(newest.end_offset)
            self._voters.truncate(newest.end_offset)
            self.start_offset = newest.end_offset
            del self.snapshots[:-1]
        self._snapshot_bytes_mark = self._batches.appended_bytes - self._batches.bytes_since(newest.end_offset)


def configured_history(config: ControllerConfig, local: VoterNode) -> VoterHistory:
    """Return the voters before any record: the configured voters, or this controller alone."""
    if not config.is_alone:
        return VoterHistory(config.initial_kraft_version, config.configured_voters)
    if config.initial_kraft_version == 0:
        unknown = ReplicaKey(local.key.id, NO_DIRECTORY_ID)
        return VoterHistory(0, VoterSet([VoterNode(unknown, local.endpoints, 0, 0)]))
    return VoterHistory(config.initial_kraft_version, VoterSet([local]))
