"""A conformance case: one sentence about a controller, its source, and the coroutine that checks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict, TypeVarTuple, Unpack

from mockraft.releases import Behaviour

if TYPE_CHECKING:
    from mockraft.conformance.target import Target
    from mockraft.conformance.world import World

Trial = Callable[["World"], Awaitable[None]]

Values = TypeVarTuple("Values")

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
        has: only on controllers of releases with this behaviour.
        lacks: only on controllers of releases without it.
        since_release: only on controllers of this release ("4.0") and later ones.
        before_release: only on controllers of releases before this one.
        elr: True (or False): only with (without) eligible leader replicas; None: either.
        alone: no other case may run at the same time: it reads or changes shared state.
        below_newest: only below the newest metadata.version that the controller supports.
        without_brokers: only on controllers that have no brokers of their own when the run starts.
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
    has: Behaviour | None = None
    lacks: Behaviour | None = None
    since_release: str | None = None
    before_release: str | None = None
    below_newest: bool = False
    without_brokers: bool = False

    @property
    def bounds(self) -> list[str]:
        """The lowest metadata.version and the releases for which it holds, as texts; none if it holds for all."""
        since, before = self.since_release or _release_of(self.has), self.before_release or _release_of(self.lacks)
        found = {"from metadata.version": self.since if self.since > 7 else None, "since Kafka": since}
        return [f"{what} {value}" for what, value in {**found, "before Kafka": before}.items() if value is not None]

    def misfit(self, target: Target) -> str | None:
        """Return the reason why the case does not apply to this controller; None if it applies."""
        level = target.metadata_version
        if not self.since <= level <= self.until:
            bound = f"from {self.since}" if level < self.since else f"up to {self.until}"
            return f"holds {bound}; metadata.version is {level}"
        if self.has is not None and not target.release.has(self.has):
            return f"since Kafka {self.has.since}: {self.has.rule}"
        if self.lacks is not None and target.release.has(self.lacks):
            return f"before Kafka {self.lacks.since}: {self.lacks.rule}"
        if self.since_release is not None and not target.release.is_since(self.since_release):
            return f"since Kafka {self.since_release}"
        if self.before_release is not None and target.release.is_since(self.before_release):
            return f"before Kafka {self.before_release}"
        if self.below_newest and level >= target.newest_metadata_version:
            return f"{level} is the newest metadata.version that it supports"
        if self.without_brokers and target.brokers:
            return "the controller has brokers of its own"
        if self.elr is not None and self.elr != bool(target.finalized_features.get(ELR, 0)):
            return f"only {'with' if self.elr else 'without'} {ELR}"
        return None


def _release_of(behaviour: Behaviour | None) -> str | None:
    return None if behaviour is None else behaviour.since


CASES: list[Case] = []
"""Every case, in the order of the areas; filled when `mockraft.conformance.cases` is imported."""


class Options(TypedDict, total=False):
    """Further arguments of a :class:`Case`."""

    since: int
    until: int
    elr: bool
    alone: bool
    disruptive: bool
    has: Behaviour
    lacks: Behaviour
    since_release: str
    before_release: str
    below_newest: bool
    without_brokers: bool


def case(name: str, source: str, rank: Rank = Rank.MUST, **options: Unpack[Options]) -> Callable[[Trial], Trial]:
    """Register the decorated coroutine as a case of the area that its module is named after; see :class:`Case`."""

    def register(trial: Trial) -> Trial:
        _register(trial, trial.__module__, name, source, rank, options)
        return trial

    return register


def cases(
    name: str, source: str, rows: Iterable[tuple[str, *Values]], rank: Rank = Rank.MUST, **options: Unpack[Options]
) -> Callable[[Callable[[World, *Values], Awaitable[None]]], Callable[[World, *Values], Awaitable[None]]]:
    """Register one case for each row: its first value replaces `{}` in the name, the others are passed on.

    `{1}` and so on in `source` stand for the other values.
    """

    def register(trial: Callable[[World, *Values], Awaitable[None]]) -> Callable[[World, *Values], Awaitable[None]]:
        for row in rows:
            _register(_bound(trial, row), trial.__module__, name.format(row[0]), source.format(*row), rank, options)
        return trial

    return register


def _bound(trial: Callable[[World, *Values], Awaitable[None]], row: tuple[str, *Values]) -> Trial:
    return lambda world: trial(world, *row[1:])


def _register(trial: Trial, module: str, name: str, source: str, rank: Rank, options: Options) -> None:
    assert all(each.name != name for each in CASES), f"two cases are called {name!r}"
    CASES.append(Case(name, module.rpartition(".")[2].replace("_", " "), source, trial, rank, **options))
