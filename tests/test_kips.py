"""The table of the texts' rules names tests that there are."""

import re
from collections import Counter
from typing import NamedTuple

import pytest
from mockraft.conformance.suite import all_cases

from .named_tests import ROOT, names_in

pytestmark = pytest.mark.one_python

TABLE = ROOT / "docs" / "kips.md"
TEXTS = ("858", "1066", "113", "18", "004")
CASE = "case: "


class Rule(NamedTuple):
    """One row: its number, what the text says, the tests and cases that show it, how Kafka differs."""

    number: str
    text: str
    shown_by: list[str]
    differs: str


def rules() -> list[Rule]:
    found = []
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if re.fullmatch(r"\d+\.\d+", cells[0]):
            number, _, text, shown_by, *differs = cells
            shown = [each.strip(" `") for each in shown_by.split(";") if each.strip()]
            found.append(Rule(number, text, shown, "".join(differs)))
    return found


RULES = rules()


def test_every_text_is_there_and_its_rules_are_numbered_in_a_row() -> None:
    counts = Counter(rule.number.split(".")[0] for rule in RULES)
    assert tuple(counts) == TEXTS
    assert [rule.number for rule in RULES] == [f"{text}.{n}" for text in TEXTS for n in range(1, counts[text] + 1)]


def test_every_test_and_case_that_is_named_exists() -> None:
    cases = {case.name for case in all_cases()}
    missing = []
    for rule in RULES:
        for shown in rule.shown_by:
            path, _, name = shown.partition("::")
            there = shown.removeprefix(CASE) in cases if shown.startswith(CASE) else name in names_in(path)
            missing += [] if there else [f"{rule.number}: {shown}"]
    assert missing == []


def test_every_rule_has_a_test_or_a_reason() -> None:
    assert [rule.number for rule in RULES if not rule.shown_by and not rule.differs] == []
