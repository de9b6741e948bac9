"""Check that docs/evidence/kips.md names existing tests and conformance cases."""

import re
from collections import Counter
from typing import NamedTuple

import pytest
from mockraft.conformance.suite import all_cases

from .named_tests import ROOT, names_in

pytestmark = pytest.mark.one_python

TABLE = ROOT / "docs" / "evidence" / "kips.md"
TEXTS = ("858", "1066", "113", "18", "004")
CASE = "case: "
WITH_KAFKA = (CASE, "tests/real_kafka/", "tests/brokers/test_real_bytes.py::")


class Rule(NamedTuple):
    """A row: number, summary of the rule, its tests and cases, difference in Kafka; `is_marked` as without Kafka."""

    number: str
    text: str
    shown_by: list[str]
    differs: str
    is_marked: bool


def rules() -> list[Rule]:
    found = []
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if number := re.fullmatch(r"(\d+\.\d+)( †)?", cells[0]):
            _, _, text, shown_by, *differs = cells
            shown = [each.strip(" `") for each in shown_by.split(";") if each.strip()]
            found.append(Rule(number[1], text, shown, "".join(differs), number[2] is not None))
    return found


RULES = rules()


def test_lists_every_text_with_consecutive_rule_numbers() -> None:
    counts = Counter(rule.number.split(".")[0] for rule in RULES)
    assert tuple(counts) == TEXTS
    assert [rule.number for rule in RULES] == [f"{text}.{n}" for text in TEXTS for n in range(1, counts[text] + 1)]


def test_named_tests_and_cases_exist() -> None:
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


def test_rules_shown_by_mockraft_alone_are_marked() -> None:
    alone = [rule.number for rule in RULES if rule.shown_by and not any(map(is_with_kafka, rule.shown_by))]
    assert [rule.number for rule in RULES if rule.is_marked] == alone


def is_with_kafka(shown: str) -> bool:
    return shown.startswith(WITH_KAFKA)
