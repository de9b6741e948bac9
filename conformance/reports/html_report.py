"""A run as one self-contained HTML file: a summary by area, and every case with requests and responses."""

from __future__ import annotations

import json
from pathlib import Path

from mockraft.conformance.reports.failure_text import named_codes
from mockraft.conformance.verdicts import (
    ONE_SIDED_TEXT,
    Outcome,
    Parting,
    Run,
    Verdict,
    changed_text,
    outcome_text,
    partings,
)
from mockraft.files.private_files import write_private
from mockraft.wire.printable import printable_value

_WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.NOT_APPLICABLE: "skipped"}


class NoTemplatesError(RuntimeError):
    """Jinja2 is not installed; the message explains how to install it."""


def write_html(found: Run, path: Path, against: Run | None = None) -> None:
    """Write the report; with `against`, next to the other run's outcomes. Raises NoTemplatesError without Jinja2."""
    try:
        from jinja2 import Environment, PackageLoader
    except ModuleNotFoundError:
        raise NoTemplatesError("the HTML report needs Jinja2: pip install 'mockraft[conformance]'") from None
    loader = PackageLoader("mockraft.conformance", "reports")
    environment = Environment(
        loader=loader, autoescape=True, finalize=printable_value, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("report.html.j2").render(_content(found, against))
    write_private(path, page.encode())


def _content(found: Run, against: Run | None) -> dict[str, object]:
    others = {each.name: each for each in against.verdicts} if against else {}
    parted = {each.mine.name: each for each in partings(found, against)} if against else {}
    one_sided = sum(each.is_of_applicability for each in parted.values())
    areas: list[dict[str, object]] = []
    for area in found.areas:
        verdicts = [each for each in found.verdicts if each.area == area]
        cases = [_case(each, others.get(each.name), parted.get(each.name)) for each in verdicts]
        areas.append({"name": area, "cases": cases, **_counts(verdicts)})
    return {
        "run": found,
        "against": against,
        "areas": areas,
        "total": _counts(found.verdicts),
        "largest": max((sum(each.area == area for each in found.verdicts) for area in found.areas), default=1),
        "comparison": [(len(parted) - one_sided, changed_text(against)), (one_sided, ONE_SIDED_TEXT)]
        if against
        else [],
    }


def _counts(verdicts: list[Verdict]) -> dict[str, int]:
    outcomes = [each.outcome for each in verdicts]
    return {word: outcomes.count(outcome) for outcome, word in _WORDS.items()}


def _case(verdict: Verdict, other: Verdict | None, parting: Parting | None) -> dict[str, object]:
    detail = verdict.detail
    return {
        "name": verdict.name,
        "word": _WORDS[verdict.outcome],
        "rank": verdict.rank,
        "source": verdict.source,
        "reason": verdict.reason,
        "milliseconds": round(verdict.seconds * 1000),
        "other": outcome_text(other),
        "parted": parting is not None,
        "one_sided": parting.reason_of_applicability if parting and parting.is_of_applicability else None,
        "expected": _pretty(detail["expected"]) if "expected" in detail else None,
        "got": _pretty(detail["got"]) if "got" in detail else None,
        "story": [
            {"api": each["api"], "request": _pretty(each["request"]), "answer": _pretty(each["answer"])}
            for each in detail.get("story", ())
            if "api" in each
        ],
    }


def _pretty(tree: object) -> str:
    return json.dumps(named_codes(tree), ensure_ascii=False, indent=1)
