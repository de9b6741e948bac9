"""Tests that need more than Python run where somebody asks for them: by path, or with `-m`."""

from pathlib import Path

import pytest

TOOLS = ("accelerated", "artefacts", "browser", "containers", "languages", "programs", "real_kafka", "spark")
"""Marks of tests that need something which `.venv` does not have."""

TESTS = Path(__file__).parent
FOLDERS = tuple(
    TESTS / folder
    for folder in (
        "admin_page",
        "containers",
        "incidents",
        "languages",
        "real_kafka",
        "spark",
        "speed",
        "tools/artefacts",
    )
)
"""Folders whose tests all need tools: who names one of them, or a folder below it, has them."""


def needs_tools_nobody_asked_for(config: pytest.Config, item: pytest.Item) -> bool:
    """Return True if the test needs a tool, and neither `-m` nor a path on the command line asks for such tests."""
    if config.option.markexpr or not any(map(item.get_closest_marker, TOOLS)):
        return False
    named = ((config.invocation_params.dir / each.partition("::")[0]).resolve() for each in config.args)
    return not any(asks_for(path, item.path) for path in named)


def asks_for(named: Path, test: Path) -> bool:
    """Return True if a path of the command line asks for the tools of a test's file: a file does, and some folders."""
    return test.is_relative_to(named) and (named == test or any(map(named.is_relative_to, FOLDERS)))
