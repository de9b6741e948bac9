"""Rules for plain English in docstrings."""

import ast
import re
from pathlib import Path

import pytest

from .test_tidy import BY_HAND, ROOT, nodes

pytestmark = [pytest.mark.checks, pytest.mark.one_python]

QUESTION = re.compile(r"(What|Who|Whom|Whose|Where|How|Whether|Which)\b")
BANNED = re.compile(r"in a breath|stands above|epitaph|farewell|corridor|double door|turn of phrase", re.IGNORECASE)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_docstrings_begin_with_no_question_word() -> None:
    found = []
    for path in BY_HAND:
        name = str(path.relative_to(ROOT))
        for node in nodes(path):
            if isinstance(node, Documented) and QUESTION.match(ast.get_docstring(node) or ""):
                found.append(f"{name}:{getattr(node, 'lineno', 1)}")
    assert found == []


def test_no_file_uses_private_words() -> None:
    texts = {path: path.read_text() for path in BY_HAND if path != Path(__file__)}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if BANNED.search(text)] == []
