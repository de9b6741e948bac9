"""A Docker engine, a base image made without any registry, and the image of this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.artefacts.base_image import debian
from tools.artefacts.engine import engine as docker_engine

ROOT = Path(__file__).parents[2]
IMAGE = "mockraft-test"

_PROGRAMS = ("dockerd", "debootstrap", "docker-compose", "java")
_not_run: list[str] = []


def run(*command: str, **environment: str) -> str:
    """Run a program and give its output; what it printed is in the error."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the programs, or root for them, the others run; under CI they must be there."""
    ours = [item for item in items if item.get_closest_marker("containers")]
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if os.geteuid() != 0:
        missing.append("root")
    if ours and missing and os.environ.get("CI") != "true":
        _not_run.append(f"{len(ours)} tests of the container image were left out: {', '.join(missing)} not at hand")
        items[:] = [item for item in items if item not in ours]
        config.hook.pytest_deselected(items=ours)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _not_run:
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """A Docker engine that answers; DOCKER_HOST names it, if it is ours. Ryuk is off: there is no image of it."""
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    with docker_engine():
        yield


@pytest.fixture(scope="session")
def base_image(engine: None) -> str:
    """Debian with Python, by debootstrap: what python:3-slim is where registries can be reached."""
    return debian()


@pytest.fixture(scope="session")
def image(base_image: str) -> str:
    """The image of this tree."""
    return _build(base_image, IMAGE)


@pytest.fixture(scope="session")
def published_image(image: str) -> None:
    """The image of this tree under the name that `MockraftContainer` uses."""
    run("docker", "tag", image, "mockraft")


@pytest.fixture(scope="session")
def captures_image(base_image: str) -> str:
    """The image of this tree that reads captures, too."""
    return _build(base_image, f"{IMAGE}-captures", "--build-arg", "EXTRAS=admin,captures")


def _build(base_image: str, name: str, *options: str) -> str:
    dockerfile = str(ROOT / "docker" / "Dockerfile")
    build = ("docker", "build", "--network", "host", "--build-arg", f"BASE={base_image}", *options)
    run(*build, "--file", dockerfile, "--tag", name, str(ROOT))
    return name
