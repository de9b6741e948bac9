"""A run as a Markdown page that can be published: the release that the controller equals, and its level."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

from mockraft.conformance.case import Case, Rank
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.wire.printable import printable_line

_OF_VOTERS = "quorum"
_MARKS = re.compile(r"[\\`*\[<&|~]|(?<![^\W_])_|_(?![^\W_])")
"""What a text of a controller must not be read as: links, images, HTML, emphasis, cells."""


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


def write_summary(found: Run, level: Level, path: Path, *, on: date, is_selection: bool = False) -> None:
    """Write the page; `is_selection` says that not all cases of the level were run. It names no address or id."""
    path.write_text(as_markdown(found, level, on=on, is_selection=is_selection), encoding="utf-8")


def as_markdown(found: Run, level: Level, *, on: date, is_selection: bool = False) -> str:
    """Return the page: release, level, counts by area, and each failure."""
    count = found.count()
    verdict = "not judged: a selection of its cases" if is_selection else "not met" if found.failures else "met"
    facts = {
        "Release": f"{found.release}, metadata.version {found.metadata_version}",
        "Level": f"{level}: {level.meaning}",
        "Verdict": verdict,
        "Passed": count[Outcome.PASSED],
        "Failed": count[Outcome.FAILED],
        "Not applicable": count[Outcome.NOT_APPLICABLE],
        "Date": on.isoformat(),
        "Suite": f"mockraft {version('mockraft')}, {len(found.verdicts)} cases, codec {found.codec}",
    }
    lines = ["# KRaft controller conformance", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {_cell(str(value))} |" for name, value in facts.items()]
    lines += ["", "| Area | passed | failed | not applicable |", "| --- | --- | --- | --- |"]
    for area in found.areas:
        of_area = found.count(area)
        lines.append(f"| {area} | " + " | ".join(str(of_area[each]) for each in Outcome) + " |")
    if found.failures:
        lines += ["", "| Failed case | Reason | Source |", "| --- | --- | --- |", *map(_failure, found.failures)]
    return "\n".join(lines) + "\n"


def _failure(verdict: Verdict) -> str:
    return f"| {verdict.area}: {_cell(verdict.name)} | {_cell(verdict.reason)} | {_cell(verdict.source)} |"


def _cell(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", printable_line(" ".join(text.split())))
