"""`make version`: write the version of pyproject.toml into the other files that name it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PARENT = r"<artifactId>mockraft-parent</artifactId>\s*<version>(.*?)</version>"
PLACES = (
    ("pytest_mockraft/pyproject.toml", r'^version = "(.*?)"$'),
    ("pytest_mockraft/pyproject.toml", r'"mockraft~=(.*?)"'),
    ("pyproject.toml", r'"mockraft-speed==(.*?);'),
    ("speed/pyproject.toml", r'^version = "(.*?)"$'),
    ("speed/mockraft_speed/__init__.py", r'^__version__ = "(.*?)"$'),
    ("clients/openapi.json", r'"version": "(.*?)"'),
    ("clients/java/README.md", r"`io\.github\.mockraft:mockraft-junit:(.*?)`"),
    ("clients/java/README.md", r"`io\.github\.mockraft:mockraft-testcontainers:(.*?)`"),
    ("clients/java/pom.xml", _PARENT),
    ("clients/java/junit/pom.xml", _PARENT),
    ("clients/java/testcontainers/pom.xml", _PARENT),
    ("examples/junit/pom.xml", r"<artifactId>mockraft-junit</artifactId>\s*<version>(.*?)</version>"),
)
"""Files that name the version, and expressions whose group it is."""


def version() -> str:
    """Return the version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def named_in(text: str, expression: str) -> re.Match[str]:
    """Return the place of the version in a text; ValueError if there is none."""
    found = re.search(expression, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"nothing is like {expression}")
    return found


def main() -> None:
    """Write the version into all places."""
    for name, expression in PLACES:
        text = (ROOT / name).read_text()
        found = named_in(text, expression)
        (ROOT / name).write_text(text[: found.start(1)] + version() + text[found.end(1) :])


if __name__ == "__main__":
    main()
