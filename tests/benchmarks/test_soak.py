"""A short soak runs to its end, and its load gets only answers that are expected."""

import json
import subprocess
import sys
from pathlib import Path

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


@soak
def test_a_minute_of_mixed_load_has_only_expected_answers() -> None:
    command = [sys.executable, "soak.py", "--minutes", str(MINUTES), "--json"]
    done = subprocess.run(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    bounds = {gate["what"]: gate for gate in result["gates"]}
    for name in EXPECTED:
        gate = bounds[name]
        assert float(gate["measured"]) >= (gate["at_least"] or float("-inf")), (name, result["summary"])
        assert float(gate["measured"]) <= (gate["at_most"] or 0 if gate["at_most"] is not None else float("inf")), name
