"""A fetcher of broker 1 that follows broker 2, on a kernel and a host that the test moves by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.effects import Link
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.partitions.fetcher import LeaderFetcher
from mockraft.brokers.partitions.hosted import HostedPartition, PartitionHost
from mockraft.brokers.partitions.partition import Assignment, Partition, Registered
from mockraft.brokers.partitions.settings import ReplicaSettings, TopicSettings
from mockraft.brokers.replication_quota import ReplicationThrottle
from mockraft.wire import record_batch

TOPIC_ID = bytes(15) + b"\x07"
KEY, OTHER = (TOPIC_ID, 0), (TOPIC_ID, 1)


def batch(at: int = 0, epoch: int = 4) -> bytes:
    return record_batch.encode([b"a"], base_offset=at, leader_epoch=epoch, timestamp_ms=1_000)


class Sent:
    """A request that the fetcher made, for the test to answer."""

    def __init__(self, link: Link, make: Any, on_answer: Any, failed: Any, version: int, timeout_ms: float) -> None:
        self.link = link
        self.message = make({})
        self.answer = on_answer
        self.fail = failed
        self.version = version
        self.timeout_ms = timeout_ms


class Cluster:
    """Kernel and host of a fetcher of broker 1 that follows broker 2."""

    def __init__(self) -> None:
        self.now_ms = 10_000.0
        self.due: tuple[float, Callable[[], None]] | None = None
        self.sent: list[Sent] = []
        self.open: set[Link] = set()
        self.broker_id = 1
        self.is_stuck = False
        self.settings = ReplicaSettings()
        self.follower_throttle = ReplicationThrottle("follower", ClusterImage(), 1)
        self.endpoint: tuple[str, int] | None = ("node2", 9092)
        self.version = 18
        self.replicas: dict[Any, HostedPartition] = {}
        self.logs: dict[Any, ReplicaLog] = {}
        self.over: list[LeaderFetcher] = []
        self.fetcher = LeaderFetcher(self, self, 2, self.over.append)  # type: ignore[arg-type]

    # The kernel.

    def after(self, name: str, wait_ms: float, call: Callable[[], None]) -> None:
        assert name == "fetcher 2"
        self.due = (self.now_ms + wait_ms, call)

    def request(self, link: Link, make: Any, on_answer: Any, failed: Any, *, version: int, timeout_ms: float) -> None:
        self.open.add(link)
        self.sent.append(Sent(link, make, on_answer, failed, version, timeout_ms))

    def versions(self, link: Link) -> Any:
        return {} if link in self.open else None

    def disconnect(self, link: Link) -> None:
        self.open.remove(link)

    # The host.

    def hosted(self, key: Any) -> HostedPartition | None:
        return self.replicas.get(key)

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        assert broker_id == 2
        return self.endpoint

    def fetch_version(self) -> int:
        return self.version

    def broker_epoch(self) -> int:
        return 77

    # For tests.

    def follow(self, key: Any = KEY, *, leader: int = 2, records: int = 0) -> HostedPartition:
        """Follow a partition in epoch 4, of which this broker has some records of epoch 3."""
        log = self.logs[key] = ReplicaLog(MemoryDisk(f"/d{key[1]}"), f"orders-{key[1]}")
        for _ in range(records):
            log.append_as_leader(batch(), 3, 0)
        hosted = self.replicas[key] = HostedPartition(
            key,
            "orders",
            Partition(1, lambda broker_id: Registered(10 * broker_id)),
            lambda: TopicSettings(1, LogConfig()),
            PartitionHost(self.logs.get, lambda _hosted, _change: None, lambda: None),
        )
        assignment = Assignment(leader=leader, leader_epoch=4, isr=(1, 2), replicas=(1, 2), partition_epoch=1)
        if leader == 1:
            hosted.lead(assignment, 0)
        else:
            hosted.follow(assignment)
        self.fetcher.follow(key, 4)
        return hosted

    def next(self) -> Sent:
        """The one request that is due now, or was sent just before."""
        if not self.sent:
            self.wait(0)
        (sent,) = self.sent
        self.sent.clear()
        return sent

    def wait(self, expected_ms: float) -> None:
        """The fetcher waits for exactly this time."""
        assert self.due is not None
        (due_ms, call), self.due = self.due, None
        assert due_ms - self.now_ms == expected_ms
        self.now_ms = due_ms
        call()
