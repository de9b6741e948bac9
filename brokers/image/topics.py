"""Topics and partitions as the log describes them (Kafka's TopicImage and PartitionRegistration)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mockraft.wire.directory_ids import MIGRATING

if TYPE_CHECKING:
    from mockraft.wire.records.partition_change_record import PartitionChangeRecord
    from mockraft.wire.records.partition_record import PartitionRecord

NO_LEADER: Final = -1
_LEADER_UNCHANGED: Final = -2


class Partition(NamedTuple):
    """One partition, immutable. `directories` are 16-byte ids in the order of `replicas`.

    `elr` are the eligible leader replicas, `last_known_elr` the last non-empty ones (KIP-966).
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        """Return the partition of a PartitionRecord; directories that it leaves out are MIGRATING."""
        replicas = tuple(record.replicas)
        return cls(
            replicas,
            _directories(tuple(record.directories), len(replicas)),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def merge(self, change: PartitionChangeRecord) -> Partition:
        """Return this partition after a PartitionChangeRecord, which replaces the fields that it sets.

        The partition epoch always grows by one, the leader epoch whenever the record sets a leader.
        """
        replicas = _changed(change.replicas, self.replicas)
        names_leader = change.leader != _LEADER_UNCHANGED
        return Partition(
            replicas,
            _directories(_changed(change.directories, self.directories), len(replicas)),
            _changed(change.isr, self.isr),
            change.leader if names_leader else self.leader,
            self.leader_epoch + names_leader,
            self.partition_epoch + 1,
            _changed(change.adding_replicas, self.adding_replicas),
            _changed(change.removing_replicas, self.removing_replicas),
            _changed(change.eligible_leader_replicas, self.elr),
            _changed(change.last_known_elr, self.last_known_elr),
        )

    def without_elr(self) -> Partition:
        """Return this partition with an empty ELR, which counts as a change (TopicDelta.maybeClearElr)."""
        return self._replace(elr=(), last_known_elr=(), partition_epoch=self.partition_epoch + 1)

    def directory(self, broker_id: int) -> bytes:
        """Return the directory of this broker's replica; it must have one."""
        return self.directories[self.replicas.index(broker_id)]


class Topic(NamedTuple):
    """One topic and its partitions by index, which change as the log grows."""

    name: str
    topic_id: bytes
    partitions: dict[int, Partition]


def _changed(new: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if new is None else tuple(new)


def _directories(directories: tuple[bytes, ...], replicas: int) -> tuple[bytes, ...]:
    if len(directories) == replicas:
        return directories
    return (directories + (MIGRATING,) * replicas)[:replicas]
