"""Load on a controller: prepared frames, and one request in flight on each connection, as brokers have.

load/load.c sends them: the load shares the cores with the controller, and Python would be at its own limit before the
controller is. It is compiled with the C compiler at hand (CC, default cc) when it is first used. `ceiling` measures
peers that answer at once: load/echo.c, the load's own limit, and load/echo.py, that of pure Python.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mockraft.wire.connection import read_response
from mockraft.wire.message import Message
from result import ROOT

from tools.blocking_connection import BlockingConnection

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")

SOURCES = Path(__file__).with_name("load")
BUILT = ROOT / "build" / "benchmarks"
# Size, correlation id, tags and throttle time come first in a heartbeat, registration or fetch response.
ERROR_AT = 13
# There are no tags and no throttle time before it in a response to ApiVersions.
API_VERSIONS_ERROR_AT = 8
HEARTBEAT_ANSWER_BYTES = 20


class Load(NamedTuple):
    """Frames for a number of connections.

    Connection i of N repeats the frames i, i + N, …, or sends each one time (`once`). `per_s` is a rate (0: as fast as
    answers arrive), `error_at` where an answer has its error code, `answer_bytes` the size of each (0: any).
    """

    name: str
    frames: Sequence[bytes]
    connections: int
    per_s: int = 0
    once: bool = False
    error_at: int = ERROR_AT
    answer_bytes: int = 0


class Measured(NamedTuple):
    """The result of one run: answers, and how many had an error code, or another id or size than expected.

    `cpu_s` is CPU time of the controller, `load_cpu_s` that of the load. With a rate, latencies begin when a request
    was due.
    """

    answers: int
    errors: int
    wrong: int
    seconds: float
    cpu_s: float
    load_cpu_s: float
    p50_ms: float
    p99_ms: float
    max_ms: float

    @property
    def per_s(self) -> float:
        return self.answers / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds of the controller for one answer."""
        return 1e6 * self.cpu_s / self.answers


@functools.cache
def program(name: str) -> str:
    """Return the path of load or echo, compiled if its source is newer."""
    source, built = SOURCES / f"{name}.c", BUILT / name
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        BUILT.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC", "cc")
        if shutil.which(compiler) is None:
            raise SystemExit(f"the load needs a C compiler, and {compiler} is not installed (CC names another one)")
        subprocess.run([compiler, "-O2", "-Wall", "-o", str(built), str(source)], check=True)
    return str(built)


def arguments(
    address: tuple[str, int], pid: int, load: Load, frames: str, seconds: float, warm_up_s: float
) -> list[str]:
    """Return the command line of load.c."""
    values = {
        "frames": frames,
        "connections": load.connections,
        "seconds": seconds,
        "warm-up": warm_up_s,
        "rate": load.per_s,
        "error-at": load.error_at,
        "answer-bytes": load.answer_bytes,
        "pid": pid,
    }
    options = [f"--{name}={value}" for name, value in values.items()]
    return [program("load"), address[0], str(address[1]), *options, *(["--once"] if load.once else [])]


class RunningLoad:
    """A load that runs beside something else."""

    def __init__(self, address: tuple[str, int], pid: int, load: Load, seconds: float, warm_up_s: float = 0.0) -> None:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"".join(load.frames))
        self._frames = Path(file.name)
        self._name = load.name
        command = arguments(address, pid, load, file.name, seconds, warm_up_s)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def stop(self) -> Measured:
        """End it now."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> Measured:
        """Wait until its time or its frames end; RuntimeError if it failed or an answer was not for its request."""
        try:
            output, _ = self._process.communicate()
        finally:
            self._process.kill()
            self._frames.unlink()
        if self._process.returncode:
            raise RuntimeError(f"{self._name}: the load ended with {self._process.returncode}")
        measured = Measured(**json.loads(output))
        if measured.wrong:
            raise RuntimeError(f"{self._name}: {measured.wrong} answers had another correlation id or size")
        return measured


def run(address: tuple[str, int], pid: int, load: Load, seconds: float = 3600.0, warm_up_s: float = 0.0) -> Measured:
    """Send until the time or the frames end, and measure what comes after the warm-up."""
    return RunningLoad(address, pid, load, seconds, warm_up_s).wait()


@contextmanager
def echo(answer_bytes: int, *, in_python: bool = False) -> Iterator[tuple[tuple[str, int], int]]:
    """Start echo.c, or echo.py; its address and process id."""
    peer = [sys.executable, str(SOURCES / "echo.py")] if in_python else [program("echo")]
    with subprocess.Popen(
        [*peer, str(answer_bytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        yield (host, int(port)), process.pid
        process.stdin.close()


def ceiling(load: Load, seconds: float, *, in_python: bool = False) -> Measured:
    """Measure a peer that answers each request at once, with as many bytes as the load expects."""
    with echo(load.answer_bytes, in_python=in_python) as (address, pid):
        return run(address, pid, load, seconds, seconds / 5)


class TimedConnection(BlockingConnection):
    """A blocking connection that measures how long its responses take."""

    def __init__(self, address: tuple[str, int], timeout_s: float | None = None) -> None:
        super().__init__(address, "benchmark", timeout_s)

    def timed(self, message: RequestMessage[R], version: int) -> tuple[R, float]:
        """Send a request; return its response, and the seconds from the first byte sent to the last one received."""
        assert isinstance(message, Message)
        frame = self.encode(message, version)
        began = time.perf_counter()
        self.socket.sendall(frame)
        answer = self.receive_frame()
        taken_s = time.perf_counter() - began
        response: R = read_response(answer, message.api_key, version)
        return response, taken_s
