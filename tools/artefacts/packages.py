"""The Python packages of mockraft, pytest-mockraft and mockraft-speed: an sdist, and the wheels built from it.

mockraft-speed has a wheel for each Python that it supports and that is at hand. auditwheel gives it the tag of the
oldest glibc that it runs with (manylinux), where this machine can make such a wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from .archives import write_tar
from .build import Build

_CLASSIFIER = "Programming Language :: Python :: 3."


def build(build: Build) -> None:
    """Write the sdists and wheels, and let twine check them."""
    for folder in (build.source, build.source / "pytest_mockraft"):
        build_wheel(build, build_sdist(build, folder), sys.executable, build.target)
    speed = build.source / "speed"
    sdist = build_sdist(build, speed)
    pythons = pythons_at_hand(speed)
    for version in supported(speed):
        if version in pythons:
            _build_binary_wheel(build, sdist, pythons[version])
        else:
            print(f"packages  left out: mockraft-speed for Python {version}, which is not at hand", flush=True)
    packages = [*build.target.glob("*.whl"), *build.target.glob("*.tar.gz")]
    build.python("twine", "check", "--strict", *sorted(packages))


def supported(project: Path) -> list[str]:
    """Return the versions of Python that a package names: 3.11 and others."""
    classifiers: list[str] = tomllib.loads((project / "pyproject.toml").read_text())["project"]["classifiers"]
    return [each.rpartition(" ")[2] for each in classifiers if each.startswith(_CLASSIFIER)]


def pythons_at_hand(project: Path) -> Mapping[str, str]:
    """Return the supported interpreters of this machine by version; this one is among them."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {own: sys.executable}
    for version in supported(project):
        command = [sys.executable, "-m", "uv", "python", "find", "--no-project", "--system", "--no-python-downloads"]
        done = subprocess.run([*command, version], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(version, done.stdout.strip())
    return found


def build_sdist(build: Build, project: Path) -> Path:
    """Write the sdist of a package."""
    with tempfile.TemporaryDirectory(dir=build.folder) as name:
        made, unpacked = Path(name, "made"), Path(name, "unpacked")
        _uv_build(build, "--sdist", project, made, sys.executable)
        (sdist,) = made.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        # setuptools writes the owner of the files, and the time at which it made PKG-INFO and setup.cfg.
        (folder,) = unpacked.iterdir()
        write_tar(folder, build.target / sdist.name, build.epoch_s)
    return build.target / sdist.name


def build_wheel(build: Build, sdist: Path, python: str, target: Path) -> None:
    """Write the wheel of an sdist."""
    _uv_build(build, "--wheel", sdist, target, python)


def _build_binary_wheel(build: Build, sdist: Path, python: str) -> None:
    with tempfile.TemporaryDirectory(dir=build.folder) as name:
        build_wheel(build, sdist, python, Path(name))
        (wheel,) = Path(name).glob("*.whl")
        try:
            build.python("auditwheel", "repair", "--wheel-dir", build.target, wheel)
        except subprocess.CalledProcessError as error:
            reason = error.stdout.strip().splitlines()[-1]
            print(f"packages  {wheel.name} is for this machine only: {reason}", flush=True)
            wheel.rename(build.target / wheel.name)


def _uv_build(build: Build, kind: str, source: Path, target: Path, python: str) -> None:
    options = ("--no-create-gitignore", "--build-constraints", build.source / "constraints.txt")
    build.python("uv", "build", kind, source, "--out-dir", target, *options, "--python", python)
