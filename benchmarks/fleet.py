"""Ten thousand simulated brokers on mockraft, and the same on Kafka's own controller.

`mockraft fleet` is the load, in as many processes as it takes by itself; load and controller share the cores.

    python benchmarks/fleet.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from contenders import OURS, THEIRS, WarmKafkaController
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import random_uuid

SESSION_TIMEOUT_MS = 9_000
EXIT_CODES = (0, 1)


class Size(NamedTuple):
    """Number of brokers, seconds over which their starts are spread, and the limit for the whole run."""

    brokers: int
    ramp_s: int
    for_s: int


class Run(NamedTuple):
    """The summary printed by `mockraft fleet`, and the controller's cost."""

    summary: dict[str, Any]
    controller_cpu_s: float
    controller_memory_bytes: int


def controller(kind: str, folder: Path) -> WarmKafkaController | MockraftController:
    """One of the two, with Kafka's default session timeout, formatted where that is needed."""
    if kind == OURS:
        return MockraftController(folder / "mockraft", random_uuid(), session_timeout_ms=SESSION_TIMEOUT_MS)
    # The backlog of 50 that is Kafka's default drops connections of a storm, which then wait for seconds.
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS), "socket.listen.backlog.size": "1024"}
    kafka = WarmKafkaController(folder / "kafka", random_uuid(), properties=properties)
    kafka.format()
    return kafka


def run(kind: str, size: Size) -> Run:
    """Start the controller, run the fleet on it, end both."""
    with tempfile.TemporaryDirectory() as folder:
        process = controller(kind, Path(folder))
        process.start()
        try:
            process.wait_until_running()
            out = Path(folder) / "run.json"
            fleet = ["--brokers", str(size.brokers), "--ramp", str(size.ramp_s), "--for", str(size.for_s)]
            where = ["--bootstrap-controller", f"{process.host}:{process.port}", "--cluster-id", process.cluster_id]
            command = [sys.executable, "-m", "mockraft", "fleet", *fleet, *where, "--json", str(out), "--plain"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode not in EXIT_CODES:
                raise RuntimeError(f"mockraft fleet ended with {done.returncode}:\n{done.stdout}")
            taken = psutil.Process(process.pid)
            return Run(json.loads(out.read_text()), sum(taken.cpu_times()[:2]), taken.memory_info().rss)
        finally:
            process.kill()


def table(runs: dict[str, Run]) -> dict[str, Any]:
    """A row for each figure, a column for each controller."""
    figures: dict[str, Callable[[Run], object]] = {
        "all registered after, s": lambda each: each.summary["all_registered_after_s"] or "not all",
        "all unfenced after, s": lambda each: each.summary["all_unfenced_after_s"] or "not all",
        "heartbeats a second, then": lambda each: f"{_steady(each)['per_s']:,.0f}",
        "p50 of a heartbeat, ms": lambda each: _steady(each)["latency_ms"]["p50"],
        "p99 of a heartbeat, ms": lambda each: _steady(each)["latency_ms"]["p99"],
        "p99 of a heartbeat while they register, ms": lambda each: each.summary["heartbeats"]["latency_ms"]["p99"],
        "fenced by mistake": lambda each: len(each.summary["fenced_by_mistake"]),
        "errors": lambda each: sum(each.summary["errors"].values()),
        "CPU of the controller, s": lambda each: f"{each.controller_cpu_s:.1f}",
        "CPU of the fleet, s": lambda each: f"{each.summary['cpu_s']:.1f}",
        "resident memory of the controller, MiB": lambda each: f"{each.controller_memory_bytes / (1 << 20):.0f}",
    }
    rows = [[name, *(str(figure(each)) for each in runs.values())] for name, figure in figures.items()]
    return {"title": "A fleet and its controller", "columns": ["", *runs], "rows": rows}


def _steady(each: Run) -> dict[str, Any]:
    steady: dict[str, Any] = each.summary["heartbeats_once_all_were_unfenced"] or each.summary["heartbeats"]
    return steady


def measure(size: Size) -> dict[str, Any]:
    runs = {kind: run(kind, size) for kind in (OURS, THEIRS)}
    ours, theirs = (runs[kind].summary for kind in (OURS, THEIRS))
    gates = [
        {
            "what": f"brokers of {size.brokers:,} registered",
            "measured": str(_registered(ours)),
            "at_least": size.brokers,
        },
        {
            "what": "p99 of a heartbeat on mockraft, ms",
            "measured": str(_steady(runs[OURS])["latency_ms"]["p99"]),
            "at_most": 100,
        },
        {"what": "fenced by mistake", "measured": str(len(ours["fenced_by_mistake"])), "at_most": 0},
        {
            "what": "memory per simulated broker, kB",
            "measured": f"{(ours['memory_bytes_per_broker'] or float('inf')) / 1000:.1f}",
            "at_most": 100,
        },
    ]
    summary = [f"Kafka's controller: {_registered(theirs):,} of {size.brokers:,} brokers registered."]
    if ours["all_registered_after_s"] and theirs["all_registered_after_s"]:
        ratio = theirs["all_registered_after_s"] / ours["all_registered_after_s"]
        summary.append(f"Until all are registered Kafka's controller takes {ratio:.2f} times as long.")
    return {
        "title": "A fleet",
        "about": f"`mockraft fleet --brokers {size.brokers} --ramp {size.ramp_s}` in {ours['processes']} processes on "
        f"the same {os.cpu_count()} cores, first with mockraft, then with Kafka's controller: registrations over "
        f"{size.ramp_s} s, a heartbeat every 2 s from each, then controlled shutdown of all. Latencies are the "
        "brokers', from the request's writing to the answer's reading, all of Python's waiting included.",
        "tables": [table(runs)],
        "summary": summary,
        "gates": gates,
    }


def _registered(summary: dict[str, Any]) -> int:
    return max((sample["registered"] for sample in summary["samples"]), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a thousand brokers")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    result = measure(Size(1_000, 3, 12) if options.quick else Size(10_000, 20, 60))
    if options.json:
        print(json.dumps(result))
        return
    for each in result["tables"]:
        print("\n".join(" | ".join(row) for row in ([each["title"]], each["columns"], *each["rows"])))
    print("\n".join(result["summary"]))
    print("\n".join(f"{gate['what']}: {gate['measured']}" for gate in result["gates"]))


if __name__ == "__main__":
    main()
