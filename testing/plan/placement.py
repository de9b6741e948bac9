"""Replica assignments for steps in which Kafka leaves the choice to its user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image

Assignment = dict[tuple[str, int], list[int]]
"""Replicas by (topic, partition)."""


class PlacementError(Exception):
    """Raised if there are too few brokers for a partition's replicas."""


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

    def drained(self, broker_ids: list[int], topics: Collection[str] | None = None) -> Assignment:
        """Return as many replicas for each partition of these brokers, on others; None: all topics. PlacementError."""
        return {
            (name, partition_id): self._filled(
                name, partition_id, [each for each in replicas if each not in broker_ids], len(replicas), broker_ids
            )
            for name, partition_id, replicas in self._partitions()
            if {*replicas} & {*broker_ids} and (topics is None or name in topics)
        }

    def with_factor(self, factor: int, topic: str | None) -> Assignment:
        """Return the replicas of each partition with this replication factor; PlacementError."""
        return {
            (name, partition_id): self._filled(name, partition_id, replicas[:factor], factor)
            for name, partition_id, replicas in self._partitions()
            if topic in (None, name) and len(replicas) != factor
        }

    def _partitions(self) -> list[tuple[str, int, list[int]]]:
        topics = sorted(self._image.topics.by_name.items())
        return [(name, number, list(p.replicas)) for name, topic in topics for number, p in topic.partitions.items()]

    def _filled(
        self, name: str, partition_id: int, kept: list[int], count: int, avoided: Collection[int] = ()
    ) -> list[int]:
        replicas = [*kept]
        while len(replicas) < count:
            racks = {self._racks.get(each) for each in replicas}
            candidates = [each for each in self._racks if each not in replicas and each not in avoided]
            if not candidates:
                raise PlacementError(
                    f"{name}-{partition_id}: its {count} replicas need as many brokers, and there are {len(replicas)}"
                )
            chosen = min(candidates, key=lambda each: (self._racks[each] in racks, self._load[each], each))
            self._load[chosen] += 1
            replicas.append(chosen)
        return replicas
