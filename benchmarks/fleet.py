"""Run 10,000 simulated brokers on mockraft, then on Kafka's controller.

`mockraft fleet` is the load, in its default number of processes; load and controller share the cores.

    python benchmarks/fleet.py [--quick] [--json]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from contenders import controller
from result import OURS, THEIRS, Cell, Gate, Result, Table, argument_parser, show

SESSION_TIMEOUT_MS = 9_000
EXIT_CODES = (0, 1)
Summary = dict[str, Any]
"""JSON that `mockraft fleet --json` writes."""


class Size(NamedTuple):
    """Number of brokers, seconds over which their starts are spread, and the limit for the whole run."""

    brokers: int
    ramp_s: int
    for_s: int


class Run(NamedTuple):
    """The summary printed by `mockraft fleet`, and the controller's cost."""

    summary: Summary
    controller_cpu_s: float
    controller_memory_bytes: int


def run(kind: str, size: Size) -> Run:
    """Start the controller, run the fleet on it, stop both."""
    with tempfile.TemporaryDirectory() as folder:
        process = controller(kind, Path(folder), SESSION_TIMEOUT_MS)
        process.start()
        try:
            process.wait_until_running()
            out = Path(folder) / "run.json"
            fleet = ["--brokers", str(size.brokers), "--ramp", str(size.ramp_s), "--for", str(size.for_s)]
            where = ["--bootstrap-controller", f"{process.host}:{process.port}", "--cluster-id", process.cluster_id]
            command = [sys.executable, "-m", "mockraft", "fleet", *fleet, *where, "--json", str(out)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode not in EXIT_CODES:
                raise RuntimeError(f"mockraft fleet ended with {done.returncode}:\n{done.stdout}")
            taken = psutil.Process(process.pid)
            return Run(json.loads(out.read_text()), sum(taken.cpu_times()[:2]), taken.memory_info().rss)
        finally:
            process.kill()


FIGURES: dict[str, Callable[[Run], Cell]] = {
    "all registered after, s": lambda each: each.summary["all_registered_after_s"] or "not all",
    "all unfenced after, s": lambda each: each.summary["all_unfenced_after_s"] or "not all",
    "heartbeats per second afterwards": lambda each: f"{_steady(each)['per_s']:,.0f}",
    "p50 of a heartbeat, ms": lambda each: _steady(each)["latency_ms"]["p50"],
    "p99 of a heartbeat, ms": lambda each: _steady(each)["latency_ms"]["p99"],
    "p99 of a heartbeat until all are unfenced, ms": lambda each: _p99(each, "heartbeats_until_all_were_unfenced"),
    "p99 of a heartbeat in the shutdown of all at once, ms": lambda each: _p99(each, "heartbeats_of_the_shutdown"),
    "fenced by mistake": lambda each: len(each.summary["fenced_by_mistake"]),
    "errors": lambda each: sum(each.summary["errors"].values()),
    "CPU time of the controller, s": lambda each: f"{each.controller_cpu_s:.1f}",
    "CPU time of the fleet, s": lambda each: f"{each.summary['cpu_s']:.1f}",
    "resident memory of the controller, MiB": lambda each: f"{each.controller_memory_bytes / (1 << 20):.0f}",
}


def _p99(each: Run, phase: str) -> Cell:
    p99: Cell = each.summary[phase]["latency_ms"]["p99"] or "none"
    return p99


def _steady(each: Run) -> Summary:
    steady: Summary = each.summary["heartbeats_once_all_were_unfenced"] or each.summary["heartbeats"]
    return steady


def _registered(summary: Summary) -> int:
    return max((sample["registered"] for sample in summary["samples"]), default=0)


def measure(size: Size) -> Result:
    """Run the fleet on both controllers."""
    runs = {kind: run(kind, size) for kind in (OURS, THEIRS)}
    ours, theirs = (runs[kind].summary for kind in (OURS, THEIRS))
    memory_bytes = ours["memory_bytes_per_broker"] or float("inf")
    summary = [f"Kafka's controller: {_registered(theirs):,} of {size.brokers:,} brokers registered."]
    if ours["all_registered_after_s"] and theirs["all_registered_after_s"]:
        ratio = theirs["all_registered_after_s"] / ours["all_registered_after_s"]
        summary.append(f"Registration of all brokers takes {ratio:.2f} times as long with Kafka's controller.")
    return Result(
        "A fleet",
        f"`mockraft fleet --brokers {size.brokers} --ramp {size.ramp_s}` in {ours['processes']} processes on the same "
        f"{os.cpu_count()} cores as the controller, first with mockraft, then with Kafka's controller: registrations "
        f"over {size.ramp_s} s, a heartbeat of each broker every 2 s, then a controlled shutdown of all. Latencies are "
        "measured by the brokers, from writing the request to reading the response, including delays in Python.",
        [
            Table(
                "A fleet and its controller",
                ["", *runs],
                [[name, *(figure(each) for each in runs.values())] for name, figure in FIGURES.items()],
            )
        ],
        summary,
        [
            Gate(f"registered brokers of {size.brokers:,}", str(_registered(ours)), at_least=size.brokers),
            Gate("p99 of a heartbeat on mockraft, ms", str(_steady(runs[OURS])["latency_ms"]["p99"]), at_most=10),
            Gate("fenced by mistake", str(len(ours["fenced_by_mistake"])), at_most=0),
            Gate("memory per simulated broker, kB", f"{memory_bytes / 1000:.1f}", at_most=100),
        ],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "1,000 brokers").parse_args()
    show(measure(Size(1_000, 3, 12) if options.quick else Size(10_000, 15, 35)), options)
