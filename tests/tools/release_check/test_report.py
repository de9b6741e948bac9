"""Verdicts, exit codes and the report of a release check."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mockraft.kafka.jars import KafkaUnavailableError

from tools.release_check.report import (
    FailedError,
    Found,
    Result,
    Step,
    Verdict,
    as_markdown,
    exit_code,
    run_steps,
    summary,
    table,
)


def passes(subject: str) -> Found:
    return Found(f"all of {subject}", "| detail |")


def fails(subject: str) -> Found:
    raise FailedError(Found("three cases differ", "the | cases"))


def breaks(subject: str) -> Found:
    return Found(f"{int(subject)}")


def lacks_java(subject: str) -> Found:
    raise KafkaUnavailableError("java was not found")


def results_of(*runs: Callable[[str], Found], after: tuple[str, ...] = ()) -> list[Result]:
    steps = [Step(each.__name__, "?", each, after if at else ()) for at, each in enumerate(runs)]
    return run_steps(steps, "4.5.0", lambda line: None)


@pytest.mark.parametrize(
    ("run", "verdict", "line"),
    [
        (passes, Verdict.PASSED, "all of 4.5.0"),
        (fails, Verdict.FAILED, "three cases differ"),
        (breaks, Verdict.FAILED, "ValueError: invalid literal for int() with base 10: '4.5.0'"),
        (lacks_java, Verdict.NOT_RUN, "java was not found"),
    ],
)
def test_each_way_to_end_has_its_verdict(run: Callable[[str], Found], verdict: Verdict, line: str) -> None:
    (result,) = results_of(run)
    assert (result.verdict, result.found.line) == (verdict, line)


def test_an_error_that_nobody_foresaw_has_its_traceback_in_the_report() -> None:
    assert 'return Found(f"{int(subject)}")' in as_markdown(results_of(breaks), "Kafka 4.5.0")


@pytest.mark.parametrize(
    ("runs", "code"),
    [((passes, passes), 0), ((passes, fails), 1), ((passes, lacks_java), 2), ((lacks_java, breaks), 1)],
)
def test_exit_code_tells_failures_from_steps_that_could_not_run(
    runs: tuple[Callable[[str], Found], ...], code: int
) -> None:
    assert exit_code(results_of(*runs)) == code


def test_steps_after_a_failed_one_are_not_run_and_name_it() -> None:
    found = results_of(fails, passes, after=("fails",))
    assert [(each.verdict, each.found.line) for each in found][1] == (Verdict.NOT_RUN, "it needs fails")
    assert summary(found) == "0 of 2 steps passed, fails FAILED, passes not run"


def test_progress_has_a_line_before_and_a_verdict_after_each_step() -> None:
    lines: list[str] = []
    run_steps([Step("sync", "can it be read?", passes)], "4.5.0", lines.append)
    assert lines == ["[1/1] sync: can it be read?", "[1/1] sync: passed, all of 4.5.0 (0.0 s)"]


def test_report_has_all_verdicts_and_the_details() -> None:
    found = [
        Result("sync", "can it be read?", Verdict.PASSED, Found("a | b"), 1.25),
        Result("compare", "what has changed?", Verdict.FAILED, Found("two"), 0.5),
        Result("broker", "does it run?", Verdict.FAILED, Found("no", "its log"), 2),
    ]
    assert as_markdown(found, "Kafka 4.5.0").splitlines() == [
        "# Kafka 4.5.0",
        "",
        "1 of 3 steps passed, compare FAILED, broker FAILED.",
        "",
        "| step | verdict | found | s |",
        "| --- | --- | --- | --- |",
        r"| sync | passed | a \| b | 1.2 |",
        "| compare | FAILED | two | 0.5 |",
        "| broker | FAILED | no | 2.0 |",
        "",
        "## broker: does it run?",
        "",
        "its log",
    ]


def test_table_keeps_one_line_for_a_row() -> None:
    assert table(["case", "why"], [["a", "x\n|"]]).splitlines()[2] == r"| a | x \| |"
