"""The image of a release: the same archive from each build, and Docker loads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.artefacts import image
from tools.artefacts.build import Build
from tools.artefacts.source import commit_time_s, copy_source

from ..budgets import soak
from .conftest import ROOT, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]


def built(folder: Path, base_image: str, epoch_s: int) -> Path:
    copy_source(ROOT, folder / "source", epoch_s)
    (folder / "target").mkdir()
    image.build(Build(folder, folder / "target", epoch_s, base_image))
    (archive,) = (folder / "target").iterdir()
    return archive


@soak
def test_image_is_the_same_when_built_again_and_runs(base_image: str, tmp_path: Path) -> None:
    epoch_s = commit_time_s(ROOT)
    first, second = (built(tmp_path / name, base_image, epoch_s) for name in ("first", "second"))
    assert subprocess.run(["cmp", first, second], check=False).returncode == 0
    name = run("docker", "load", "--input", str(first)).split()[-1]
    assert run("docker", "run", "--rm", name, "--version").startswith(f"{name.replace(':', ' ')}, ")
