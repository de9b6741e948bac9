"""Runs pytest alternately with and without a folder on the path; started by plugin.py with a Python that has pytest.

pytest is imported once and each run is a fork: starting Python and pytest costs ten times as much as the difference to
measure, and varies by more than it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys

import pytest
from _pytest.config import default_plugins

WARM_UP_ROUNDS = 3


def run_ms(folder: str | None) -> float:
    """Return the CPU milliseconds (user and system) of one run in the working directory."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if folder:
                sys.path.append(folder)
            code = int(pytest.main(["-q", "-p", "no:cacheprovider", "."]))
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"a run of pytest ended with {status}")
    return (used.ru_utime + used.ru_stime) * 1000


def main(folder: str, rounds: int) -> None:
    """Print the additional milliseconds of each round with the folder, as a JSON list."""
    for name in default_plugins:
        importlib.import_module(name if name.startswith("_pytest") else f"_pytest.{name}")
    gc.freeze()
    more_ms = []
    for _ in range(rounds + WARM_UP_ROUNDS):
        # The order is symmetric, so that drift cancels out.
        taken = [(place, run_ms(place)) for place in (None, folder, folder, None)]
        more_ms.append(sum(ms if place else -ms for place, ms in taken) / 2)
    print(json.dumps(more_ms[WARM_UP_ROUNDS:]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
