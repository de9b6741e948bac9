"""Releases built by `make dist`'s own program: here, and from a copy elsewhere under other settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.artefacts.source import commit_time_s, copy_source

ROOT = Path(__file__).parents[3]


def run(*command: str | Path, cwd: Path, umask: int = -1, **environment: str) -> str:
    """Run a program and return its output, which is also in the error."""
    done = subprocess.run(
        command, cwd=cwd, umask=umask, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_here(target: Path, *parts: str) -> Path:
    """Build parts in this tree."""
    run(sys.executable, "-m", "tools.artefacts", *parts, "--out", target, cwd=ROOT, umask=0o022, TZ="UTC")
    return target


def build_elsewhere(folder: Path, *parts: str) -> Path:
    """Build parts in a copy in another folder, of other modes and times, under another umask and time zone."""
    copy = folder / "another folder"
    copy_source(ROOT, copy, 1_000_000_000)
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    run("git", "init", "--quiet", cwd=copy)
    settings = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(commit_time_s(ROOT))}
    run(sys.executable, "-m", "tools.artefacts", *parts, "--out", folder / "dist", cwd=copy, umask=0o077, **settings)
    return folder / "dist"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels and sdists of this tree."""
    return build_here(tmp_path_factory.mktemp("here") / "dist", "packages")


@pytest.fixture
def environment(tmp_path: Path, packages: Path) -> Callable[..., Path]:
    """A function that makes an empty virtual environment, installs these, and returns its folder of programs.

    What is not published, it finds among the packages of this tree.
    """

    def make(*requirements: str | Path) -> Path:
        folder = tmp_path / "environment"
        uv = (sys.executable, "-m", "uv")
        if not folder.exists():
            run(*uv, "venv", "--python", sys.executable, folder, cwd=tmp_path)
        pinned = ("--constraint", ROOT / "constraints.txt", "--build-constraint", ROOT / "constraints.txt")
        found = ("--find-links", packages)
        run(*uv, "pip", "install", "--python", folder, *pinned, *found, *requirements, cwd=tmp_path)
        return folder / "bin"

    return make
