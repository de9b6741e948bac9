"""The list of known differences is complete, and the documents agree with it."""

from pathlib import Path

import pytest
from mockraft.conformance.known_differences import parse

from tools.pages.differences import as_markdown
from tools.pages.marked_text import marked

from ..rows import each_row

DOCS = Path(__file__).parents[2] / "docs" / "explanation"
ENTRY = """
[[difference]]
id = "one"
area = "topics"
kind = "otherwise"
kafka = "a"
mockraft = "b"
why = "c"
"""


def test_the_document_is_made_from_the_list() -> None:
    assert marked((DOCS / "differences.md").read_text()) == as_markdown()


def test_an_entry_is_read_as_it_stands() -> None:
    (entry,) = parse(ENTRY)
    assert (entry.id, entry.kind) == ("one", "otherwise")


@each_row(
    ("text", "expected"),
    [
        (ENTRY.replace('kafka = "a"\n', ""), "one: missing or unknown: kafka"),
        (ENTRY + 'reason = "d"\n', "one: missing or unknown: reason"),
        (ENTRY.replace("otherwise", "else"), "one: kind is one of missing, otherwise"),
        (ENTRY * 2, "one is there twice"),
    ],
)
def test_a_bad_entry_is_named(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse(text)
