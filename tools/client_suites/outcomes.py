"""Outcomes of single tests, read from the reports of Go's and Python's test tools."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

Outcome = Literal["passed", "failed", "skipped"]

_GO_ACTIONS: Mapping[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_GO_NOISE = re.compile(r"^\s*(=== |--- |\[\d\d:\d\d:\d\d|\d{4}/\d\d/\d\d |%\d\|)")


class CaseOutcome(NamedTuple):
    """The outcome of a test, and a line that says why if it did not pass."""

    outcome: Outcome
    reason: str = ""


def of_go_tests(report: Iterable[str]) -> dict[str, CaseOutcome]:
    """Read the lines of `go tool test2json`, by the name of the test.

    A test with subtests is left out, unless it failed with none of them. A test that did not end (the program was
    stopped, or another test's panic ended it) is left out too.
    """
    printed: dict[str, list[str]] = {}
    found: dict[str, CaseOutcome] = {}
    for line in report:
        event = json.loads(line)
        name = event.get("Test", "")
        if event["Action"] == "output":
            printed.setdefault(name, []).append(event["Output"])
        elif name and (outcome := _GO_ACTIONS.get(event["Action"])):
            found[name] = CaseOutcome(outcome, "" if outcome == "passed" else _go_reason(printed.get(name, [])))
    failed = {name for name, test in found.items() if test.outcome == "failed"}
    parents = {name.rpartition("/")[0] for name in found}
    without_failed_subtest = failed - {parent for name in failed for parent in above(name)}
    return {name: test for name, test in found.items() if name not in parents or name in without_failed_subtest}


def above(name: str) -> list[str]:
    """Return the tests around a subtest: `A` and `A/b` for `A/b/c`."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _go_reason(printed: list[str]) -> str:
    lines = [line.strip() for line in "".join(printed).splitlines() if line.strip() and not _GO_NOISE.match(line)]
    at_a_line = [line for line in lines if re.match(r"\S+\.go:\d+: ", line)]
    return _short((at_a_line or lines or [""])[-1])


def of_pytest(report: str) -> dict[str, CaseOutcome]:
    """Read a JUnit XML report, by the test's file and name as pytest takes them: ``test/a.py::test_b[c]``."""
    return dict(map(_of_case, ElementTree.fromstring(report).iter("testcase")))


def _of_case(case: ElementTree.Element) -> tuple[str, CaseOutcome]:
    name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
    for child in case:
        if child.tag == "skipped":
            return name, CaseOutcome("skipped", _short(child.get("message", "")))
        if child.tag in ("failure", "error"):
            return name, CaseOutcome("failed", _short(child.get("message", "")))
    return name, CaseOutcome("passed")


def _short(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:200]


assert set(_GO_ACTIONS.values()) == set(get_args(Outcome))
