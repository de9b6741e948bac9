"""Partition changes: every ISR, leader, replica and directory change is built here.

Kafka's PartitionChangeBuilder and PartitionReassignmentReplicas; KIP-455, KIP-858, KIP-966.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mockraft.server.controller.image.topics import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, Partition
from mockraft.server.controller.topics.elections import Candidates, ElectionType, elect
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

_JAVA_HASH_TABLE_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """Constraints of a change from the rest of the cluster.

    `min_isr` is the topic's effective min.insync.replicas, at most its replication factor. `is_acceptable_leader`
    takes a broker id, `default_dir` returns the directory of a replica that has none yet. The bools are
    behaviours. With `writes_all_directories` every change contains all directories, not only a change of
    directories; with `epoch_grows` a smaller ISR has a new leader epoch.
    """

    record_version: int
    elr_enabled: bool
    has_directories: bool
    min_isr: int
    is_acceptable_leader: Callable[[int], bool]
    default_dir: Callable[[int], bytes]
    election: ElectionType = ElectionType.ONLINE
    writes_all_directories: bool = False
    epoch_grows: bool = False


class PartitionChange:
    """A change in progress: set the targets, then `build` its record."""

    def __init__(self, topic_id: bytes, partition_id: int, partition: Partition, rules: PartitionRules) -> None:
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.partition = partition
        self.rules = rules
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.elr: Sequence[int] = partition.elr
        self.leader_recovery_state = partition.leader_recovery_state
        self.directories = dict(zip(partition.replicas, partition.directories, strict=True))
        self.unclean_shutdown_replicas: Collection[int] = ()

    def build(self) -> RecordAt | None:
        """Return the record, or None when nothing changes."""
        record = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        self._complete_reassignment()
        self._find_elr()
        self._elect(record)
        self._bump_leader_epoch_for_removed_replicas(record)
        self._set_elr(record)
        self._set_isr(record)
        self._bump_leader_epoch_for_isr_shrink(record)
        self._set_last_known_leader(record)
        self._set_assignment(record)
        if self.leader_recovery_state != self.partition.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        if record == PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id):
            return None
        if self.rules.writes_all_directories and self.rules.has_directories:
            record.directories = self._directories()
        return RecordAt(record, self.rules.record_version)

    def _complete_reassignment(self) -> None:
        """Complete a reassignment when all added replicas are in sync and dropping the rest loses nothing."""
        if not self.adding and not self.removing:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if self.removing and (not isr or not replicas):
            return
        if not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return
        self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()

    def _find_elr(self) -> None:
        """Keep members that leave an ISR below min ISR eligible; an ISR at min ISR needs no eligible ones."""
        if not self.rules.elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self.elr = ()
            return
        candidates = dict.fromkeys([*self.elr, *self.partition.isr])
        left = [r for r in candidates if r not in self.isr and r not in self.unclean_shutdown_replicas]
        # Kafka takes them from a HashSet: small ids come out in the order of its sixteen buckets.
        self.elr = sorted(left, key=lambda replica: replica % _JAVA_HASH_TABLE_SIZE)

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = elect(
            self.rules.election,
            Candidates(
                leader=self.partition.leader,
                replicas=self.replicas,
                isr=self.isr,
                elr=self.elr,
                last_known_elr=self.partition.last_known_elr,
                elr_enabled=self.rules.elr_enabled,
                is_acceptable=self.rules.is_acceptable_leader,
            ),
        )
        if leader == self.partition.leader:
            return
        if leader in self.elr:
            self.isr = [leader]
            self.elr = [replica for replica in self.elr if replica != leader]
        record.leader = leader
        if is_unclean:
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _bump_leader_epoch_for_removed_replicas(self, record: PartitionChangeRecord) -> None:
        if record.leader == NO_LEADER_CHANGE and not set(self.partition.replicas) <= set(self.replicas):
            record.leader = self.partition.leader

    def _set_elr(self, record: PartitionChangeRecord) -> None:
        is_unclean = record.isr is not None
        if is_unclean or not self.rules.elr_enabled:
            self.elr = ()
        if tuple(self.elr) != self.partition.elr:
            record.eligible_leader_replicas = list(self.elr)

    def _set_isr(self, record: PartitionChangeRecord) -> None:
        """Keep the last ISR member of a partition without ELR; with ELR an ISR may be empty."""
        may_be_written = bool(self.isr) or self.rules.elr_enabled
        if record.isr is None and may_be_written and tuple(self.isr) != self.partition.isr:
            record.isr = list(self.isr)

    def _bump_leader_epoch_for_isr_shrink(self, record: PartitionChangeRecord) -> None:
        """Increase the leader epoch when the ISR shrinks, for brokers before 3.6 (KAFKA-15021)."""
        if not self.rules.epoch_grows:
            return
        if record.leader == NO_LEADER_CHANGE and record.isr is not None and not {*self.partition.isr} <= {*record.isr}:
            record.leader = self.partition.leader

    def _set_last_known_leader(self, record: PartitionChangeRecord) -> None:
        if not self.rules.elr_enabled:
            return
        if record.leader == NO_LEADER and not self.partition.last_known_elr:
            record.last_known_elr = [self.partition.leader]
        elif record.leader >= 0 and self.partition.last_known_elr:
            record.last_known_elr = []

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        if self.replicas:
            if self.rules.has_directories:
                directories = self._directories()
                if tuple(directories) != self.partition.directories:
                    record.directories = directories
            if tuple(self.replicas) != self.partition.replicas:
                record.replicas = list(self.replicas)
        if tuple(self.removing) != self.partition.removing_replicas:
            record.removing_replicas = list(self.removing)
        if tuple(self.adding) != self.partition.adding_replicas:
            record.adding_replicas = list(self.adding)

    def _directories(self) -> list[bytes]:
        return [self.directories.get(r) or self.rules.default_dir(r) for r in self.replicas]


def same_change(change: RecordAt | None, topic_id: bytes, partition_id: int) -> RecordAt | None:
    """Return the change of another partition as one of this, which differs in its epochs only; both share lists."""
    if change is None:
        return None
    record: PartitionChangeRecord = change.record
    same = PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        isr=record.isr,
        leader=record.leader,
        replicas=record.replicas,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        leader_recovery_state=record.leader_recovery_state,
        directories=record.directories,
        eligible_leader_replicas=record.eligible_leader_replicas,
        last_known_elr=record.last_known_elr,
    )
    return RecordAt(same, change.version)
