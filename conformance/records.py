"""Expected records of the metadata log, and the version of each at a level of metadata.version."""

from __future__ import annotations

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
