"""The result of a benchmark, as a section of docs/evidence/benchmarks.md or as JSON for run.py."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from mockraft.kafka.jars import KAFKA_VERSION
from watched_processes import kill_children

ROOT = Path(__file__).parents[1]
# Last of all: benchmarks import `tools` from here, but the folder kafka/ must not hide kafka-python.
sys.path.append(str(ROOT))

OURS, THEIRS = "mockraft", f"Kafka {KAFKA_VERSION}'s controller"
SPREAD_MAX = 0.2
T = TypeVar("T")
Cell = str | int | float
Curves = dict[str, dict[int, float]]
"""Name of a curve → size → cost."""


@dataclass
class Table:
    """A table with a title."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]

    def lines(self) -> list[str]:
        """Return the table in Markdown."""
        rule: list[Cell] = ["---"] * len(self.columns)
        header: list[Cell] = [*self.columns]
        return ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (header, rule, *self.rows)]


@dataclass
class Gate:
    """A measured value and its bound.

    `measured` is the text of the median, or why there is no number; `note` explains the bound; `values` are those of
    each round, where there are several.
    """

    what: str
    measured: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    values: list[float] = field(default_factory=list, init=False)
    runs: int = field(default=1, init=False)

    @classmethod
    def of(
        cls,
        what: str,
        values: Sequence[float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str = "",
    ) -> Gate:
        """Return the gate of several rounds."""
        return cls(what, f"{statistics.median(values):.2f}", at_least, at_most, note).with_rounds(values)

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Gate:
        """Read a gate from JSON."""
        gate = cls(*(tree[name] for name in ("what", "measured", "at_least", "at_most", "note")))
        return gate.with_rounds(tree["values"], tree["runs"])

    def with_rounds(self, values: Sequence[float], runs: int = 1) -> Gate:
        """Add the values of the rounds of so many runs."""
        self.values, self.runs = list(values), runs
        return self

    @property
    def bound(self) -> str:
        """The bound as text."""
        bound = f"≤ {self.at_most:g}" if self.at_least is None else f"≥ {self.at_least:g}"
        return f"{bound} ({self.note})" if self.note else bound

    @property
    def holds(self) -> bool:
        """True if the value is within the bound."""
        return is_number(self.measured) and self.allows(float(self.measured))

    def allows(self, value: float) -> bool:
        """Return True if a value is within the bound."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    @property
    def spread(self) -> float | None:
        """Largest minus smallest value, as a share of the median; None for a single value."""
        middle = statistics.median(self.values) if len(self.values) > 1 else 0
        return (max(self.values) - min(self.values)) / abs(middle) if middle else None

    @property
    def is_noisy(self) -> bool:
        """True if the rounds differ by more than SPREAD_MAX and some of them are on the other side of the bound."""
        spread = self.spread
        return spread is not None and spread > SPREAD_MAX and len({self.allows(value) for value in self.values}) > 1

    def row(self) -> list[Cell]:
        """Return the row of the table of bounds."""
        spread = "" if self.spread is None else f"{100 * self.spread:.0f} %"
        return [self.what, self.measured, spread, self.runs, self.bound, "yes" if self.holds else "**no**"]


@dataclass
class Picture:
    """Curves of cost against size, one panel for each dimension."""

    title: str
    panels: dict[str, Curves]
    unit: str = "µs of CPU for one request"


@dataclass
class Result:
    """Everything that a benchmark reports."""

    title: str
    about: str
    tables: list[Table]
    summary: list[str] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    picture: Picture | None = None

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read the output of `to_json`."""
        tree = json.loads(text)
        tree["tables"] = [Table(**each) for each in tree["tables"]]
        tree["gates"] = [Gate.from_tree(each) for each in tree["gates"]]
        tree["picture"] = tree["picture"] and Picture(**tree["picture"])
        return cls(**tree)

    def to_json(self) -> str:
        """Return the result as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def section(self, name: str) -> str:
        """Return the section of docs/evidence/benchmarks.md of the benchmark `name`."""
        lines = [f"## {self.title}", "", self.about, ""]
        for table in self.tables:
            lines += [f"### {table.title}", "", *table.lines(), ""]
        if self.picture is not None:
            lines += [f"![{self.picture.title}](benchmarks-{name}.svg)", ""]
        if self.summary:
            lines += [*(f"- {line}" for line in self.summary), ""]
        if self.gates:
            columns = ["bound", "measured", "spread", "runs", "required", "met"]
            lines += [*Table("", columns, [each.row() for each in self.gates]).lines(), ""]
        return "\n".join(lines)


def merged(results: Sequence[Result]) -> Result:
    """Return the newest of several runs of a benchmark, with the median of all runs for each bound."""
    newest = results[-1]
    gates = []
    for gate in newest.gates:
        same = [each for result in results for each in result.gates if each.what == gate.what]
        numbers = [each for each in same if is_number(each.measured)]
        measured, values = gate.measured, gate.values
        if numbers:
            decimals = max(len(each.measured.partition(".")[2]) for each in numbers)
            median = statistics.median(float(each.measured) for each in numbers)
            values = [value for each in numbers for value in each.values or [float(each.measured)]]
            measured = f"{median:.{decimals}f}"
        gates.append(replace(gate, measured=measured).with_rounds(values, len(same)))
    return replace(newest, gates=gates)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def end_on_signals() -> None:
    """Exit at the first SIGINT, SIGTERM or SIGHUP, and kill the processes that the interrupted blocks have left.

    Further signals are ignored: Ctrl-C reaches a benchmark twice, from the terminal and as the SIGTERM of run.py.
    """
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        atexit.register(kill_children, os.getpid())
        sys.exit(128 + number)

    for each in signals:
        signal.signal(each, end)


def argument_parser(
    description: str | None, quick: str = "", rounds: tuple[int, str] | None = None
) -> argparse.ArgumentParser:
    """Return a parser with --json and, if they are explained, --quick and --rounds; a signal ends what was started."""
    end_on_signals()
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if quick:
        parser.add_argument("--quick", action="store_true", help=quick)
    if rounds is not None:
        default, text = rounds
        parser.add_argument("--rounds", type=int, default=default, help=f"{text} (default {default})")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for run.py")
    return parser


def show(result: Result, options: argparse.Namespace) -> None:
    """Print the result as the command line asks for it."""
    print(result.to_json() if options.json else result.section(Path(sys.argv[0]).stem))


def in_turns(kinds: Sequence[str], measure: Callable[[str, Path], T], rounds: int) -> dict[str, list[T]]:
    """Measure the kinds in alternating order, each time in a new folder, so that none always finds warmer caches."""
    taken: dict[str, list[T]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 else reversed(kinds):
            with tempfile.TemporaryDirectory() as folder:
                taken[kind].append(measure(kind, Path(folder)))
    return taken


def spread(title: str, first: str, unit: str, taken: dict[str, list[float]]) -> Table:
    """Return a table of medians and extremes."""
    columns = [first, f"median {unit}", f"least {unit}", f"most {unit}", "runs"]
    rows: list[list[Cell]] = [
        [name, *(f"{value:.2f}" for value in (statistics.median(each), min(each), max(each))), len(each)]
        for name, each in taken.items()
    ]
    return Table(title, columns, rows)
