"""Samples of a soak, and the verdict: a level is one that does not rise from the beginning to the end."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from result import Cell, Gate, Result, Table

WARM_UP = 1 / 6
"""Share of the run in which memory may grow: journal, caches and log fill up to their limits."""
MEMORY_GROWTH_MAX, LATENCY_MAX, CPU_MAX, LOG_MAX = 5.0, 1.5, 1.2, 1.2
FILES_MAX = 8
"""Visitors that are connected while files are counted."""
MINUTES_PER_SNAPSHOT = 10
ROWS = 12


class Sample(NamedTuple):
    """The controller after a period, and that period's heartbeats; `peer_p99_ms` is of a peer that answers at once."""

    at_min: float
    memory_mib: float
    files: int
    threads: int
    log_mb: float
    snapshots: int
    cpu_percent: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    peer_p99_ms: float
    machine_load: float
    unexpected: int

    def line(self) -> str:
        """Return the sample as text."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self._asdict().items())


def result(
    samples: Sequence[Sample], done: Mapping[str, int], unexpected: Sequence[str], minutes: float, *, has_speed: bool
) -> Result:
    """Return the tables and bounds."""
    works: list[list[Cell]] = [[name, f"{count:,}"] for name, count in done.items()]
    loads = [each.machine_load for each in samples]
    return Result(
        f"A soak of {minutes:g} minutes",
        f"`mockraft serve` with a data directory and the admin API, codec {'in C' if has_speed else 'in Python'}. 120 "
        "brokers send 500 heartbeats a second at fixed times; the rest of the traffic is in the second table. A "
        "latency begins when its heartbeat was due; *peer* is a program that answers at once, measured by the same "
        "load in the same minute, so it shows the pauses of the machine. Rows are medians of the time since the row "
        "before; open files, threads and snapshots are the newest. Bounds on a level compare the last third of the "
        f"run with the first; memory is judged after {minutes * WARM_UP:.3g} minutes of warm-up, by its slope.",
        [_table(samples), Table("Work beside the heartbeats", ["work", "times"], works)],
        [
            f"The machine's load average was {min(loads):.0f} to {max(loads):.0f} on {os.cpu_count()} cores: above "
            "their number others use the machine, and latencies contain the time until a core is free.",
            "The longest single requests are reads of the admin API: a count over the journal's 20,000 entries, each "
            "20 s, and the whole state.",
            *(f"Not expected: {text}" for text in unexpected),
        ],
        gates(samples, minutes),
    )


def gates(samples: Sequence[Sample], minutes: float) -> list[Gate]:
    """Return the bounds of a soak."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]

    def ratio(value: Callable[[Sample], float], measured: Callable[[list[float]], float] = statistics.median) -> str:
        return f"{measured([value(each) for each in last]) / measured([value(each) for each in first]):.2f}"

    files = max(each.files for each in last) - max(each.files for each in first)
    threads = max(each.threads for each in last) - max(each.threads for each in first)
    latest = samples[-1]
    log_growth = max(each.log_mb for each in last) / max(each.log_mb for each in samples[third:-third] or first)
    return [
        Gate("growth of resident memory after the warm-up, %", f"{_growth(samples):.1f}", at_most=MEMORY_GROWTH_MAX),
        Gate("p99 of heartbeats, last ÷ first third", ratio(lambda each: each.p99_ms), at_most=LATENCY_MAX),
        Gate("CPU time of the controller, last ÷ first third", ratio(lambda each: each.cpu_percent), at_most=CPU_MAX),
        Gate("size of the log, last ÷ second third", f"{log_growth:.2f}", at_most=LOG_MAX),
        Gate("open files, last − first third", str(files), at_most=FILES_MAX),
        Gate("threads, last − first third", str(threads), at_most=0),
        Gate("snapshots", str(latest.snapshots), at_least=max(1, minutes // MINUTES_PER_SNAPSHOT)),
        Gate("answers that were not expected", str(latest.unexpected), at_most=0),
    ]


def _growth(samples: Sequence[Sample]) -> float:
    """Return the growth in percent of the line through the memory after the warm-up, from its start to its end."""
    warm = [each for each in samples if each.at_min > samples[-1].at_min * WARM_UP]
    slope, start = statistics.linear_regression([each.at_min for each in warm], [each.memory_mib for each in warm])
    from_min, until_min = warm[0].at_min, warm[-1].at_min
    return 100 * slope * (until_min - from_min) / (start + slope * from_min)


def _table(samples: Sequence[Sample]) -> Table:
    size = -(-len(samples) // ROWS)
    rows: list[list[Cell]] = []
    for start in range(0, len(samples), size):
        part = samples[start : start + size]
        p50, p99, peer, cpu, load = (
            statistics.median(getattr(each, name) for each in part)
            for name in ("p50_ms", "p99_ms", "peer_p99_ms", "cpu_percent", "machine_load")
        )
        newest = part[-1]
        rows.append(
            [
                f"{newest.at_min:.1f}".removesuffix(".0"),
                f"{newest.memory_mib:.1f}",
                newest.files,
                newest.threads,
                f"{1000 * newest.log_mb:.0f}",
                newest.snapshots,
                f"{cpu:.1f}",
                f"{p50:.2f}",
                f"{p99:.2f}",
                f"{peer:.2f}",
                f"{max(each.max_ms for each in part):.0f}",
                f"{load:.1f}",
            ]
        )
    columns = ["minute", "memory MiB", "open files", "threads", "log kB", "snapshots", "CPU %", "p50 ms", "p99 ms"]
    return Table("The controller over time", [*columns, "peer's p99 ms", "longest ms", "load average"], rows)
