"""The command line in this process, and as a process of its own."""

import gc
import io
import logging
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from mockraft.cli import main

DEADLINE_S = 120.0


class Result(NamedTuple):
    """Output of a command, and how it ended."""

    exit_code: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        """Its standard output as text."""
        return self.stdout_bytes.decode()

    @property
    def output(self) -> str:
        """All that it wrote, errors at the end."""
        return self.stdout + self.stderr


def invoke(*arguments: object, stdin: str | bytes = b"", environment: Mapping[str, str] | None = None) -> Result:
    """`mockraft …` in this process; what a command sets up for the logs of its process ends with it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    given = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
    written, errors = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in (given, written, errors)]
    code = 0
    with (
        patch.dict(os.environ, {"COLUMNS": "200", **(environment or {})}),
        patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
    ):
        try:
            main(list(map(str, arguments)))
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
            gc.enable()  # serve disables it while it starts
    return Result(code, written.getvalue(), errors.getvalue().decode())


def one_line(text: str) -> str:
    """A text without line breaks."""
    return re.sub(r"\s+", " ", text)


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
