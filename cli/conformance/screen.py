"""Output of `mockraft conformance`: progress, a table by area, and each failure with the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mockraft.cli.terminal import Terminal
from mockraft.conformance.case import Case
from mockraft.conformance.reports.failure_text import lines
from mockraft.conformance.verdicts import ONE_SIDED_TEXT, Outcome, Run, Verdict, changed_text, outcome_text, partings
from mockraft.wire.printable import printable_line
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_TOLD_IN_FULL = 8
_BRIEF_LINES = 40
_LINE_MAX = 400


class Screen:
    """A terminal, or whatever stdout is."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Terminal(soft_wrap=True)

    def list_cases(self, cases: Sequence[Case]) -> None:
        """One line a case."""
        area = ""
        for case in cases:
            if case.area != area:
                area = case.area
                self.console.print(Text(area, "bold"))
            notes = ", ".join([case.rank, case.source, *case.bounds])
            self.console.print(Text.assemble("  ", case.name, (f"  [{notes}]", "dim")))
        self.console.print(f"{len(cases)} cases")

    @contextmanager
    def progress(self, count: int) -> Iterator[Callable[[Verdict], None]]:
        """A bar while cases run, in a terminal; gives what is to be called with each verdict."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[red]{task.fields[failed]}"),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as bar:
            task = bar.add_task("cases", total=count, failed="")
            failed = 0

            def on_verdict(verdict: Verdict) -> None:
                nonlocal failed
                failed += verdict.outcome is Outcome.FAILED
                bar.update(task, advance=1, failed=f"{failed} failed" if failed else "")

            yield on_verdict

    def summary(self, found: Run) -> None:
        """Print the table by area, the failures, and a line with the totals."""
        self.console.print(self._table(found))
        for index, verdict in enumerate(found.failures):
            self._failure(found, verdict, in_full=index < _TOLD_IN_FULL)
        count = found.count()
        if count[Outcome.NOT_APPLICABLE]:
            self.console.print("not applicable:")
        for reason, number in found.reasons_of_applicability().most_common():
            self.console.print(Text(f"  {number:>4}  {_cut(reason)}", "dim"))
        words = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.NOT_APPLICABLE: "not applicable"}
        parts = ", ".join(f"{count[outcome]} {word}" for outcome, word in words.items())
        style = "bold red" if found.failures else "bold green"
        self.console.print(Text.assemble((parts, style), (f" in {found.seconds:.1f} s", "dim")))

    def comparison(self, mine: Run, theirs: Run) -> None:
        """Print the cases with another verdict there, and those that apply to one of the two only, with the reason."""
        parted = partings(mine, theirs)
        changed = [each for each in parted if not each.is_of_applicability]
        title = f"other on {theirs.target} ({theirs.release}, metadata.version {theirs.metadata_version})"
        table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        for heading in ("area", "case", mine.target, theirs.target):
            table.add_column(heading)
        for each in changed:
            table.add_row(each.mine.area, each.mine.name, outcome_text(each.mine), outcome_text(each.theirs))
        if changed:
            self.console.print(table)
        self.console.print(f"{len(changed)} of {len(mine.verdicts)} cases {changed_text(theirs)}")
        one_sided = [each for each in parted if each.is_of_applicability]
        if one_sided:
            self.console.print(f"{len(one_sided)} {ONE_SIDED_TEXT}:")
        for each in one_sided:
            where = mine.target if each.mine.outcome is Outcome.NOT_APPLICABLE else theirs.target
            reason = Text(f"  not to {where}: {_cut(each.reason_of_applicability)}", "dim")
            self.console.print(Text.assemble(f"  {each.mine.area}: {each.mine.name}", reason))

    def _table(self, found: Run) -> Table:
        level = f"metadata.version {found.metadata_version}"
        title = _cut(f"{found.target}, {found.release}, cluster {found.cluster_id}, {level}")
        table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        table.add_column("area")
        for heading in ("passed", "failed", "not applicable"):
            table.add_column(heading, justify="right")
        for area in found.areas:
            count = found.count(area)
            cells = (count[Outcome.PASSED], count[Outcome.FAILED], count[Outcome.NOT_APPLICABLE])
            styles = ("green", "bold red", "dim")
            table.add_row(
                area, *(Text(str(n) if n else "·", s if n else "dim") for n, s in zip(cells, styles, strict=True))
            )
        return table

    def _failure(self, found: Run, verdict: Verdict, *, in_full: bool) -> None:
        self.console.print(
            Text.assemble(("✗ ", "red"), (f"{verdict.area}: {verdict.name}", "bold"), (f"  [{verdict.source}]", "dim"))
        )
        details = list(lines(verdict))
        shown = details[:_BRIEF_LINES] if in_full else details[:1]
        for line in shown:
            self.console.print(Text(f"    {_cut(line)}"))
        again = shlex.join(("mockraft", "conformance", "--bootstrap", found.target, "--only", verdict.name))
        self.console.print(Text(f"    again: {again}\n", "dim"))


def _cut(line: str) -> str:
    """Return a line for the terminal; the files that --json, --junit and --html write have the whole one."""
    return printable_line(line, _LINE_MAX)
