"""Expected records of the metadata log, the version of each at a level of metadata.version, and a partition's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mockraft.conformance.expectation import Only
from mockraft.conformance.requests import Tree

# Type → (first level, version) in order. Kafka's MetadataVersion has these as methods (registerBrokerRecordVersion, …).
_VERSIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "RegisterBrokerRecord": ((7, 1), (8, 2), (17, 3), (30, 4)),
    "PartitionRecord": ((7, 0), (17, 1), (23, 2)),
    "PartitionChangeRecord": ((7, 0), (17, 1), (23, 2)),
}
_CHANGE_VERSIONS = {"cordonedLogDirs": 3, "logDirs": 2, "inControlledShutdown": 1}


class Expected(NamedTuple):
    """One expected record; `fields` may be any expectation of its JSON."""

    kind: str
    fields: Tree

    def version(self, level: int) -> int:
        """Return the version in which it is written."""
        if self.kind == "BrokerRegistrationChangeRecord":
            return max([version for key, version in _CHANGE_VERSIONS.items() if key in self.fields], default=0)
        return next((version for first, version in reversed(_VERSIONS.get(self.kind, ())) if level >= first), 0)


def record(kind: str, **fields: object) -> Expected:
    """Expect a record of that type with at least these fields."""
    return Expected(f"{kind}Record", fields)


def partition_change(topic_id: str, partition: object = 0, **fields: object) -> Expected:
    """Expect a PartitionChangeRecord that changes these fields and nothing else."""
    return Expected("PartitionChangeRecord", Only(partitionId=partition, topicId=topic_id, **fields))


def broker_change(broker_id: int, broker_epoch: int, **fields: object) -> Expected:
    """Expect a BrokerRegistrationChangeRecord that changes these fields and nothing else."""
    return Expected("BrokerRegistrationChangeRecord", Only(brokerId=broker_id, brokerEpoch=broker_epoch, **fields))


_UNCHANGED = -2
_LISTS = {
    "replicas": "replicas",
    "isr": "isr",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "directories": "directories",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
}
"""The fields of a record that replace a list of the state, and that list."""


@dataclass
class PartitionState:
    """The state after the records read so far."""

    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovery: int
    adding: list[int]
    removing: list[int]
    directories: list[str]
    elr: list[int]
    last_known_elr: list[int]

    @classmethod
    def created(cls, fields: Tree) -> PartitionState:
        """Build the state from a PartitionRecord."""
        return cls(
            leader=fields["leader"],
            leader_epoch=fields["leaderEpoch"],
            partition_epoch=fields["partitionEpoch"],
            recovery=fields.get("leaderRecoveryState", 0),
            **{attribute: fields.get(key) or [] for key, attribute in _LISTS.items()},
        )

    def change(self, fields: Tree) -> None:
        """Apply a PartitionChangeRecord: a leader in the record starts a new leader epoch, even if it is the same."""
        self.partition_epoch += 1
        for key, attribute in _LISTS.items():
            if fields.get(key) is not None:
                setattr(self, attribute, fields[key])
        leader = fields.get("leader", _UNCHANGED)
        if leader != _UNCHANGED:
            self.leader, self.leader_epoch = leader, self.leader_epoch + 1
        self.recovery = fields.get("leaderRecoveryState", self.recovery)

    @property
    def is_reassigning(self) -> bool:
        """True while replicas are being added or removed."""
        return bool(self.adding or self.removing)
