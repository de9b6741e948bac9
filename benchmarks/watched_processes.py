"""Processes that are measured from outside: how long they run, what processor time and memory they and theirs take."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

SAMPLE_S = 0.1
JOBS = Path(__file__).with_name("frame_jobs.py")


class TooLateError(Exception):
    """Something had not ended when its time was over; it was killed."""


class Taken(NamedTuple):
    """The cost and output of a command."""

    seconds: float
    cpu_seconds: float
    rss_bytes: int
    output: str
    worker_bytes: int
    """Resident memory of the largest Python process below it, at most."""


class PeakMemory:
    """The largest resident memory of the children of a process, by kind: `python`, `java` or itself."""

    def __init__(self, pid: int) -> None:
        self.peaks: dict[str, int] = {}
        self._root = psutil.Process(pid)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """Start again from nothing."""
        self.peaks = {}

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            try:
                self._see("itself", self._root)
                for child in self._root.children(recursive=True):
                    # What a JVM starts has its memory until it is another program.
                    kind = child.name().rstrip(".0123456789")
                    if kind in ("java", "python"):
                        self._see(kind, child)
            except psutil.NoSuchProcess:
                continue

    def _see(self, kind: str, process: psutil.Process) -> None:
        self.peaks[kind] = max(self.peaks.get(kind, 0), process.memory_info().rss)


@contextmanager
def compiled_modules() -> Iterator[None]:
    """Let Python processes keep and use compiled modules, as an installed package does."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def kill_tree(pid: int) -> None:
    """End a process and all that it started."""
    kill_children(pid)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).kill()


def kill_children(pid: int) -> None:
    """End all that a process started."""
    with suppress(psutil.NoSuchProcess):
        for each in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def run(command: Sequence[str], timeout_s: float) -> Taken:
    """Run a command to its end; TooLateError, CalledProcessError."""
    began, cpu_before = time.perf_counter(), _cpu_of_ended_children()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    memory = PeakMemory(process.pid)
    try:
        output = None
        while output is None:
            # A moment at a time: a signal right before a wait is noticed after it.
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=SAMPLE_S)
            seconds = time.perf_counter() - began
            if output is None and seconds > max(timeout_s, 1):
                kill_tree(process.pid)
                process.communicate()
                raise TooLateError(command[0])
    finally:
        memory.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Taken(
        seconds,
        _cpu_of_ended_children() - cpu_before,
        memory.peaks.get("itself", 0),
        output,
        memory.peaks.get("python", 0),
    )


def _cpu_of_ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class SparkSession:
    """A Spark session in a process of its own, on the cores that `cpus` names (`0` or `0,1`)."""

    def __init__(self, cpus: str, events: Path, log: Path) -> None:
        master = f"local[{len(cpus.split(','))}]"
        command = ["taskset", "-c", cpus, sys.executable, str(JOBS), "session", master, str(events)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.memory = PeakMemory(self._process.pid)
        self._log = log

    def wait_until_ready(self, timeout_s: float) -> None:
        self._answer("ready", timeout_s)

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor time so far of the JVM (`java`) and of Python workers (`python`)."""
        found = {"java": 0.0, "python": 0.0}
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                kind, times = child.name().rstrip(".0123456789"), child.cpu_times()
                if kind in found:
                    found[kind] += times.user + times.system
                    # Workers are children of a daemon, which has the times of those that ended.
                    found[kind] += times.children_user + times.children_system if kind == "python" else 0
        return found

    def ask(self, job: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Do a job: its seconds and rows; TooLateError, RuntimeError with what Spark said."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer("seconds", timeout_s)

    def _answer(self, key: str, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            kill_tree(self._process.pid)

        timer = threading.Timer(max(timeout_s, 1), end)
        timer.start()
        try:
            for line in self._process.stdout:
                if line.startswith(f'{{"{key}"'):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
        finally:
            timer.cancel()
        if is_late.is_set():
            raise TooLateError("Spark")
        raise RuntimeError(f"the Spark session ended: {self._log.read_text()[-2000:]}")

    def close(self) -> None:
        """End it and all that it started."""
        self.memory.stop()
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            kill_tree(self._process.pid)
            self._process.wait()
