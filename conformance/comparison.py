"""Comparison of two runs, case by case."""

from __future__ import annotations

import re
from typing import NamedTuple

from mockraft.conformance.verdicts import Outcome, Run, Verdict


class Parting(NamedTuple):
    """One case with another result in the other run; None if that run does not have it."""

    mine: Verdict
    theirs: Verdict | None

    @property
    def is_of_applicability(self) -> bool:
        """True if the case applies to one of the controllers only."""
        outcomes = {self.mine.outcome, self.theirs.outcome if self.theirs else Outcome.NOT_APPLICABLE}
        return Outcome.NOT_APPLICABLE in outcomes

    @property
    def reason_of_applicability(self) -> str:
        """The reason why it does not apply to one of the two."""
        without = self.mine if self.mine.outcome is Outcome.NOT_APPLICABLE else self.theirs
        return "not run" if without is None else without.reason


def partings(mine: Run, theirs: Run) -> list[Parting]:
    """Return the cases of `mine` with another outcome, or with another failure, in their order."""
    others = {each.name: each for each in theirs.verdicts}
    pairs = [Parting(each, others.get(each.name)) for each in mine.verdicts]
    return [each for each in pairs if each.theirs is None or _parts(each.mine, each.theirs)]


def changed_text(theirs: Run) -> str:
    """Return the words for the number of cases that both ran, with another verdict in the other run."""
    return f"have another verdict on {theirs.target}"


ONE_SIDED_TEXT = "apply to one of the two only"
"""The words for the number of cases that one of the runs has not tried."""


def outcome_text(verdict: Verdict | None) -> str:
    """Return an outcome as a word; "not run" if there is none."""
    return "not run" if verdict is None else verdict.outcome.value


def _parts(mine: Verdict, theirs: Verdict) -> bool:
    if mine.outcome is not theirs.outcome:
        return True
    if mine.outcome is not Outcome.FAILED:
        return False
    return _masked(mine.reason) != _masked(theirs.reason)


def _masked(reason: str) -> str:
    """Return a reason without what differs between runs: directory ids, ids and epochs."""
    return re.sub(r"\d+", "0", re.sub(r"[\w-]{22}", "id", reason))
