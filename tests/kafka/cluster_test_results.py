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
_TIMEOUT_S = 1800
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


def verdicts(name: str, controllers: Mapping[ControllerKind, Mapping[str, Kept]]) -> dict[str, Verdict]:
    """Judge all tests of a class that ran on mockraft."""
    return {test: verdict(name, test, controllers) for test in controllers.get("mockraft", {})}


def as_markdown(results: Results) -> str:
    """Return the section of the page: a row for each class, the tests that do not pass, the classes without results."""
    columns = get_args(Verdict)
    judged = {name: verdicts(name, controllers) for name, controllers in results["classes"].items()}
    run = {name: tests for name, tests in sorted(judged.items()) if tests}
    counts = {name: Counter(tests.values()) for name, tests in run.items()}
    total = sum(counts.values(), Counter[str]())
    rows = [("all", total), *counts.items()]
    head = f"Kafka {results['version']}, {results['date']}: {len(run)} of {len(judged)} classes."
    table = [f"| class | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    table += [f"| {_short(name)} | {' | '.join(str(count[each] or '') for each in columns)} |" for name, count in rows]
    others = [
        f"| {_short(name)} {test} | {found} | {_error(results, name, test)} |"
        for name, tests in run.items()
        for test, found in sorted(tests.items())
        if found != "passes" and "combined node" not in _error(results, name, test)
    ]
    listed = ["| test | verdict | on mockraft |", "| --- | --- | --- |", *others]
    missing = ", ".join(_short(name) for name in sorted(set(judged) - set(run)))
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
        names = options.classes or [name for name in cluster_test_classes(VERSION) if not results["classes"].get(name)]
        for name in names:
            run_and_keep(name)
    write(read())


def run_and_keep(name: str) -> dict[str, Verdict]:
    """Run a class on mockraft, and on Kafka's controller what has to be compared; keep the results; return verdicts."""
    methods = _run_on("mockraft", name, [name])
    if methods:
        _run_on("kafka", name, [f"{name}#{method}" for method in sorted(methods)])
    return verdicts(name, read()["classes"][name])


def _run_on(controller: ControllerKind, name: str, tests: Sequence[str]) -> set[str]:
    """Run tests of a class, keep their results, and return the methods with failures that are not decided yet."""
    with TemporaryDirectory() as folder:
        try:
            found = run_cluster_tests(tests, Path(folder), version=VERSION, controller=controller, timeout_s=_TIMEOUT_S)
        except (KafkaProcessError, TimeoutError) as error:
            print(error, flush=True)
            return set()
    results = read()  # anew: another process may have kept results of other classes
    if controller == "mockraft":
        results["classes"][name] = {}
    results["classes"][name][controller] = kept(found)
    results["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
    write(results)
    print(f"{name} on {controller}: {dict(Counter(each.outcome for each in found))}", flush=True)
    judged = verdicts(name, results["classes"][name])
    return {test.partition("[")[0] for test, verdict in judged.items() if verdict == "undecided"}


if __name__ == "__main__":
    main()
