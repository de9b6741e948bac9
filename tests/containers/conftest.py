"""A Docker engine, a base image made without any registry, and the image of this tree.

An engine that runs already is used; else, as root, Debian's is started for these tests alone and ended after them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.kafka.jars import cache_directory

ROOT = Path(__file__).parents[2]
BASE_IMAGE = "mockraft-test-base"
IMAGE = "mockraft-test"
CA_CERTIFICATES = Path("/usr/local/share/ca-certificates")
ENGINE_TIMEOUT_S = 60

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


def _answers() -> bool:
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Docker engine that answers; DOCKER_HOST says where, if it is ours. Ryuk is off: there is no image of it."""
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    if _answers():
        yield
        return
    folder = tmp_path_factory.mktemp("docker")
    socket = f"unix://{folder}/docker.sock"
    options = ("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid")
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(["dockerd", "-H", socket, *options], stdout=log, stderr=subprocess.STDOUT)
    os.environ["DOCKER_HOST"] = socket
    try:
        deadline = time.monotonic() + ENGINE_TIMEOUT_S
        while not _answers():
            said = (folder / "log").read_text()[-3000:]
            assert daemon.poll() is None, f"dockerd ended with {daemon.returncode}:\n{said}"
            if time.monotonic() > deadline:
                raise TimeoutError(f"dockerd does not answer:\n{said}")
            time.sleep(0.2)
        yield
    finally:
        del os.environ["DOCKER_HOST"]
        daemon.terminate()
        daemon.wait(60)
        # dockerd leaves this mounted, and nobody could remove the folder.
        subprocess.run(["umount", f"{folder}/exec/netns/default"], capture_output=True, check=False)


@pytest.fixture(scope="session")
def base_image(engine: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Debian with Python, by debootstrap: what python:3-slim is where registries can be reached.

    It has this machine's own certificate authorities, so that pip reaches the package index from where it runs.
    """
    if run("docker", "images", "--quiet", BASE_IMAGE).strip():
        return BASE_IMAGE
    certificates = sorted(CA_CERTIFICATES.glob("*.crt"))
    key = hashlib.sha256(b"".join([Path(__file__).read_bytes(), *(each.read_bytes() for each in certificates)]))
    archive = cache_directory() / f"test-base-image-{key.hexdigest()[:12]}.tar"
    if not archive.is_file():
        _make_base(archive, tmp_path_factory.mktemp("base") / "root", certificates)
    run("docker", "import", "--change", "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt", str(archive), BASE_IMAGE)
    return BASE_IMAGE


def _make_base(archive: Path, root: Path, certificates: list[Path]) -> None:
    """Write the archive of the base image: the cache keeps it, since debootstrap takes a minute."""
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm", str(root))
    for folder in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(root / folder)
    for certificate in certificates:
        shutil.copy(certificate, root / CA_CERTIFICATES.relative_to("/"))
    run("chroot", str(root), "update-ca-certificates")
    made = root.with_suffix(".tar")
    run("tar", "-C", str(root), "-cf", str(made), ".")
    archive.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, archive)
    shutil.rmtree(root)


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
