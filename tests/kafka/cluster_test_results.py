"""Results of Kafka's own `@ClusterTest` classes on both controllers, kept as JSON and shown on their page.

`python -m tests.kafka.cluster_test_results run CLASS…` runs classes anew (`run` alone: those without results) and
`python -m tests.kafka.cluster_test_results` writes the page from the file. Each class is kept as soon as it has ended.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NotRequired, TypedDict, get_args

from mockraft.conformance.documents.marked_text import replace_marked
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.cluster_tests import (
    ClusterTestResult,
    ControllerKind,
    cluster_test_classes,
    run_cluster_tests,
)

VERSION = "4.3.1"
_ROOT = Path(__file__).parents[2]
RESULTS = _ROOT / "docs" / "evidence" / f"kafkas-own-tests-{VERSION}.json"
PAGE = _ROOT / "docs" / "kafkas-own-tests.md"
_TIMEOUT_S = 600
_BOUND_BY_READING = {
    "org.apache.kafka.api.EndToEndClusterIdTest": "reads the controller's metrics reporter, an object of its JVM",
}
"""Classes all of whose failures have this reason, which their errors do not tell."""

_BOUND = ("combined node", "outside of this JVM", "NoSuchMethodError")

Verdict = Literal["passes", "bound to the JVM", "fails the same on Kafka's controller", "fails", "undecided"]


class Kept(TypedDict):
    """One test on one controller; `error` is the first line of what it failed or was skipped with."""

    outcome: str
    error: NotRequired[str]


class Results(TypedDict):
    """Results of a release: by class, controller and test. A class without an entry has not been run."""

    version: str
    date: str
    classes: dict[str, dict[ControllerKind, dict[str, Kept]]]


def read() -> Results:
    """Return the kept results."""
    results: Results = json.loads(RESULTS.read_text())
    return results


def write(results: Results) -> None:
    """Keep these results and show them on the page."""
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(replace_marked(PAGE.read_text(), as_markdown(results)))


def kept(results: Sequence[ClusterTestResult]) -> dict[str, Kept]:
    """Return results of one class as they are kept."""
    return {each.name: _kept(each) for each in results}


def _kept(result: ClusterTestResult) -> Kept:
    if result.outcome == "passed":
        return {"outcome": result.outcome}
    lines = [line.strip() for line in result.error.splitlines() if line.strip()]
    bound = [line for line in lines if any(words in line for words in _BOUND)]
    return {"outcome": result.outcome, "error": (bound or lines or [""])[0][:200]}


def verdict(name: str, test: str, controllers: Mapping[ControllerKind, Mapping[str, Kept]]) -> Verdict:
    """Judge a test of the class `name` by its results on both controllers; a failure needs both."""
    ours, kafkas = controllers["mockraft"][test], controllers.get("kafka", {}).get(test)
    if ours["outcome"] == "passed":
        return "passes"
    if name in _BOUND_BY_READING or any(words in ours["error"] for words in _BOUND):
        return "bound to the JVM"
    if kafkas is None:
        return "undecided"
    return "fails" if kafkas["outcome"] == "passed" else "fails the same on Kafka's controller"


def as_markdown(results: Results) -> str:
    """Return the section of the page: a row for each class, the tests that do not pass, the classes without results."""
    columns = get_args(Verdict)
    verdicts = {
        name: {test: verdict(name, test, controllers) for test in controllers.get("mockraft", {})}
        for name, controllers in results["classes"].items()
    }
    run = {name: tests for name, tests in sorted(verdicts.items()) if tests}
    counts = {name: Counter(tests.values()) for name, tests in run.items()}
    total = sum(counts.values(), Counter[str]())
    rows = [("all", total), *counts.items()]
    head = f"Kafka {results['version']}, {results['date']}: {len(run)} of {len(verdicts)} classes."
    table = [f"| class | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    table += [f"| {_short(name)} | {' | '.join(str(count[each] or '') for each in columns)} |" for name, count in rows]
    others = [
        f"| {_short(name)} {test} | {found} | {_error(results, name, test)} |"
        for name, tests in run.items()
        for test, found in sorted(tests.items())
        if found != "passes" and "combined node" not in _error(results, name, test)
    ]
    listed = ["| test | verdict | on mockraft |", "| --- | --- | --- |", *others]
    missing = ", ".join(_short(name) for name in sorted(set(verdicts) - set(run)))
    return "\n".join([head, "", *table, "", *listed, "", f"Not run yet, or not to the end: {missing or 'none'}."])


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _error(results: Results, name: str, test: str) -> str:
    text = _BOUND_BY_READING.get(name) or results["classes"][name]["mockraft"][test]["error"]
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Run classes, if asked, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run"])
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    results = read()
    if options.command == "run":
        for name in cluster_test_classes(VERSION):
            results["classes"].setdefault(name, {})
        for name in options.classes or [name for name, found in results["classes"].items() if not found]:
            _run(name, results)
    write(results)


def _run(name: str, results: Results) -> None:
    for controller in get_args(ControllerKind):
        with TemporaryDirectory() as folder:
            try:
                found = run_cluster_tests(
                    [name], Path(folder), version=VERSION, controller=controller, timeout_s=_TIMEOUT_S
                )
            except (KafkaProcessError, TimeoutError) as error:
                print(error, flush=True)
                continue
        results["classes"][name][controller] = kept(found)
        results["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
        write(results)
        print(f"{name} on {controller}: {dict(Counter(each.outcome for each in found))}", flush=True)


if __name__ == "__main__":
    main()
