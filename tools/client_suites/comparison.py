"""Results of client suites on mockraft and on Kafka's own controller, and the page that shows them.

    python -m tools.client_suites.comparison run [SUITE…] [--controller mockraft]

runs suites anew and keeps their results in `docs/evidence/data/client-suites.json`; without `run` it writes the page
`docs/evidence/client-suites.md` from these.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NotRequired, TypedDict, get_args

from mockraft.kafka.cluster import ControllerKind
from mockraft.kafka.jars import KAFKA_VERSION

from tools.pages.marked_text import replace_marked

from .clusters import ClientCluster
from .outcomes import CaseOutcome
from .suites import SUITES, Suite, suite

_ROOT = Path(__file__).parents[2]
RESULTS = _ROOT / "docs" / "evidence" / "data" / "client-suites.json"
PAGE = _ROOT / "docs" / "evidence" / "client-suites.md"
TRIES = 3
"""Tests that fail are run again, on a new cluster: many depend on time."""

Verdict = Literal["passes on both", "skipped on both", "fails on both", "a race", "differs", "not compared"]


class Kept(TypedDict):
    """One test on one controller; `tries` is given if there were several."""

    outcome: str
    reason: NotRequired[str]
    tries: NotRequired[int]


class SuiteResults(TypedDict):
    """Results of one version of a suite, by controller and test."""

    version: str
    kafka: str
    date: str
    controllers: dict[ControllerKind, dict[str, Kept]]


def read() -> dict[str, SuiteResults]:
    """Return the kept results by suite."""
    results: dict[str, SuiteResults] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def write(results: Mapping[str, SuiteResults]) -> None:
    """Keep these results and show them on the page."""
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(replace_marked(PAGE.read_text(), as_markdown(results)))


def run(chosen: Suite, controller: ControllerKind, folder: Path, tests: Sequence[str] = ()) -> dict[str, Kept]:
    """Run a suite, or these tests of it, on a new cluster with that controller; failed tests up to `TRIES` times."""
    chosen.fetch()
    kept: dict[str, Kept] = {}
    for attempt in range(1, TRIES + 1):
        below = folder / f"try-{attempt}"
        with ClientCluster(below / "cluster", controller, KAFKA_VERSION, chosen.shape) as cluster:
            outcomes = chosen.run(cluster, below / "suite", tests)
        kept |= {name: _kept(test, attempt) for name, test in outcomes.items()}
        tests = [name for name, test in kept.items() if test["outcome"] == "failed"]
        if not tests:
            break
    return kept


def _kept(test: CaseOutcome, attempt: int) -> Kept:
    kept: Kept = {"outcome": test.outcome}
    if test.reason:
        kept["reason"] = test.reason
    if attempt > 1:
        kept["tries"] = attempt
    return kept


def verdict(test: str, controllers: Mapping[ControllerKind, Mapping[str, Kept]], races: Container[str] = ()) -> Verdict:
    """Judge a test by its outcomes on both controllers."""
    found = [controllers.get(controller, {}).get(test) for controller in get_args(ControllerKind)]
    outcomes = {each["outcome"] for each in found if each is not None}
    if None in found:
        return "not compared"
    if test in races:
        return "a race"
    if len(outcomes) == 2:
        return "differs"
    verdicts: dict[str, Verdict] = {"passed": "passes on both", "skipped": "skipped on both", "failed": "fails on both"}
    return verdicts[outcomes.pop()]


def as_markdown(results: Mapping[str, SuiteResults]) -> str:
    """Return the section of the page: a row for each suite, then each test that does not pass on both."""
    columns = get_args(Verdict)
    lines = [f"| suite | Kafka | date | {' | '.join(columns)} |", f"| --- | --- | --- |{' --- |' * len(columns)}"]
    others = ["| suite | test | verdict | mockraft | Kafka's controller |", "| --- | --- | --- | --- | --- |"]
    for name, found in sorted(results.items()):
        controllers = found["controllers"]
        verdicts = {
            test: verdict(test, controllers, suite(name).races) for test in sorted(set().union(*controllers.values()))
        }
        counts = Counter(verdicts.values())
        numbers = " | ".join(str(counts[column] or "") for column in columns)
        lines.append(f"| {name} {found['version']} | {found['kafka']} | {found['date']} | {numbers} |")
        for test, judged in verdicts.items():
            if judged not in ("passes on both", "skipped on both"):
                shown = [_shown(controllers.get(each, {}).get(test)) for each in get_args(ControllerKind)]
                others.append(f"| {name} | {test} | {judged} | {' | '.join(shown)} |")
    left = ["| suite | not run | reason |", "| --- | --- | --- |"]
    left += [f"| {each.name} | {test} | {reason} |" for each in SUITES for test, reason in each.excluded.items()]
    return "\n".join([*lines, "", "Tests that do not pass on both:", "", *others, "", "Not run:", "", *left])


def _shown(test: Kept | None) -> str:
    if test is None:
        return "no result"
    text = test["outcome"] if test["outcome"] == "passed" else test.get("reason", "failed")
    text += f" (try {test['tries']})" if "tries" in test else ""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def main() -> None:
    """Run suites, if asked, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["run"])
    parser.add_argument("suites", nargs="*", choices=[*(each.name for each in SUITES), []])
    parser.add_argument("--controller", choices=get_args(ControllerKind), help="this one only")
    parser.add_argument("--keep", type=Path, help="keep logs and reports in this folder")
    options = parser.parse_args()
    for name in options.suites or [each.name for each in SUITES] if options.command else []:
        chosen = suite(name)
        for controller in [options.controller] if options.controller else get_args(ControllerKind):
            with TemporaryDirectory() as folder:
                base = options.keep or Path(folder)
                found = run(chosen, controller, base / f"{name}-{controller}-{datetime.now(UTC):%H%M%S}")
            results = read()
            if name not in results or results[name]["version"] != chosen.version:
                results[name] = {"version": chosen.version, "kafka": KAFKA_VERSION, "date": "", "controllers": {}}
            results[name]["controllers"][controller] = found
            results[name]["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
            write(results)
            print(f"{name} on {controller}: {dict(Counter(each['outcome'] for each in found.values()))}", flush=True)
    write(read())


if __name__ == "__main__":
    main()
