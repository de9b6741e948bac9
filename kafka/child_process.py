"""One child process: start it, wait for what it prints, end it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class KafkaProcessError(RuntimeError):
    """A process did not do what was waited for; the message ends with the last lines of its log."""


def free_port(in_a_row: int = 1) -> int:
    """A TCP port of 127.0.0.1 that is free and was given to no other call, on Linux; the first of so many in a row.

    It lies below the range the system takes the ports of outgoing connections from: a client that keeps trying to
    reach a stopped broker cannot take the broker's port, or connect to itself through it.
    """
    rng = random.SystemRandom()
    while True:
        first = rng.randrange(20_000, 32_000)
        with contextlib.ExitStack() as unused:
            bound = [unused.enter_context(socket.socket()) for _ in range(in_a_row)]
            try:
                for port, each in enumerate(bound, first):
                    each.bind(("127.0.0.1", port))
            except OSError:
                continue
            if sys.platform == "linux":  # lets a server with SO_REUSEADDR, as all of ours, bind beside them
                for each in bound:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    each.detach()  # never listens, and keeps the port from other processes until this one ends
            return first


def wait_until(condition: Callable[[], T | None], timeout_s: float, what: str) -> T:
    """Call ``condition`` until it gives something true, and return that. Raises TimeoutError(``what``)."""
    deadline = time.monotonic() + timeout_s
    while True:
        if outcome := condition():
            return outcome
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.02)


def last_lines(log: str) -> str:
    """The end of a log as lines to put below an error."""
    return "\n  | " + "\n  | ".join(log.splitlines()[-25:])


_KILL_UNLESS_ENDED = 'read -r ended || kill -9 "-$1"'
"""A shell's program: wait for a line on standard input; at its end without one, kill the process group `$1`."""


class ChildProcess:
    """One child process in a session of its own (a Ctrl-C in the terminal does not reach it), its output in a file.

    It ends with this process, even if that is killed: a shell waits for the end of a pipe whose other end is here.
    """

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id of the newest start."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """True if the process is alive."""
        return self._process is not None and self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """Exit code (negative: the signal's number); None while it runs or before its start."""
        code = None if self._process is None else self._process.poll()
        if code is not None:
            self._dismiss_guard()
        return code

    @property
    def whole_log(self) -> str:
        """Output of all starts of this process."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def log(self) -> str:
        """Output of the newest start."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def launch(self, command: Sequence[str]) -> None:
        """Start the process; its output is appended to the log file."""
        assert not self.running, f"{self.name} runs already"
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        guard = ["sh", "-c", _KILL_UNLESS_ENDED, "sh", str(self.pid)]
        self._guard = subprocess.Popen(
            guard, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(b"ended\n")

    def wait_for_log(self, pattern: str, timeout_s: float = 30, what: str = "") -> re.Match[str]:
        """Wait until the newest start's log has a match of the regular expression, and return the first.

        Raises KafkaProcessError, with ``what`` or the expression, if the process ends without it or the time is over.
        """
        deadline, what = time.monotonic() + timeout_s, what or repr(pattern)
        while True:
            ended = not self.running
            if found := re.search(pattern, self.log):
                return found
            if ended:
                raise KafkaProcessError(
                    f"{self.name} ended with exit code {self.exit_code} before {what}{self.last_lines()}"
                )
            if time.monotonic() > deadline:
                raise KafkaProcessError(f"{self.name}: no {what} in {timeout_s:g} s{self.last_lines()}")
            time.sleep(0.02)

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM) and return at once."""
        if self.running:
            os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait for the end of the process and return its exit code. Raises KafkaProcessError at the timeout."""
        assert self._process is not None, f"{self.name} was not started"
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise KafkaProcessError(f"{self.name} still runs after {timeout_s:g} s{self.last_lines()}") from None
        self._dismiss_guard()
        return code

    def stop(self, timeout_s: float = 30) -> int:
        """SIGTERM, wait, and return the exit code (143 for a JVM that closed cleanly)."""
        self.terminate()
        return self.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL the process, if it runs, and wait for its end; no error when it was never started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._dismiss_guard()

    def last_lines(self) -> str:
        """The end of the newest start's log as lines to put below an error."""
        return last_lines(self.log)
