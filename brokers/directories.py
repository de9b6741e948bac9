"""Which directory each replica of a broker lies in, and that the controller knows it (KIP-858, KIP-1066)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from mockraft.brokers import lifecycle
from mockraft.brokers.assignments import Assignments, ReplicaKey
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.lifecycle import BrokerState, End
from mockraft.brokers.log_dirs.cordoning import CordoningError, cordoned_paths
from mockraft.brokers.log_dirs.directory_ids import UNASSIGNED
from mockraft.brokers.log_dirs.placement import DirectoryAt, candidates
from mockraft.wire import client, error_codes
from mockraft.wire.uuids import text_of

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.metadata_view import Replica

RETRY_TIMEOUT_MS = 60_000
SHUTDOWN_TIMEOUT_MS = 300_000
DIRECTORIES_FROM = 17

_log = logging.getLogger(__name__)


class Directories:
    """The part of a broker that places replicas, reports where they lie, and which directories failed or are cordoned.

    `placed` is the directory uuid of each replica by (topic id, partition), offline ones too; `lost` are those of them
    that failed alone (KIP-18). `preferred` is where a replica that is not here yet is to go, by (topic, partition).
    `moving` is the target of each replica on its way to another directory: the metadata may name either.
    `offline` says of each directory that failed since the start why; `cordoned` are those cordoned now.
    """

    def __init__(self, broker: SimulatedBroker) -> None:
        config = broker.config
        self.placed: dict[ReplicaKey, bytes] = {}
        self.lost: set[ReplicaKey] = set()
        self.preferred: dict[tuple[str, int], bytes] = {}
        self.moving: dict[ReplicaKey, bytes] = {}
        self.assignments = Assignments()
        self.offline: dict[bytes, str] = {}
        self._broker = broker
        self._published = False
        self._channel = ControllerChannel(
            str(config.broker_id), broker.controller, RETRY_TIMEOUT_MS, config.security, config.messages
        )
        self._cordoned_value = config.cordoned_log_dirs
        self.cordoned = self._cordoned_by(config.cordoned_log_dirs)
        if self.cordoned:
            broker.happen(lifecycle.LogDirsCordoned(self.cordoned))

    def start(self) -> None:
        """Directories that failed since they were opened are told like those that fail later."""
        for directory_id in self.offline:
            self._report(directory_id)

    def metadata_advanced(self) -> None:
        """Place what came, forget what went, hear which directories are cordoned."""
        self._channel.controller_moved()
        broker = self._broker
        observer = broker.observer
        if not self._published:
            if observer.applied_offset + 1 < observer.high_watermark:
                return
            self._published = True
            self._first_published()
        changed = broker.view.take_changed()
        for key in sorted(changed, key=self._turn):
            self._place(key)
        self._hear_cordoned()

    def state_changed(self, state: BrokerState) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Close the connection that assignments go over."""
        await self._channel.close()

    def _first_published(self) -> None:
        """The metadata is known up to the high watermark, and no replica is placed yet: settle what the start left."""

    # What others ask.

    @property
    def has_offline(self) -> bool:
        """Whether some directory of log.dirs cannot be used, since the start or from before it."""
        return bool(self.offline or self._broker.config.offline_log_dirs)

    def live(self) -> list[DirectoryAt]:
        """The directories that work, in the order of log.dirs."""
        return [log_dir for log_dir in self._broker.config.log_dirs if log_dir.directory_id not in self.offline]

    def is_live(self, directory_id: bytes) -> bool:
        """Whether this is one of ours that works."""
        return any(log_dir.directory_id == directory_id for log_dir in self.live())

    def is_cordoned(self, directory_id: bytes) -> bool:
        """Whether no new replica should go there."""
        return directory_id in self.cordoned

    def is_here(self, key: ReplicaKey) -> bool:
        """Whether this replica can be used: it is placed, in a directory that works, and did not fail by itself."""
        return key not in self.lost and self.is_live(self.placed.get(key, UNASSIGNED))

    def find(self, path_or_id: str | bytes) -> DirectoryAt:
        """A directory by its path, its uuid (16 bytes) or the uuid's text. LookupError names those there are."""
        for log_dir in self._broker.config.log_dirs:
            if path_or_id in (log_dir.path, log_dir.directory_id, text_of(log_dir.directory_id)):
                return log_dir
        known = ", ".join(
            f"{log_dir.path} ({text_of(log_dir.directory_id)})" for log_dir in self._broker.config.log_dirs
        )
        asked = text_of(path_or_id) if isinstance(path_or_id, bytes) and len(path_or_id) == 16 else path_or_id
        raise LookupError(f"broker {self._broker.config.broker_id} has no log dir {asked}; it has {known}")

    def assign(
        self, key: ReplicaKey, directory_id: bytes, reason: str, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Tell the controller that a replica lies there; `on_accepted` is called when it has taken that."""
        if self._broker.view.metadata_version < DIRECTORIES_FROM:
            return
        _log.debug("broker %d: assigns %s-%d: %s", self._broker.config.broker_id, key[0].hex(), key[1], reason)
        self.assignments.add(key, directory_id, _now_ms(), on_accepted)
        self._schedule_assignments()

    def fail(self, directory_id: bytes, reason: str) -> None:
        """A directory went offline (Kafka's `ReplicaManager.handleLogDirFailure`).

        The controller hears of it in every heartbeat from now on. Without any live one, or without the one that the
        metadata log lies in, the broker is over at once, and nobody hears.
        """
        if directory_id in self.offline:
            return
        broker = self._broker
        self.offline[directory_id] = reason
        _log.warning("broker %d: log dir %s is offline: %s", broker.config.broker_id, text_of(directory_id), reason)
        if not self.live():
            broker.happen(lifecycle.Stopped(End.ALL_LOG_DIRS_FAILED))
        elif directory_id == broker.config.metadata_directory_id:
            broker.happen(lifecycle.Stopped(End.METADATA_LOG_DIR_FAILED))
        elif broker.state is not BrokerState.NOT_RUNNING:
            self._report(directory_id)

    # Failed and cordoned directories.

    def _report(self, directory_id: bytes) -> None:
        """One timer for all of them, as Kafka has it: a directory that fails later gives the earlier ones more time."""
        broker = self._broker
        broker.happen(lifecycle.LogDirFailed(directory_id))
        broker.set_timer("log-dir-failure", broker.config.log_dir_failure_timeout_ms, self._not_reported, directory_id)

    def _not_reported(self, directory_id: bytes) -> None:
        broker = self._broker
        broker.happen(lifecycle.LogDirFailureTimedOut(directory_id))
        if broker.life.leaving_for is End.LOG_DIR_NOT_REPORTED:
            over = lifecycle.Stopped(End.LOG_DIR_NOT_REPORTED)
            broker.set_timer("shutdown", SHUTDOWN_TIMEOUT_MS, broker.happen, over)

    def _cordoned_by(self, value: str) -> frozenset[bytes]:
        """The live directories that a value of cordoned.log.dirs means. Raises CordoningError."""
        config = self._broker.config
        known = [*(log_dir.path for log_dir in config.log_dirs), *config.offline_log_dirs]
        paths = cordoned_paths(value, known)
        return frozenset(log_dir.directory_id for log_dir in self.live() if log_dir.path in paths)

    def _hear_cordoned(self) -> None:
        broker = self._broker
        dynamic = broker.view.cordoned_log_dirs
        value = broker.config.cordoned_log_dirs if dynamic is None else dynamic
        if value == self._cordoned_value:
            return
        self._cordoned_value = value
        try:
            self.cordoned = self._cordoned_by(value)
        except CordoningError as error:
            # Kafka leaves what is in force, and says so in its log.
            _log.error("broker %d: configs could not be applied: %s", broker.config.broker_id, error)
            return
        broker.happen(lifecycle.LogDirsCordoned(self.cordoned))

    # Where replicas go.

    def _turn(self, key: ReplicaKey) -> tuple[bool, str, bytes, int]:
        """Leaders come before followers, as in Kafka; otherwise any order will do that is always the same."""
        view = self._broker.view
        replica = view.replicas.get(key)
        leads = replica is not None and replica.leader == view.broker_id
        return not leads, view.topics.get(key[0], ""), *key

    def _place(self, key: ReplicaKey) -> None:
        """Give a replica its directory, and tell the controller when the metadata says another one or none."""
        replica = self._broker.view.replicas.get(key)
        if replica is None:
            self.placed.pop(key, None)
            self.moving.pop(key, None)
            self.lost.discard(key)
            return
        if key not in self.placed:
            self._create(key, replica)
        if replica.directory != self.placed.get(key) and self.is_here(key) and key not in self.moving:
            self.assign(key, self.placed[key], "Applying metadata delta")

    def _create(self, key: ReplicaKey, replica: Replica) -> None:
        """Kafka's `Partition.createLogInAssignedDirectoryId` and `LogManager.getOrCreateLog`."""
        broker = self._broker
        if replica.directory != UNASSIGNED and not self.is_live(replica.directory) and self.has_offline:
            # It may lie in a directory that is offline, so that a second one elsewhere would be wrong.
            return
        name = (broker.view.topics.get(key[0], ""), key[1])
        wanted = self.preferred.get(name, replica.directory)
        if self.is_live(wanted):
            choices = [wanted]
        else:
            load = Counter(self.placed.values()) + Counter(self.moving.values())
            choices = [
                each.directory_id for each in candidates(broker.config.log_dirs, load, self.offline, self.cordoned)
            ]
        for directory_id in choices:
            self.placed[key] = directory_id
            self.preferred.pop(name, None)
            return

    # What the controller is told of them.

    def _schedule_assignments(self) -> None:
        due_ms = self.assignments.due_ms
        if due_ms is not None and not self._broker.stopped.is_set():
            self._broker.set_timer("assignments", due_ms - _now_ms(), self._broker.start_task, self._assign)

    async def _assign(self) -> None:
        broker = self._broker
        registration = broker.view.registration
        epoch = registration.broker_epoch if registration else -1
        request = self.assignments.take(broker.config.broker_id, epoch, broker.view.replicas)
        if request is not None:
            try:
                response = await self._channel.send(lambda _: request)
                self.assignments.answered(response, _now_ms())
                if response.error_code != error_codes.NONE:
                    broker.refusals[error_codes.name(response.error_code)] += 1
            except (NotSentError, client.UnsupportedVersionError) as error:
                broker.refusals[type(error).__name__] += 1
                self.assignments.failed(_now_ms())
        self._schedule_assignments()
        broker.changed.set()


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
