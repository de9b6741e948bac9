"""The persistent state of a group of the consumer protocol as a value: what its records say (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.brokers.coordinators.reconciliation import Standing


class ConsumerGroupState(Enum):
    """Kafka's ConsumerGroupState, less Dead."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ClassicSide(NamedTuple):
    """A member that uses the classic protocol has this besides: its session timeout, and its assignors' metadata."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Description(NamedTuple):
    """A member's subscription and timeouts; `pattern` is the regular expression to which it subscribes."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicSide | None = None


class GroupMember(NamedTuple):
    """A member: its description, and what it has of its assignment."""

    described: Description = Description()
    standing: Standing = Standing()


class ResolvedPattern(NamedTuple):
    """The topics that matched a regular expression, and when."""

    topics: frozenset[str]
    version: int
    resolved_ms: int


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group: its epoch, its members by id, and the target assignment with the epoch and the time of its making."""

    epoch: int = 1
    assignment_epoch: int = 1
    assigned_ms: int = 0
    members: Mapping[str, GroupMember] = field(default_factory=dict)
    targets: Mapping[str, Assignment] = field(default_factory=dict)
    patterns: Mapping[str, ResolvedPattern] = field(default_factory=dict)

    @property
    def state(self) -> ConsumerGroupState:
        """The state that follows (maybeUpdateGroupState)."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(each.standing.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_id(self, instance_id: str | None) -> str | None:
        """Return the id of the static member; None if there is none."""
        if instance_id is None:
            return None
        return next((key for key, each in self.members.items() if each.described.instance_id == instance_id), None)

    def topics_of(self, described: Description) -> frozenset[str]:
        """Return the names to which a member subscribes; a pattern that is not resolved yet matches none."""
        resolved = self.patterns.get(described.pattern or "")
        return described.topics if resolved is None else described.topics | resolved.topics

    @property
    def subscribed(self) -> frozenset[str]:
        """The names of all topics to which members subscribe."""
        return frozenset().union(*(self.topics_of(each.described) for each in self.members.values()))

    @property
    def used_patterns(self) -> frozenset[str]:
        """The regular expressions to which members subscribe."""
        return frozenset(each.described.pattern for each in self.members.values() if each.described.pattern)

    @property
    def taken(self) -> frozenset[tuple[bytes, int]]:
        """All partitions that some member has, or has still to give up."""
        return frozenset(
            (topic_id, index)
            for each in self.members.values()
            for owned in (each.standing.assigned, each.standing.revoking)
            for topic_id, indexes in owned.items()
            for index in indexes
        )
