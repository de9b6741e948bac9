"""All files of a metadata log on disk: data directory, segments and snapshots, opened together."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mockraft.files.private_files import replace_file_in_steps
from mockraft.releases import KRAFT_VERSION, METADATA_VERSION, Release, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import limits, snapshot
from mockraft.server.controller.log.data_dir import DataDir, DataDirError, StorageError
from mockraft.server.controller.log.segments import LogStorage, StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId, completed
from mockraft.server.controller.quorum.voter_set import ElectionState
from mockraft.server.controller.settings import features
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    import random

_LOGGER = logging.getLogger(__name__)


class LogFiles:
    """The open `data_dir` of a controller; `path` is the partition's. `election` is read from quorum-state.

    `write_failure` is the reason why a file could not be written, None again after a successful append. It is the first
    one that stops writes: leader-epoch-checkpoint, which is harmless, may fail before and after it on a full disk.
    """

    def __init__(self, config: ControllerConfig, rng: random.Random) -> None:
        """Open and lock `config.data_dir`. DataDirError when it cannot be used."""
        assert config.data_dir is not None
        self._config = config
        self.write_failure: str | None = None
        self._writes_stopped = False
        self.data_dir = DataDir(
            config.data_dir, config.cluster_id, config.node_id, rng, directory_id=config.initial_directory_id
        )
        self.path = self.data_dir.partition_path
        self.directory_id = self.data_dir.directory_id
        try:
            self.election = self.data_dir.read_election()
            self.storage = LogStorage(
                self.path,
                segment_bytes_max=config.metadata_log_segment_bytes,
                segment_ms_max=config.metadata_log_segment_ms,
                fsync=config.metadata_log_fsync,
            )
        except BaseException:
            self.data_dir.close()
            raise
        if self.election.epoch and not self.storage.segments and config.is_alone:
            self.data_dir.close()
            raise DataDirError(
                f"{self.path}: quorum-state is at leader epoch {self.election.epoch}, but the log is gone. Brokers that"
                " followed it would have to truncate below their high watermark and exit; restore the log, or begin"
                " with an empty data dir and fresh brokers"
            )

    @property
    def writes_stopped(self) -> bool:
        """True if the last write failed, unless it was a harmless one."""
        return self.write_failure is not None and self._writes_stopped

    @property
    def failure(self) -> str | None:
        """Why the log cannot be written: the last write failed, or the files are not there any more."""
        return self.write_failure or self.storage.loss()

    @contextmanager
    def writing(self, *, stops_writes: bool = True) -> Iterator[None]:
        """Keep the reason of a failed write, and log it once. StorageError for any OSError, and without our files."""
        try:
            self._check()
            yield
        except (OSError, StorageError) as error:
            message = error.message if isinstance(error, StorageError) else None
            message = message or f"{self.path}: cannot be written: {error}"
            if self.write_failure is None or (stops_writes and not self._writes_stopped):
                _LOGGER.error("%s", message)
                self.write_failure, self._writes_stopped = message, stops_writes
            raise StorageError(message) from error

    def append(self, data: bytes, base_offset: int) -> None:
        """Write one batch; StorageError."""
        try:  # `writing` takes longer than the write
            self.storage.append(data, base_offset)
        except (OSError, StorageError):
            with self.writing():
                raise

    def truncate(self, end_offset: int, cut_bytes: int) -> None:
        """Truncate the log, as `LogStorage.truncate`; StorageError."""
        with self.writing():
            self.storage.truncate(end_offset, cut_bytes)

    def save_election(self, election: ElectionState, kraft_version: int, voter_ids: Sequence[int]) -> None:
        """Write quorum-state; StorageError."""
        with self.writing():
            self.data_dir.write_election(election, kraft_version, voter_ids)

    def save_epochs(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Write leader-epoch-checkpoint. It repeats what the log has: if this fails, the next append does it again."""
        with suppress(StorageError), self.writing(stops_writes=False):
            self.data_dir.write_leader_epochs(epochs)
            if self.write_failure is not None:
                _LOGGER.info("%s: can be written again", self.path)
            self.write_failure, self._writes_stopped = None, False

    def check_not_shorter(self, start_offset: int, end_offset: int) -> None:
        """Raise DataDirError if the log is known to have been longer than `end_offset`."""
        for epoch, epoch_start in self.data_dir.read_leader_epochs():
            if epoch_start > end_offset or (start_offset == end_offset == 0):
                raise DataDirError(
                    f"{self.path}: the log ends at offset {end_offset}, but leader-epoch-checkpoint says that epoch"
                    f" {epoch} began at {epoch_start}: its end was lost. Brokers that have it would be told to truncate"
                    " below their high watermark and exit; restore the log, or begin with an empty data dir and fresh"
                    " brokers"
                )

    def recover(self) -> tuple[list[Snapshot], list[StoredBatch]]:
        """Return the snapshots, oldest first, and the batches of the log; delete what a crash left of others."""
        snapshots = self._read_snapshots()
        batches = self.storage.recover(snapshots[-1].id.end_offset if snapshots else 0)
        return self._read_snapshots(), batches

    def _read_snapshots(self) -> list[Snapshot]:
        """Return the complete snapshots, oldest first; delete unfinished ones and those below the log."""
        kept, start_offset = [], self.storage.start_offset
        for path in sorted(self.path.iterdir()):
            snapshot_id = snapshot.parse_file_name(path.name)
            if snapshot_id is not None and (
                reason := limits.refusal(epoch=snapshot_id.epoch, offset=snapshot_id.end_offset)
            ):
                raise DataDirError(f"{path}: {reason}")
            if snapshot_id is not None and snapshot_id.end_offset >= start_offset:
                kept.append(Snapshot(snapshot_id, path))
            elif snapshot_id is not None or path.name.endswith((snapshot.PARTIAL_SUFFIX, ".checkpoint.deleted")):
                path.unlink()
        return kept

    def begin_segment_after(self, written: Snapshot, end_offset: int) -> None:
        """Begin a new segment at the end of the log, or delete the snapshot and raise OSError if that is impossible.

        Then dropping the records below the snapshot frees their space.
        """
        try:
            self.storage.roll(end_offset)
        except OSError:
            written.delete()
            raise

    def store_snapshot(self, snapshot_id: SnapshotId, batches: Iterable[bytes]) -> Generator[None, None, Snapshot]:
        """Write a snapshot's file, with a pause at each empty one of `batches`. OSError, StorageError."""
        self._check()
        path = self.path / snapshot_id.file_name
        try:
            yield from replace_file_in_steps(path, batches, snapshot.PARTIAL_SUFFIX.removeprefix(snapshot.SUFFIX))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return Snapshot(snapshot_id, path)

    def install_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> Snapshot:
        """Write a leader's snapshot and restart the log after it; StorageError."""
        with self.writing():
            found = completed(self.store_snapshot(snapshot_id, [data]))
            self.storage.restart_at(snapshot_id.end_offset)
        return found

    def bootstrap_records(self, more: Sequence[RecordAt] = ()) -> list[RecordAt] | None:
        """Return the first records chosen with `kafka-storage format`, else None.

        They are in bootstrap.checkpoint; Kafka 4.4 writes them into the snapshot at offset 0, which before had the
        voters only (BootstrapDirectory, KIP-1170). `more` is added as if it had been chosen there.
        """
        path, first_snapshot = self.data_dir.path / "bootstrap.checkpoint", self.path / snapshot.BOOTSTRAP.file_name
        if not path.exists():
            path = first_snapshot
        if not path.exists():
            return None
        try:
            found = list(Snapshot(snapshot.BOOTSTRAP, path).records())
        except (OSError, WireError) as error:
            raise DataDirError(f"{path}: {error}") from error
        if not found and path == first_snapshot:
            return None
        levels = {at.record.name: at.record.feature_level for at in found if _is_feature(at)}
        level = levels.pop(METADATA_VERSION, self._config.metadata_version)
        of, unstable = release(self._config.release), self._config.unstable_feature_versions_enable
        try:
            for name, chosen in {METADATA_VERSION: level, **levels}.items():
                features.check_supported(of, name, chosen, unstable=unstable)
            return features.bootstrap_records(
                level,
                of,
                min_insync_replicas=self._config.min_insync_replicas,
                feature_levels=_all_levels(level, of, levels),
                others=[*(at for at in found if not _is_feature(at)), *more],
            )
        except ValueError as error:
            raise DataDirError(f"{path}: {error}") from error

    def close(self) -> None:
        """Flush, close and unlock."""
        try:
            self.storage.close()
        except OSError as error:
            _LOGGER.error("%s: cannot be flushed: %s", self.path, error)
        self.data_dir.close()

    def _check(self) -> None:
        """Raise StorageError if the directory is not the one that was opened, so that nothing is written there."""
        if (reason := self.storage.loss()) is not None:
            raise StorageError(reason)


def _is_feature(at: RecordAt) -> bool:
    return type(at.record).__name__ == "FeatureLevelRecord"


def _all_levels(level: int, of: Release, chosen: dict[str, int]) -> dict[str, int]:
    """Return the chosen levels, and 0 for features that are on by default but were not chosen."""
    chosen.pop(KRAFT_VERSION, None)
    return {**dict.fromkeys(features.default_feature_levels(level, of), 0), **chosen}
