"""The start-up benchmark runs: three real brokers reach RUNNING on either controller. It judges the times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_kafka
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "startup.py"


def test_the_start_up_of_both_controllers_is_measured() -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "1", "--json"]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=240).stdout)
    for table in result["tables"]:
        assert {row[0] for row in table["rows"]} == {"mockraft", "Kafka 4.3.1's controller"}
        assert all(float(row[1]) > 0 for row in table["rows"])
    assert len(result["gates"]) == 2
