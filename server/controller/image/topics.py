"""Topics and partitions (Kafka's TopicsImage and PartitionRegistration).

Partitions are indexed by broker and by directory, so that fencing costs only as much as the broker has partitions
(Kafka's BrokersToIsrs, BrokersToElrs and the maps beside them in ReplicationControlManager).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from mockraft.releases import Behaviour, MetadataVersion
from mockraft.server.controller.image.cluster import ReplayError
from mockraft.wire import directory_ids
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.topic_names import collision_key

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_RECOVERY_CHANGE: Final = -1

_BLOCK: Final = 1_024
_ID_BYTES: Final = 16
_EPOCHS_AT: Final = -2
_INDEXES: Final = tuple(range(10_000))
"""Partition indexes shared by all topics, as Python creates a new int for each decoded number."""


class Partition(NamedTuple):
    """One partition. `directories` are 16-byte ids in the order of `replicas`.

    A tuple, because one is made for each record of a partition: that takes less than half the time of a dataclass.
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    leader: int
    leader_recovery_state: int = RECOVERED
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_epoch: int = 0
    partition_epoch: int = 0

    @classmethod
    def from_record(cls, record: PartitionRecord) -> "Partition":
        """Return the partition of a record; directories that it leaves out are MIGRATING."""
        return cls(
            replicas=_one(tuple(record.replicas)),
            directories=_one(_directories(tuple(record.directories), len(record.replicas))),
            isr=_one(tuple(record.isr)),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            adding_replicas=tuple(record.adding_replicas),
            removing_replicas=tuple(record.removing_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def merge(self, change: PartitionChangeRecord) -> "Partition":
        """Return this partition after the change: fields present in the record are replaced.

        The partition epoch always grows by one, the leader epoch whenever the record names a leader.
        """
        replicas, directories = self.replicas, self.directories
        if change.replicas is not None or change.directories is not None:
            replicas = _changed(change.replicas, replicas)
            directories = _one(_directories(_changed(change.directories, directories), len(replicas)))
        names_leader = change.leader != NO_LEADER_CHANGE
        names_recovery = change.leader_recovery_state != NO_RECOVERY_CHANGE
        # In the order of the fields: with their names it takes half as long again.
        return Partition(
            replicas,
            directories,
            _changed(change.isr, self.isr),
            change.leader if names_leader else self.leader,
            change.leader_recovery_state if names_recovery else self.leader_recovery_state,
            _changed(change.adding_replicas, self.adding_replicas),
            _changed(change.removing_replicas, self.removing_replicas),
            _changed(change.eligible_leader_replicas, self.elr),
            _changed(change.last_known_elr, self.last_known_elr),
            _next(self.leader_epoch) if names_leader else self.leader_epoch,
            _next(self.partition_epoch),
        )

    @property
    def without_epochs(self) -> tuple[object, ...]:
        """All but the epochs: partitions for which this is equal change in the same way."""
        return self[:_EPOCHS_AT]

    @property
    def has_preferred_leader(self) -> bool:
        """True if its first replica leads it."""
        return not self.replicas or self.leader == self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        """True if replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)

    def directory(self, broker_id: int) -> bytes:
        """Return the directory of the broker's replica; it must have one."""
        return self.directories[self.replicas.index(broker_id)]

    def to_record(self, topic_id: bytes, partition_id: int, version: MetadataVersion) -> RecordAt:
        """Return the PartitionRecord of this partition, as far as the version can express it."""
        has_elr = version.has(Behaviour.ELR_RECORDS)
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories) if version.has(Behaviour.DIRECTORY_ASSIGNMENT) else [],
            eligible_leader_replicas=list(self.elr) if has_elr and self.elr else None,
            last_known_elr=list(self.last_known_elr) if has_elr and self.last_known_elr else None,
        )
        return RecordAt(record, version.record_versions["PartitionRecord"])


@dataclass(slots=True)
class Topic:
    """One topic and its partitions by index; `count_at_change` is how many there were when one last changed."""

    name: str
    topic_id: bytes
    partitions: dict[int, Partition] = field(default_factory=dict)
    count_at_change: int = field(default=0, compare=False)


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
        return self.led_by(NO_LEADER)

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

    def add(self, place: tuple[bytes, int], new: Partition) -> None:
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

    def replace(self, place: tuple[bytes, int], old: Partition, new: Partition) -> None:
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

    def remove(self, place: tuple[bytes, int], old: Partition) -> None:
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


@dataclass(slots=True)
class TopicsImage:
    """All topics, by id and by name; `index` finds the partitions of a broker or of a directory.

    `colliding` groups names that are equal as metric names, oldest first, by their common form.
    """

    by_id: dict[bytes, Topic] = field(default_factory=dict)
    by_name: dict[str, Topic] = field(default_factory=dict)
    index: PartitionIndex = field(default_factory=PartitionIndex, compare=False)
    colliding: dict[str, dict[str, None]] = field(default_factory=dict, compare=False)

    def partition(self, topic_id: bytes, partition_id: int) -> Partition | None:
        """Return the partition, None if unknown."""
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def apply_topic(self, record: TopicRecord, offset: int) -> None:
        """Add a topic without partitions."""
        if record.name in self.by_name:
            raise ReplayError(f"there is a topic {record.name} already")
        topic = Topic(record.name, record.topic_id)
        self.by_id[record.topic_id] = topic
        self.by_name[record.name] = topic
        if (key := collision_key(record.name)) is not None:
            self.colliding.setdefault(key, {})[record.name] = None

    def apply_partition(self, record: PartitionRecord, offset: int) -> None:
        """Add or replace a partition."""
        self._put(self.by_id[record.topic_id], record.partition_id, Partition.from_record(record))

    def apply_partition_change(self, record: PartitionChangeRecord, offset: int) -> None:
        """Change parts of a partition."""
        topic = self.by_id[record.topic_id]
        self._put(topic, record.partition_id, topic.partitions[record.partition_id].merge(record))

    def apply_remove_topic(self, record: RemoveTopicRecord, offset: int) -> None:
        """Remove a topic with its partitions."""
        topic = self.by_id.pop(record.topic_id)
        del self.by_name[topic.name]
        if (key := collision_key(topic.name)) is not None:
            del self.colliding[key][topic.name]
            if not self.colliding[key]:
                del self.colliding[key]
        for partition_id, partition in topic.partitions.items():
            self.index.remove((topic.topic_id, partition_id), partition)

    def apply_clear_elr(self, record: ClearElrRecord, offset: int) -> None:
        """Remove the ELR of one topic or of all ("").

        As in TopicDelta.maybeClearElr this changes the partitions that had one: their partition epoch grows.
        """
        topics = [self.by_name[record.topic_name]] if record.topic_name else list(self.by_id.values())
        for topic in topics:
            for partition_id, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    cleared = partition._replace(
                        elr=(), last_known_elr=(), partition_epoch=_next(partition.partition_epoch)
                    )
                    self._put(topic, partition_id, cleared)

    def to_records(self, version: MetadataVersion) -> Iterator[RecordAt]:
        """Return each topic, followed by its partitions (TopicImage.write)."""
        for topic in self.by_id.values():
            yield RecordAt(TopicRecord(name=topic.name, topic_id=topic.topic_id), 0)
            for partition_id, partition in topic.partitions.items():
                yield partition.to_record(topic.topic_id, partition_id, version)

    def _put(self, topic: Topic, partition_id: int, partition: Partition) -> None:
        if 0 <= partition_id < len(_INDEXES):
            partition_id = _INDEXES[partition_id]
        elif partition_id < 0:
            raise ReplayError(f"topic {topic.name} has no partition {partition_id}")
        before, place = topic.partitions.get(partition_id), (topic.topic_id, partition_id)
        if before is None:
            self.index.add(place, partition)
        else:
            topic.count_at_change = len(topic.partitions)
            self.index.replace(place, before, partition)
        topic.partitions[partition_id] = partition


@lru_cache(maxsize=4096)
def _one(values: tuple[T, ...]) -> tuple[T, ...]:
    """Return a shared tuple for equal values: most partitions have the replicas of many others."""
    return values


def _next(epoch: int) -> int:
    """Return the epoch after this one; like Kafka's (PartitionRegistration.merge), it overflows as an int of Java."""
    return epoch + 1 if epoch < 2**31 - 1 else -(2**31)


def _changed(new: Sequence[T] | None, old: tuple[T, ...]) -> tuple[T, ...]:
    return old if new is None else _one(tuple(new))


def _directories(directories: tuple[bytes, ...], replicas: int) -> tuple[bytes, ...]:
    if len(directories) == replicas:
        return directories
    return (directories + (directory_ids.MIGRATING,) * replicas)[:replicas]
