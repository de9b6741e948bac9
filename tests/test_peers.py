"""Check that docs/evidence/peers.md names existing tests."""

import re
from typing import NamedTuple

import pytest

from .named_tests import ROOT, names_in

pytestmark = pytest.mark.one_python

PAGE = ROOT / "docs" / "evidence" / "peers.md"
TEST = re.compile(r"\[`(test_\w+)`\]\((?:\.\./)+(tests/[\w/]+\.py)\)")


class Row(NamedTuple):
    """A row: its section and head, mockraft's entry, and the names and files of its tests."""

    section: str
    head: str
    ours: str
    shown_by: list[tuple[str, str]]


def rows() -> list[Row]:
    found = []
    section = ""
    for line in PAGE.read_text().splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if line.startswith("| ") and not re.match(r"\| (---|row|peer) \|", line):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.append(Row(section, cells[0], cells[-2], TEST.findall(cells[-1])))
    return found


ROWS = rows()


def test_reads_every_table() -> None:
    assert len(ROWS) > 40
    assert len({row.section for row in ROWS}) == 2


def test_named_tests_exist() -> None:
    named = [(row.head, path, name) for row in ROWS for name, path in row.shown_by]
    assert [each for each in named if each[2] not in names_in(each[1])] == []


def test_every_row_names_a_test_or_begins_with_no() -> None:
    assert [row.head for row in ROWS if not row.shown_by and not row.ours.startswith("no")] == []
