"""The documentation as a site, in an archive."""

from __future__ import annotations

from .archives import write_tar
from .build import Build


def build(build: Build) -> None:
    """Build the site strictly and archive it."""
    folder = build.folder / f"{build.name}-site"
    build.python("mkdocs", "build", "--strict", "--quiet", "--site-dir", folder)
    write_tar(folder, build.target / f"{folder.name}.tar.gz", build.epoch_s)
