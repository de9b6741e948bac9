"""Names of releases are written once: a new release is a new entry of `SUPPORTED`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from mockraft.releases import SUPPORTED

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
FOLDERS = [
    "brokers",
    "cli",
    "codegen",
    "conformance",
    "front",
    "kafka",
    "kafka_api",
    "kafka_configs",
    "releases",
    "server",
    "spark_replay",
    "testing",
    "twin",
    "wire",
]
CASES = ROOT / "conformance" / "cases"
"""Cases name the releases since and until which they hold."""

NAMED = {
    "kafka/cluster_tests.py": "the newest release with test classes on Maven",
    "kafka/tools.py": "the releases in which tools became other classes",
    "releases/behaviour.py": "the releases in which rules began",
    "releases/release.py": "the supported ones and the default",
    "wire/api_keys.py": "the release that it is generated from",
    "twin/brokers.py": "the first release whose controllers simulated brokers follow",
}
NAME = "|".join(rf"{re.escape(each.rpartition('.')[0])}(\.\d+)?" for each in SUPPORTED)
QUOTED = re.compile(f"[\"'](?:{NAME})[\"']")


def test_releases_are_named_only_where_they_are_listed() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path.parent != CASES
        and QUOTED.search(text := path.read_text())
        and any(map(names_a_release, ast.walk(ast.parse(text))))
    }
    assert found == NAMED.keys()


def names_a_release(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(NAME, node.value) is not None
