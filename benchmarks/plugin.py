"""The cost of the pytest plugin for a run that does not use it, and of a fresh controller and a reset inside a test.

The run: an environment of its own with pytest, and the built wheels on the path or not, in turns (pytest_runs.py).
What counts is the median difference of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mockraft import Controller, SyncController
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

ROOT = Path(__file__).parents[1]
PLUGIN_MS_MAX = 5.0
START_MS_MAX = 20.0
RESET_MS_MAX = 2.0
STUBS = 10


class Environment:
    """A virtual environment with pytest, a test, and beside them a folder with what mockraft's users install."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        self.installed = folder / "installed"
        self.tests = folder / "tests"
        self.tests.mkdir()
        (self.tests / "test_nothing.py").write_text("def test_nothing():\n    assert True\n")
        pip = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        sources = (str(ROOT), str(ROOT / "pytest_mockraft"))
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), *sources], check=True)
        subprocess.run([*pip, "install", f"pytest=={version('pytest')}"], check=True)
        wheels = map(str, folder.glob("*.whl"))
        subprocess.run([*pip, "install", "--no-deps", "--target", str(self.installed), *wheels], check=True)

    def more_ms(self, rounds: int) -> list[float]:
        """Milliseconds of processor time that a run takes more with the packages there than without, each round's."""
        told = self._told(str(Path(__file__).parent / "pytest_runs.py"), str(self.installed), str(rounds))
        return [float(ms) for ms in json.loads(told.stdout)]

    def import_ms(self) -> float:
        """Milliseconds that `-X importtime` has for the plugin and all that it imports, once pytest is there."""
        code = "import pytest, sys; sys.path.append(sys.argv[1]); import mockraft.pytest_plugin"
        told = self._told("-X", "importtime", "-c", code, str(self.installed)).stderr
        lines = [line.split("|") for line in told.splitlines() if line.split("|")[-1].strip().startswith("mockraft")]
        return sum(int(line[1]) for line in lines if not line[2].startswith("   ")) / 1000

    def _told(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        command = [str(self.python), "-P", *arguments]
        return subprocess.run(command, cwd=self.tests, env=environment, capture_output=True, text=True, check=True)


def unused(rounds: int) -> tuple[list[float], float]:
    """Milliseconds that a run takes more with the package, each round's, and what importing the plugin takes."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        return environment.more_ms(rounds), statistics.median(environment.import_ms() for _ in range(5))


def one_test() -> tuple[float, float]:
    """Milliseconds that a controller takes to listen, and a reset after some stubs, faults and requests."""
    began = time.perf_counter()
    with Controller.sync() as controller:
        start_ms = (time.perf_counter() - began) * 1000
        use(controller)
        began = time.perf_counter()
        controller.reset()
        return start_ms, (time.perf_counter() - began) * 1000


def use(controller: SyncController) -> None:
    for broker_id in range(STUBS):
        controller.stub("BrokerHeartbeat", broker_id=broker_id).inject_error("NOT_CONTROLLER")
        controller.faults.latency(latency_ms=0, broker_id=broker_id)
        controller.ask(BrokerHeartbeatRequest(broker_id=broker_id))


def measure(rounds: int) -> dict[str, Any]:
    more, import_ms = unused(rounds)
    fresh = [one_test() for _ in range(rounds)]
    starts, resets = ([pair[index] for pair in fresh] for index in (0, 1))
    medians = [statistics.median(each) for each in (more, starts, resets)]
    names = ("a run of pytest that does not use it, more", "start of a controller in a test", "reset")
    rows = [
        [name, f"{median:.2f}", f"{min(each):.2f}", f"{max(each):.2f}", len(each)]
        for name, median, each in zip(names, medians, (more, starts, resets), strict=True)
    ]
    limits = (PLUGIN_MS_MAX, START_MS_MAX, RESET_MS_MAX)
    return {
        "title": "In a test",
        "about": "The pytest plugin in a run of one test that does not use it: processor time with the wheels there "
        "less that without, in turns, all forks of a process that has imported pytest; single rounds move with "
        "the machine, the median stays. The import alone, by the clock and in a process of its own, takes "
        f"{import_ms:.1f} ms. A start is from nothing to a listener in a thread of its own, once its modules are "
        "imported; a reset "
        f"comes after {STUBS} stubs, {STUBS} faults and {STUBS} requests.",
        "tables": [
            {"title": "Milliseconds", "columns": ["", "median", "least", "most", "runs"], "rows": rows},
        ],
        "summary": [],
        "gates": [
            {"what": f"{name}, ms", "measured": f"{median:.2f}", "at_most": limit}
            for name, median, limit in zip(names, medians, limits, strict=True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="of two runs with it and two without (default 100)")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    result = measure(options.rounds)
    print(json.dumps(result) if options.json else "\n".join(str(row) for row in result["tables"][0]["rows"]))


if __name__ == "__main__":
    main()
