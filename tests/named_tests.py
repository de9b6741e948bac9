"""Tests that documents name: which there are."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the tests of a file or page, said from the root; none when there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    if file.suffix == ".md":
        return frozenset(re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE))
    tree = ast.parse(file.read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions)
