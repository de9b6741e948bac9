"""The Python packages of mockraft, pytest-mockraft and mockraft-speed: an sdist, and the wheel built from it."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from .archives import write_tar_gz
from .build import Build


def build(build: Build) -> None:
    """Write the sdists and wheels, and let twine check them. The wheel of mockraft-speed is for this Python."""
    for folder in (build.source, build.source / "pytest_mockraft", build.source / "speed"):
        _build_package(build, folder)
    packages = [*build.target.glob("*.whl"), *build.target.glob("*.tar.gz")]
    build.python("twine", "check", "--strict", *sorted(packages))


def _build_package(build: Build, project: Path) -> None:
    with tempfile.TemporaryDirectory(dir=build.folder) as name:
        made, unpacked = Path(name, "made"), Path(name, "unpacked")
        _uv_build(build, "--sdist", project, made)
        (sdist,) = made.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        # setuptools writes the owner of the files, and the time at which it made PKG-INFO and setup.cfg.
        (folder,) = unpacked.iterdir()
        write_tar_gz(folder, build.target / sdist.name, build.epoch_s)
        _uv_build(build, "--wheel", build.target / sdist.name, build.target)


def _uv_build(build: Build, kind: str, source: Path, target: Path) -> None:
    options = ("--no-create-gitignore", "--build-constraints", build.source / "constraints.txt")
    build.python("uv", "build", kind, source, "--out-dir", target, *options, "--python", sys.executable)
