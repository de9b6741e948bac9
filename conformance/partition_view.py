"""A partition as its records describe it: the state that a leader needs to propose an ISR."""

from __future__ import annotations

from dataclasses import dataclass

from mockraft.conformance.requests import Tree

_UNCHANGED = -2


@dataclass
class PartitionView:
    """The state after the records read so far."""

    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: list[str]

    @classmethod
    def created(cls, fields: Tree) -> PartitionView:
        """Build the state from a PartitionRecord."""
        return cls(
            replicas=fields["replicas"],
            isr=fields["isr"],
            leader=fields["leader"],
            leader_epoch=fields["leaderEpoch"],
            partition_epoch=fields["partitionEpoch"],
            directories=fields.get("directories", []),
        )

    def change(self, fields: Tree) -> None:
        """Apply a PartitionChangeRecord: a leader in the record starts a new leader epoch, even if it is the same."""
        self.partition_epoch += 1
        self.replicas = fields.get("replicas", self.replicas)
        self.isr = fields.get("isr", self.isr)
        self.directories = fields.get("directories", self.directories)
        leader = fields.get("leader", _UNCHANGED)
        if leader != _UNCHANGED:
            self.leader, self.leader_epoch = leader, self.leader_epoch + 1
