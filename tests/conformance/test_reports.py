"""The reports of a run: lossless JSON, JUnit, HTML, a comparison, and a failure as text."""

import builtins
import dataclasses
import io
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from mockraft.cli.conformance.screen import Screen
from mockraft.conformance.reports.failure_text import lines
from mockraft.conformance.reports.html_report import NoTemplatesError, write_html
from mockraft.conformance.reports.junit import write_junit
from mockraft.conformance.reports.summary import Level, as_markdown
from mockraft.conformance.verdicts import Outcome, Run, Verdict, outcome_text, partings
from rich.console import Console

from ..rows import each_row

STORY = [{"api": "CreateTopics v7", "request": {"timeoutMs": 1}, "answer": {"errorCode": 41}}]
DETAIL = {
    "what": "the answer",
    "path": "errorCode",
    "expected": {"errorCode": 0},
    "got": {"errorCode": 41},
    "story": STORY,
}


def verdict(name: str, outcome: Outcome = Outcome.PASSED, area: str = "topics", **fields: Any) -> Verdict:
    return Verdict(name, area, "must", "KIP-0", outcome, **fields)


@pytest.fixture
def found() -> Run:
    verdicts = [
        verdict("good <b>"),
        verdict("bad", Outcome.FAILED, reason="the answer: \x00 & <i>", detail=DETAIL, seconds=0.5),
        verdict("worse", Outcome.FAILED, area="log", reason="r", detail={"what": "Traceback"}),
        verdict("beside", Outcome.NOT_APPLICABLE, area="log", reason="holds from 30"),
    ]
    return Run("h:1", "id", 30, "Kafka 4.3", 1.5, verdicts)


def test_a_kept_run_comes_back_as_it_was(found: Run, tmp_path: Path) -> None:
    found.write_json(tmp_path / "run.json")
    assert Run.read_json(tmp_path / "run.json") == found


@each_row("text", ["", "[]", "{}", '{"verdicts": [{"outcome": "odd"}]}', '{"verdicts": []}'])
def test_refuses_files_that_are_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is no conformance run"):
        Run.read_json(tmp_path / "x.json")


def test_failures_are_counted_by_area(found: Run) -> None:
    assert [each.name for each in found.failures] == ["bad", "worse"]
    assert found.areas == ["topics", "log"]
    assert found.count("log") == {Outcome.FAILED: 1, Outcome.NOT_APPLICABLE: 1}


def test_junit_has_a_suite_per_area(found: Run, tmp_path: Path) -> None:
    write_junit(found, tmp_path / "run.xml")
    root = ET.parse(tmp_path / "run.xml").getroot()
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("skipped")) for s in root] == [
        ("topics", "2", "1", "0"),
        ("log", "2", "1", "1"),
    ]
    failure = root.find(".//testcase[@name='bad']/failure")
    assert failure is not None
    assert failure.get("message") == r"the answer: \u0000 & <i>"
    assert 'expected: {"errorCode": "0 NONE"}' in (failure.text or "")
    skipped = root.find(".//testcase[@name='beside']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "holds from 30"


def test_failure_text_includes_the_request(found: Run) -> None:
    result = list(lines(found.verdicts[1]))
    assert result[1:] == [
        'after CreateTopics v7 {"timeoutMs": 1}',
        'expected: {"errorCode": "0 NONE"}',
        'got: {"errorCode": "41 NOT_CONTROLLER"}',
    ]
    assert list(lines(found.verdicts[2])) == ["r", "Traceback"]


def test_long_lines_are_cut_in_the_terminal(found: Run) -> None:
    found.failures[0].detail["story"] = [{"api": "X v0", "request": {"a": "\x9b" + 500_000 * "x"}, "answer": None}]
    printed = io.StringIO()
    Screen(Console(file=printed, width=10_000)).summary(found)
    text = printed.getvalue()
    assert "after X v0" in text
    assert "xxx… (500,0" in text
    assert "\x9b" not in text
    assert max(map(len, text.splitlines())) < 500


def test_html_report_is_complete_and_self_contained(found: Run, tmp_path: Path) -> None:
    other = dataclasses.replace(found, target="kafka:1", verdicts=[verdict("good <b>", Outcome.FAILED)])
    write_html(found, tmp_path / "run.html", other)
    text = (tmp_path / "run.html").read_text()
    assert text.count("data-word=") == 4
    assert "good &lt;b&gt;" in text
    assert "good <b>" not in text
    assert "kafka:1: failed" in text
    assert "41 NOT_CONTROLLER" in text
    assert "http" not in text


def test_reports_are_private_files(found: Run, tmp_path: Path) -> None:
    write_html(found, tmp_path / "run.html")
    write_junit(found, tmp_path / "run.xml")
    found.write_json(tmp_path / "run.json")
    assert {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == dict.fromkeys(
        ("run.html", "run.xml", "run.json"), 0o600
    )


def test_without_jinja_the_report_explains_how_to_install_it(
    found: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jinja2":
            raise ModuleNotFoundError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NoTemplatesError, match=r"pip install 'mockraft\[conformance\]'"):
        write_html(found, tmp_path / "run.html")


def test_summary_has_what_may_be_published(found: Run) -> None:
    text = as_markdown(found, Level.CORE, on=date(2026, 1, 2))
    facts = dict(line.strip("| ").split(" | ") for line in text.splitlines()[4:12])
    assert facts["Release"] == "Kafka 4.3, metadata.version 30"
    assert facts["Level"] == f"core: {Level.CORE.meaning}"
    assert facts["Verdict"] == "not met"
    assert [facts[name] for name in ("Passed", "Failed", "Not applicable", "Date")] == ["1", "2", "1", "2026-01-02"]
    assert "| log | 0 | 1 | 1 |" in text
    assert r"| topics: bad | the answer: \\u0000 \& \<i> | KIP-0 |" in text
    assert "| log: worse | r | KIP-0 |" in text
    assert found.target not in text


@pytest.mark.parametrize(("is_selection", "verdict"), [(False, "met"), (True, "not judged: a selection of its cases")])
def test_summary_of_a_selection_is_no_verdict(found: Run, is_selection: bool, verdict: str) -> None:
    good = dataclasses.replace(found, verdicts=[found.verdicts[0]])
    text = as_markdown(good, Level.FULL, on=date(2026, 1, 2), is_selection=is_selection)
    assert f"| Verdict | {verdict} |" in text


def test_runs_part_where_outcomes_or_failures_differ(found: Run) -> None:
    verdicts = [
        verdict("good <b>", Outcome.FAILED),
        verdict("bad", Outcome.FAILED, reason="the answer: topics should be 5, is 6"),
        verdict("worse", Outcome.FAILED, reason="r"),
        verdict("only there"),
    ]
    parted = partings(found, dataclasses.replace(found, verdicts=verdicts))
    assert [(each.mine.name, outcome_text(each.mine), outcome_text(each.theirs)) for each in parted] == [
        ("good <b>", "passed", "failed"),
        ("bad", "failed", "failed"),
        ("beside", "not applicable", "not run"),
    ]
    assert [each.is_of_applicability for each in parted] == [False, False, True]
    assert parted[2].reason_of_applicability == found.verdicts[3].reason


@pytest.fixture
def one_sided() -> tuple[Run, Run]:
    """Two runs: the second controller has no key of delegation tokens."""
    lacking = [verdict(f"token {n}", Outcome.NOT_APPLICABLE, reason="no delegation.token.secret.key") for n in (1, 2)]
    run = Run("mine:1", "", 30, verdicts=[verdict("token 1"), verdict("token 2"), verdict("same")])
    return run, Run("kafka:1", "", 30, verdicts=[*lacking, verdict("same")])


def test_html_report_has_no_red_for_cases_that_one_of_the_two_lacks(one_sided: tuple[Run, Run], tmp_path: Path) -> None:
    write_html(one_sided[0], tmp_path / "run.html", one_sided[1])
    text = (tmp_path / "run.html").read_text()
    assert "<b>0</b>have another verdict on kafka:1" in text
    assert "<b>2</b>apply to one of the two only" in text
    assert "tag failed" not in text
    assert text.count('<span class="tag skipped">kafka:1: not applicable</span>') == 2
    assert text.count('<p class="reason">no delegation.token.secret.key</p>') == 2


def test_terminal_lists_cases_that_one_of_the_two_lacks_with_the_reason(one_sided: tuple[Run, Run]) -> None:
    text = io.StringIO()
    screen = Screen(Console(file=text, soft_wrap=True))
    screen.comparison(*one_sided)
    assert text.getvalue().splitlines() == [
        "0 of 3 cases have another verdict on kafka:1",
        "2 apply to one of the two only:",
        "  topics: token 1  not to kafka:1: no delegation.token.secret.key",
        "  topics: token 2  not to kafka:1: no delegation.token.secret.key",
    ]


def test_terminal_counts_cases_that_are_not_applicable_by_reason() -> None:
    reasons = ["before Kafka 4.0: one rule", "before Kafka 4.0: another", "holds up to 16; metadata.version is 33"]
    verdicts = [verdict(each, Outcome.NOT_APPLICABLE, reason=each) for each in reasons]
    text = io.StringIO()
    Screen(Console(file=text, soft_wrap=True)).summary(Run("mine:1", "", 30, verdicts=verdicts))
    at = text.getvalue().splitlines().index("not applicable:")
    assert text.getvalue().splitlines()[at + 1 : at + 3] == [
        "     2  before Kafka 4.0",
        "     1  holds up to 16; metadata.version is 33",
    ]
