"""The tables of docs/evidence/matrix.md, from the files beside it, and the short one of README.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from mockraft.releases import SUPPORTED

from tests.real_kafka import broker_runs
from tools.cluster_test_results import Results, verdict
from tools.pages.marked_text import replace_marked

from . import captured, controllers

_EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"
PAGE = _EVIDENCE / "matrix.md"
README = Path(__file__).parents[2] / "README.md"
NOTHING = "not run"


def write() -> None:
    """Write the tables of both pages."""
    PAGE.write_text(replace_marked(PAGE.read_text(), as_markdown()))
    README.write_text(replace_marked(README.read_text(), support()))


def support() -> str:
    """Return the short table of releases."""
    head = "Kafka", "its brokers run on mockraft", "controller equal to Kafka's"
    return _table(head, [(version, _brokers(version), _controller(version)) for version in SUPPORTED])


def as_markdown() -> str:
    """Return the table of releases, and one of what the captures hold."""
    head = "Kafka", "its brokers run on mockraft", "controller equal", "capture decoded", "own tests passed"
    rows = [
        (version, _brokers(version), _controller(version), _capture(version), _own(version)) for version in SUPPORTED
    ]
    of_captures = "Kafka", "frames", "decoded", "alike in tshark", "alike in kio", "APIs", "not decoded"
    details = [
        (
            row["kafka"],
            row["frames"],
            row["decoded"],
            row["by_tshark"],
            _of(row["by_kio"], row["known_to_kio"]),
            len(row["apis"]),
            "; ".join(_counted(row["failures"])),
        )
        for row in captured.read()
    ]
    return f"{_table(head, rows)}\n\nThe captures:\n\n{_table(of_captures, details)}"


def _brokers(version: str) -> str:
    rows = [row for row in broker_runs.read() if row["broker"] == version]
    runs = [row for row in rows if row["result"] == broker_runs.RUNS]
    wanted = sum(broker == version for broker, _ in broker_runs.PAIRS)
    return _dated(f"{_of(len(runs), wanted)} controllers", (row["date"] for row in runs))


def _controller(version: str) -> str:
    rows = [row for row in controllers.read() if row["kafka"] == version]
    found = [
        f"{_of(row['cases'] - len(row['differing']), row['cases'])} cases, {row['applying']} apply" for row in rows
    ]
    return _dated("".join(found), (row["date"] for row in rows))


def _capture(version: str) -> str:
    rows = [row for row in captured.read() if row["kafka"] == version]
    found = [f"{_of(row['decoded'], row['frames'])} frames" for row in rows]
    return _dated("".join(found), (row["date"] for row in rows))


def _own(version: str) -> str:
    path = _EVIDENCE / "data" / f"kafkas-own-tests-{version}.json"
    if not path.exists():
        return NOTHING
    results: Results = json.loads(path.read_text())
    found = Counter(
        verdict(name, test, both) for name, both in results["classes"].items() for test in both.get("mockraft", {})
    )
    bound = found.pop("bound to the JVM", 0)
    return _dated(
        f"{_of(found['passes'], found.total())} tests, {bound} more need a JVM's controller", [results["date"]]
    )


def _of(count: int, wanted: int) -> str:
    return f"{count} of {wanted}"


def _dated(text: str, days: Iterable[str]) -> str:
    """Return the text with the oldest of these days; without any, there is no evidence."""
    oldest = min(map(date.fromisoformat, days), default=None)
    return NOTHING if oldest is None else f"{text} ({oldest})"


def _counted(texts: Iterable[str]) -> list[str]:
    return [f"{count} × {text}" for text, count in sorted(Counter(texts).items())]


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in lines)
