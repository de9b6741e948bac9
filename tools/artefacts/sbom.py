"""A software bill of materials: what an environment with mockraft and all its extras contains."""

from __future__ import annotations

import sys

from .build import Build


def build(build: Build) -> None:
    """Install what the wheel and its extras need, as constraints.txt has it, and describe that."""
    environment = build.folder / "sbom"
    build.python("uv", "venv", "--quiet", "--python", sys.executable, environment)
    pyproject = build.source / "pyproject.toml"
    constraints = build.source / "constraints.txt"
    install = ("uv", "pip", "install", "--quiet", "--python", environment, "--constraint", constraints)
    build.python(*install, "--requirements", pyproject, "--all-extras", build.source / "speed")
    described = ("environment", "--pyproject", pyproject, "--mc-type", "library", "--output-reproducible")
    target = build.target / f"{build.name}.cdx.json"
    build.python("cyclonedx_py", *described, "--of", "JSON", "--output-file", target, environment)
