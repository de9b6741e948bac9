"""Conformance levels: the cases that a controller must pass before it may be used for something."""

from __future__ import annotations

from enum import StrEnum

from mockraft.conformance.case import Case, Rank

_OF_VOTERS = "quorum"


class Level(StrEnum):
    """A conformance level; each contains the cases of those before it."""

    CORE = "core"
    FULL = "full"
    QUORUM = "quorum"

    @property
    def meaning(self) -> str:
        """One line about what a controller of this level can be used for."""
        return _MEANINGS[self]

    def has(self, case: Case) -> bool:
        """Tell whether the level contains the case."""
        if self is Level.QUORUM:
            return True
        return case.area != _OF_VOTERS and (self is Level.FULL or case.rank is Rank.MUST)


_MEANINGS = {
    Level.CORE: "brokers run on it and lose no data: the cases of rank must, without the area quorum",
    Level.FULL: "brokers and tools also get Kafka's answers and texts: all cases without the area quorum",
    Level.QUORUM: "other controllers vote with it and follow it, too: all cases",
}
