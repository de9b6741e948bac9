"""The partitions that clients cannot use, or could soon not, at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockraft.server.controller.image.topics import NO_LEADER
from mockraft.server.controller.topics.partition_rules import min_isr

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller
    from mockraft.server.controller.image import Partition


class Availability(NamedTuple):
    """Partitions, as `topic-partition`, by what they lack.

    `offline` have no leader; `under_min_isr` have a smaller ISR than min.insync.replicas, so that producers with
    acks=all are refused; `under_replicated` have a replica, other than one being added, out of the ISR.
    """

    offline: frozenset[str]
    under_min_isr: frozenset[str]
    under_replicated: frozenset[str]

    def counts(self) -> dict[str, int]:
        """Return the numbers of partitions, by names for JSON."""
        names = ("offline", "underMinIsr", "underReplicated")
        return {name: len(found) for name, found in zip(names, self, strict=True)}

    def union(self, other: Availability) -> Availability:
        """Return the partitions that lacked something at either moment."""
        return Availability(*(mine | others for mine, others in zip(self, other, strict=True)))


def reassignments(controller: Controller) -> tuple[str, ...]:
    """Return the reassignments in progress: partition, added and removed replicas, and why an added one stays out."""
    found = []
    for topic in controller.image.topics.by_id.values():
        for partition_id, partition in topic.partitions.items():
            if partition.is_reassigning:
                added = [f"{each}{_hindrance(controller, partition, each)}" for each in partition.adding_replicas]
                parts = {"adding": added, "removing": [*map(str, partition.removing_replicas)]}
                moves = ", ".join(f"{what} {', '.join(each)}" for what, each in parts.items() if each)
                found.append(f"{topic.name}-{partition_id} ({moves})")
    return tuple(found)


def _hindrance(controller: Controller, partition: Partition, broker_id: int) -> str:
    broker = controller.image.cluster.brokers.get(broker_id)
    if broker_id in partition.removing_replicas:
        return " (which never ends: it is also removed)"
    return " (unregistered)" if broker is None else " (fenced)" if broker.fenced else ""


def availability(controller: Controller) -> Availability:
    """Return the partitions of a controller's image that lack something."""
    offline, under_min, under_replicated = set(), set(), set()
    for topic in controller.image.topics.by_id.values():
        least = min_isr(controller, topic) if topic.partitions else 0
        for partition_id, partition in topic.partitions.items():
            name = f"{topic.name}-{partition_id}"
            if partition.leader == NO_LEADER:
                offline.add(name)
            if len(partition.isr) < least:
                under_min.add(name)
            if {*partition.replicas} - {*partition.adding_replicas} - {*partition.isr}:
                under_replicated.add(name)
    return Availability(frozenset(offline), frozenset(under_min), frozenset(under_replicated))
