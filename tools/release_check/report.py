"""Results of the steps of a release check: one line each for the terminal, details for the report."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from mockraft.kafka.jars import KafkaUnavailableError

S = TypeVar("S")

SOMETHING_FAILED = 1
NOT_ALL_RAN = 2


class StepVerdict(StrEnum):
    """Outcome of one step."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "not run"


class Findings(NamedTuple):
    """Findings of a step: a line, and Markdown that goes below it in the report."""

    line: str
    detail: str = ""


class FailedError(Exception):
    """Something of mockraft fails with the release; the argument is a `Findings`."""

    def __init__(self, found: Findings) -> None:
        super().__init__(found.line)
        self.found = found


class CheckStep(NamedTuple, Generic[S]):
    """One step: its name, the question that it answers, its function, and the steps that it needs."""

    name: str
    question: str
    run: Callable[[S], Findings]
    after: tuple[str, ...] = ()


class Result(NamedTuple):
    """The verdict of one step, its line and details, and the seconds that it took."""

    name: str
    question: str
    verdict: StepVerdict
    found: Findings
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}, {self.found.line} ({self.seconds:.1f} s)"


def run_steps(steps: Sequence[CheckStep[S]], subject: S, progress: Callable[[str], None]) -> list[Result]:
    """Run the steps in their order and return their results; one whose predecessor did not pass is not run."""
    results: dict[str, Result] = {}
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}]"
        missing = [name for name in step.after if results[name].verdict is not StepVerdict.PASSED]
        if missing:
            result = Result(step.name, step.question, StepVerdict.NOT_RUN, Findings(f"it needs {missing[0]}"))
        else:
            progress(f"{place} {step.name}: {step.question}")
            result = _result(step, subject)
        results[step.name] = result
        progress(f"{place} {result}")
    return list(results.values())


def _result(step: CheckStep[S], subject: S) -> Result:
    began = time.monotonic()
    try:
        verdict, found = StepVerdict.PASSED, step.run(subject)
    except KafkaUnavailableError as error:
        verdict, found = StepVerdict.NOT_RUN, Findings(str(error))
    except FailedError as error:
        verdict, found = StepVerdict.FAILED, error.found
    except Exception as error:
        # A release that nobody has seen yet may break anything of ours, and the other steps are still worth running.
        line = str(error).partition("\n")[0] or "no message"
        verdict = StepVerdict.FAILED
        found = Findings(f"{type(error).__name__}: {line}", block("".join(traceback.format_exception(error))))
    return Result(step.name, step.question, verdict, found, time.monotonic() - began)


def exit_code(results: Sequence[Result]) -> int:
    """Return 1 if a step failed, 2 if none failed and one could not run, else 0."""
    verdicts = {each.verdict for each in results}
    if StepVerdict.FAILED in verdicts:
        return SOMETHING_FAILED
    return NOT_ALL_RAN if StepVerdict.NOT_RUN in verdicts else 0


def summary(results: Sequence[Result]) -> str:
    """Return one line for all steps: how many passed, which did not."""
    others = [f"{each.name} {each.verdict}" for each in results if each.verdict is not StepVerdict.PASSED]
    return ", ".join([f"{len(results) - len(others)} of {len(results)} steps passed", *others])


def as_markdown(results: Sequence[Result], title: str) -> str:
    """Return the report: a table of the verdicts, then the details of each step that has any."""
    rows = [(each.name, each.verdict.value, each.found.line, f"{each.seconds:.1f}") for each in results]
    parts = [f"# {title}", f"{summary(results)}.", table(["step", "verdict", "found", "s"], rows)]
    for each in results:
        if each.found.detail:
            parts += [f"## {each.name}: {each.question}", each.found.detail.strip()]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def block(text: str) -> str:
    """Return a Markdown block of plain text, fenced by more backquotes than the text has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.strip()}\n{fence}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
