"""Leader election of a partition (the election half of Kafka's PartitionChangeBuilder; KIP-966)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mockraft.server.controller.image.topics import NO_LEADER


class ElectionType(Enum):
    """Kind of an election."""

    PREFERRED = "preferred"
    """The first replica, if able; else as ONLINE but never away from a valid leader."""

    ONLINE = "online"
    """The current leader if able, else the first replica that can lead without loss."""

    UNCLEAN = "unclean"
    """As ONLINE, but rather any live replica than none."""


class Elected(NamedTuple):
    """The leader, or -1; unclean when records may be lost."""

    leader: int
    is_unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The state to elect from. `is_acceptable` decides if a broker is able to lead at all."""

    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int]
    last_known_elr: Sequence[int]
    elr_enabled: bool
    is_acceptable: Callable[[int], bool]

    def may_lead(self, broker_id: int) -> bool:
        """Return True for an able replica in the ISR, or in the ELR if no ISR member is able."""
        in_sync = self.isr if self.isr else self.elr
        return broker_id in in_sync and self.is_acceptable(broker_id)

    @property
    def last_known_leader(self) -> int | None:
        """Return the last known leader before the partition lost it, if it may lead again.

        Kafka's controller fails on one that is no longer a replica (a reassignment may end as the leader is lost).
        """
        if not self.elr_enabled or self.elr or self.isr or len(self.last_known_elr) != 1:
            return None
        leader = self.last_known_elr[0]
        return leader if leader in self.replicas and self.is_acceptable(leader) else None


def elect(election: ElectionType, candidates: Candidates) -> Elected:
    """Elect a leader by this kind of election."""
    preference = list(candidates.replicas)
    if election is ElectionType.PREFERRED:
        preference.insert(1, candidates.leader)
    else:
        preference.insert(0, candidates.leader)
    for broker_id in preference:
        if candidates.may_lead(broker_id):
            return Elected(broker_id, False)
    if candidates.last_known_leader is not None:
        return Elected(candidates.last_known_leader, True)
    if election is ElectionType.UNCLEAN:
        for broker_id in candidates.replicas:
            if candidates.is_acceptable(broker_id):
                return Elected(broker_id, True)
    return Elected(NO_LEADER, False)
