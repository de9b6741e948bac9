"""The package by which pytest finds the plugin."""

import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[3]


def project(folder: Path) -> dict[str, object]:
    read: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return read


def test_package_names_the_plugin_and_matches_its_version() -> None:
    package, mockraft = project(ROOT / "pytest_mockraft"), project(ROOT)
    assert package["entry-points"] == {"pytest11": {"mockraft.pytest_plugin": "mockraft.pytest_plugin"}}
    assert hasattr(import_module("mockraft.pytest_plugin"), "pytest_addoption")
    assert [package[name] for name in ("version", "requires-python")] == [
        mockraft[name] for name in ("version", "requires-python")
    ]


def test_mockraft_itself_has_no_plugin_so_that_pytest_does_not_read_its_thousand_files() -> None:
    assert "entry-points" not in project(ROOT)
