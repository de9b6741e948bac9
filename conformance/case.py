"""A conformance case: one sentence about a controller, its source, and the coroutine that checks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.conformance.target import Target
    from mockraft.conformance.world import World

Trial = Callable[["World"], Awaitable[None]]

ELR = "eligible.leader.replicas.version"
_NEWEST = 32767


class Rank(StrEnum):
    """Importance of a case for brokers."""

    MUST = "must"
    """Brokers break, or lose data, without it."""
    SHOULD = "should"
    """Brokers and tools get another response than Kafka's."""
    QUIRK = "quirk"
    """Surprising behaviour of Kafka."""


@dataclass(frozen=True)
class Case:
    """One case.

    Args:
        name: a sentence; unique.
        area: the part of the controller it is about.
        source: Kafka's test class, the section of a KIP, or the class that has the rule.
        trial: the coroutine that checks the sentence; raises NotAsExpectedError.
        rank: its importance.
        since: the lowest metadata.version level at which it holds.
        until: the highest.
        elr: True (or False): only with (without) eligible leader replicas; None: either.
        alone: no other case may run at the same time: it reads or changes shared state.
        disruptive: it makes Kafka's controller resign, or leaves something behind.
    """

    name: str
    area: str
    source: str
    trial: Trial
    rank: Rank = Rank.MUST
    since: int = 7
    until: int = _NEWEST
    elr: bool | None = None
    alone: bool = False
    disruptive: bool = False

    def misfit(self, target: Target) -> str | None:
        """Return the reason why the case does not apply to this controller; None if it applies."""
        level = target.metadata_version
        if not self.since <= level <= self.until:
            bound = f"from {self.since}" if level < self.since else f"up to {self.until}"
            return f"holds {bound}; metadata.version is {level}"
        if self.elr is not None and self.elr != bool(target.finalized_features.get(ELR, 0)):
            return f"only {'with' if self.elr else 'without'} {ELR}"
        return None


CASES: list[Case] = []
"""Every case, in the order of the areas; filled when `mockraft.conformance.cases` is imported."""


def case(
    name: str,
    source: str,
    rank: Rank = Rank.MUST,
    *,
    since: int = 7,
    until: int = _NEWEST,
    elr: bool | None = None,
    alone: bool = False,
    disruptive: bool = False,
) -> Callable[[Trial], Trial]:
    """Register the decorated coroutine as a case; the arguments are those of :class:`Case`.

    The area is the name of its module.
    """

    def registered(trial: Trial) -> Trial:
        area = trial.__module__.rpartition(".")[2].replace("_", " ")
        assert all(each.name != name for each in CASES), f"two cases are called {name!r}"
        CASES.append(Case(name, area, source, trial, rank, since, until, elr, alone, disruptive))
        return trial

    return registered
