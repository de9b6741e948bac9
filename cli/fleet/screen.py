"""The screen of `mockraft fleet` in a terminal: figures in, something Rich can draw out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mockraft.brokers.fleet.figures import Figures
from mockraft.brokers.fleet.plan import Action
from mockraft.brokers.fleet.summary import Course, done_to
from mockraft.cli.run.screen import clock_text
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

LAST_SAMPLES = 8
NEXT_ACTIONS = 3


class FleetScreen:
    """The newest figures, the last seconds below each other, and what the script does next."""

    def __init__(
        self,
        where: str,
        processes: int,
        actions: Sequence[Action],
        figures: Callable[[], Figures],
        course: Course,
    ) -> None:
        self._where = where
        self._processes = processes
        self._actions = done_to(actions)
        self._figures = figures
        self._course = course

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        figures = self._figures()
        at_s = self._course.samples[-1].at_s if self._course.samples else 0.0
        parts: list[RenderableType] = [
            Text.assemble(
                ("mockraft fleet", "bold"),
                f"  {figures.brokers:,} brokers in {self._processes} processes on {self._where}",
                (f"  up {clock_text(round(1000 * at_s))}", "dim"),
            ),
            Text(),
            self._seconds(),
            Text(),
            *self._troubles(figures),
            *self._next(at_s),
            Text("Ctrl-C: all leave by controlled shutdown", style="dim"),
        ]
        for part in parts:
            yield Padding(part, (0, 1))

    def _seconds(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        columns = ("s", "started", "registered", "unfenced", "fenced", "heartbeats/s", "p50 ms", "p99 ms", "errors")
        for name in columns:
            table.add_column(name, justify="right", header_style="dim")
        for sample in self._course.samples[-LAST_SAMPLES:]:
            table.add_row(
                f"{sample.at_s:.0f}",
                f"{sample.started:,}",
                f"{sample.registered:,}",
                Text(f"{sample.unfenced:,}", style="green"),
                Text(f"{sample.fenced:,}", style="red" if sample.fenced else ""),
                f"{sample.heartbeats_per_s:,.0f}",
                *("" if value is None else f"{value:.1f}" for value in (sample.p50_ms, sample.p99_ms)),
                f"{sample.errors:,}",
            )
        return table

    def _troubles(self, figures: Figures) -> list[RenderableType]:
        lines = []
        if figures.errors:
            most = ", ".join(f"{count:,}x {name}" for name, count in figures.errors.most_common(3))
            lines.append(Text(f"errors: {most}", style="yellow"))
        if figures.mistakes:
            lines.append(Text(f"fenced by mistake: {len(figures.mistakes):,} brokers", style="red"))
        if figures.died:
            broker_id, why = next(iter(figures.died.items()))
            lines.append(Text(f"died: {len(figures.died):,} brokers; {broker_id}: {why}", style="red"))
        return [*lines, Text()] if lines else []

    def _next(self, at_s: float) -> list[RenderableType]:
        coming = [action for action in self._actions if action["at_s"] > at_s][:NEXT_ACTIONS]
        lines: list[RenderableType] = [
            Text(f"in {action['at_s'] - at_s:.0f} s: {action['act']} {action['brokers']:,}", style="cyan")
            for action in coming
        ]
        return [*lines, Text()] if lines else []
