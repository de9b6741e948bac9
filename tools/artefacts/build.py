"""One run of `make dist`: the source, where the files go, and how programs are run."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


class NotAtHandError(Exception):
    """A part cannot be built on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Build:
    """The folders and settings that the parts share."""

    folder: Path
    """Scratch space; `source` in it is the copy of the source."""
    target: Path
    epoch_s: int
    """The modification time of every file that is written, in seconds since 1970."""
    base_image: str | None = None
    """The base image of the container image; None: the published one, or one made here."""

    @property
    def source(self) -> Path:
        """The copy of the source."""
        return self.folder / "source"

    @cached_property
    def project(self) -> dict[str, dict[str, object]]:
        """The table `project` of mockraft's pyproject.toml."""
        read: dict[str, dict[str, object]] = tomllib.loads((self.source / "pyproject.toml").read_text())["project"]
        return read

    @property
    def name(self) -> str:
        """`mockraft-` and the version: how the names of files begin."""
        return f"mockraft-{self.project['version']}"

    def run(self, *command: str | Path) -> str:
        """Run a program on the source with settings that the caller's machine does not change; return its output.

        Raises CalledProcessError, with the output in `stdout`.
        """
        settings = {
            "SOURCE_DATE_EPOCH": str(self.epoch_s),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "NO_MKDOCS_2_WARNING": "1",
        }
        return subprocess.run(
            command,
            cwd=self.source,
            env={**os.environ, **settings},
            umask=0o022,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout

    def python(self, module: str, *arguments: str | Path) -> str:
        """Run a module of this interpreter, as `run`."""
        return self.run(sys.executable, "-m", module, *arguments)
