"""The suite itself: names, areas, sources, and the levels of each case."""

from collections import Counter
from pathlib import Path

import pytest
from mockraft.cli.conformance.command import ABOUT
from mockraft.conformance.case import ELR, Rank
from mockraft.conformance.reports.summary import Level
from mockraft.conformance.suite import AREAS, all_cases
from mockraft.conformance.target import Target
from mockraft.releases import METADATA_VERSION, release

from tools.pages.conformance_table import LEVELS
from tools.pages.marked_text import marked, replace_marked

from ..rows import each_row

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "checks" / "conformance.md"
ELR_SINCE = 26


def target(level: int) -> Target:
    levels = {METADATA_VERSION: level, ELR: int(level >= ELR_SINCE)}
    finalized = {name: each for name, each in levels.items() if each}
    return Target("h", 1, supported_features=release().feature_ranges(), finalized_features=finalized)


def test_there_are_many_cases_and_each_area_has_some() -> None:
    cases = all_cases()
    assert len(cases) >= 250
    assert set(AREAS) == {case.area for case in cases}
    assert len({case.name for case in cases}) == len(cases)
    assert {case.rank for case in cases} == set(Rank)
    assert [
        case.name for case in cases if not case.source or (not case.name[0].islower() and case.name[:2].islower())
    ] == []


def column(table: str, side: int) -> dict[str, list[str]]:
    """Parse one side (0: mockraft, 1: Kafka) of the table: area → its cells."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: [cell.split(" / ")[side] for cell in row[1:]] for row in rows if len(row) > 1}


def test_the_documents_table_has_every_case_that_holds_at_its_level() -> None:
    table = marked(DOCUMENT.read_text())
    holding = {
        level: Counter(case.area for case in all_cases() if not case.misfit(target(level)) and not case.disruptive)
        for level in LEVELS
    }
    for side in (0, 1):
        cells = column(table, side)
        assert set(cells) == {*AREAS, "**all**"}
        for area in AREAS:
            applying = [int(cell.rpartition(" of ")[2]) for cell in cells[area]]
            assert applying == [holding[level][area] for level in LEVELS], area


@each_row(
    ("level", "reason"),
    [(29, "holds from 30; metadata.version is 29"), (30, None), (7, "holds from 30; metadata.version is 7")],
)
def test_misfit_returns_the_reason(level: int, reason: str | None) -> None:
    case = next(case for case in all_cases() if case.since == 30 and case.elr is None)
    assert case.misfit(target(level)) == reason


def test_only_the_marked_part_is_rewritten() -> None:
    document = "a\n<!-- from here on: x -->\nold\n<!-- up to here -->\nb\n"
    written = replace_marked(document, "new \\1\n")
    assert written == "a\n<!-- from here on: x -->\n\nnew \\1\n\n<!-- up to here -->\nb\n"
    assert marked(written) == "new \\1\n"
    for do in (marked, lambda text: replace_marked(text, "")):
        with pytest.raises(ValueError, match="no marks"):
            do("no marks here")


def test_levels_contain_each_other() -> None:
    core, full, quorum = ({case.name for case in all_cases() if level.has(case)} for level in Level)
    assert set() < core < full < quorum == {case.name for case in all_cases()}
    assert {case.area for case in all_cases() if case.name in quorum - full} == {"quorum"}
    assert {case.rank for case in all_cases() if case.name in core} == {Rank.MUST}


def test_help_and_page_have_the_meanings_of_the_levels() -> None:
    page = DOCUMENT.read_text()
    for level in Level:
        assert f"  {level:<7} {level.meaning}\n" in ABOUT
        assert f"| {level} | {level.meaning} |" in page
