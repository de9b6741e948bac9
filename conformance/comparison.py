"""Comparison of two runs, case by case."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.conformance.verdicts import Outcome, Run, Verdict


class Parting(NamedTuple):
    """One case with another result in the other run; None if that run does not have it."""

    name: str
    area: str
    mine: Verdict
    theirs: Verdict | None


def partings(mine: Run, theirs: Run) -> list[Parting]:
    """Return the cases of `mine` with another outcome, or with another failure, in their order."""
    others = {each.name: each for each in theirs.verdicts}
    found = []
    for verdict in mine.verdicts:
        other = others.get(verdict.name)
        if other is None or _parts(verdict, other):
            found.append(Parting(verdict.name, verdict.area, verdict, other))
    return found


def outcome_text(verdict: Verdict | None) -> str:
    """Return an outcome as a word; "not run" if there is none."""
    return "not run" if verdict is None else verdict.outcome.value


def _parts(mine: Verdict, theirs: Verdict) -> bool:
    if mine.outcome is not theirs.outcome:
        return True
    if mine.outcome is not Outcome.FAILED:
        return False
    return [mine.detail.get(key) for key in ("what", "path")] != [theirs.detail.get(key) for key in ("what", "path")]
