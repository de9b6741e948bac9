"""Run Kafka's `@ClusterTest` classes, or your own, on mockraft or on Kafka's own controller.

JUnit's ConsoleLauncher runs them in one JVM with Kafka's brokers. For mockraft a ``kafka.server.ControllerServer`` of
ours stands in front of Kafka's jars (``kafka/java``): it starts ``mockraft serve`` where Kafka's harness starts
its controller.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from mockraft.kafka.child_process import KafkaProcessError, last_lines, wait_until
from mockraft.kafka.cluster_test_jars import cluster_test_jars, controller_classes
from mockraft.kafka.jars import java
from mockraft.kafka.tools import JVM_OPTIONS

ControllerKind = Literal["mockraft", "kafka"]
Outcome = Literal["passed", "failed", "skipped"]

_ANNOTATION = re.compile(rb"Lorg/apache/kafka/common/test/api/Cluster(Test|Tests|Template);")
_STACK_FRAME = re.compile(r"^\s+(at |\.\.\. ).*\n", re.MULTILINE)
_HEAP = ("-Xmx768m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_TEST_TIMEOUT = "180 s"
_ENDED = re.compile(rb"JUnit Jupiter > (.* :: (?:SUCCESSFUL|FAILED|SKIPPED))")


class ClusterTestResult(NamedTuple):
    """Outcome of one test: its class, its name with the number of the invocation, and the first lines of its error."""

    test_class: str
    name: str
    outcome: Outcome
    seconds: float
    error: str


def cluster_test_classes(version: str) -> list[str]:
    """Return the names of the classes in Kafka's own test jars that have `@ClusterTest` methods."""
    found: set[str] = set()
    for jar in cluster_test_jars(version).glob("*-test.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith("Test.class") and _ANNOTATION.search(archive.read(name)):
                    found.add(name.removesuffix(".class").replace("/", "."))
    return sorted(found)


def run_cluster_tests(
    tests: Sequence[str],
    folder: Path,
    *,
    version: str,
    controller: ControllerKind = "mockraft",
    class_path: Sequence[Path] = (),
    working_directory: Path | None = None,
    timeout_s: float = 900,
    progress: Callable[[str], None] = lambda line: None,
) -> list[ClusterTestResult]:
    """Run these classes, or methods as ``CLASS#METHOD``, and return the results by class and name.

    `folder` gets what was printed (``junit.log``), the controllers' logs (``mockraft.log``) and JUnit's reports.
    `class_path` holds the classes of tests that are not Kafka's. Relative paths in tests begin at `working_directory`,
    by default `folder`. Only nodes with one role run on mockraft: a combined node needs a controller in its JVM.
    `progress` gets JUnit's line of each test at its end.

    Raises KafkaUnavailableError, KafkaProcessError if a class has no results, TimeoutError if the JVM does not end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reports = folder / "reports"
    shim = [controller_classes(version)] if controller == "mockraft" else []
    entries = [*shim, *class_path, cluster_test_jars(version) / "*"]
    parts = [test.partition("#") for test in tests]
    classes = list(dict.fromkeys(name for name, _, _ in parts))
    methods = [f"{re.escape(name)}[#.]{re.escape(method) or '.*'}" for name, _, method in parts]
    command = [
        *(java(), *JVM_OPTIONS, *_HEAP),
        f"-Dmockraft.logs={folder}",
        *("-cp", os.pathsep.join(map(str, entries))),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--disable-ansi-colors"),
        *("--details=testfeed", "--config=junit.jupiter.extensions.autodetection.enabled=true"),
        f"--config=junit.jupiter.execution.timeout.test.method.default={_TEST_TIMEOUT}",
        f"--reports-dir={reports}",
        *(f"--select-class={name}" for name in classes),
        *(f"--include-methodname={pattern}" for pattern in methods),
    ]
    environment = {"MOCKRAFT": f"{sys.executable} -m mockraft", **os.environ}
    log_path = folder / "junit.log"
    with log_path.open("wb") as log, log_path.open("rb") as printed:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=working_directory or folder,
            start_new_session=True,
        )
        what = f"{', '.join(tests)}: the end of the JVM, which prints to {log_path}"
        try:
            wait_until(lambda: _is_over(process, printed, progress), timeout_s, what)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    results = sorted(result for report in reports.glob("*.xml") for result in _results(report))
    if missing := set(classes) - {result.test_class for result in results}:
        output = _STACK_FRAME.sub("", log_path.read_text(errors="replace"))
        raise KafkaProcessError(
            f"{', '.join(sorted(missing))}: no results; the JVM ended with exit code {process.returncode}"
            f"{last_lines(output)}"
        )
    return results


def _is_over(process: subprocess.Popen[bytes], printed: BinaryIO, progress: Callable[[str], None]) -> bool:
    is_over = process.poll() is not None
    while (line := printed.readline()).endswith(b"\n"):
        if ended := _ENDED.match(line):
            progress(ended[1].decode(errors="replace"))
    printed.seek(-len(line), os.SEEK_CUR)
    return is_over


def _results(report: Path) -> list[ClusterTestResult]:
    return [_result(case) for case in ElementTree.parse(report).iter("testcase")]


def _result(case: ElementTree.Element) -> ClusterTestResult:
    name = re.sub(r"\(.*?\)", "", case.get("name", ""))
    outcome: Outcome = "passed"
    error = ""
    for child in case:
        if child.tag in ("failure", "error", "skipped"):
            outcome = "skipped" if child.tag == "skipped" else "failed"
            error = (child.get("message") or "") + "\n" + (child.text or "")
    return ClusterTestResult(case.get("classname", ""), name, outcome, float(case.get("time", "0")), error)
