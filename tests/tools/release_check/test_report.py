"""Verdicts, exit codes and the report of a release check."""

from __future__ import annotations

from collections.abc import Callable

from mockraft.kafka.jars import KafkaUnavailableError

from tools.release_check.report import (
    CheckStep,
    FailedError,
    Findings,
    Result,
    StepVerdict,
    exit_code,
    run_steps,
    summary,
)

from ...rows import each_row


def passes(subject: str) -> Findings:
    return Findings(f"all of {subject}", "| detail |")


def fails(subject: str) -> Findings:
    raise FailedError(Findings("three cases differ", "the | cases"))


def breaks(subject: str) -> Findings:
    return Findings(f"{int(subject)}")


def lacks_java(subject: str) -> Findings:
    raise KafkaUnavailableError("java was not found")


def results_of(*runs: Callable[[str], Findings], after: tuple[str, ...] = ()) -> list[Result]:
    steps = [CheckStep(each.__name__, "?", each, after if at else ()) for at, each in enumerate(runs)]
    return run_steps(steps, "4.5.0", lambda line: None)


@each_row(
    ("run", "verdict", "line"),
    [
        (passes, StepVerdict.PASSED, "all of 4.5.0"),
        (fails, StepVerdict.FAILED, "three cases differ"),
        (breaks, StepVerdict.FAILED, "ValueError: invalid literal for int() with base 10: '4.5.0'"),
        (lacks_java, StepVerdict.NOT_RUN, "java was not found"),
    ],
)
def test_each_way_to_end_has_its_verdict(run: Callable[[str], Findings], verdict: StepVerdict, line: str) -> None:
    (result,) = results_of(run)
    assert (result.verdict, result.found.line) == (verdict, line)


@each_row(
    ("runs", "code"),
    [((passes, passes), 0), ((passes, fails), 1), ((passes, lacks_java), 2), ((lacks_java, breaks), 1)],
)
def test_exit_code_tells_failures_from_steps_that_could_not_run(
    runs: tuple[Callable[[str], Findings], ...], code: int
) -> None:
    assert exit_code(results_of(*runs)) == code


def test_steps_after_a_failed_one_are_not_run_and_name_it() -> None:
    found = results_of(fails, passes, after=("fails",))
    assert [(each.verdict, each.found.line) for each in found][1] == (StepVerdict.NOT_RUN, "it needs fails")
    assert summary(found) == "0 of 2 steps passed, fails FAILED, passes not run"
