"""Each page of docs/incidents has the form of the others, the test that runs, and a row in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import FACTS, INDEX, SECTIONS, facts_of, incidents, its_test, title_of, with_its_code, with_its_table

REMEDY = "run: python tests/incidents/pages.py"

pages = pytest.mark.parametrize("page", incidents(), ids=lambda page: page.stem)


@pages
def test_page_quotes_its_whole_test(page: Path) -> None:
    assert page.read_text() == with_its_code(page), REMEDY


@pages
def test_page_has_the_form_of_the_others(page: Path) -> None:
    assert tuple(facts_of(page)) == FACTS
    assert tuple(re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)) == SECTIONS
    assert facts_of(page)["tracker"].startswith("[")
    assert its_test(page).read_text().startswith(f'"""{title_of(page)}."""\n'), "the title is the test's docstring"


def test_each_test_has_a_page() -> None:
    tests = {path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)}
    assert tests == {its_test(page) for page in incidents()}


def test_index_lists_every_incident() -> None:
    assert INDEX.read_text() == with_its_table(), REMEDY
