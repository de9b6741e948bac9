"""The metadata log: partition 0 of `__cluster_metadata` as bytes, as one controller keeps it.

Source: Kafka's KafkaRaftLog and KafkaRaftClient. Batches are kept as they go over the wire, in memory and, with a
data dir, in Kafka's own files. What lies below the oldest kept snapshot may be dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.server.config import ControllerConfig
from mockraft.server.controller import features, quorum, scram, snapshot
from mockraft.server.controller.data_dir import DataDirError, StorageError, random_uuid
from mockraft.server.controller.log_batches import LogBatches
from mockraft.server.controller.log_files import LogFiles
from mockraft.server.controller.quorum import LocalVoter, Observers, VoterState
from mockraft.server.controller.snapshot import Snapshot, SnapshotId
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.voters_record import VotersRecord

if TYPE_CHECKING:
    import random

_LOGGER = logging.getLogger(__name__)
_SNAPSHOT_RETRY_MS = 60_000


class EpochEndOffset(NamedTuple):
    """Where the log of a follower and this one part: the largest common epoch and its end offset here."""

    epoch: int
    end_offset: int


class MetadataLog:
    """The log of one controller.

    `start_offset` is the first offset still held. `high_watermark` is the offset below which all is committed; raft
    moves it, but where `commits_alone` (the leader is the only voter) every append does. `leader_epoch` is the epoch
    that appended batches carry. `snapshots` are the kept ones, oldest first. `directory_id` is 16 bytes. `observers`
    are the replicas that fetch it.
    """

    def __init__(self, config: ControllerConfig, files: LogFiles | None, directory_id: bytes) -> None:
        """An empty log; use `open`."""
        self.config = config
        self.directory_id = directory_id
        self.leader_epoch = 0
        self.start_offset = 0
        self.high_watermark = 0
        self.commits_alone = False
        self.snapshots: list[Snapshot] = []
        self.observers = Observers()
        self._files = files
        self._frames = _frames(config)
        self._batches = LogBatches()
        self._voter_state = VoterState(config.kraft_version)
        self._voters_in_log = False
        self._last_timestamp_ms = 0
        self._snapshot_bytes_mark = 0
        self._snapshot_time_ms = 0

    @classmethod
    def open(cls, config: ControllerConfig, now_ms: int, chance: random.Random) -> MetadataLog:
        """Recover the log from `config.data_dir`, or start an empty one in memory.

        DataDirError when the data dir cannot be used: another controller's, in use, damaged, or shorter than it is
        known to have been.
        """
        if config.data_dir is None:
            log = cls(config, None, random_uuid(chance))
        else:
            try:
                files = LogFiles(config, chance)
                log = cls(config, files, files.directory_id)
                try:
                    log._recover(files)
                except BaseException:
                    files.close()
                    raise
            except (OSError, StorageError, WireError) as error:
                raise DataDirError(f"data dir {config.data_dir}: cannot be used: {error}") from error
        log._snapshot_time_ms = now_ms
        return log

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._batches.end_offset

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version level, which control records say."""
        return self._voter_state.kraft_version

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; that of the newest snapshot where the log is empty."""
        if not self._batches.epochs and self.snapshots:
            return self.snapshots[-1].id.epoch
        return self._batches.last_epoch

    def append(self, records: Sequence[RecordAt], now_ms: int) -> int:
        """Append the records as one batch and give its base offset.

        With a data dir the batch is written (page cache; disk with `metadata_log_fsync`) before this returns.
        StorageError when it cannot be: nothing was appended. WireError when a record cannot be said in its version.
        """
        values = [self._frames.encode(record, version) for record, version in records]
        data = record_batch.encode(
            values, base_offset=self.end_offset, leader_epoch=self.leader_epoch, timestamp_ms=now_ms
        )
        return self._append(data, len(values), now_ms)

    def begin_epoch(self, now_ms: int) -> None:
        """Lead, as the only voter, an epoch above all before: it is remembered, then its control records are appended.

        OSError or StorageError when it cannot be written.
        """
        quorum_epoch = self._files.quorum_epoch if self._files is not None else 0
        self.leader_epoch = max(quorum_epoch, self.last_epoch) + 1
        self.commits_alone = True
        if self._files is not None:
            self._files.begin_epoch(self.leader_epoch)
        pairs = quorum.start_of_epoch(self._voter_state, self._local_voter, voters_in_log=self._voters_in_log)
        self._append_control(pairs, now_ms)
        if self._files is not None:
            self._files.write_leader_epochs(self._batches.epochs)

    def bootstrap_records(self) -> list[RecordAt]:
        """What the first leader of an empty log writes: what `kafka-storage format` chose, or the configuration."""
        config = self.config
        users = [scram.record_of(user, self.directory_id) for user in config.scram_users]
        formatted = self._files.bootstrap_records(users) if self._files is not None else None
        return formatted or features.bootstrap_records(
            config.metadata_version, min_insync_replicas=config.min_insync_replicas, others=users
        )

    def upgrade_kraft_version(self, level: int, now_ms: int) -> None:
        """Finalize kraft.version above 0: the level and the voters become records (KIP-853).

        Source: LeaderState.maybeAppendUpgradedKRaftVersion.
        """
        self._voter_state = VoterState(level, VotersRecord(version=0, voters=[self._local_voter.as_voter()]))
        self._append_control(self._voter_state.records(), now_ms)
        self._voters_in_log = True

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset`, at least one, then as many as fit; b"" from the end on.

        Callers `check` the offset first.
        """
        return self._batches.read(offset, bytes_max)

    def check(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | SnapshotId | None:
        """Whether a follower that ends at `offset` in that epoch may go on from there (None).

        Otherwise where its log parts from this one, or the snapshot that it has to fetch first
        (KafkaRaftClient.tryCompleteFetchRequest, RaftLog.validateOffsetAndEpoch).
        """
        if last_fetched_epoch == self._batches.last_epoch and self.start_offset < offset <= self.end_offset:
            return None
        latest = self.snapshots[-1].id if self.snapshots else None
        if offset == 0 and latest is not None and latest != snapshot.BOOTSTRAP:
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
        end = self._end_of_epoch(last_fetched_epoch)
        return end if end.epoch != last_fetched_epoch or end.end_offset < offset else None

    def records(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[tuple[int, RecordAt]]:
        """The metadata records with their offsets: the newest snapshot's, then those after it in the log.

        Records of a snapshot all have its last contained offset (as Kafka replays them). Records below `from_offset`
        and from `to_offset` (None: the end) on are left out. DataDirError when a record cannot be read: its type or
        version is one of a newer Kafka.
        """
        begin = from_offset
        end = self.end_offset if to_offset is None else to_offset
        try:
            if self.snapshots and self.snapshots[-1].id.end_offset > from_offset:
                begin = self.snapshots[-1].id.end_offset
                for record in self.snapshots[-1].records(self._frames.decode):
                    yield begin - 1, record
            for data in self._batches.since(begin):
                for batch in record_batch.read_batches(data):
                    if batch.base_offset >= end:
                        return
                    if batch.is_control:
                        continue
                    for offset, (_, value) in enumerate(batch.records, batch.base_offset):
                        if begin <= offset < end:
                            yield offset, self._frames.decode(value or b"")
        except WireError as error:
            raise DataDirError(f"the log cannot be replayed: {error}") from error

    def snapshot_due(self, now_ms: int) -> str | None:
        """Why a snapshot should be written now, or None.

        `metadata_log_max_record_bytes_between_snapshots` since the newest one, or
        `metadata_log_max_snapshot_interval_ms` (0: never) since it with anything new (Kafka's SnapshotGenerator). Not
        while the end of the log is uncommitted: a snapshot covers committed records.
        """
        if now_ms < self._snapshot_time_ms or self.high_watermark < self.end_offset:
            return None
        written = self._batches.appended_bytes - self._snapshot_bytes_mark
        if written >= self.config.metadata_log_max_record_bytes_between_snapshots:
            return f"{written} bytes since the last snapshot"
        interval_ms = self.config.metadata_log_max_snapshot_interval_ms
        if written and interval_ms and now_ms - self._snapshot_time_ms >= interval_ms:
            return f"{now_ms - self._snapshot_time_ms} ms since the last snapshot"
        return None

    def write_snapshot(self, records: Iterable[RecordAt], now_ms: int) -> SnapshotId | None:
        """Write a snapshot of the image as of the end of the log, then drop what retention lets go.

        `records` is the whole image. None when there is nothing new, or the disk refused it (logged; due again after
        a minute).
        """
        snapshot_id = SnapshotId(self.end_offset, self.last_epoch)
        if self.find_snapshot(snapshot_id) is not None:
            return None
        batches = snapshot.encode(
            snapshot_id,
            records,
            voters=self._voter_state.records(),
            last_contained_log_timestamp_ms=self._last_timestamp_ms,
            now_ms=now_ms,
            encode_record=self._frames.encode,
        )
        try:
            if self._files is None:
                self.snapshots.append(Snapshot(snapshot_id, b"".join(batches)))
            else:
                self.snapshots.append(self._files.write_snapshot(snapshot_id, batches))
        except OSError as error:
            _LOGGER.error("snapshot %s cannot be written: %s", snapshot_id.file_name, error)
            self._snapshot_time_ms = now_ms + _SNAPSHOT_RETRY_MS
            return None
        self._snapshot_bytes_mark = self._batches.appended_bytes
        self._snapshot_time_ms = now_ms
        self._clean()
        return snapshot_id

    def find_snapshot(self, snapshot_id: SnapshotId) -> Snapshot | None:
        """The kept snapshot with this id."""
        return next((found for found in self.snapshots if found.id == snapshot_id), None)

    def close(self) -> None:
        """Flush to the disk and release files and lock. Nothing may be appended afterwards."""
        if self._files is not None:
            self._files.close()

    @property
    def _local_voter(self) -> LocalVoter:
        return LocalVoter(
            self.config.node_id,
            self.directory_id,
            self.config.controller_listener_name,
            self.config.voter_host,
            self.config.voter_port,
        )

    def _append_control(self, pairs: Sequence[tuple[bytes, bytes]], now_ms: int) -> None:
        data = record_batch.encode_control(
            pairs, base_offset=self.end_offset, leader_epoch=self.leader_epoch, timestamp_ms=now_ms
        )
        self._append(data, len(pairs), now_ms)

    def _append(self, data: bytes, count: int, now_ms: int) -> int:
        base_offset = self.end_offset
        if self._files is not None:
            self._files.storage.append(data, base_offset)
        self._batches.add(data, base_offset, count, self.leader_epoch)
        self._last_timestamp_ms = now_ms
        if self.commits_alone:
            self.high_watermark = base_offset + count
        return base_offset

    def _end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """KafkaRaftLog.endOffsetForEpoch."""
        found = self._batches.end_of_epoch(epoch)
        if found is None:
            return EpochEndOffset(self.last_epoch, self.end_offset)
        if self.snapshots and found == (epoch, self.snapshots[0].id.end_offset):
            return EpochEndOffset(self.snapshots[0].id.epoch, found[1])
        return EpochEndOffset(*found)

    def _clean(self) -> None:
        """Drop the oldest snapshot and the log below the next one while all is larger than retention allows."""
        while len(self.snapshots) > 1:
            size = self._batches.held_bytes + sum(found.size for found in self.snapshots)
            if size <= self.config.metadata_max_retention_bytes:
                return
            oldest = self.snapshots.pop(0)
            self.start_offset = max(self.start_offset, self.snapshots[0].id.end_offset)
            self._batches.drop_before(self.start_offset)
            try:
                if self._files is not None:
                    self._files.storage.delete_before(self.start_offset)
                    self._files.write_leader_epochs(self._batches.epochs)
                oldest.delete()
            except OSError as error:
                _LOGGER.error("log below %d cannot be deleted: %s", self.start_offset, error)

    def _recover(self, files: LogFiles) -> None:
        storage = files.storage
        self.start_offset = storage.segments[0] if storage.segments else 0
        self._batches.restart_at(self.start_offset)
        self.snapshots = files.read_snapshots(self.start_offset)
        self._voter_state = VoterState()
        if self.snapshots:
            self._apply_voters(self.snapshots[-1].batches())
            self._voters_in_log = self.snapshots[-1].id != snapshot.BOOTSTRAP
        for header, data in storage.recover():
            self._batches.add(data, header.base_offset, header.record_count, header.leader_epoch)
            self._last_timestamp_ms = header.max_timestamp_ms
            if header.is_control and self._apply_voters([record_batch.read_batch(data, header)]):
                self._voters_in_log = True
        if self.end_offset == 0 and not self.snapshots:
            self._voter_state = VoterState(self.config.kraft_version)
        files.check_not_shorter(self.start_offset, self.end_offset)
        self._take_up_snapshot(files)
        self._check_voters(files)
        storage.open_for_append(self.end_offset)

    def _apply_voters(self, batches: Iterable[record_batch.Batch]) -> bool:
        """Take in what control batches say of the voters; whether there was anything."""
        before = self._voter_state.voters
        for batch in batches:
            if batch.is_control:
                self._voter_state.apply(batch)
        return self._voter_state.voters is not before

    def _take_up_snapshot(self, files: LogFiles) -> None:
        """Begin after the newest snapshot where the log does not reach it (KafkaRaftLog.truncateToLatestSnapshot)."""
        if not self.snapshots:
            if self.start_offset > 0:
                raise DataDirError(f"{files.path}: the log begins at {self.start_offset} and no snapshot covers that")
            return
        newest = self.snapshots[-1].id
        if (newest.epoch, newest.end_offset) > (self._batches.last_epoch, self.end_offset):
            _LOGGER.warning("the log ends at %d, before snapshot %s", self.end_offset, newest.file_name)
            files.storage.restart_at(newest.end_offset)
            self._batches.restart_at(newest.end_offset)
            self.start_offset = newest.end_offset
            del self.snapshots[:-1]
        self._snapshot_bytes_mark = self._batches.appended_bytes - self._batches.bytes_since(newest.end_offset)

    def _check_voters(self, files: LogFiles) -> None:
        voters = self._voter_state.voters
        found = [(voter.voter_id, voter.voter_directory_id) for voter in voters.voters] if voters else []
        if found and found != [(self.config.node_id, self.directory_id)]:
            raise DataDirError(
                f"{files.path}: the voters are {[node_id for node_id, _ in found]}, not this controller"
                f" ({self.config.node_id}, with its directory id) alone; only a quorum of one can be taken over"
            )


def _frames(config: ControllerConfig) -> Any:
    """What frames records: `metadata_log_frame`, or the same for an overlay's."""
    if config.overlay is None:
        return metadata_log_frame
    from mockraft.server.controller.overlaid_records import OverlaidRecords

    return OverlaidRecords(config.overlay)
