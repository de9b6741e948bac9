"""The same source gives the same bytes, wherever and by whomever it is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.artefacts.__main__ import PARTS, main
from tools.artefacts.build import Build
from tools.artefacts.packages import pythons_at_hand

from ...budgets import soak
from .conftest import ROOT, build_elsewhere, build_here

pytestmark = pytest.mark.artefacts


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@soak
def test_packages_are_the_same_from_another_folder_umask_and_time_zone(packages: Path, tmp_path: Path) -> None:
    here, elsewhere = contents(packages), contents(build_elsewhere(tmp_path, "packages"))
    assert len(here) == 6 + len(pythons_at_hand(ROOT / "speed"))
    assert sorted(here) == sorted(elsewhere)
    assert [name for name in here if here[name] != elsewhere[name]] == []


@soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", ["site", "sbom", "vectors"])
def test_another_part_is_the_same_from_another_folder_umask_and_time_zone(part: str, tmp_path: Path) -> None:
    here, elsewhere = contents(build_here(tmp_path / "here", part)), contents(build_elsewhere(tmp_path, part))
    assert len(here) == 2
    assert here == elsewhere


def test_folder_of_an_interrupted_build_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(build: Build) -> None:
        (build.target / "half.whl").touch()
        raise KeyboardInterrupt

    monkeypatch.setitem(PARTS, "packages", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            main(["packages", "--out", str(tmp_path / "dist")])


@pytest.mark.parametrize(("ci", "code"), [("false", 0), ("true", 1)])
def test_without_a_docker_engine_one_line_names_it_and_only_ci_fails(ci: str, code: int, tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/none"
    settings = {**os.environ, "CI": ci, "DOCKER_HOST": host}
    command = [sys.executable, "-m", "tools.artefacts", "image", "--out", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    about = f"image     left out: no Docker engine answers at DOCKER_HOST={host}"
    assert done.stdout.splitlines()[-1] == about
    assert contents(tmp_path / "dist") == {"SHA256SUMS": b""}
