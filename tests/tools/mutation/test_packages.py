"""The packages of `make mutants` exist, and so do the tests that judge them."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_sources_and_tests_of_each_package_exist() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mockraft-mutants"]
    named = [path for package in packages.values() for path in (*package["sources"], *package["tests"])]
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
