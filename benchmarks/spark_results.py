"""The results of `spark.py` as the tables, gates and picture of docs/benchmarks.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MEBIBYTE = 1 << 20
WORKER_MIB_MAX = 400


class Pair(NamedTuple):
    """One round: seconds, and bytes of resident memory; `tshark` is (seconds, bytes), None without it."""

    tshark: tuple[float, int] | None
    core_s: float
    core_alone_s: float
    core_rss: int
    spark_s: float
    spark_one_cpu_s: float


@dataclass
class Results:
    """Everything that was measured; what was not is named in `missing`."""

    packets: int
    rounds: int
    pairs: list[Pair] = field(default_factory=list)
    decode_frames_per_s: list[float] = field(default_factory=list)
    hot: list[tuple[float, float]] = field(default_factory=list)
    sizes: dict[int, dict[str, float]] = field(default_factory=dict)
    workers: dict[int, dict[str, int]] = field(default_factory=dict)
    core_rss: dict[int, int] = field(default_factory=dict)
    tshark_rss: dict[int, int] = field(default_factory=dict)
    stream_bytes: int = 0
    shuffle_bytes: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)

    def row(self, packets: int) -> dict[str, float]:
        """Seconds by contender at a size."""
        return self.sizes.setdefault(packets, {})


def result(of: Results) -> dict[str, Any]:
    """As run.py wants it."""
    tables = [each for each in (_pairs(of), _sizes(of), _memory(of)) if each["rows"]]
    made: dict[str, Any] = {
        "title": "Captured traffic on Spark",
        "about": f"A generated capture of {of.packets:,} packets on 200 connections, the same for all, in "
        f"{of.rounds} rounds in turns on two cores. tshark (`-Y kafka -T fields`, 9 fields) writes to nowhere, the "
        "core (`read_frames`, one process, start of Python included) counts frames, Spark (`local[2]`, warm) writes "
        "them to Parquet. [What it means for a terabyte](captures-at-volume.md).",
        "tables": tables,
        "summary": _summary(of),
        "gates": _gates(of),
    }
    if len(of.sizes) > 1:
        panels = {"packets": _costs(of)}
        made["picture"] = {
            "title": "Frames of a capture: cost of a packet as the file grows",
            "unit": "µs for one packet",
            "panels": panels,
        }
    return made


def _seconds(of: Results) -> dict[str, list[float]]:
    found = {
        "tshark": [pair.tshark[0] for pair in of.pairs if pair.tshark],
        "core, one process": [pair.core_s for pair in of.pairs],
        "Spark, one core": [pair.spark_one_cpu_s for pair in of.pairs],
        "Spark, two cores": [pair.spark_s for pair in of.pairs],
    }
    return {name: each for name, each in found.items() if each}


def _ratios(of: Results, ours: str) -> list[float]:
    seconds = _seconds(of)
    return [peer / own for peer, own in zip(seconds.get("tshark", []), seconds.get(ours, []), strict=False)]


def _pairs(of: Results) -> dict[str, Any]:
    rows = []
    for name, seconds in _seconds(of).items():
        median = statistics.median(seconds)
        ratios = _ratios(of, name)
        shown = (
            f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})" if ratios else "not measured"
        )
        rows.append([name, f"{median:.1f}", f"{of.packets / median:,.0f}", shown])
    columns = ["", "median s", "packets/s", "tshark's time over it (least to most)"]
    return {"title": "Frames, beside tshark", "columns": columns, "rows": rows}


def _costs(of: Results) -> dict[str, dict[int, float]]:
    costs: dict[str, dict[int, float]] = {}
    for packets, row in sorted(of.sizes.items()):
        for name, seconds in row.items():
            costs.setdefault(name, {})[packets] = 1e6 * seconds / packets
    return costs


def _growth(costs: dict[int, float]) -> float:
    """The cost of a packet at the most of them over that at the size before: 1 is linear."""
    *_, before, last = costs.values()
    return last / before


def _sizes(of: Results) -> dict[str, Any]:
    sizes = sorted(of.sizes)
    rows = []
    for name, costs in _costs(of).items():
        cells = [f"{costs[size]:.2f}" if size in costs else "not run" for size in sizes]
        rows.append([name, *cells, f"{_growth(costs):.2f}" if len(costs) > 1 else ""])
    columns = ["µs for one packet", *(f"{size:,} packets" for size in sizes), "last over the one before"]
    return {"title": "Cost of a packet as the file grows", "columns": columns, "rows": rows}


def _memory(of: Results) -> dict[str, Any]:
    sizes = sorted({*of.workers, *of.core_rss, *of.tshark_rss, *([of.packets] if of.pairs else [])})
    kinds: dict[str, dict[int, int]] = {
        "core": of.core_rss,
        "a Python worker of Spark": {size: peaks.get("python", 0) for size, peaks in of.workers.items()},
        "Spark's JVM (heap of 2 GiB at most)": {size: peaks.get("java", 0) for size, peaks in of.workers.items()},
        "tshark": dict(of.tshark_rss),
    }
    paired = [pair.tshark[1] for pair in of.pairs if pair.tshark]
    if paired:
        kinds["tshark"][of.packets] = max(paired)
    if of.pairs:
        kinds["core"][of.packets] = max(pair.core_rss for pair in of.pairs)
    rows = [
        [name, *(f"{peaks[size] / MEBIBYTE:,.0f}" if size in peaks else "not run" for size in sizes)]
        for name, peaks in kinds.items()
        if peaks
    ]
    columns = ["MiB", *(f"{size:,} packets" for size in sizes)]
    return {"title": "Peak resident memory of one process", "columns": columns, "rows": rows}


def _summary(of: Results) -> list[str]:
    said = []
    file_bytes = of.file_bytes
    if of.pairs and file_bytes:
        seconds = statistics.median(pair.spark_s for pair in of.pairs)
        rate = file_bytes / seconds / 2
        said.append(
            f"Spark reads {file_bytes / seconds / 1e6:,.0f} MB/s on two cores, {rate / 1e6:,.0f} MB/s a core. "
            f"A terabyte is 10¹² bytes ÷ {rate / 1e6:,.0f} MB/s = {1e12 / rate / 3600:.1f} hours of a core: "
            f"{math.ceil(1e12 / rate / 3600)} cores for one hour, {math.ceil(1e12 / rate / 600)} for ten minutes, "
            "if more cores go on as the second does."
        )
    if of.shuffle_bytes and of.stream_bytes:
        said.append(
            f"The shuffle wrote {of.shuffle_bytes / MEBIBYTE:,.0f} MiB (lz4) for a capture of "
            f"{file_bytes / MEBIBYTE:,.0f} MiB, {of.shuffle_bytes / file_bytes:.2f} of it; the frames themselves are "
            f"{of.stream_bytes / MEBIBYTE:,.0f} MiB, {of.stream_bytes / file_bytes:.2f} of it."
        )
    if of.hot:
        ratio = statistics.median(hot / spread for hot, spread in of.hot)
        said.append(f"All frames on one connection, so in one task of the shuffle: {ratio:.2f} of the time of 200.")
    said += [f"Not measured: {each}." for each in of.missing]
    return said


def _gates(of: Results) -> list[dict[str, Any]]:
    gates: list[dict[str, Any]] = []

    def gate(what: str, values: Sequence[float], form: str = ".2f", **bound: float) -> None:
        if values:
            gates.append({"what": what, "measured": format(statistics.median(values), form), **bound})

    gate("Spark frames to Parquet on two cores, tshark's time over it", _ratios(of, "Spark, two cores"), at_least=8.0)
    gate("core in one process, tshark's time over it", _ratios(of, "core, one process"), at_least=6.0)
    gate(
        "frames decoded, written again and compared a second, two cores",
        of.decode_frames_per_s,
        ".0f",
        at_least=100_000,
    )
    gate(
        "Spark, time on one core over that on two",
        [pair.spark_one_cpu_s / pair.spark_s for pair in of.pairs],
        at_least=1.6,
    )
    workers = [peaks["python"] / MEBIBYTE for peaks in of.workers.values() if "python" in peaks]
    gate(
        "memory of a Python worker of Spark, most, MiB",
        [max(workers)] if workers else [],
        ".0f",
        at_most=WORKER_MIB_MAX,
    )
    for name, costs in _costs(of).items():
        if name in ("core", "Spark") and len(costs) > 1:
            gate(
                f"{name}: cost of a packet at the most packets over that at the size before",
                [_growth(costs)],
                at_most=1.3,
            )
    return gates
