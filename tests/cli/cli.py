"""The command line in this process, and as a process of its own."""

import logging
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mockraft.cli import application
from typer.testing import CliRunner, Result

DEADLINE_S = 120.0


def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """`mockraft …` in this process; what a command sets up for the logs of its process ends with it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        return CliRunner().invoke(application(), list(map(str, arguments)), input=stdin, env={"COLUMNS": "200"})
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def one_line(text: str) -> str:
    """A text without the line breaks and frames of Typer's errors."""
    return re.sub(r"[\s│]+", " ", text)


def completed(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`mockraft …` as a process, until it ends."""
    command = [sys.executable, "-m", "mockraft", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=cwd, check=False)


@contextmanager
def started(
    *arguments: object, ready: str, command: Sequence[str] = ("-m", "mockraft"), stdin: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    """`mockraft …` as a process with its ready line, until the end of the block."""
    whole = [sys.executable, *command, *map(str, arguments)]
    with subprocess.Popen(whole, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(ready, line)
            assert found is not None, line or process.communicate()[1]
            yield process, found
        finally:
            process.kill()


@contextmanager
def in_a_terminal(*arguments: object) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[bytes]]]:
    """`mockraft …` as a process in a terminal of its own, and what it writes there until it ends."""
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 110))
    command = [sys.executable, "-m", "mockraft", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)

    def output() -> Iterator[bytes]:
        written = select.poll()  # not select(), which ends at descriptor 1023
        written.register(terminal, select.POLLIN)
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if written.poll(100):
                try:
                    yield os.read(terminal, 65536)
                except OSError:
                    return
            elif process.poll() is not None:
                return

    try:
        yield process, output()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
