"""Broker 1's replicas in memory and its coordinators over them, without sockets; requests to brokers are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from mockraft.brokers.coordinators.group_coordinator import GroupCoordinator
from mockraft.brokers.coordinators.transactions import TransactionCoordinator
from mockraft.brokers.coordinators.verification import Verifier
from mockraft.brokers.core import Core
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.effects import Answered, Connect, Failed, Opened, SendRequest
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.partitions.hosted import FollowerFetch, HostedPartition, PartitionHost
from mockraft.brokers.partitions.partition import Assignment, Partition, Registered
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.partitions.settings import ReplicaSettings, TopicSettings
from mockraft.brokers.shares.leaders import Leaders
from mockraft.brokers.shares.shares import Shares
from mockraft.wire.message import Message

NEWEST = dict.fromkeys(range(100), (0, 99))


class Hosts:
    """The replicas of broker 1; like Replicas it tells of changes."""

    broker_id = 1
    settings = ReplicaSettings.of({})

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.partitions: dict[tuple[bytes, int], HostedPartition] = {}
        self.logs: dict[tuple[bytes, int], ReplicaLog] = {}
        self.changed: Callable[[], None] = lambda: None

    def follow_metadata(self) -> None:
        """Lead or follow what the image says."""
        for topic in self.image.topics.values():
            for index, partition in topic.partitions.items():
                if 1 not in partition.replicas:
                    continue
                key = (topic.topic_id, index)
                hosted = self.partitions.get(key) or self._host(key, topic.name)
                fields = (partition.leader, partition.leader_epoch, partition.isr, partition.replicas)
                assignment = Assignment(*fields, partition.partition_epoch)
                if partition.leader == 1:
                    hosted.lead(assignment, 0)
                else:
                    hosted.follow(assignment)

    def hosted(self, key: tuple[bytes, int]) -> HostedPartition | None:
        return self.partitions.get(key)

    def find(self, key: tuple[bytes, int]) -> HostedPartition:
        return self.partitions[key]

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        return (f"b{broker_id}", 9092) if broker_id in self.image.brokers else None

    def disk_delay_ms(self, _keys: object) -> int:
        return 0

    def _host(self, key: tuple[bytes, int], name: str) -> HostedPartition:
        log = self.logs.setdefault(key, ReplicaLog(MemoryDisk("/d0"), f"{name}-{key[1]}"))
        self.partitions[key] = HostedPartition(
            key,
            name,
            Partition(1, lambda broker_id: Registered(10 + broker_id)),
            lambda: TopicSettings(1, LogConfig()),
            PartitionHost(lambda _key: log, lambda _hosted, _change: None, lambda: self.changed()),
        )
        return self.partitions[key]


class Coordinating:
    """The coordinators. Producer ids count from 1000, or are `producer_ids`. `sent` are requests without a response."""

    def __init__(self, image: ClusterImage, config: Any) -> None:
        self.now_ms = 1_000.0
        self.kernel = Kernel(_fail)
        self.kernel.outside = cast(Any, SimpleNamespace(now_ms=lambda: self.now_ms, touched=lambda: None))
        self.image = image
        self.hosts = Hosts(image)
        self.sent: list[SendRequest] = []
        self.producer_ids: Iterator[int | None] = iter(range(1_000, 2_000))
        core = cast(Core, SimpleNamespace(kernel=self.kernel, image=image, config=config))
        replicas = cast(Replicas, self.hosts)
        ids = cast(ProducerIds, SimpleNamespace(next_id=lambda answered: answered(next(self.producer_ids))))
        self.groups = GroupCoordinator(core, replicas, lambda: None)
        self.transactions = TransactionCoordinator(core, replicas, ids, lambda: None)
        self.verifier = Verifier(core, replicas, self.transactions.log, 30_000, lambda: None)
        self.shares = Shares(core, lambda: None)
        self.share_leaders = Leaders(core, replicas, 30_000, lambda: None)
        self.hosts.changed = self._changed
        self.transactions.start()

    def follow_metadata(self) -> None:
        """Apply what the image says, and what follows from it."""
        self.hosts.follow_metadata()
        for log in (self.groups.log, self.transactions.log):
            log.metadata_advanced()
        self.transactions.markers.metadata_advanced()
        self.run()

    def run(self, ms: float = 0) -> None:
        """Let time pass, and what is due happen."""
        self.now_ms += ms
        for _ in range(20):
            effects = self.kernel.tick(self.now_ms)
            for effect in effects:
                if isinstance(effect, Connect):
                    for more in self.kernel.step(Opened(effect.link, NEWEST), self.now_ms):
                        self.sent += [more] if isinstance(more, SendRequest) else []
                elif isinstance(effect, SendRequest):
                    self.sent.append(effect)
            if not effects and self.kernel.next_deadline_ms > self.now_ms:
                return

    def answer(self, response: Message | Exception) -> None:
        """Answer the oldest request to a broker, or let it fail."""
        request_id = self.sent.pop(0).request_id
        event = Failed(request_id, response) if isinstance(response, Exception) else Answered(request_id, response)
        for effect in self.kernel.step(event, self.now_ms):
            self.sent += [effect] if isinstance(effect, SendRequest) else []
        self.run()

    def replicate(self, key: tuple[bytes, int]) -> None:
        """Let broker 2, the follower, have all of a partition."""
        hosted = self.hosts.find(key)
        hosted.fetched(hosted.log.end_offset, FollowerFetch(2, 12, 0), int(self.now_ms))
        self.run()

    def _changed(self) -> None:
        self.groups.log.replicas_changed()
        self.transactions.log.replicas_changed()


def _fail(error: Exception) -> None:
    raise error
