"""Partitions by broker and by directory, so that fencing costs only as much as the broker has partitions.

Kafka's BrokersToIsrs, BrokersToElrs and the maps beside them in ReplicationControlManager.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mockraft.kafka_api import directory_ids

if TYPE_CHECKING:
    from mockraft.server.controller.image.topics import Partition

K = TypeVar("K", bound=Hashable)

_NO_LEADER = -1
_BLOCK = 1_024
_ID_BYTES = 16


class TopicPartition(NamedTuple):
    """One partition by topic id and index; ordered by id, then index."""

    topic_id: bytes
    partition_id: int


class Places:
    """A set of partitions: by topic id and block, one bit per partition index, as neighbours are mostly in it too.

    A single block would be as long as the largest index says, which a record can choose.
    """

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return bool(self._bits)

    def add(self, topic_id: bytes, partition_id: int) -> None:
        """Add a partition."""
        if partition_id >= _BLOCK:
            topic_id, partition_id = _block(topic_id, partition_id)
        self._bits[topic_id] = self._bits.get(topic_id, 0) | 1 << partition_id

    def add_all(self, places: Iterable[tuple[bytes, int]]) -> None:
        """Add partitions."""
        for topic_id, partition_id in places:
            self.add(topic_id, partition_id)

    def discard(self, topic_id: bytes, partition_id: int) -> None:
        """Remove a partition, if present."""
        if partition_id >= _BLOCK:
            topic_id, partition_id = _block(topic_id, partition_id)
        bits = self._bits.get(topic_id, 0) & ~(1 << partition_id)
        if bits:
            self._bits[topic_id] = bits
        else:
            self._bits.pop(topic_id, None)

    def in_order(self) -> list[TopicPartition]:
        """Return all partitions, by topic id and index."""
        return list(self.now())

    def now(self, other_than: "Places | None" = None) -> Iterator[TopicPartition]:
        """Iterate in order over the partitions that are in it now, other than those of another set."""
        bits = self._bits.copy()
        if other_than is not None:
            others = other_than._bits
            bits = {block: rest for block, each in bits.items() if (rest := each & ~others.get(block, 0))}
        return _partitions(bits)


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

    def isr_of(self, broker_id: int) -> Places:
        """Return the set of partitions with the broker in their ISR; it follows their changes."""
        return self._isr[broker_id]

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

    def add(self, place: tuple[bytes, int], new: "Partition") -> None:
        """Add a partition to each set that it belongs to."""
        for broker_id in new.isr:
            self._isr[broker_id].add(*place)
        for broker_id in new.elr:
            self._elr[broker_id].add(*place)
        self._led[new.leader].add(*place)
        for directory_id in _located(new.directories):
            self._directories[directory_id].add(*place)
        if not new.has_preferred_leader:
            self._imbalanced.add(*place)
        if new.is_reassigning:
            self._reassigning.add(*place)

    def replace(self, place: tuple[bytes, int], old: "Partition", new: "Partition") -> None:
        """Replace a partition; only what differs takes time."""
        if old.isr != new.isr:
            _move(self._isr, place, old.isr, new.isr)
        if old.elr != new.elr:
            _move(self._elr, place, old.elr, new.elr)
        if old.leader != new.leader:
            _move(self._led, place, (old.leader,), (new.leader,))
        if old.directories != new.directories:
            self._move_directories(place, old.directories, new.directories)
        if old.has_preferred_leader != new.has_preferred_leader:
            (self._imbalanced.discard if new.has_preferred_leader else self._imbalanced.add)(*place)
        if old.is_reassigning != new.is_reassigning:
            (self._reassigning.add if new.is_reassigning else self._reassigning.discard)(*place)

    def remove(self, place: tuple[bytes, int], old: "Partition") -> None:
        """Remove a partition from each set that it is in."""
        _move(self._isr, place, old.isr, ())
        _move(self._elr, place, old.elr, ())
        _move(self._led, place, (old.leader,), ())
        self._move_directories(place, old.directories, ())
        self._imbalanced.discard(*place)
        self._reassigning.discard(*place)

    def _move_directories(self, place: tuple[bytes, int], old: Sequence[bytes], new: Sequence[bytes]) -> None:
        _move(self._directories, place, _located(old), _located(new))
        for directory_id in old:
            if directory_id in self._directories and not self._directories[directory_id]:
                del self._directories[directory_id]


def _block(topic_id: bytes, partition_id: int) -> tuple[bytes, int]:
    """Return the key of a block after the first, whose key is the topic id, and the partition's place in it."""
    number, place = divmod(partition_id, _BLOCK)
    return topic_id + number.to_bytes(4), place


def _partitions(bits: dict[bytes, int]) -> Iterator[TopicPartition]:
    """Yield the partitions of these blocks in order."""
    for block in sorted(bits):
        topic_id, first = block, 0
        if len(block) > _ID_BYTES:
            topic_id, first = block[:_ID_BYTES], int.from_bytes(block[_ID_BYTES:]) * _BLOCK
        for partition_id, bit in enumerate(reversed(f"{bits[block]:b}"), first):
            if bit == "1":
                yield TopicPartition(topic_id, partition_id)


def _in_order(places: Places | None) -> list[TopicPartition]:
    return [] if places is None else places.in_order()


def _move(index: dict[K, Places], place: tuple[bytes, int], old: Sequence[K], new: Sequence[K]) -> None:
    """Move a partition from these keys of an index to those."""
    for key in old:
        if key not in new:
            index[key].discard(*place)
    for key in new:
        if key not in old:
            index[key].add(*place)


def _located(directories: Sequence[bytes]) -> list[bytes]:
    return [directory_id for directory_id in directories if not directory_ids.is_reserved(directory_id)]
