"""A Docker engine: the one that answers, or one started for as long as it is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .build import NotAtHandError

START_TIMEOUT_S = 60


def answers() -> bool:
    """Return whether `docker info` reaches an engine."""
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@contextmanager
def engine() -> Iterator[None]:
    """Use the engine that answers; else, as root, start dockerd, with DOCKER_HOST leading to it, and end it afterwards.

    Raises NotAtHandError without either, and if dockerd does not start. A DOCKER_HOST of the caller is never replaced.
    """
    if answers():
        yield
        return
    if host := os.environ.get("DOCKER_HOST"):
        raise NotAtHandError(f"no Docker engine answers at DOCKER_HOST={host}")
    if os.geteuid() != 0 or None in (shutil.which("docker"), shutil.which("dockerd")):
        raise NotAtHandError("no Docker engine answers (`docker info`); root starts one where dockerd is installed")
    folder = Path(tempfile.mkdtemp(prefix="mockraft-docker-"))
    socket = f"unix://{folder}/docker.sock"
    options = ("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid")
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(["dockerd", "-H", socket, *options], stdout=log, stderr=subprocess.STDOUT)
    os.environ["DOCKER_HOST"] = socket
    try:
        _wait_until_started(daemon, folder / "log")
        yield
    finally:
        del os.environ["DOCKER_HOST"]
        daemon.terminate()
        daemon.wait(60)
        # dockerd leaves this mounted, and nobody could remove the folder.
        subprocess.run(["umount", f"{folder}/exec/netns/default"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_started(daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers():
        if daemon.poll() is not None or time.monotonic() > deadline:
            last = (log.read_text().splitlines() or ["no output"])[-1]
            raise NotAtHandError(f"dockerd does not start: {last}")
        time.sleep(0.2)
