"""The replicas of a broker that serves clients (Kafka's `ReplicaManager`): leaders, followers and their fetchers.

A component that comes after `Directories`, which has placed each replica when this one is notified of it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from itertools import islice

from mockraft.brokers import directories as log_directories
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.core import Component, Core
from mockraft.brokers.directories import Directories
from mockraft.brokers.effects import Versions
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.image.cluster_image import NO_LEADER
from mockraft.brokers.image.cluster_image import Partition as PartitionImage
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.fetcher import LeaderFetcher, fetch_version
from mockraft.brokers.partitions.hosted import HostedPartition, PartitionHost
from mockraft.brokers.partitions.isr_changes import RETRY_MS, Answered, IsrChanges
from mockraft.brokers.partitions.partition import NO_EPOCH, Assignment, CommittedIsr, IsrChange, Partition, Registered
from mockraft.brokers.partitions.settings import ReplicaSettings, TopicSettings, topic_settings
from mockraft.brokers.replication_quota import ReplicationThrottle
from mockraft.wire import error_codes
from mockraft.wire.connection import version_for
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_response import AlterPartitionResponse

_log = logging.getLogger(__name__)

AGAIN_MS = 500
"""Time after which a refused ISR change is looked at again: a follower's next fetch."""


class Replicas(Component):
    """The component that hosts replicas. `partitions` are those it has, `fetchers` are by leader.

    `is_stuck` is True while followers are paused on purpose (:meth:`stick`). `changed` is called with each change
    that a parked request may wait for.
    """

    def __init__(
        self,
        core: Core,
        directories: Directories,
        image: ClusterImage,
        changed: Callable[[], None],
        neighbours: Neighbours | None = None,
    ) -> None:
        config = core.config
        self.broker_id = config.broker_id
        self.settings = ReplicaSettings.of(config.properties)
        self.partitions: dict[ReplicaKey, HostedPartition] = {}
        self.isr_changes = IsrChanges()
        self.fetchers: dict[int, LeaderFetcher] = {}
        self.is_stuck = False
        self._core = core
        self._changed = changed
        self._directories = directories
        self._image = image
        self.leader_throttle = ReplicationThrottle("leader", image, self.broker_id)
        self.follower_throttle = ReplicationThrottle("follower", image, self.broker_id)
        self._sending = False
        self._fetched_from: dict[ReplicaKey, tuple[int, int]] = {}
        self._topic_settings: dict[str, TopicSettings] = {}
        self._settings_version = image.version
        self._channel = core.channel("alter-partition")
        self.dormant = None if neighbours is None else Dormant(core, self, neighbours)
        # A shared view has been following the log already.
        core.view.touched = set(core.view.replicas)

    # Component of the broker.

    def start(self) -> None:
        """Start the periodic check for lagging followers."""
        if self.dormant is not None:
            self.dormant.start()
        interval_ms = max(self.settings.replica_lag_time_max_ms / 2, RETRY_MS)
        self._core.kernel.after("isr-expiration", interval_ms, self._watch_lag)

    def metadata_advanced(self) -> None:
        """Apply the metadata's changes: become leader or follower, or remove the replica."""
        self._channel.controller_moved()
        if self._directories.is_published:
            self._apply_some()
            if self.dormant is not None:
                self.dormant.metadata_advanced(self._is_unfenced())

    def state_changed(self, state: BrokerState) -> None:
        """From RECOVERY on the directories have placed this broker's replicas."""
        if state is BrokerState.RECOVERY:
            self.metadata_advanced()

    def close(self) -> None:
        """Close the connection for ISR changes."""
        if self.dormant is not None:
            self.dormant.close()
        self._channel.close()

    # Queries.

    def hosted(self, key: ReplicaKey) -> HostedPartition | None:
        """Return the replica of this key, awake; None when there is none here."""
        if self.dormant is not None and key not in self.partitions:
            self.dormant.wake(key)
        return self.partitions.get(key)

    def find(self, key: ReplicaKey) -> HostedPartition:
        """Return the replica of this key. Raises LogError as Kafka's `getPartitionOrError`."""
        hosted = self.hosted(key)
        if hosted is not None:
            return hosted
        if self._image.partition(*key) is not None:
            raise LogError(error_codes.NOT_LEADER_OR_FOLLOWER, "this broker has no replica of the partition")
        raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def disk_delay_ms(self, keys: Iterable[ReplicaKey]) -> float:
        """Return the time until the disks of these replicas, one after the other, take the next operation.

        A slow disk delays only the requests for it.
        """
        logs = self._core.logs
        if not any(log_dir.disk.delay_ms for log_dir in logs.log_dirs):
            return 0
        directories = (logs.directory_of(key) for key in set(keys))
        return sum(logs.log_dir(each).disk.delay_ms for each in directories if each is not None)

    def stick(self, stuck: bool = True) -> None:
        """Pause this broker's followers, like those of a hanging broker, or resume them."""
        self.is_stuck = stuck
        if not stuck:
            for fetcher in list(self.fetchers.values()):
                self._core.kernel.enter(fetcher.unstick)
            if self.dormant is not None:
                self._core.kernel.enter(self.dormant.rejoin)

    def broker_epoch(self) -> int:
        """Return the epoch of the last registration, -1 before it."""
        return self._core.life.broker_epoch

    def has_place(self, key: ReplicaKey) -> bool:
        """Return True if the replica has a directory here that works."""
        return self._directories.is_here(key)

    def fetch_version(self) -> int:
        """The version of Fetch that the cluster's brokers use between each other."""
        return fetch_version(self._image.metadata_version)

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        """Return another broker's endpoint: on the listener named as our own first one, else any with its protocol."""
        node = self._image.brokers.get(broker_id)
        if node is None:
            return None
        own = self._core.config.listeners[0]
        alike = (each for each in node.endpoints.values() if each.security_protocol == own.security_protocol)
        endpoint = node.endpoints.get(own.name) or next(alike, None)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def topic_settings(self, topic: str) -> TopicSettings:
        """Return the current settings of a topic."""
        if self._settings_version != self._image.version:
            self._settings_version = self._image.version
            self._topic_settings.clear()
        known = self._topic_settings.get(topic)
        if known is None:
            known = topic_settings(self._image, self.broker_id, topic, self._core.config.properties)
            self._topic_settings[topic] = known
        return known

    def now_ms(self) -> int:
        """The clock for lags."""
        return int(self._core.kernel.now_ms)

    # Changes of the metadata log.

    def _apply_some(self) -> None:
        """Apply changes for one time slice; replicas without a directory are applied once they have one."""
        touched, unplaced = self._core.view.touched or set(), self._directories.waiting
        at_once = log_directories.REPLICAS_AT_ONCE
        ready = list(islice((key for key in touched if key not in unplaced), at_once + 1))
        for key in ready[:at_once]:
            touched.discard(key)
            self.apply(key)
        if len(ready) > at_once:
            self._core.kernel.after("replicas", 0, self._apply_some)

    def apply(self, key: ReplicaKey) -> None:
        """Bring the replica in line with the metadata; also called after its directory has changed."""
        partition = self._image.partition(*key)
        if partition is None or self.broker_id not in partition.replicas:
            self._stop(key)
            if partition is None and self.dormant is not None:
                self.dormant.forget(key)
            return
        if self.dormant is not None and self.dormant.keeps(key, partition):
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

    def awoken(self, key: ReplicaKey) -> None:
        """Apply the metadata to a replica that was dormant, unless it is to be placed first."""
        if self._directories.is_published and key in self._directories.placed:
            self.apply(key)

    def directory_offline(self, directory_id: bytes) -> None:
        """Handle a failed log directory: stop fetching its replicas, and wake the requests that wait for them."""
        for key in self._core.logs.replicas_in(directory_id):
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
        host = PartitionHost(self._core.logs.log, self._propose, self._changed)
        return HostedPartition(key, topic, state, settings, host)

    def _open(self, hosted: HostedPartition) -> None:
        """Create the replica's log in its directory. Raises LogError."""
        core = self._core
        if core.logs.log(hosted.key) is None:
            if not self._directories.is_here(hosted.key):
                raise LogError(error_codes.KAFKA_STORAGE_ERROR, "the log directory is offline")
            directory_id = self._directories.placed[hosted.key]
            core.logs.create(hosted.key, hosted.topic, directory_id, config=self.topic_settings(hosted.topic).log)

    def _stop(self, key: ReplicaKey) -> None:
        """Remove a replica and delete its log (stopReplicas)."""
        self._leave(key)
        hosted = self.partitions.pop(key, None)
        if hosted is None:
            return
        hosted.wake()
        try:
            self._core.logs.remove(key)
        except LogError as error:
            _log.warning("broker %d: %s: not deleted: %s", self.broker_id, hosted.name, error)

    def _is_unfenced(self) -> bool:
        registration = self._core.view.registration
        return (
            registration is not None
            and not registration.fenced
            and registration.broker_epoch == self._core.life.broker_epoch
        )

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
            fetcher = self.fetchers[assignment.leader] = LeaderFetcher(
                self._core.kernel, self, assignment.leader, self._fetcher_over
            )
            fetcher.follow(key, assignment.leader_epoch)
            fetcher.start()
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
        self.submit(hosted.key, change, lambda of, answer: hosted.committed_or_refused(of, answer, self.now_ms()))

    def submit(self, key: ReplicaKey, change: IsrChange, on_answer: Answered) -> None:
        """Send an ISR change to the controller."""
        self.isr_changes.add(key, change, on_answer)
        if not self._sending:
            self._send_isr_changes()

    def _send_isr_changes(self) -> None:
        self._sending = self.isr_changes.is_due
        if self._sending:
            self._channel.send(self._isr_request, self._isr_changes_answered, self._isr_changes_failed)

    def _isr_request(self, versions: Versions) -> AlterPartitionRequest:
        version = version_for(AlterPartitionRequest, versions)
        request = self.isr_changes.take(self.broker_id, self.broker_epoch(), version)
        assert request is not None
        return request

    def _isr_changes_answered(self, response: AlterPartitionResponse) -> None:
        wait_ms = self.isr_changes.answered(response)
        if response.error_code != error_codes.NONE:
            self._core.refusals[error_codes.name(response.error_code)] += 1
        self._core.kernel.after("isr-changes", wait_ms, self._send_isr_changes)

    def _isr_changes_failed(self, error: Exception) -> None:
        self._core.count_refusal(error)
        self._core.kernel.after("isr-changes", self.isr_changes.failed(), self._send_isr_changes)

    def _watch_lag(self) -> None:
        """Run Kafka's task "isr-expiration", twice per `replica.lag.time.max.ms`."""
        for hosted in list(self.partitions.values()):
            if hosted.state.is_leader:
                hosted.shrink(self.now_ms())
        self.start()


class Neighbours:
    """The brokers of one process that share a replication: their ids, the `hosts` that run, the partitions awake."""

    def __init__(self, broker_ids: Iterable[int]) -> None:
        self.broker_ids = set(broker_ids)
        self.hosts: dict[int, Replicas] = {}
        self.awake: set[ReplicaKey] = set()


class Dormant:
    """The dormant replicas of one broker, whose `host` has those that are awake.

    A thousand brokers have followers of each other, each with a connection on which empty fetches go back and forth.
    As long as a partition's logs are empty its followers are in sync without them: the leader proposes the ISR that
    their first fetch would have led to. Such a partition is *dormant*, and its replicas have a directory but no log.
    The first request for its records wakes it, on all its brokers and for good: they make their logs, and fetch as
    Kafka's do.
    """

    def __init__(self, core: Core, host: Replicas, neighbours: Neighbours) -> None:
        assert core.image is not None
        self._core = core
        self._image = core.image
        self._host = host
        self._neighbours = neighbours
        self._proposed: set[ReplicaKey] = set()
        self._was_unfenced = False

    def start(self) -> None:
        """Let the neighbours see this broker."""
        self._neighbours.hosts[self._host.broker_id] = self._host

    def close(self) -> None:
        """Hide this broker from its neighbours."""
        if self._neighbours.hosts.get(self._host.broker_id) is self._host:
            del self._neighbours.hosts[self._host.broker_id]

    def enter(self, call: Callable[[ReplicaKey], None], key: ReplicaKey) -> None:
        """Do something for a neighbour, in a step of this broker."""
        if not self._core.kernel.is_stopped:
            self._core.kernel.enter(call, key)

    def metadata_advanced(self, is_unfenced: bool) -> None:
        """Rejoin the ISRs once this broker is unfenced."""
        if is_unfenced and not self._was_unfenced:
            self.rejoin()
        self._was_unfenced = is_unfenced

    def rejoin(self) -> None:
        """Ask the leaders to propose ISRs with this broker where it is missing."""
        for key, replica in [*self._core.view.replicas.items()]:
            if self._host.broker_id not in replica.isr:
                self._join(key, replica.leader)

    def wake(self, key: ReplicaKey) -> None:
        """Host the replicas of a partition, here and on the neighbours, if this broker has one."""
        partition = self._image.partition(*key)
        if key in self._neighbours.awake or partition is None or self._host.broker_id not in partition.replicas:
            return
        self._neighbours.awake.add(key)
        for broker_id in partition.replicas:
            host = self._neighbours.hosts.get(broker_id)
            if host is not None and host.dormant is not None:
                host.dormant.enter(host.awoken, key)

    def forget(self, key: ReplicaKey) -> None:
        """Forget a deleted partition."""
        self._neighbours.awake.discard(key)

    def keeps(self, key: ReplicaKey, partition: PartitionImage) -> bool:
        """Apply a change of the metadata to a dormant replica; return False if it is awake, or has to be."""
        if key in self._neighbours.awake:
            return False
        if not self._neighbours.broker_ids.issuperset(partition.replicas):
            self._neighbours.awake.add(key)
            return False
        if partition.leader == self._host.broker_id:
            self.propose(key)
        elif self._host.broker_id not in partition.isr:
            self._join(key, partition.leader)
        return True

    def _join(self, key: ReplicaKey, leader: int) -> None:
        host = self._neighbours.hosts.get(leader)
        if host is not None and host.dormant is not None and key not in self._neighbours.awake:
            host.dormant.enter(host.dormant.propose, key)

    def propose(self, key: ReplicaKey) -> None:
        """As the leader propose an ISR with a replica that may join it, one after the other as Kafka's leaders do."""
        partition = self._image.partition(*key)
        if (
            partition is None
            or partition.leader != self._host.broker_id
            or not self._host.has_place(key)
            or key in self._proposed
            or key in self._neighbours.awake
        ):
            return
        joining = next((each for each in partition.replicas if self._may_join(key, partition, each)), None)
        if joining is None:
            return
        isr = [each for each in partition.replicas if each in partition.isr or each == joining]
        brokers = self._image.brokers
        epochs = tuple((each, brokers[each].broker_epoch if each in brokers else NO_EPOCH) for each in isr)
        change = IsrChange(epochs, partition.leader_epoch, partition.partition_epoch, joining)
        self._proposed.add(key)
        self._host.submit(key, change, functools.partial(self._answered, key))

    def _may_join(self, key: ReplicaKey, partition: PartitionImage, broker_id: int) -> bool:
        follower, node = self._neighbours.hosts.get(broker_id), self._image.brokers.get(broker_id)
        if broker_id in partition.isr or follower is None or node is None or node.fenced:
            return False
        is_able = follower.has_place(key) and not follower.is_stuck and not node.in_controlled_shutdown
        return is_able and follower.broker_epoch() == node.broker_epoch

    def _answered(self, key: ReplicaKey, _: IsrChange, answer: CommittedIsr | int) -> None:
        self._proposed.discard(key)
        partition = self._image.partition(*key)
        if isinstance(answer, int):
            self._core.kernel.after(("join", key), AGAIN_MS, functools.partial(self.propose, key))
        elif partition is not None and partition.partition_epoch >= answer.partition_epoch:
            self.propose(key)
