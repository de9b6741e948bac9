"""The results of `spark.py` as tables, bounds and picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frame_jobs import EXCHANGES
from mockraft.wire import codec_path
from result import Cell, Curves, Gate, Picture, Result, Table
from watched_processes import Taken

_CODEC = {"pure": "Python", "speed": "C"}
MEBIBYTE = 1 << 20
WORKER_MIB_MAX = 400


FRAMES, NO_BODIES, JSON_BODIES, TYPED = "frames", "without bodies", "bodies as JSON", "typed columns"
"""Names of Spark's jobs."""
TURNS = 3
"""Times that a round runs each of Spark's jobs: the median counts."""
SCALED = 2
"""One core and two are compared on a capture that is larger by this: to start a job takes as long on both."""
TYPED_MOST = 0.75
JSON_LEAST = {"pure": 100_000, "speed": 200_000}
"""Frames per second with bodies as JSON, by the codec's path."""


class Pair(NamedTuple):
    """One round; `tshark` is None without it."""

    tshark: Taken | None
    core: Taken
    spark_s: float


@dataclass
class Results:
    """Everything that was measured; `missing` names the rest."""

    packets: int
    rounds: int
    pairs: list[Pair] = field(default_factory=list)
    decoded: dict[str, list[float]] = field(default_factory=dict)
    """Frames of the capture per second, by job."""
    cpu: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Processor seconds of the JVM and of Python workers, by job."""
    hot: list[tuple[float, float]] = field(default_factory=list)
    sizes: dict[int, dict[str, float]] = field(default_factory=dict)
    workers: dict[int, dict[str, int]] = field(default_factory=dict)
    core_rss: dict[int, int] = field(default_factory=dict)
    tshark_rss: dict[int, int] = field(default_factory=dict)
    scaling: list[tuple[float, float]] = field(default_factory=list)
    """Seconds of Spark on two cores and on one, for a capture of `SCALED` times as many packets."""
    replays: list[float] = field(default_factory=list)
    """Seconds of a replay of `sessions` on two cores and on one."""
    sessions: int = 0
    stream_bytes: int = 0
    shuffle_bytes: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)

    def add_cpu(self, job: str, before: dict[str, float], after: dict[str, float]) -> None:
        """Add the processor time of a job, from that of the session before and after it."""
        taken = [after[kind] - before[kind] for kind in ("java", "python")]
        self.cpu.setdefault(job, []).append((taken[0], taken[1]))

    def row(self, packets: int) -> dict[str, float]:
        """Return the seconds by program at a size."""
        return self.sizes.setdefault(packets, {})


def result(of: Results) -> Result:
    """Return the report of everything that was measured."""
    return Result(
        "Captured traffic on Spark",
        f"A generated capture of {of.packets:,} packets on 200 connections, in {of.rounds} rounds in turns on two "
        "cores. tshark (`-Y kafka -T fields`, 9 fields) discards its output, the core (`read_frames`, one process, "
        "including Python's start from compiled modules) counts frames, Spark (`local[2]`, warmed up: the start of its "
        f"JVM and first jobs are not counted, of {TURNS} jobs in a round the median counts) writes them to Parquet. "
        f"One core and two are compared on {SCALED} times as many packets, as a job takes as long to start on both. "
        "[Estimate for a terabyte](../explanation/captures-at-volume.md).",
        [each for each in (_pairs(of), _jobs(of), _sizes(of), _memory(of)) if each.rows],
        _summary(of),
        _gates(of),
        Picture("Frames of a capture: cost of a packet as the file grows", {"packets": _costs(of)}, "µs for one packet")
        if len(of.sizes) > 1
        else None,
    )


def _seconds(of: Results) -> dict[str, list[float]]:
    found = {
        "tshark": [pair.tshark.seconds for pair in of.pairs if pair.tshark],
        "core, one process": [pair.core.seconds for pair in of.pairs],
        "Spark, two cores": [pair.spark_s for pair in of.pairs],
    }
    return {name: each for name, each in found.items() if each}


def _ratios(of: Results, ours: str) -> list[float]:
    seconds = _seconds(of)
    return [peer / own for peer, own in zip(seconds.get("tshark", []), seconds.get(ours, []), strict=False)]


def _pairs(of: Results) -> Table:
    rows: list[list[Cell]] = []
    for name, seconds in _seconds(of).items():
        median = statistics.median(seconds)
        ratios = _ratios(of, name)
        shown = (
            f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})" if ratios else "not measured"
        )
        rows.append([name, f"{median:.1f}", f"{of.packets / median:,.0f}", shown])
    columns = ["", "median s", "packets/s", "tshark's time ÷ this (least to most)"]
    return Table("Frames, compared with tshark", columns, rows)


def _jobs(of: Results) -> Table:
    """Return the speed of Spark's jobs on two cores, and the processor time of the JVM and of Python."""
    rows: list[list[Cell]] = []
    for name, taken in of.cpu.items():
        jvm, python = (statistics.median(each) for each in zip(*taken, strict=True))
        speed = f"{statistics.median(of.decoded[name]):,.0f}" if name in of.decoded else ""
        rows.append([name, speed, f"{jvm:.1f}", f"{python:.1f}", f"{100 * jvm / (jvm + python or 1):.0f} %"])
    columns = ["", "frames of the capture per second", "JVM, CPU s", "Python workers, CPU s", "the JVM's share"]
    return Table("Spark's jobs on two cores, written to Parquet", columns, rows)


def _costs(of: Results) -> Curves:
    costs: Curves = {}
    for packets, row in sorted(of.sizes.items()):
        for name, seconds in row.items():
            costs.setdefault(name, {})[packets] = 1e6 * seconds / packets
    return costs


def _growth(costs: dict[int, float]) -> float:
    """Return the cost of a packet in the largest file ÷ the cost in the next smaller one: 1 is linear."""
    *_, before, last = costs.values()
    return last / before


def _sizes(of: Results) -> Table:
    sizes = sorted(of.sizes)
    rows: list[list[Cell]] = []
    for name, costs in _costs(of).items():
        cells = [f"{costs[size]:.2f}" if size in costs else "not run" for size in sizes]
        rows.append([name, *cells, f"{_growth(costs):.2f}" if len(costs) > 1 else ""])
    columns = ["µs for one packet", *(f"{size:,} packets" for size in sizes), "last ÷ the one before"]
    return Table("Cost of a packet as the file grows", columns, rows)


def _memory(of: Results) -> Table:
    sizes = sorted({*of.workers, *of.core_rss, *of.tshark_rss, *([of.packets] if of.pairs else [])})
    kinds: dict[str, dict[int, int]] = {
        "core": of.core_rss,
        "a Python worker of Spark": {size: peaks.get("python", 0) for size, peaks in of.workers.items()},
        "Spark's JVM (heap of 2 GiB at most)": {size: peaks.get("java", 0) for size, peaks in of.workers.items()},
        "tshark": dict(of.tshark_rss),
    }
    paired = [pair.tshark.rss_bytes for pair in of.pairs if pair.tshark]
    if paired:
        kinds["tshark"][of.packets] = max(paired)
    if of.pairs:
        kinds["core"][of.packets] = max(pair.core.rss_bytes for pair in of.pairs)
    rows: list[list[Cell]] = [
        [name, *(f"{peaks[size] / MEBIBYTE:,.0f}" if size in peaks else "not run" for size in sizes)]
        for name, peaks in kinds.items()
        if peaks
    ]
    columns = ["MiB", *(f"{size:,} packets" for size in sizes)]
    return Table("Peak resident memory of one process", columns, rows)


def _summary(of: Results) -> list[str]:
    lines = []
    file_bytes = of.file_bytes
    if of.pairs and file_bytes:
        seconds = statistics.median(pair.spark_s for pair in of.pairs)
        rate = file_bytes / seconds / 2
        lines.append(
            f"Spark reads {file_bytes / seconds / 1e6:,.0f} MB/s on two cores, {rate / 1e6:,.0f} MB/s a core. "
            f"A terabyte is 10¹² bytes ÷ {rate / 1e6:,.0f} MB/s = {1e12 / rate / 3600:.1f} hours of a core: "
            f"{math.ceil(1e12 / rate / 3600)} cores for one hour, {math.ceil(1e12 / rate / 600)} for ten minutes, "
            "if more cores scale as the second does."
        )
    if of.shuffle_bytes and of.stream_bytes:
        lines.append(
            f"The shuffle wrote {of.shuffle_bytes / MEBIBYTE:,.0f} MiB (lz4) for a capture of "
            f"{file_bytes / MEBIBYTE:,.0f} MiB, {of.shuffle_bytes / file_bytes:.2f} of it; the frames themselves are "
            f"{of.stream_bytes / MEBIBYTE:,.0f} MiB, {of.stream_bytes / file_bytes:.2f} of it."
        )
    if of.scaling:
        two, one = (statistics.median(each) for each in zip(*of.scaling, strict=True))
        lines.append(f"{SCALED * of.packets:,} packets: {two:.1f} s on two cores, {one:.1f} s on one.")
    if of.hot:
        ratio = statistics.median(hot / spread for hot, spread in of.hot)
        lines.append(f"All frames on one connection, so in one task: {ratio:.2f} of the time with 200.")
    if of.sessions:
        two, one = of.replays
        lines.append(
            f"Replay of {of.sessions} sessions of {EXCHANGES} exchanges, each to a mockraft of its own: {two:.1f} s on "
            f"two cores, {one:.1f} s on one, {one / two:.2f} times as much."
        )
    lines += [f"Not measured: {each}." for each in of.missing]
    return lines


def _gates(of: Results) -> list[Gate]:
    gates: list[Gate] = []

    def gate(
        what: str,
        values: Sequence[float],
        form: str = ".2f",
        at_least: float | None = None,
        at_most: float | None = None,
        note: str = "",
    ) -> None:
        if values:
            found = Gate(what, format(statistics.median(values), form), at_least, at_most, note=note)
            gates.append(found.with_rounds(values))

    gate(
        "Spark, frames to Parquet on two cores: tshark's time ÷ Spark's", _ratios(of, "Spark, two cores"), at_least=15.0
    )
    cores = [pair.tshark.cpu_seconds / pair.core.cpu_seconds for pair in of.pairs if pair.tshark]
    gate("core in one process: tshark's processor time ÷ the core's", cores, at_least=18.0)
    plain, as_json = of.decoded.get(NO_BODIES, []), of.decoded.get(JSON_BODIES, [])
    gate("frames decoded, encoded again and compared per second, two cores", plain, ".0f", at_least=100_000)
    least = JSON_LEAST[codec_path.path]
    gate(
        f"the same, and stored with bodies as JSON, codec in {_CODEC[codec_path.path]}", as_json, ".0f", at_least=least
    )
    for name, typed in of.decoded.items():
        if name.startswith(TYPED):
            times = [json_speed / speed for json_speed, speed in zip(as_json, typed, strict=True)]
            # Both find all frames first: the faster JSON is, the larger that part of its time is.
            most = round(TYPED_MOST * max(1, statistics.median(as_json) / least), 2)
            note = f"{TYPED_MOST:g}, or of the time at {least:,} frames/s"
            gate(f"{name}: time ÷ that of all bodies as JSON", times, at_most=most, note=note)
    scaling = [one_core_s / two_cores_s for two_cores_s, one_core_s in of.scaling]
    gate("Spark, time on one core ÷ time on two", scaling, at_least=1.7)
    workers = [peaks["python"] / MEBIBYTE for peaks in of.workers.values() if "python" in peaks]
    gate("memory of a Python worker of Spark, most, MiB", sorted(workers)[-1:], ".0f", at_most=WORKER_MIB_MAX)
    for name, costs in _costs(of).items():
        if name in ("core", "Spark") and len(costs) > 1:
            what = f"{name}: cost of a packet in the largest file ÷ cost in the next smaller one"
            gate(what, [_growth(costs)], at_most=1.3)
    return gates
