"""Results of Kafka's own `@ClusterTest` classes on both controllers, kept as JSON and shown on their page.

`python -m tools.cluster_test_results run CLASS…` runs classes anew (`run` alone: those without results; the
release is the option `--kafka-version`), and `python -m tools.cluster_test_results` writes the page from the
files. Each class is kept as soon as it has ended.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NotRequired, TypedDict, get_args

from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.cluster_tests import (
    TEST_CLASSES_VERSION,
    ClusterTestResult,
    ControllerKind,
    cluster_test_classes,
    run_cluster_tests,
)

from tools.pages.marked_text import replace_marked

VERSIONS = (TEST_CLASSES_VERSION, "4.4.0")
"""Releases that have run: the one that the classes are of, and those on which they run too, see `moved_classes`."""

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "evidence" / "kafkas-own-tests-results.md"
_TIMEOUT_S = 1800
_BOUND_BY_READING = {
    "org.apache.kafka.api.EndToEndClusterIdTest": "reads the controller's metrics reporter, an object of its JVM"
}
"""Classes all of whose failures have this reason, which their errors do not tell."""

_BOUND = ("combined node", "outside of this JVM", "kafka.server.ControllerServer.")
_UNLINKED = re.compile(r"(NoClassDefFoundError|NoSuchMethodError|NoSuchFieldError): \S+")

Verdict = Literal["passes", "bound to the JVM", "fails the same on Kafka's controller", "fails", "undecided"]


class Kept(TypedDict):
    """One test on one controller; `error` is the first line of what it failed or was skipped with."""

    outcome: str
    error: NotRequired[str]


class Results(TypedDict):
    """Results of a release: by class, controller and test. A class without an entry has not been run.

    `unlinked` has the classes that do not link with the release, and the error of that.
    """

    version: str
    date: str
    classes: dict[str, dict[ControllerKind, dict[str, Kept]]]
    unlinked: dict[str, str]


def evidence(version: str) -> Path:
    """Return the file with the results of a release."""
    return _ROOT / "docs" / "evidence" / "data" / f"kafkas-own-tests-{version}.json"


def read(version: str) -> Results:
    """Return the kept results of a release, which may be none yet."""
    if not evidence(version).exists():
        return {"version": version, "date": "", "classes": {}, "unlinked": {}}
    results: Results = json.loads(evidence(version).read_text())
    return results


def write(results: Results) -> None:
    """Keep the results of a release and show all on the page."""
    evidence(results["version"]).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(replace_marked(PAGE.read_text(), page()))


def page() -> str:
    """Return the sections of the page that show all kept results."""
    return "\n\n".join(as_markdown(read(version)) for version in VERSIONS)


def kept(results: Sequence[ClusterTestResult]) -> dict[str, Kept]:
    """Return results of one class as they are kept."""
    return {each.name: _kept(each) for each in results}


def _kept(result: ClusterTestResult) -> Kept:
    if result.outcome == "passed":
        return {"outcome": result.outcome}
    # A stack frame is no reason: mockraft's start, too, has one in kafka.server.ControllerServer.
    lines = [line.strip() for line in result.error.splitlines() if line.strip() and not line.strip().startswith("at ")]
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
    """Return a section of the page: a row for each class, the tests that do not pass, the classes without results."""
    columns = get_args(Verdict)
    known = set(read(TEST_CLASSES_VERSION)["classes"])
    judged = {name: verdicts(name, controllers) for name, controllers in results["classes"].items()}
    run = {name: tests for name, tests in sorted(judged.items()) if tests}
    counts = {name: Counter(tests.values()) for name, tests in run.items()}
    total = sum(counts.values(), Counter[str]())
    rows = [("all", total), *counts.items()]
    head = f"### Kafka {results['version']}\n\n{len(run)} of {len(known)} classes, {results['date']}."
    table = [f"| class | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    table += [f"| {_short(name)} | {' | '.join(str(count[each] or '') for each in columns)} |" for name, count in rows]
    others = [
        f"| {_short(name)} {test} | {found} | {_error(results, name, test)} |"
        for name, tests in run.items()
        for test, found in sorted(tests.items())
        if found != "passes" and "combined node" not in _error(results, name, test)
    ]
    listed = ["| test | verdict | on mockraft |", "| --- | --- | --- |", *others]
    missing = ", ".join(_short(name) for name in sorted(known - set(run) - set(results["unlinked"])))
    left = [f"Not run yet, or not to the end: {missing}."] if missing else []
    unlinked = Counter(results["unlinked"].values())
    if unlinked:
        reasons = ", ".join(f"{count} by `{error}`" for error, count in unlinked.most_common())
        left.append(f"{unlinked.total()} classes do not link with {results['version']}: {reasons}.")
    return "\n".join([head, "", *table, "", *listed, *(line for each in left for line in ("", each))])


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
    parser.add_argument("--kafka-version", choices=VERSIONS, default=VERSIONS[0])
    options = parser.parse_intermixed_args()
    version = options.kafka_version
    if options.command == "run":
        known = read(version)
        done = {name for name, found in known["classes"].items() if found} | set(known["unlinked"])
        for name in options.classes or [name for name in cluster_test_classes(version) if name not in done]:
            run_and_keep(name, version)
    write(read(version))


def run_and_keep(name: str, version: str) -> dict[str, Verdict]:
    """Run a class on mockraft, and on Kafka's controller what has to be compared; keep the results; return verdicts."""
    methods = _run_on("mockraft", name, [name], version)
    if methods:
        _run_on("kafka", name, [f"{name}#{method}" for method in sorted(methods)], version)
    return verdicts(name, read(version)["classes"].get(name, {}))


def _run_on(controller: ControllerKind, name: str, tests: Sequence[str], version: str) -> set[str]:
    """Run tests of a class, keep their results, and return the methods with failures that are not decided yet."""
    try:
        with TemporaryDirectory() as folder:
            found = run_cluster_tests(tests, Path(folder), version=version, controller=controller, timeout_s=_TIMEOUT_S)
    except (KafkaProcessError, TimeoutError) as error:
        _keep_unlinked(name, version, str(error))
        print(error, flush=True)
        return set()
    results = read(version)  # anew: another process may have kept results of other classes
    results["unlinked"].pop(name, None)
    controllers = results["classes"].setdefault(name, {})
    if controller == "mockraft":
        controllers.clear()
    controllers[controller] = kept(found)
    results["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
    write(results)
    print(f"{name} on {controller}: {dict(Counter(each.outcome for each in found))}", flush=True)
    return {test.partition("[")[0] for test, judged in verdicts(name, controllers).items() if judged == "undecided"}


def _keep_unlinked(name: str, version: str, error: str) -> None:
    unlinked = _UNLINKED.search(error)
    if version != TEST_CLASSES_VERSION and unlinked:
        results = read(version)
        results["unlinked"][name] = unlinked[0]
        write(results)


if __name__ == "__main__":
    main()
