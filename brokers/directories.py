"""The directory of each replica of a broker, kept in agreement with the controller (KIP-858, KIP-1066)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from mockraft.brokers import lifecycle
from mockraft.brokers.assignments import Assignments, ReplicaKey
from mockraft.brokers.core import Component, Core
from mockraft.brokers.disks.disk import Scope, classify
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.lifecycle import BrokerState, End
from mockraft.brokers.log_dirs.errors import LogError, StorageError
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.placement import (
    CordoningError,
    DirectoryAt,
    NewReplica,
    candidates,
    cordoned_paths,
    in_kafkas_order,
)
from mockraft.brokers.metadata.metadata_view import Replica
from mockraft.releases import METADATA_VERSION, Behaviour, metadata_version
from mockraft.wire import error_codes
from mockraft.wire.directory_ids import LOST, UNASSIGNED
from mockraft.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from mockraft.wire.uuids import text_of

SHUTDOWN_TIMEOUT_MS = 300_000

REPLICAS_AT_ONCE = 8
"""The number of replicas that are placed, or applied, before requests and heartbeats have their turn."""

_log = logging.getLogger(__name__)


class Moves(Protocol):
    """The moves between directories, as far as failures concern them."""

    def directory_offline(self, directory_id: bytes) -> None:
        """End the moves from and to a directory that went offline."""

    def replica_lost(self, key: ReplicaKey, why: str) -> None:
        """End the move of a replica that failed although its directory works (KIP-18)."""


class Hosting(Protocol):
    """The hosted replicas of a broker that serves clients."""

    def directory_offline(self, directory_id: bytes) -> None:
        """Stop fetching the replicas of a failed directory."""

    def apply(self, key: ReplicaKey) -> None:
        """Bring a replica in line with its directory."""

    def metadata_advanced(self) -> None:
        """Apply changes of replicas that have been placed since."""


class Directories(Component):
    """The component that places replicas and reports their directories, failed directories and cordoned ones.

    `placed` is the directory uuid of each replica by (topic id, partition), offline ones included; `lost` are the
    replicas that failed alone (KIP-18). `preferred` is the directory for a replica that does not exist here yet, by
    (topic, partition). `moving` is the target of each replica that is being moved: the metadata may name either
    directory. `is_published` is True once the metadata is known up to the leader's high watermark, before the broker is
    registered: until then no replica is placed or served. `waiting` are the replicas to be placed or removed, in their
    order. `offline` maps each directory that failed since the start to the reason; `cordoned` are those cordoned now.

    With `makes_logs_late` a placed replica has no log until `make_logs`, or the first use of its partition.

    `on_first_published` settles the moves of the last run, `on_progress` follows placements and assignments.
    """

    def __init__(self, core: Core) -> None:
        config = core.config
        self.placed: dict[ReplicaKey, bytes] = {}
        self.lost: set[ReplicaKey] = set()
        self.preferred: dict[tuple[str, int], bytes] = {}
        self.moving: dict[ReplicaKey, bytes] = {}
        self.assignments = Assignments()
        self.offline: dict[bytes, str] = {}
        self.moves: Moves
        self.hosting: Hosting | None = None
        self.on_first_published: Callable[[], None] = _nothing
        self.on_progress: Callable[[], None] = _nothing
        self._core = core
        self.waiting: dict[ReplicaKey, None] = {}
        self._counts: Counter[bytes] | None = None
        self.is_published = False
        self.makes_logs_late = False
        self._reports = DirectoryReports(core, self.assignments, lambda: self.on_progress())
        if config.log_dir_failure_timeout_ms < 1:
            raise ValueError(f"log.dir.failure.timeout.ms is {config.log_dir_failure_timeout_ms}: want 1 or more")
        self.metadata_disk: FailingDisk | None = None
        if config.metadata_log_dir is not None and config.metadata_log_dir not in config.log_dir_paths:
            self.metadata_disk = FailingDisk(config.open_disk(config.metadata_log_dir))
        self._level: int | None = None
        self._cordoned_value = config.cordoned_log_dirs
        self.cordoned = self._cordoned_by(config.cordoned_log_dirs)
        if self.cordoned:
            core.happen(lifecycle.LogDirsCordoned(self.cordoned))
        core.logs.on_error = self.io_error

    def start(self) -> None:
        """Take over the replicas found in the directories; report directories that failed as they were opened."""
        self.placed = {held.key: held.log_dir.directory_id for held in self._core.logs.held()}
        for directory_id in self.offline:
            self._report(directory_id)

    def metadata_advanced(self) -> None:
        """Place new replicas, drop removed ones, and read which directories are cordoned."""
        self._reports.channel.controller_moved()
        core = self._core
        self._look_at_metadata_dir()
        self._look_at_level()
        if not self.is_published:
            observer = core.observer
            known = 0 < observer.leader_high_watermark <= observer.applied_offset + 1
            if not known and core.life.state in (BrokerState.NOT_RUNNING, BrokerState.STARTING):
                return  # The metadata may be outdated, and replicas found here may be missing in it.
            self.is_published = True
            self._first_published()
        if changed := core.view.take_changed():
            self.waiting.update(dict.fromkeys(self._placement_order(changed)))
        self._place_some()
        if core.config.restart_partitions_elsewhere and (self.lost or self.offline):
            for key in [key for key in self.placed if not self.is_here(key)]:
                if _is_restartable(core.view.replicas.get(key), core.config.broker_id):
                    self.restart(key)
        self._read_cordoned()

    def state_changed(self, state: BrokerState) -> None:
        """Publish the metadata: from RECOVERY on the controller considers this broker caught up."""
        if state is BrokerState.RECOVERY:
            self.metadata_advanced()

    def close(self) -> None:
        """Close the connection for assignments."""
        self._reports.channel.close()

    def _first_published(self) -> None:
        """Reconcile the logs found at the start with the metadata, which is known up to the high watermark.

        Called before any replica is placed. As in Kafka a log that is not to be here is renamed to -stray.
        """
        core = self._core
        self.placed.clear()
        self.on_first_published()
        core.logs.mark_strays(core.view.replicas)
        self.placed |= {held.key: held.log_dir.directory_id for held in core.logs.held()}

    # Queries and reports.

    @property
    def has_offline(self) -> bool:
        """True if some directory of log.dirs is unusable, since the start or from before it."""
        return bool(self.offline or self._core.config.offline_log_dirs)

    def live(self) -> list[DirectoryAt]:
        """The usable directories, in the order of log.dirs."""
        return [log_dir for log_dir in self._core.config.log_dirs if log_dir.directory_id not in self.offline]

    def is_live(self, directory_id: bytes) -> bool:
        """Return True if this is a usable directory of this broker."""
        log_dirs = self._core.config.log_dirs
        return directory_id not in self.offline and any(each.directory_id == directory_id for each in log_dirs)

    def is_cordoned(self, directory_id: bytes) -> bool:
        """Return True if no new replica should be placed there."""
        return directory_id in self.cordoned

    def is_here(self, key: ReplicaKey) -> bool:
        """Return True if this replica is usable: placed, in an online directory, and not failed by itself."""
        return key not in self.lost and self.is_live(self.placed.get(key, UNASSIGNED))

    def find(self, path_or_id: str | bytes | os.PathLike[str]) -> DirectoryAt:
        """Return a directory by its path, its uuid (16 bytes) or the uuid's text. LookupError lists those known."""
        path_or_id = os.fspath(path_or_id)
        config = self._core.config
        log_dirs = [*config.log_dirs]
        if self.metadata_disk is not None:
            log_dirs.append(DirectoryAt(self.metadata_disk.root, config.metadata_directory_id))
        for log_dir in log_dirs:
            if path_or_id in (log_dir.path, log_dir.directory_id, text_of(log_dir.directory_id)):
                return log_dir
        known = ", ".join(f"{log_dir.path} ({text_of(log_dir.directory_id)})" for log_dir in log_dirs)
        wanted = text_of(path_or_id) if isinstance(path_or_id, bytes) else path_or_id
        raise LookupError(f"broker {config.broker_id} has no log dir {wanted}; it has {known}")

    def assign(
        self, key: ReplicaKey, directory_id: bytes, reason: str, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Report to the controller that a replica is in this directory; `on_accepted` is called on confirmation."""
        if self._core.view.has(Behaviour.DIRECTORY_ASSIGNMENT):
            self._reports.assign(key, directory_id, reason, on_accepted)

    def fail(self, directory_id: bytes, reason: str) -> None:
        """Take a directory offline (Kafka's `ReplicaManager.handleLogDirFailure`).

        Every later heartbeat reports it. Without any live directory, or without that of the metadata log, the broker
        stops at once without reporting.
        """
        if directory_id in self.offline:
            return
        core = self._core
        self.offline[directory_id] = reason
        path = self.find(directory_id).path
        _log.warning("broker %d: log dir %s is offline: %s", core.config.broker_id, path, reason)
        if self.metadata_disk is not None and directory_id == core.config.metadata_directory_id:
            core.happen(lifecycle.Stopped(End.METADATA_LOG_DIR_FAILED))
            return
        core.logs.take_offline(directory_id, reason)
        self.moves.directory_offline(directory_id)
        if self.hosting is not None:
            self.hosting.directory_offline(directory_id)
        if not self.live():
            core.happen(lifecycle.Stopped(End.ALL_LOG_DIRS_FAILED))
        elif directory_id == core.config.metadata_directory_id:
            core.happen(lifecycle.Stopped(End.METADATA_LOG_DIR_FAILED))
        elif core.life.state is not BrokerState.NOT_RUNNING:
            self._report(directory_id)

    def lose(self, key: ReplicaKey, reason: str) -> None:
        """Mark one replica as failed although its directory works (KIP-18): LOST is reported to the controller."""
        core = self._core
        if key in self.lost or key not in self.placed:
            return
        self.lost.add(key)
        _log.warning("broker %d: %s-%d is lost: %s", core.config.broker_id, key[0].hex(), key[1], reason)
        core.logs.forget(key)
        self.moves.replica_lost(key, reason)
        if self.hosting is not None:
            self.hosting.apply(key)
        self.assign(key, LOST, reason)

    def io_error(self, log_dir: LogDir, error: OSError, key: ReplicaKey | None) -> None:
        """Handle an I/O error: take the directory offline, or with io_errors "kip-18" only the affected replica."""
        scope, why = Scope.DISK, str(error)
        if self._core.config.io_errors == "kip-18":
            scope, why = classify(error, self._file_of(log_dir, error, key), log_dir.disk)
        if scope is Scope.DISK or key is None:
            self.fail(log_dir.directory_id, why)
        elif log_dir.directory_id == self._core.logs.directory_of(key):
            self.lose(key, why)
        # Otherwise a future replica failed: its move ends, and the replica stays where it is.

    def restart(self, key: ReplicaKey) -> bool:
        """Recreate a replica, empty, in another directory; return False if there is none. Its old files stay."""
        core = self._core
        replica = core.view.replicas[key]
        left = self.placed.pop(key)
        self._counts = None
        excluded = {**self.offline, left: ""}
        for each in candidates(core.config.log_dirs, self._replica_counts(), excluded, self.cordoned):
            if self._create_in(key, replica, each.directory_id):
                self.lost.discard(key)
                self.assign(key, each.directory_id, "Restarting a lost replica")
                if self.hosting is not None:
                    self.hosting.apply(key)
                return True
        self.placed[key] = left
        return False

    # Failed and cordoned directories.

    def _file_of(self, log_dir: LogDir, error: OSError, key: ReplicaKey | None) -> str:
        """Return the file of an error, relative to the directory; without a name any file of the replica."""
        name = error.filename if isinstance(error.filename, str) else ""
        name = name.removeprefix(log_dir.path).lstrip("/")
        return name if name or key is None else f"{self._core.view.topics.get(key[0], 'a')}-{key[1]}"

    def _report(self, directory_id: bytes) -> None:
        """Start the failure timer: a single one as in Kafka, so a later failure gives the earlier ones more time."""
        core = self._core
        if core.end is not None:
            return
        core.happen(lifecycle.LogDirFailed(directory_id))
        not_reported = functools.partial(self._not_reported, directory_id)
        core.kernel.after("log-dir-failure", core.config.log_dir_failure_timeout_ms, not_reported)

    def _not_reported(self, directory_id: bytes) -> None:
        core = self._core
        core.happen(lifecycle.LogDirFailureTimedOut(directory_id))
        if core.life.leaving_for is End.LOG_DIR_NOT_REPORTED:
            over = lifecycle.Stopped(End.LOG_DIR_NOT_REPORTED)
            core.kernel.after("shutdown", SHUTDOWN_TIMEOUT_MS, functools.partial(core.happen, over))

    def _look_at_metadata_dir(self) -> None:
        """Stop if the directory of the metadata log, which is not written here, cannot be read."""
        if self.metadata_disk is not None:
            try:
                self.metadata_disk.names()
            except OSError as error:
                self.fail(self._core.config.metadata_directory_id, str(error))

    def _look_at_level(self) -> None:
        """Report several directories at a level that has none (Kafka's MetadataVersionConfigValidator)."""
        core, level = self._core, self._core.view.features.get(METADATA_VERSION)
        if level is None or level == self._level:
            return
        self._level = level
        if len(core.config.log_dir_paths) > 1 and not core.view.has(Behaviour.DIRECTORY_ASSIGNMENT):
            _log.error(
                "broker %d: Multiple log directories (aka JBOD) are not supported in the current MetadataVersion %s. "
                "Need 3.7-IV2 or higher",
                core.config.broker_id,
                metadata_version(level).name,
            )

    def _cordoned_by(self, value: str) -> frozenset[bytes]:
        """Return the live directories that a value of cordoned.log.dirs selects. Raises CordoningError."""
        paths = cordoned_paths(value, self._core.config.log_dir_paths)
        return frozenset(log_dir.directory_id for log_dir in self.live() if log_dir.path in paths)

    def _read_cordoned(self) -> None:
        core = self._core
        dynamic = core.view.cordoned_log_dirs
        value = core.config.cordoned_log_dirs if dynamic is None else dynamic
        if value == self._cordoned_value:
            return
        self._cordoned_value = value
        try:
            self.cordoned = self._cordoned_by(value)
        except CordoningError as error:
            # Kafka keeps the previous configs and logs the error.
            _log.error("broker %d: configs could not be applied: %s", core.config.broker_id, error)
            return
        core.happen(lifecycle.LogDirsCordoned(self.cordoned))

    # Placement.

    def _placement_order(self, changed: set[ReplicaKey]) -> list[ReplicaKey]:
        """Return removed replicas first, then leaders, then followers, each in Kafka's order."""
        view = self._core.view
        ordered = sorted(changed - view.replicas.keys())
        kept = changed & view.replicas.keys()
        live = {each.directory_id for each in self.live()}
        if self.makes_logs_late and not self.preferred and all(view.replicas[key].directory in live for key in kept):
            # None has to be placed.
            return ordered + sorted(kept)
        here = [NewReplica(key[0], view.topics.get(key[0], ""), key[1]) for key in kept]
        leading = {each for each in here if view.replicas[each.topic_id, each.partition].leader == view.broker_id}
        for each in (*in_kafkas_order(leading), *in_kafkas_order(set(here) - leading)):
            ordered.append((each.topic_id, each.partition))
        return ordered

    def _place_some(self) -> None:
        """Place waiting replicas for one time slice: disk operations take time, and heartbeats must continue."""
        self._counts = None
        for key in list(itertools.islice(self.waiting, REPLICAS_AT_ONCE)):
            del self.waiting[key]
            self._place(key)
        if self.waiting:
            self._core.kernel.after("placement", 0, self._place_more)
        self.on_progress()

    def _place_more(self) -> None:
        self._place_some()
        if self.hosting is not None:
            self.hosting.metadata_advanced()

    def _place(self, key: ReplicaKey) -> None:
        """Place a replica, and report its directory when the metadata has another one or none."""
        replica = self._core.view.replicas.get(key)
        if replica is None:
            self.placed.pop(key, None)
            self.moving.pop(key, None)
            self.lost.discard(key)
            with contextlib.suppress(StorageError):
                self._core.logs.remove(key)
            return
        if key not in self.placed:
            self._create(key, replica)
        if replica.directory != self.placed.get(key) and self.is_here(key) and key not in self.moving:
            self.assign(key, self.placed[key], "Applying metadata delta")

    def _create(self, key: ReplicaKey, replica: Replica) -> None:
        """Choose a directory as Kafka's `createLogInAssignedDirectoryId` and `LogManager.getOrCreateLog` do."""
        core = self._core
        if replica.directory != UNASSIGNED and not self.is_live(replica.directory) and self.has_offline:
            # It may be in an offline directory, so that a second one elsewhere would be wrong.
            return
        name = (core.view.topics.get(key[0], ""), key[1])
        wanted = self.preferred.get(name, replica.directory)
        if self.is_live(wanted):
            choices = [wanted]
        else:
            found = candidates(core.config.log_dirs, self._replica_counts(), self.offline, self.cordoned)
            choices = [each.directory_id for each in found]
        if any(self._create_in(key, replica, directory_id) for directory_id in choices):
            self.preferred.pop(name, None)

    def make_logs(self) -> None:
        """Create the logs that were left for later: somebody looks at them."""
        for key, directory_id in self.placed.items() if self.makes_logs_late else ():
            if self.is_here(key) and self._core.logs.log(key) is None:
                with contextlib.suppress(LogError):
                    self._core.logs.create(key, self._core.view.topics.get(key[0], ""), directory_id)

    def _replica_counts(self) -> Counter[bytes]:
        """Return the number of replicas per directory, future ones included; computed once per change."""
        if self._counts is None:
            self._counts = Counter(self.placed.values()) + Counter(self.moving.values())
        return self._counts

    def _create_in(self, key: ReplicaKey, replica: Replica, directory_id: bytes) -> bool:
        """Create the log of a replica; return True on success. The directory may be offline afterwards."""
        core = self._core
        if directory_id in self.offline:
            return False
        try:
            if not self.makes_logs_late:
                core.logs.create(key, core.view.topics.get(key[0], ""), directory_id)
        except LogError as error:
            _log.warning("broker %d: no log for partition %d: %s", core.config.broker_id, replica.partition, error)
            return False
        self.placed[key] = directory_id
        if self._counts is not None:
            self._counts[directory_id] += 1
        return True


def _nothing() -> None:
    """Do nothing."""


def _is_restartable(replica: Replica | None, broker_id: int) -> bool:
    """Return True if a lost replica of this broker may be recreated in another directory now (KIP-18, an option).

    An empty replica must never lead: it waits until the metadata shows another leader and an ISR without this broker. A
    replica without any other copy stays lost, so that its data can still be recovered by hand.
    """
    return replica is not None and replica.leader not in (-1, broker_id) and broker_id not in replica.isr


class DirectoryReports:
    """Sends `assignments` when they are due, one request at a time; `on_progress` is called after each."""

    def __init__(self, core: Core, assignments: Assignments, on_progress: Callable[[], None]) -> None:
        self._core = core
        self._assignments = assignments
        self._on_progress = on_progress
        self.channel = core.channel("directory-assignments")

    def assign(
        self, key: ReplicaKey, directory_id: bytes, reason: str, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Report that a replica is in this directory; `on_accepted` is called on confirmation."""
        _log.debug("broker %d: assigns %s-%d: %s", self._core.config.broker_id, key[0].hex(), key[1], reason)
        self._assignments.add(key, directory_id, self._core.kernel.now_ms, on_accepted)
        self._schedule()

    def _schedule(self) -> None:
        due_ms, kernel = self._assignments.due_ms, self._core.kernel
        if due_ms is not None:
            kernel.after("assignments", due_ms - kernel.now_ms, self._send)

    def _send(self) -> None:
        core = self._core
        registration = core.view.registration
        epoch = registration.broker_epoch if registration else -1
        request = self._assignments.take(core.config.broker_id, epoch, core.view.replicas)
        if request is None:
            self._continue()
            return
        _log.info("broker %d: QueuedReplicaToDirAssignments=%d", core.config.broker_id, self._assignments.queued)
        self.channel.send(lambda _: request, self._answered, self._failed)

    def _answered(self, response: AssignReplicasToDirsResponse) -> None:
        self._assignments.answered(response, self._core.kernel.now_ms)
        if response.error_code != error_codes.NONE:
            self._core.refusals[error_codes.name(response.error_code)] += 1
        self._continue()

    def _failed(self, error: Exception) -> None:
        self._core.count_refusal(error)
        self._assignments.failed(self._core.kernel.now_ms)
        self._continue()

    def _continue(self) -> None:
        self._schedule()
        self._on_progress()
