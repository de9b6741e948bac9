"""A soak's verdict, and a short soak: its load gets only answers that are expected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.budgets import soak

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MINUTES = 1
EXPECTED = (
    "answers that were not expected",
    "threads, last − first third",
    "open files, last − first third",
    "snapshots",
)
"""Bounds that hold in a short run, too: memory rises until the journal is full, and latencies are of a busy machine."""
LEVEL: dict[str, Any] = {
    "memory_mib": 90.0,
    "files": 40,
    "threads": 2,
    "log_mb": 0.1,
    "cpu_percent": 5.0,
    "p50_ms": 0.1,
    "p99_ms": 9.0,
}


def missed(change: Callable[[int], dict[str, Any]] = lambda _: {}) -> list[str]:
    """Return the bounds that a soak of an hour misses; `change` gives what differs in each minute."""
    from soaking.samples import Sample, gates

    rest: dict[str, Any] = {"snapshots": 60, "max_ms": 20.0, "peer_p99_ms": 1.0, "machine_load": 1.0, "unexpected": 0}
    samples = [Sample(**{"at_min": minute, **LEVEL, **rest, **change(minute)}) for minute in range(1, 61)]
    return [gate.what for gate in gates(samples, 60) if not gate.holds]


def test_a_level_soak_misses_no_bound() -> None:
    assert missed() == []
    assert missed(lambda minute: {"memory_mib": 60.0 + min(minute, 9)}) == [], "memory may rise in the warm-up"


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        (lambda minute: {"memory_mib": 90 + minute / 8}, "growth of resident memory after the warm-up, %"),
        (lambda minute: {"p99_ms": 9.0 if minute < 41 else 14.0}, "p99 of heartbeats, last ÷ first third"),
        (lambda minute: {"cpu_percent": 5 + minute / 30}, "CPU time of the controller, last ÷ first third"),
        (lambda minute: {"log_mb": 0.1 * minute}, "size of the log, last ÷ second third"),
        (lambda minute: {"files": 40 + minute // 4}, "open files, last − first third"),
        (lambda minute: {"threads": 2 + minute // 50}, "threads, last − first third"),
        (lambda minute: {"snapshots": 5}, "snapshots"),
        (lambda minute: {"unexpected": minute // 60}, "answers that were not expected"),
    ],
)
def test_each_bound_can_be_missed(change: Callable[[int], dict[str, Any]], bound: str) -> None:
    assert missed(change) == [bound]


@soak
def test_a_minute_of_mixed_load_has_only_expected_answers() -> None:
    from result import Gate

    command = [sys.executable, "soak.py", "--minutes", str(MINUTES), "--json"]
    done = subprocess.run(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    wrong = [gate for gate in result["gates"] if gate["what"] in EXPECTED and not Gate.from_tree(gate).holds]
    assert wrong == [], result["summary"]
    assert len(result["gates"]) > len(EXPECTED)
