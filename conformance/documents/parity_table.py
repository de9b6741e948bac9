"""Table of the cases of each area that pass on mockraft and on Kafka, at each level of metadata.version."""

from __future__ import annotations

from collections.abc import Mapping

from mockraft.conformance.suite import AREAS
from mockraft.conformance.verdicts import Outcome, Run
from mockraft.releases import release

NEWEST_LEVEL = max(release().metadata_versions)
LEVELS: dict[int, str] = {
    level: release().metadata_version(level).name for level in (NEWEST_LEVEL, 30, 29, 21, 14, 11, 7)
}
"""The levels of the table, by Kafka's names."""


def as_markdown(mockraft: Mapping[int, Run], kafka: Mapping[int, Run]) -> str:
    """Return the table: cases that pass on mockraft / on Kafka, and the number that applies if it is not all."""
    names = [f"{level} ({name})" for level, name in LEVELS.items()]
    lines = [f"| area | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    for area in (*AREAS, None):
        cells = [f"{_cell(mockraft[level], area)} / {_cell(kafka[level], area)}" for level in LEVELS]
        lines.append(f"| {area or '**all**'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: Run, area: str | None) -> str:
    count = found.count(area)
    passed, applying = count[Outcome.PASSED], count[Outcome.PASSED] + count[Outcome.FAILED]
    return str(passed) if passed == applying else f"{passed} of {applying}"


def column(table: str, side: int) -> dict[str, list[str]]:
    """Parse one side (0: mockraft, 1: Kafka) of a table made by `as_markdown`: area → its cells."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: [cell.split(" / ")[side] for cell in row[1:]] for row in rows if len(row) > 1}
