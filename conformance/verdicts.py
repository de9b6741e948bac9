"""Results of cases and of a run, as plain data for JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from mockraft.conformance.requests import Tree
from mockraft.files.given_files import TEXT_BYTES_MAX, read_text
from mockraft.files.private_files import write_private
from mockraft.files.trees import json_tree

_RULE_OF_A_RELEASE = re.compile(r"^((?:since|before) Kafka [\d.]+): .*")


class Outcome(StrEnum):
    """Outcome of one case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass
class Verdict:
    """One case's result. `reason` is one line; for a failure `detail` has request and response as JSON.

    `exchanges` are its requests, their answers and the records that followed, masked by `conformance.exchanges`.
    """

    name: str
    area: str
    rank: str
    source: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    detail: Tree = field(default_factory=dict)
    exchanges: list[Tree] = field(default_factory=list)


@dataclass
class Run:
    """All verdicts of a run, in the order of the suite, and the controller under test; `release` as `release_text`.

    `codec` is the path by which the suite read and wrote: pure or speed.
    """

    target: str
    cluster_id: str
    metadata_version: int
    release: str = ""
    seconds: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)
    codec: str = ""

    @property
    def failures(self) -> list[Verdict]:
        """The cases that failed."""
        return [each for each in self.verdicts if each.outcome is Outcome.FAILED]

    def count(self, area: str | None = None) -> Counter[Outcome]:
        """Count the outcomes in one area or in all."""
        return Counter(each.outcome for each in self.verdicts if area in (None, each.area))

    def reasons_of_applicability(self) -> Counter[str]:
        """Count the cases that are not applicable by reason; rules that came with one release are counted together."""
        reasons = (each.reason for each in self.verdicts if each.outcome is Outcome.NOT_APPLICABLE)
        return Counter(_RULE_OF_A_RELEASE.sub(r"\1", each) for each in reasons)

    @property
    def areas(self) -> list[str]:
        """The areas, in the order of the suite."""
        return list(dict.fromkeys(each.area for each in self.verdicts))

    def write_json(self, path: Path) -> None:
        """Write the run as JSON, for a later comparison."""
        write_private(path, f"{json.dumps(asdict(self), indent=1, ensure_ascii=False)}\n".encode())

    @classmethod
    def read_json(cls, path: Traversable) -> Run:
        """Read a run written by `write_json`. Raises ValueError for any other file."""
        try:
            text = read_text(path, TEXT_BYTES_MAX) if isinstance(path, Path) else path.read_text(encoding="utf-8")
            tree = json_tree(text)
            verdicts = []
            for each in tree.pop("verdicts"):
                each.pop("known_difference", None)  # of runs until mockraft 0.2
                verdicts.append(Verdict(**{**each, "outcome": Outcome(each["outcome"])}))
            return cls(**tree, verdicts=verdicts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no conformance run as --json writes it: {error}") from None


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
