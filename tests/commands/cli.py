"""The command line in this process, and as a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

from mockraft.cli import application
from typer.testing import CliRunner, Result

DEADLINE_S = 120.0


def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """`mockraft …` in this process."""
    return CliRunner().invoke(application(), list(map(str, arguments)), input=stdin, env={"COLUMNS": "200"})


def one_line(text: str) -> str:
    """A text without the line breaks and frames of Typer's errors."""
    return re.sub(r"[\s│]+", " ", text)


def completed(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`mockraft …` as a process, until it ends."""
    command = [sys.executable, "-m", "mockraft", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=cwd, check=False)
