"""The result of a plan: what each step was answered and what it did to partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mockraft.testing.plan.availability import Availability
from mockraft.wire.printable import printable_line

if TYPE_CHECKING:
    from mockraft.server.views import LogRecord
    from mockraft.testing.plan.steps import Step
    from mockraft.wire.json_form import Json, Tree

_NAMES_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """One step. `answers` are Kafka's refusals, empty if all was accepted; `seconds` are virtual.

    `features` are the levels that it changed, before and after.

    `before`, `during` and `after` are partitions that lacked something before it, at any moment of it, and at its end;
    `changes` what they lacked from so many seconds after its beginning on.
    `reassignments` are those in progress at its end, as text.
    """

    step: Step
    answers: tuple[str, ...]
    seconds: float
    features: Mapping[str, tuple[int, int]]
    before: Availability
    during: Availability
    after: Availability
    changes: list[tuple[float, Availability]] = field(repr=False)
    records: list[LogRecord] = field(repr=False)
    reassignments: tuple[str, ...] = ()

    @property
    def counts(self) -> list[str]:
        """The numbers of partitions that lacked each thing: the most, and after → those at its end, if they differ."""
        pairs = zip(self.during, self.after, strict=True)
        return [f"{len(most)}" if most == end else f"{len(most)} → {len(end)}" for most, end in pairs]

    @property
    def answer(self) -> str:
        """The first refusal and the number of others, or ok with the feature levels that changed."""
        more = f" (and {len(self.answers) - 1} more)" if len(self.answers) > 1 else ""
        levels = ", ".join(f"{name} {was} → {now}" for name, (was, now) in self.features.items())
        return f"{self.answers[0]}{more}" if self.answers else f"ok: {levels}" if levels else "ok"

    @property
    def broken(self) -> dict[str, list[str]]:
        """The partitions that this step made unusable, by what they lacked."""
        lost = {
            "offline": self.during.offline - self.before.offline,
            "under min ISR": self.during.under_min_isr - self.before.under_min_isr,
        }
        return _named(lost)

    @property
    def breaks(self) -> str:
        """The partitions that this step made unusable, as text; empty if there are none."""
        return _text(self.broken)

    def to_json(self) -> Tree:
        """Return the outcome as a JSON object, with the types of its records."""
        return {
            "step": str(self.step),
            "answers": list(self.answers),
            "seconds": self.seconds,
            "features": {name: [*levels] for name, levels in self.features.items()},
            "offline": [len(self.during.offline), len(self.after.offline)],
            "underMinIsr": [len(self.during.under_min_isr), len(self.after.under_min_isr)],
            "underReplicated": [len(self.during.under_replicated), len(self.after.under_replicated)],
            "breaks": self.breaks,
            "reassignmentsInProgress": list(self.reassignments),
            "changes": [{"seconds": at, **found.counts()} for at, found in self.changes],
            "records": [each.type for each in self.records],
        }


@dataclass(frozen=True)
class PlanOutcome:
    """The outcome of each step that was done; `before` is what partitions lacked before the first."""

    before: Availability
    steps: list[StepOutcome]

    @property
    def after(self) -> Availability:
        """The partitions that lack something at the end."""
        return self.steps[-1].after if self.steps else self.before

    @property
    def lacking(self) -> dict[str, list[str]]:
        """The partitions that are unusable at the end, by what they lack."""
        return _named({"offline": self.after.offline, "under min ISR": self.after.under_min_isr})

    @property
    def is_safe(self) -> bool:
        """True if no step was refused, none made a partition unusable, and none is unusable at the end."""
        return not self.lacking and not any(each.answers or each.breaks for each in self.steps)

    @property
    def lacks(self) -> str:
        """The unusable partitions at the end, as text; empty if there are none."""
        return _text(self.lacking)

    def to_json(self) -> Tree:
        """Return the outcome as a JSON object."""
        steps: list[Json] = [each.to_json() for each in self.steps]
        lacking: Tree = {"offline": sorted(self.after.offline), "underMinIsr": sorted(self.after.under_min_isr)}
        return {"isSafe": self.is_safe, "steps": steps, "atTheEnd": lacking}

    def __str__(self) -> str:
        """Return a table: counts are the most during a step, and after → those at its end, if they differ."""
        if not self.steps:
            return f"at the end: {self.lacks}" if self.lacking else "no partition is offline or under min ISR"
        rows: list[tuple[str, ...]] = [("", "step", "time", "offline", "under min ISR", "under-replicated", "answer")]
        for number, each in enumerate(self.steps, start=1):
            row = (str(number), str(each.step), f"{each.seconds:g} s", *each.counts, each.answer)
            rows.append(tuple(map(printable_line, row)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        before: tuple[str, ...] = ()
        for number, each in enumerate(self.steps, start=1):
            if each.breaks:
                lines.append(f"step {number} breaks: {each.breaks}")
            if each.reassignments and each.reassignments != before:
                count = len(each.reassignments)
                lines.append(f"after step {number} reassignments in progress: {count}: {_some(each.reassignments)}")
            before = each.reassignments
        if self.lacking:
            lines.append(f"at the end: {self.lacks}")
        return "\n".join(map(printable_line, lines))


def _named(lost: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {what: sorted(names) for what, names in lost.items() if names}


def _text(lost: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{what}: {_some(names)}" for what, names in lost.items())


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}"
