"""Code of other languages in the documentation is that of the tested clients and examples."""

import re

import pytest

from .tools import ROOT

pytestmark = pytest.mark.one_python

SUFFIXES = {"go": ".go", "java": ".java", "ts": ".ts"}
FOLDERS = ("clients", "examples")
BUILT = {"build", "node_modules", "target"}
FILES = [path for each in FOLDERS for path in (ROOT / each).rglob("*.*") if BUILT.isdisjoint(path.parts)]
DOCUMENTS = [*sorted((ROOT / "docs").rglob("*.md")), *(path for path in FILES if path.suffix == ".md")]


def squeezed(code: str) -> str:
    """Return code without layout."""
    return re.sub(r"\s+", "", code)


@pytest.mark.parametrize("language", SUFFIXES)
def test_blocks_are_quoted_from_tested_files(language: str) -> None:
    tested = [squeezed(path.read_text()) for path in FILES if path.suffix == SUFFIXES[language]]
    blocks = [
        (document.name, block)
        for document in DOCUMENTS
        for block in re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert blocks
    assert [each for each in blocks if not any(squeezed(each[1]) in code for code in tested)] == []
