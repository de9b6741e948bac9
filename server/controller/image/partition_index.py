"""Partitions by broker and by directory, so that fencing costs only as much as the broker has partitions.

Kafka's BrokersToIsrs, BrokersToElrs and the maps beside them in ReplicationControlManager.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mockraft.serving import directory_ids

if TYPE_CHECKING:
    from mockraft.server.controller.image.topics import Partition

_NO_LEADER = -1


class TopicPartition(NamedTuple):
    """One partition by topic id and index; ordered by id, then index."""

    topic_id: bytes
    partition_id: int


class Places:
    """A set of partitions: by topic id, one bit per partition index, as neighbours are mostly in it too."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return bool(self._bits)

    def add(self, topic_id: bytes, partition_id: int) -> None:
        """Add a partition."""
        self._bits[topic_id] = self._bits.get(topic_id, 0) | 1 << partition_id

    def discard(self, topic_id: bytes, partition_id: int) -> None:
        """Remove a partition, if present."""
        bits = self._bits.get(topic_id, 0) & ~(1 << partition_id)
        if bits:
            self._bits[topic_id] = bits
        else:
            self._bits.pop(topic_id, None)

    def in_order(self) -> list[TopicPartition]:
        """Return all partitions, by topic id and index."""
        return [
            TopicPartition(topic_id, partition_id)
            for topic_id in sorted(self._bits)
            for partition_id, bit in enumerate(reversed(f"{self._bits[topic_id]:b}"))
            if bit == "1"
        ]


class PartitionIndex:
    """Index of partitions. Results are sorted, so that the order of past changes does not affect records."""

    def __init__(self) -> None:
        self._isr: dict[int, Places] = defaultdict(Places)
        self._elr: dict[int, Places] = defaultdict(Places)
        self._led: dict[int, Places] = defaultdict(Places)
        self._directories: dict[bytes, Places] = defaultdict(Places)
        self._imbalanced = Places()
        self._reassigning = Places()

    def in_isr(self, broker_id: int) -> list[TopicPartition]:
        """Return partitions with the broker in their ISR."""
        return _in_order(self._isr.get(broker_id))

    def in_elr(self, broker_id: int) -> list[TopicPartition]:
        """Return partitions with the broker among their eligible leader replicas."""
        return _in_order(self._elr.get(broker_id))

    def led_by(self, broker_id: int) -> list[TopicPartition]:
        """Return partitions that the broker leads."""
        return _in_order(self._led.get(broker_id))

    def leaderless(self) -> list[TopicPartition]:
        """Return partitions without a leader."""
        return self.led_by(_NO_LEADER)

    def leads_any(self, broker_id: int) -> bool:
        """Return True if the broker leads a partition."""
        return bool(self._led.get(broker_id))

    def in_directory(self, directory_id: bytes) -> list[TopicPartition]:
        """Return partitions with a replica in the directory."""
        return _in_order(self._directories.get(directory_id))

    def imbalanced(self) -> list[TopicPartition]:
        """Return partitions that are not led by their first replica."""
        return self._imbalanced.in_order()

    def reassigning(self) -> list[TopicPartition]:
        """Return partitions with replicas being added or removed."""
        return self._reassigning.in_order()

    def replace(self, place: tuple[bytes, int], old: "Partition | None", new: "Partition") -> None:
        """Add or replace a partition."""
        if old is not None and _indexed(old) == _indexed(new):
            return
        if old is not None:
            self.remove(place, old)
        for broker_id in new.isr:
            self._isr[broker_id].add(*place)
        for broker_id in new.elr:
            self._elr[broker_id].add(*place)
        self._led[new.leader].add(*place)
        for directory_id in new.directories:
            if not directory_ids.is_reserved(directory_id):
                self._directories[directory_id].add(*place)
        if not new.has_preferred_leader:
            self._imbalanced.add(*place)
        if new.is_reassigning:
            self._reassigning.add(*place)

    def remove(self, place: tuple[bytes, int], old: "Partition") -> None:
        """Remove a partition."""
        for broker_id in old.isr:
            self._isr[broker_id].discard(*place)
        for broker_id in old.elr:
            self._elr[broker_id].discard(*place)
        self._led[old.leader].discard(*place)
        for directory_id in old.directories:
            if not directory_ids.is_reserved(directory_id):
                self._discard_directory(directory_id, place)
        self._imbalanced.discard(*place)
        self._reassigning.discard(*place)

    def _discard_directory(self, directory_id: bytes, place: tuple[bytes, int]) -> None:
        places = self._directories.get(directory_id)
        if places is not None:
            places.discard(*place)
            if not places:
                del self._directories[directory_id]


def _in_order(places: Places | None) -> list[TopicPartition]:
    return [] if places is None else places.in_order()


def _indexed(partition: "Partition") -> tuple[object, ...]:
    return (
        partition.isr,
        partition.elr,
        partition.leader,
        partition.directories,
        partition.has_preferred_leader,
        partition.is_reassigning,
    )
