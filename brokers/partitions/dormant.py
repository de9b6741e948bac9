"""Replicas without records, on brokers that share a replication: they cost nothing until a client uses their partition.

A thousand brokers have followers of each other, each with a connection on which empty fetches go back and forth. As
long as a partition's logs are empty its followers are in sync without them: the leader proposes the ISR that their
first fetch would have led to. Such a partition is *dormant*, and its replicas have a directory but no log. The first
request for its records wakes it, on all its brokers and for good: they make their logs, and fetch as Kafka's do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.partitions.partition import NO_EPOCH, CommittedIsr, IsrChange

if TYPE_CHECKING:
    from mockraft.brokers.core import Core
    from mockraft.brokers.image.topics import Partition
    from mockraft.brokers.partitions.replicas import Replicas

AGAIN_MS = 500
"""Time after which a refused ISR change is looked at again: a follower's next fetch."""


class Neighbours:
    """The brokers of one process that share a replication: their ids, the `hosts` that run, the partitions awake."""

    def __init__(self, broker_ids: Iterable[int]) -> None:
        self.broker_ids = set(broker_ids)
        self.hosts: dict[int, Replicas] = {}
        self.awake: set[ReplicaKey] = set()


class Dormant:
    """The dormant replicas of one broker, whose `host` has those that are awake."""

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

    def keeps(self, key: ReplicaKey, partition: Partition) -> bool:
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

    def _may_join(self, key: ReplicaKey, partition: Partition, broker_id: int) -> bool:
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
