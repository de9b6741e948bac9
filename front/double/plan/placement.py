"""Replica assignments for steps in which Kafka leaves the choice to its user."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image

Assignment = dict[tuple[str, int], list[int]]
"""Replicas by (topic, partition)."""


class Placement:
    """Chooses brokers with few replicas, in racks that a partition does not have yet; fenced ones are left out."""

    def __init__(self, image: Image) -> None:
        self._image = image
        brokers = image.cluster.brokers.values()
        self._racks = {each.broker_id: each.rack for each in brokers if each.is_active and each.has_uncordoned_log_dirs}
        replicas = (
            replica
            for topic in image.topics.by_id.values()
            for p in topic.partitions.values()
            for replica in p.replicas
        )
        self._load = Counter(replicas)

    def drained(self, broker_ids: list[int]) -> Assignment:
        """Return new replicas for each partition of these brokers; a replica without another place is left out."""
        found: Assignment = {}
        for name, partition_id, replicas in self._partitions():
            if {*replicas} & {*broker_ids}:
                kept = [each for each in replicas if each not in broker_ids]
                found[name, partition_id] = self._filled(kept, len(replicas), avoided=broker_ids) or replicas
        return found

    def with_factor(self, factor: int, topic: str | None) -> Assignment:
        """Return the replicas of each partition with this replication factor; it may be out of reach."""
        return {
            (name, partition_id): self._filled(replicas[:factor], factor)
            for name, partition_id, replicas in self._partitions()
            if topic in (None, name) and len(replicas) != factor
        }

    def _partitions(self) -> list[tuple[str, int, list[int]]]:
        topics = sorted(self._image.topics.by_name.items())
        return [(name, number, list(p.replicas)) for name, topic in topics for number, p in topic.partitions.items()]

    def _filled(self, kept: list[int], count: int, avoided: list[int] | None = None) -> list[int]:
        replicas = [*kept]
        while len(replicas) < count:
            racks = {self._racks.get(each) for each in replicas}
            candidates = [each for each in self._racks if each not in replicas and each not in (avoided or ())]
            if not candidates:
                break
            chosen = min(candidates, key=lambda each: (self._racks[each] in racks, self._load[each], each))
            self._load[chosen] += 1
            replicas.append(chosen)
        return replicas
