"""Settings of the pytest plugin, and the doubles that run now. Each run of pytest imports it, so it imports nothing."""

from __future__ import annotations

import os
from typing import Any

import pytest

LIVE = pytest.StashKey[list[Any]]()
"""The doubles that run now, those of the session first."""

_YES_NO = "true|false|yes|no|on|off|1|0"
OPTIONS = {
    "journal_dir": ("", ".*", "folder for the journals of failing tests, as JSON lines and pcapng"),
    "journal_lines": ("40", r"\d+", "lines of the journal in the report of a failing test, 0 for none"),
    "strict": ("false", _YES_NO, "fail tests for requests that no stub was made for"),
    "assert_all_used": ("true", _YES_NO, "fail tests for stubs that were not used and faults that met nothing"),
    "lab": (os.environ.get("MOCKRAFT_LAB", ""), ".*", "folder of a trial of `mockraft lab`, which sets it"),
    "real_broker": ("skip", "skip|fail", "what tests with mockraft_real_broker do where there is no Java or Maven"),
}
"""By name: the default, what it may be, and what it is for."""


def setting(config: pytest.Config, name: str) -> str:
    """A setting of the plugin: of the command line, else of the ini file, else its default."""
    given = config.getoption(f"mockraft_{name}")
    return str(config.getini(f"mockraft_{name}") if given is None else given)
