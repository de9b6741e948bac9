"""Modules of the controller that import each other, typing imports included."""

import ast
from pathlib import Path

import mockraft.server

ROOT = Path(mockraft.server.__file__).parent
MODULES_MAX = 5


def imports() -> dict[str, set[str]]:
    files = {}
    for path in ROOT.rglob("*.py"):
        parts = ("mockraft", "server", *path.relative_to(ROOT).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    found[name].add(submodule if submodule in files else node.module)
    return {name: targets & files.keys() - {name} for name, targets in found.items()}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph[waiting.pop()] - found:
            found.add(target)
            waiting.append(target)
    return found


def test_no_more_than_five_modules_import_each_other() -> None:
    graph = imports()
    assert len(graph) > 150
    reach = {name: reachable(graph, name) for name in graph}
    circles = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph}
    assert [sorted(circle) for circle in circles if len(circle) > MODULES_MAX] == []
