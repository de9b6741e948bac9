"""What the pytest plugin costs a run that does not use it, and a fresh controller and a reset inside a test.

The run: an environment of its own with pytest and the built wheel; runs with the package in its place and moved away
take turns. What counts is the least processor time of each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
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
    """A virtual environment with pytest and mockraft, which can be moved out of sight."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        self.tests = folder / "tests"
        self.tests.mkdir()
        (self.tests / "test_nothing.py").write_text("def test_nothing():\n    assert True\n")
        pip = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        sources = (str(ROOT), str(ROOT / "pytest_mockraft"))
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), *sources], check=True)
        subprocess.run([*pip, "install", f"pytest=={version('pytest')}"], check=True)
        subprocess.run([*pip, "install", "--no-deps", *map(str, folder.glob("*.whl"))], check=True)
        (site,) = (folder / "venv").glob("lib/python*/site-packages")
        self._parts = [(part, folder / part.name) for part in site.glob("*mockraft*")]

    def run_ms(self, *, is_there: bool) -> float:
        """Milliseconds of processor time of one run, with the package there or not."""
        if not is_there:
            for part, away in self._parts:
                part.rename(away)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [str(self.python), "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        subprocess.run(command, cwd=self.tests, env=environment, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not is_there:
            for part, away in self._parts:
                away.rename(part)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    def import_ms(self) -> float:
        """Milliseconds that `-X importtime` has for the plugin and all that it imports, once pytest is there."""
        command = [str(self.python), "-P", "-X", "importtime", "-c", "import pytest, mockraft.pytest_plugin"]
        told = subprocess.run(command, cwd=self.tests, capture_output=True, text=True, check=True).stderr
        lines = [line.split("|") for line in told.splitlines() if line.split("|")[-1].strip().startswith("mockraft")]
        return sum(int(line[1]) for line in lines if not line[2].startswith("   ")) / 1000


def unused(rounds: int) -> tuple[float, float]:
    """Milliseconds of the least run with the package over the least without, and what importing the plugin takes.

    Runs take turns; other work only ever adds to a run, so the least is what it costs.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        taken: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds + 2):
            for is_there in (True, False) if number % 2 else (False, True):
                taken[is_there].append(environment.run_ms(is_there=is_there))
        more_ms = min(taken[True][2:]) - min(taken[False][2:])
        return more_ms, statistics.median(environment.import_ms() for _ in range(5))


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
    more_ms, import_ms = unused(rounds)
    fresh = [one_test() for _ in range(4 * rounds)]
    starts, resets = ([pair[index] for pair in fresh] for index in (0, 1))
    medians = [more_ms, statistics.median(starts), statistics.median(resets)]
    names = ("a run of pytest that does not use it, more", "start of a controller in a test", "reset")
    rows = [
        [name, f"{median:.2f}", f"{min(each):.2f}", f"{max(each):.2f}", len(each)]
        for name, median, each in zip(names, medians, ([more_ms], starts, resets), strict=True)
    ]
    limits = (PLUGIN_MS_MAX, START_MS_MAX, RESET_MS_MAX)
    return {
        "title": "In a test",
        "about": "The pytest plugin in a run of one test that does not use it: processor time with the wheel installed "
        f"less that without, in turns. Its own import is {import_ms:.1f} ms of that. A start is from nothing to a "
        f"listener in a thread of its own, once its modules are imported; a reset "
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
    parser.add_argument("--rounds", type=int, default=20, help="pairs of runs (default 20)")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    result = measure(options.rounds)
    print(json.dumps(result) if options.json else "\n".join(str(row) for row in result["tables"][0]["rows"]))


if __name__ == "__main__":
    main()
