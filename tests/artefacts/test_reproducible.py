"""The same source gives the same bytes, wherever and by whomever it is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..budgets import soak
from .conftest import build_elsewhere, build_here


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_packages_are_the_same_from_another_folder_umask_and_time_zone(packages: Path, tmp_path: Path) -> None:
    here, elsewhere = contents(packages), contents(build_elsewhere(tmp_path, "packages"))
    assert len(here) == 5
    assert sorted(here) == sorted(elsewhere)
    assert [name for name in here if here[name] != elsewhere[name]] == []


@soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", ["site", "sbom"])
def test_another_part_is_the_same_from_another_folder_umask_and_time_zone(part: str, tmp_path: Path) -> None:
    here, elsewhere = contents(build_here(tmp_path / "here", part)), contents(build_elsewhere(tmp_path, part))
    assert len(here) == 2
    assert here == elsewhere
