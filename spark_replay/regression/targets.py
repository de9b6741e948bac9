"""Targets of a replay: a running controller, or a fresh process for each session."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mockraft.files.given_files import TEXT_BYTES_MAX, read_file
from mockraft.spark_replay.endpoints import Endpoint as Address
from mockraft.spark_replay.regression.send_order import CAUSAL, Survey

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10
WHEEL = ".whl"
_READY = re.compile(r"^mockraft ready bootstrap=(\S+):(\d+)(?:.* admin=(\S+))?", re.MULTILINE)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]*")


class TargetError(RuntimeError):
    """Raised if a target cannot be started or installed. The message is for users."""


class Opened(NamedTuple):
    """The address for a session's requests; `admin` is the URL of its admin API if the clock is virtual."""

    host: str
    port: int
    admin: str | None = None


class Endpoint(Address):
    """A controller that is already running. All sessions share it, and it must receive each request once."""

    is_shared = True

    @property
    def name(self) -> str:
        """`host:port`."""
        return str(self)

    @contextmanager
    def open(self, known: Survey, order: str) -> Iterator[Opened]:
        """Yield the same address for every session."""
        yield Opened(self.host, self.port)


class FreshProcess:
    """A process for each session: an empty controller with the captured one's node id, release and features.

    `release` is another Kafka release than the captured one.

    `command` starts it, prints mockraft's ready line and accepts `--node-id`, `--release` and `--metadata-version`. A
    `version` of mockraft, or the path of a wheel, is installed first on the machine that runs the process.
    """

    is_shared = False

    def __init__(self, command: Sequence[str], *, version: str | None = None, release: str | None = None) -> None:
        self.command = tuple(command)
        self.version = version
        self.release = release

    @property
    def name(self) -> str:
        """`mockraft`, `mockraft --release RELEASE`, `mockraft==VERSION` or a wheel's file name."""
        if self.version is None:
            return "mockraft" if self.release is None else f"mockraft --release {self.release}"
        return Path(self.version).name if self.version.endswith(WHEEL) else f"mockraft=={self.version}"

    @contextmanager
    def open(self, known: Survey, order: str) -> Iterator[Opened]:
        """Start the process, and stop it when the session is over."""
        command = [*self.command]
        if self.version is not None:
            command[0] = str(install(self.version))
        if known.node_id is not None:
            command += ["--node-id", str(known.node_id)]
        if (release := self.release or known.release) is not None:
            command += ["--release", release]
        if known.metadata_version is not None:
            command += ["--metadata-version", str(known.metadata_version)]
        has_admin = self._is_this_mockraft() and None not in map(importlib.util.find_spec, ("fastapi", "uvicorn"))
        skips = bool(known.absences) and order == CAUSAL and has_admin
        if skips:
            command += ["--virtual-clock", "--admin-port", "0"]
        ends_with_this = self._is_this_mockraft()
        if ends_with_this:
            command.append("--until-stdin-ends")
        with tempfile.TemporaryFile() as log:
            stdin = subprocess.PIPE if ends_with_this else subprocess.DEVNULL
            try:
                process = subprocess.Popen(command, stdin=stdin, stdout=log, stderr=log)
            except OSError as error:
                raise TargetError(f"cannot start {command[0]}: {error.strerror}") from None
            try:
                opened = _wait_until_ready(process, log.fileno(), command)
                yield opened if skips else opened._replace(admin=None)
            finally:
                _end(process)

    def _is_this_mockraft(self) -> bool:
        return self.version is None and self.command[:3] == (sys.executable, "-m", "mockraft")


Target = Endpoint | FreshProcess
"""A target of replayed requests; pickled to Spark's workers, so made of plain values."""


def _wait_until_ready(process: subprocess.Popen[bytes], log: int, command: Sequence[str]) -> Opened:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        is_over = process.poll() is not None or time.monotonic() > deadline_s
        output = os.pread(log, 1 << 16, 0).decode(errors="replace")
        if (ready := _READY.search(output)) is not None:
            return Opened(ready[1], int(ready[2]), ready[3])
        if is_over:
            last = (output.strip().splitlines() or ["no output"])[-1]
            raise TargetError(f"{' '.join(command)} did not become ready: {last}")
        time.sleep(0.005)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()


def install(version: str, folder: Path | None = None) -> Path:
    """Return the Python of an environment with a version of mockraft, or a wheel, created by pip if needed.

    Raises TargetError.
    """
    name, requirement = _to_install(version)
    folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mockraft" / "versions"
    home = folder / name
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if (home / "installed").exists():
        return python
    folder.mkdir(parents=True, exist_ok=True)
    has_pip = importlib.util.find_spec("pip") is not None
    venv.create(home, with_pip=not has_pip, clear=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python)] if has_pip else [str(python), "-m", "pip"]
    command = [*pip, "install", "--quiet", "--disable-pip-version-check", requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")] or ["no output of pip"]
        raise TargetError(f"cannot install {requirement}: {errors[-1]}; use --target-python")
    (home / "installed").touch()
    return python


def _to_install(version: str) -> tuple[str, str]:
    """Return a name for the environment, and what pip installs into it. Raises TargetError."""
    if not version.endswith(WHEEL):
        if not _VERSION.fullmatch(version):
            raise TargetError(f"{version!r} is not a version; use mockraft==1.2, or the path of a wheel")
        return version, f"mockraft=={version}"
    wheel = Path(version)
    try:
        content = read_file(wheel, TEXT_BYTES_MAX)
    except OSError as error:
        raise TargetError(f"cannot read {version}: {error.strerror}") from None
    # A wheel that is built again has the same name.
    return f"{wheel.stem}-{hashlib.sha256(content).hexdigest()[:12]}", str(wheel)
