"""The replicas of a broker that serves clients (Kafka's `ReplicaManager`): leaders, followers and their fetchers.

A component that comes after `Directories`, which has placed each replica when this one is notified of it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.fetcher import FetchSettings, LeaderFetcher, fetch_version
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.isr_changes import RETRY_MS, IsrChanges
from mockraft.brokers.partitions.partition import (
    NO_LEADER,
    Assignment,
    CommittedIsr,
    IsrChange,
    Partition,
    Registered,
)
from mockraft.brokers.partitions.settings import ReplicaSettings, TopicSettings, topic_settings
from mockraft.brokers.time_slice import TimeSlice
from mockraft.wire import client, error_codes
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.image import ClusterImage

RETRY_TIMEOUT_MS = 60_000
PLAINTEXT = 0

_log = logging.getLogger(__name__)


class Replicas:
    """The component that hosts replicas. `partitions` are those it has, `fetchers` are by leader.

    `may_fetch` is cleared while followers are paused on purpose (:meth:`stick`).
    """

    def __init__(self, broker: SimulatedBroker, image: ClusterImage) -> None:
        config = broker.config
        self.broker_id = config.broker_id
        self.settings = ReplicaSettings.of(config.properties)
        self.fetch_settings = FetchSettings(
            self.settings.replica_fetch_wait_max_ms,
            self.settings.replica_fetch_min_bytes,
            self.settings.replica_fetch_max_bytes,
            self.settings.replica_fetch_response_max_bytes,
            self.settings.replica_fetch_backoff_ms,
        )
        self.partitions: dict[ReplicaKey, HostedPartition] = {}
        self.isr_changes = IsrChanges()
        self.fetchers: dict[int, LeaderFetcher] = {}
        self.may_fetch = asyncio.Event()
        self.may_fetch.set()
        self._broker = broker
        self._image = image
        self._sending = False
        self._fetched_from: dict[ReplicaKey, tuple[int, int]] = {}
        self._topic_settings: dict[str, TopicSettings] = {}
        self._settings_version = image.version
        find = broker.controller
        self._channel = ControllerChannel(
            str(config.broker_id), find, RETRY_TIMEOUT_MS, config.security, config.messages
        )
        broker.view.touched = set()

    # Component of the broker.

    def start(self) -> None:
        """Start the periodic check for lagging followers."""
        self._broker.start_task(self._watch_lag)

    def metadata_advanced(self) -> None:
        """Apply the metadata's changes: become leader or follower, or remove the replica."""
        self._channel.controller_moved()
        if self._broker.directories.is_published:
            self._apply_some()

    def state_changed(self, state: BrokerState) -> None:
        """From RECOVERY on the directories have placed this broker's replicas."""
        if state is BrokerState.RECOVERY:
            self.metadata_advanced()

    async def close(self) -> None:
        """Close the connection for ISR changes; fetchers ended with the broker's tasks."""
        await self._channel.close()

    # Queries.

    def hosted(self, key: ReplicaKey) -> HostedPartition | None:
        """Return the replica of this key; None when there is none here."""
        return self.partitions.get(key)

    def find(self, key: ReplicaKey) -> HostedPartition:
        """Return the replica of this key. Raises LogError as Kafka's `getPartitionOrError`."""
        hosted = self.partitions.get(key)
        if hosted is not None:
            return hosted
        if self._image.partition(*key) is not None:
            raise LogError(error_codes.NOT_LEADER_OR_FOLLOWER, "this broker has no replica of the partition")
        raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def disk_delay_ms(self, keys: Iterable[ReplicaKey]) -> float:
        """Return the time until the disks of these replicas, one after the other, take the next operation.

        A slow disk delays only the requests for it.
        """
        logs = self._broker.logs
        if not any(log_dir.disk.delay_ms for log_dir in logs.log_dirs):
            return 0
        directories = (logs.directory_of(key) for key in set(keys))
        return sum(logs.log_dir(each).disk.delay_ms for each in directories if each is not None)

    def stick(self, stuck: bool = True) -> None:
        """Pause this broker's followers, like those of a hanging broker, or resume them."""
        if stuck:
            self.may_fetch.clear()
        else:
            self.may_fetch.set()

    def broker_epoch(self) -> int:
        """This broker's epoch."""
        return self._broker.life.broker_epoch

    def fetch_version(self) -> int:
        """The version of Fetch that the cluster's brokers use between each other."""
        return fetch_version(self._image.metadata_version)

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        """Return another broker's endpoint: on the listener named as our own first one, else any PLAINTEXT."""
        node = self._image.brokers.get(broker_id)
        if node is None:
            return None
        named = node.endpoints.get(self._broker.config.listeners[0].name)
        plain = (each for each in node.endpoints.values() if each.security_protocol == PLAINTEXT)
        endpoint = named or next(plain, None)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def topic_settings(self, topic: str) -> TopicSettings:
        """Return the current settings of a topic."""
        if self._settings_version != self._image.version:
            self._settings_version = self._image.version
            self._topic_settings.clear()
        known = self._topic_settings.get(topic)
        if known is None:
            known = topic_settings(self._image, self.broker_id, topic, self._broker.config.properties)
            self._topic_settings[topic] = known
        return known

    def now_ms(self) -> int:
        """The clock for lags."""
        return int(asyncio.get_running_loop().time() * 1000)

    # Changes of the metadata log.

    def _apply_some(self) -> None:
        """Apply changes for one time slice; replicas without a directory are applied once they have one."""
        view, unplaced = self._broker.view, self._broker.directories.waiting
        touched = view.take_touched()
        later = touched & unplaced.keys()
        touched -= later
        time_slice = TimeSlice(self._broker)
        while touched and time_slice.has_time():
            self.apply(touched.pop())
        if touched:
            time_slice.continue_later("replicas", self._apply_some)
        view.touched = touched | later

    def apply(self, key: ReplicaKey) -> None:
        """Bring the replica in line with the metadata; also called after its directory has changed."""
        partition = self._image.partition(*key)
        if partition is None or self.broker_id not in partition.replicas:
            self._stop(key)
            return
        hosted = self.partitions.get(key)
        if hosted is None:
            hosted = self.partitions[key] = self._host(key)
        assignment = Assignment(
            partition.leader, partition.leader_epoch, partition.isr, partition.replicas, partition.partition_epoch
        )
        try:
            self._open(hosted)
            if assignment.leader == self.broker_id:
                self._leave(key)
                hosted.lead(assignment, self.now_ms())
            else:
                hosted.follow(assignment)
                self._follow(key, assignment)
        except LogError as error:
            _log.warning("broker %d: %s: %s", self.broker_id, hosted.name, error)
            self._leave(key)

    def directory_offline(self, directory_id: bytes) -> None:
        """Handle a failed log directory: stop fetching its replicas, and wake the requests that wait for them."""
        for key in self._broker.logs.replicas_in(directory_id):
            self._leave(key)
            if key in self.partitions:
                self.partitions[key].wake()

    def _host(self, key: ReplicaKey) -> HostedPartition:
        topic = self._image.topics[key[0]].name

        def settings() -> TopicSettings:
            return self.topic_settings(topic)

        state = Partition(
            self.broker_id,
            self._registered,
            lambda: settings().min_insync_replicas,
            lag_time_max_ms=self.settings.replica_lag_time_max_ms,
        )
        return HostedPartition(
            key, topic, state, settings, self._broker.logs.log, self._propose, self._broker.clients_changed
        )

    def _open(self, hosted: HostedPartition) -> None:
        """Create the replica's log in its directory. Raises LogError."""
        broker = self._broker
        if broker.logs.log(hosted.key) is None:
            if not broker.directories.is_here(hosted.key):
                raise LogError(error_codes.KAFKA_STORAGE_ERROR, "the log directory is offline")
            directory_id = broker.directories.placed[hosted.key]
            broker.logs.create(hosted.key, hosted.topic, directory_id, config=self.topic_settings(hosted.topic).log)

    def _stop(self, key: ReplicaKey) -> None:
        """Remove a replica and delete its log (stopReplicas)."""
        self._leave(key)
        hosted = self.partitions.pop(key, None)
        if hosted is None:
            return
        hosted.wake()
        try:
            self._broker.logs.remove(key)
        except LogError as error:
            _log.warning("broker %d: %s: not deleted: %s", self.broker_id, hosted.name, error)

    def _registered(self, broker_id: int) -> Registered | None:
        node = self._image.brokers.get(broker_id)
        return None if node is None else Registered(node.broker_epoch, node.fenced, node.in_controlled_shutdown)

    # Fetching.

    def _follow(self, key: ReplicaKey, assignment: Assignment) -> None:
        """Fetch from the leader; restart when the leader epoch changes."""
        source = (assignment.leader, assignment.leader_epoch)
        if self._fetched_from.get(key) == source:
            return
        self._leave(key)
        if assignment.leader == NO_LEADER:
            return
        self._fetched_from[key] = source
        fetcher = self.fetchers.get(assignment.leader)
        if fetcher is None:
            fetcher = self.fetchers[assignment.leader] = LeaderFetcher(self, assignment.leader, self._fetcher_over)
            fetcher.follow(key, assignment.leader_epoch)
            self._broker.start_task(fetcher.run)
        else:
            fetcher.follow(key, assignment.leader_epoch)

    def _leave(self, key: ReplicaKey) -> None:
        source = self._fetched_from.pop(key, None)
        if source is not None and source[0] in self.fetchers:
            self.fetchers[source[0]].leave(key)

    def _fetcher_over(self, fetcher: LeaderFetcher) -> None:
        if self.fetchers.get(fetcher.leader_id) is fetcher:
            del self.fetchers[fetcher.leader_id]

    # ISR changes.

    def _propose(self, hosted: HostedPartition, change: IsrChange) -> None:
        self.isr_changes.add(hosted.key, change, functools.partial(self._isr_answered, hosted))
        if not self._sending and self.isr_changes.is_due and not self._broker.stopped.is_set():
            self._sending = True
            self._broker.start_task(self._send_isr_changes)

    def _isr_answered(self, hosted: HostedPartition, change: IsrChange, answer: CommittedIsr | int) -> None:
        hosted.committed_or_refused(change, answer, self.now_ms())
        self._broker.changed.set()

    async def _send_isr_changes(self) -> None:
        def make(connection: client.KafkaConnection) -> AlterPartitionRequest:
            version = connection.version_for(AlterPartitionRequest)
            request = self.isr_changes.take(self.broker_id, self.broker_epoch(), version)
            assert request is not None
            return request

        try:
            while self.isr_changes.is_due:
                try:
                    response = await self._channel.send(make)
                    wait_ms = self.isr_changes.answered(response)
                    if response.error_code != error_codes.NONE:
                        self._broker.refusals[error_codes.name(response.error_code)] += 1
                except (NotSentError, client.UnsupportedVersionError) as error:
                    self._broker.refusals[type(error).__name__] += 1
                    wait_ms = self.isr_changes.failed()
                await asyncio.sleep(wait_ms / 1000)
        finally:
            self._sending = False

    async def _watch_lag(self) -> None:
        """Run Kafka's task "isr-expiration", twice per `replica.lag.time.max.ms`."""
        while True:
            await asyncio.sleep(max(self.settings.replica_lag_time_max_ms / 2, RETRY_MS) / 1000)
            for hosted in list(self.partitions.values()):
                if hosted.state.is_leader:
                    hosted.shrink(self.now_ms())
