"""The tables that set mockraft beside its peers name tests that there are."""

import re
from typing import NamedTuple

import pytest

from .named_tests import ROOT, names_in

pytestmark = pytest.mark.one_python

PAGE = ROOT / "docs" / "peers.md"
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


class Row(NamedTuple):
    """One row: the section it stands in, its head, what mockraft has, the names and files of the tests that show it."""

    section: str
    head: str
    ours: str
    shown_by: list[tuple[str, str]]


def rows() -> list[Row]:
    found = []
    section = ""
    for line in PAGE.read_text().splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if line.startswith("| ") and not re.match(r"\| (---|row|peer|number|measure) \|", line):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.append(Row(section, cells[0], cells[-2], TEST.findall(cells[-1])))
    return found


ROWS = rows()


def test_every_table_is_read_and_the_twenty_things_are_numbered_in_a_row() -> None:
    assert len(ROWS) > 70
    beyond = [row.head for row in ROWS if row.section == "What it takes to go beyond them"]
    assert beyond == [str(number) for number in range(1, 21)]


def test_every_test_that_is_named_exists() -> None:
    named = [(row.head, path, name) for row in ROWS for name, path in row.shown_by]
    assert [each for each in named if each[2] not in names_in(each[1])] == []


def test_every_row_has_a_test_or_says_no() -> None:
    assert [row.head for row in ROWS if not row.shown_by and not row.ours.startswith("no")] == []
