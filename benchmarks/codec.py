"""Compare decoding and encoding with kio, kafka-python and libraries in Go and Rust, and measure import times.

Both paths of mockraft's codec (pure Python, and C with `mockraft[speed]`), kio and kafka-python run in this process, in
turns, on the same bytes; the shortest of all rounds is reported. Each library must write exactly the same bytes before
it is timed.

    python benchmarks/codec.py [--quick] [--json] [--gates]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable

from codec_peers.bodies import Body, bodies
from codec_peers.import_times import ONE, YARDSTICK, import_times_ms
from codec_peers.in_python import KAFKA_PYTHON, KIO, PURE, SPEED, measure
from codec_peers.other_languages import KMSG, RUST, timings
from result import Cell, Gate, Result, Table, argument_parser, show

Nanos = dict[str, dict[str, list[float]]]
"""Nanoseconds of one direction: message → library → the shortest of each group of rounds."""

BOUNDS = {
    (SPEED, "decode", KIO): 3.0,
    (SPEED, "encode", KIO): 80.0,
    (PURE, "decode", KIO): 0.85,
    (PURE, "encode", KIO): 15.0,
    (PURE, "decode", KAFKA_PYTHON): 2.7,
    (PURE, "encode", KAFKA_PYTHON): 8.0,
}
"""Geometric means: the other library's time ÷ mockraft's."""
WORST_LEAST = 1.0
IMPORT_MOST = 1.5
NO_SPEED = "mockraft-speed is not installed"


def ratios(rows: Nanos, ours: str, theirs: str, group: int | None = None) -> list[float]:
    """Return their time ÷ ours for each message that both have, in one group of rounds or (None) in all."""

    def least(times: list[float]) -> float:
        return min(times) if group is None else times[group]

    return [least(row[theirs]) / least(row[ours]) for row in rows.values() if ours in row and theirs in row]


def mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


def gates(timed: dict[str, Nanos], imports: dict[str, list[float]]) -> list[Gate]:
    """Return the bounds; those of `mockraft[speed]` are not met where it is not installed."""
    found = []
    for (ours, direction, theirs), least in BOUNDS.items():
        name = f"{direction}, {theirs}'s time ÷ {ours}'s, mean"
        all_ratios = ratios(timed[direction], ours, theirs)
        if not all_ratios:
            found.append(Gate(name, NO_SPEED, at_least=least))
            continue
        groups = len(next(iter(next(iter(timed[direction].values())).values())))
        values = [mean(ratios(timed[direction], ours, theirs, group)) for group in range(groups)]
        found.append(Gate(name, f"{mean(all_ratios):.2f}", at_least=least).with_rounds(values))
    worst = min(ratios(timed["decode"], SPEED, KIO), default=None)
    name = f"decode, {KIO}'s time ÷ {SPEED}'s, least of all messages"
    found.append(Gate(name, NO_SPEED if worst is None else f"{worst:.2f}", at_least=WORST_LEAST))
    compared = min(imports[ONE]) / min(imports[YARDSTICK])
    found.append(Gate(f"import of {ONE}, pure Python ÷ {YARDSTICK}", f"{compared:.2f}", at_most=IMPORT_MOST))
    return found


def table(direction: str, rows: Nanos, sizes: dict[str, int]) -> Table:
    """Return the nanoseconds of each library, and geometric means of theirs ÷ ours."""
    names = [name for name in (PURE, SPEED, KIO, KAFKA_PYTHON, KMSG, RUST) if any(name in row for row in rows.values())]
    ours = [name for name in (PURE, SPEED) if name in names]
    cells: list[list[Cell]] = []
    for message, row in rows.items():
        times = [f"{min(row[name]):,.0f}" if name in row else "" for name in names]
        compared = [f"{min(row[KIO]) / min(row[name]):.2f}" if KIO in row else "" for name in ours]
        cells.append([message, sizes[message], *times, *compared])
    for name in ours:
        means = [f"{mean(ratios(rows, name, other)):.2f}" for other in names]
        cells.append([f"geometric mean of the time ÷ {name}'s", "", *means, *([""] * len(ours))])
    columns = ["message", "bytes", *(f"{name}, ns" for name in names), *(f"{KIO} ÷ {name}" for name in ours)]
    return Table(direction.capitalize(), columns, cells)


def imports_table(imports: dict[str, list[float]]) -> Table:
    rows: list[list[Cell]] = [
        [name, f"{min(times):.2f}", f"{statistics.median(times):.2f}"] for name, times in imports.items()
    ]
    return Table("Import in a new process, pure Python", ["", "least ms", "median ms"], rows)


def report(
    all_bodies: list[Body], timed: dict[str, Nanos], imports: dict[str, list[float]], lines: list[str]
) -> Result:
    sizes = {body.name: len(body.message.write(body.version)) for body in all_bodies}
    return Result(
        "Codec",
        "Nanoseconds per message. mockraft (pure Python, and `mockraft[speed]`), kio (it decodes in Rust) and "
        "kafka-python run in one process, in turns; franz-go's kmsg and kafka-protocol-rs, for the record, in "
        "processes of their own. All libraries write exactly the same bytes. None but mockraft has metadata "
        "records.",
        [*(table(direction, rows, sizes) for direction, rows in timed.items()), imports_table(imports)],
        lines,
        gates(timed, imports),
    )


def main() -> int:
    """Measure and print."""
    parser = argument_parser(__doc__, "few short rounds: a few seconds, noisy")
    parser.add_argument("--gates", action="store_true", help="exit with 1 if a bound is not met")
    options = parser.parse_args()
    all_bodies = bodies()
    timed = measure(all_bodies, 2 if options.quick else 10, 1 if options.quick else 4)
    others, missing = timings(all_bodies)
    for library, by_message in others.items():
        for message, by_direction in by_message.items():
            for direction, nanos in by_direction.items():
                timed[direction][message][library] = [nanos]
    result = report(all_bodies, timed, import_times_ms(4 if options.quick else 24), missing)
    show(result, options)
    return int(options.gates and not all(gate.holds for gate in result.gates))


if __name__ == "__main__":
    sys.exit(main())
