"""A partition as its records describe it."""

from __future__ import annotations

from dataclasses import dataclass

from mockraft.conformance.requests import Tree

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
