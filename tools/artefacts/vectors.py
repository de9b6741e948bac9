"""Vectors for codecs of every supported Kafka release, made by Kafka's classes, in an archive."""

from __future__ import annotations

import subprocess

from mockraft.cli.exit_codes import ExitCode

from .archives import write_tar
from .build import Build, NotAtHandError


def build(build: Build) -> None:
    """Make the vectors and archive them. NotAtHandError without Java, Maven or Kafka's jars."""
    folder = build.folder / f"{build.name}-vectors"
    try:
        build.python("mockraft", "vectors", folder, "--release", "all")
    except subprocess.CalledProcessError as error:
        if error.returncode == ExitCode.MISSING:
            raise NotAtHandError(error.stdout.strip()) from None
        raise
    write_tar(folder, build.target / f"{folder.name}.tar.xz", build.epoch_s)
