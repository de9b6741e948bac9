"""Modules that import each other, typing imports included."""

import ast
from functools import cache
from pathlib import Path

import mockraft
import pytest

pytestmark = [pytest.mark.checks, pytest.mark.one_python]

ROOT = Path(mockraft.__file__).parent


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the project that each of its modules imports."""
    files = {}
    for path in ROOT.rglob("*.py"):
        parts = ("mockraft", *path.relative_to(ROOT).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    found[name].add(submodule if submodule in files else node.module)
            elif isinstance(node, ast.Import):
                found[name].update(alias.name for alias in node.names)
    return {name: targets & files.keys() - {name} for name, targets in found.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components, by Kosaraju's algorithm."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        stack = [(start, False)]
        while stack:
            name, is_left = stack.pop()
            if is_left:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack += [(name, True), *((target, False) for target in graph[name])]
    importers: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            importers[target].add(name)
    found = []
    for start in reversed(order):
        circle, waiting = [], [start]
        while waiting:
            if (name := waiting.pop()) in seen:
                seen.remove(name)
                circle.append(name)
                waiting += importers[name]
        found.append(sorted(circle))
    return found


def test_no_modules_import_each_other() -> None:
    graph = imports()
    assert len(graph) > 600
    assert [circle for circle in circles(graph) if len(circle) > 1] == []
