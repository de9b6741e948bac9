"""Run Kafka's `@ClusterTest` classes, or your own, on mockraft or on Kafka's own controller.

JUnit's ConsoleLauncher runs them in one JVM with Kafka's brokers. For mockraft a ``kafka.server.ControllerServer`` of
ours stands in front of Kafka's jars (``kafka/java``): it starts ``mockraft serve`` where Kafka's harness starts
its controller.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Literal, NamedTuple
from zipfile import ZipFile

from mockraft.kafka.child_process import KafkaProcessError, last_lines, wait_until
from mockraft.kafka.jars import (
    LOGGING,
    Artifact,
    KafkaUnavailableError,
    copy_artifacts,
    jars_directory,
    java,
    made_once,
)
from mockraft.kafka.moved_classes import adapt
from mockraft.kafka.tools import JVM_OPTIONS

TEST_CLASSES_VERSION = "4.3.1"
"""The newest Kafka release that has its test classes on Maven; newer releases run those, see `moved_classes`."""

_OLDER_CALLS = "java/kafka/server/OlderCalls.java"
_HARNESS = "kafka-test-common-runtime"
_MOCKITO_VERSION = "5.20.0"
_BOUNCY_CASTLE_VERSION = "1.80"

_SERVER_MODULES = (
    "kafka_2.13",
    "kafka-clients",
    "kafka-coordinator-common",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-raft",
    "kafka-server",
    "kafka-server-common",
    "kafka-share-coordinator",
    "kafka-storage",
    "kafka-storage-api",
    "kafka-transaction-coordinator",
)
_TEST_MODULES = ("kafka-tools", *_SERVER_MODULES)


def cluster_test_jars(version: str, progress: Callable[[str], None] | None = None) -> Path:
    """Return the folder with a release, its ClusterTest harness, JUnit and the test classes of Kafka's own modules.

    Maven fetches what is not in the cache yet; `progress` gets one line for each file that arrives. Raises
    KafkaUnavailableError.
    """
    wanted = _wanted(version)
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]
    adapted = "" if version == TEST_CLASSES_VERSION else "-adapted-2"
    name = f"kafka-{version}-cluster-test-jars-{digest}{adapted}"
    return made_once(name, lambda target: _fetch(wanted, target, progress or (lambda line: None)))


def _wanted(version: str) -> list[Artifact]:
    kafka = "org.apache.kafka"
    return [
        Artifact(kafka, _HARNESS, version),
        *LOGGING,
        *(Artifact(kafka, name, version) for name in _SERVER_MODULES),
        Artifact(kafka, "kafka-tools", version, alone=True),
        *(Artifact(kafka, name, TEST_CLASSES_VERSION, "test", alone=True) for name in _TEST_MODULES),
        Artifact(kafka, "kafka-streams", version, alone=True),
        # For ControllerServer.java and for tests.
        Artifact("org.mockito", "mockito-core", _MOCKITO_VERSION),
        Artifact("org.hamcrest", "hamcrest", "3.0"),
        Artifact("junit", "junit", "4.13.2"),
        # For the certificates of the harness of 4.4.
        Artifact("org.bouncycastle", "bcpkix-jdk18on", _BOUNCY_CASTLE_VERSION),
    ]


def _fetch(wanted: list[Artifact], target: Path, progress: Callable[[str], None]) -> None:
    harness = wanted[0]
    with TemporaryDirectory(prefix=target.name, dir=target.parent) as folder:
        jars = Path(folder, "jars")
        errors = copy_artifacts([harness], Path(folder), Path(folder, "harness"), progress)
        if not errors:
            # The harness brings JUnit without its console.
            console = Artifact("org.junit.platform", "junit-platform-console", _junit_version(Path(folder, "harness")))
            errors = copy_artifacts([*wanted, console], Path(folder), jars, progress)
        if errors or not jars.is_dir():
            raise KafkaUnavailableError(f"Maven could not fetch Kafka {harness.version}'s test harness: {errors}")
        if harness.version != TEST_CLASSES_VERSION:
            older = jars_directory(TEST_CLASSES_VERSION).glob("kafka*.jar")
            tests = sorted(jars.glob("kafka*-test.jar"))
            newer = [each for each in jars.glob("kafka*.jar") if each not in tests]
            rest = jars / f"kafka-rest-{TEST_CLASSES_VERSION}.jar"
            adapt(tests, older, newer, rest)
            _add_older_calls(jars, rest)
        jars.rename(target)


def _junit_version(jars: Path) -> str:
    """Return the version of the JUnit platform among these jars."""
    for path in jars.iterdir():
        if found := re.fullmatch(r"junit-platform-launcher-(.+)\.jar", path.name):
            return found[1]
    raise KafkaUnavailableError(f"Kafka's test harness came without JUnit's launcher: {jars}")


def controller_classes(version: str) -> Path:
    """Return the folder with ``kafka.server.ControllerServer`` that runs mockraft, compiled for a release.

    Raises KafkaUnavailableError if there is no Java compiler, or the release's harness has no place for it.
    """
    jars = cluster_test_jars(version)
    with as_file(files("mockraft.kafka") / "java") as folder:
        sources = sorted(Path(folder).rglob("*.java"))
        digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
        return made_once(f"kafka-{version}-controller-{digest}", lambda target: _compile(sources, jars, target))


def _add_older_calls(jars: Path, rest: Path) -> None:
    """Add the static methods for calls that have changed, see `moved_classes.CHANGED`, to the jar `rest`."""
    with TemporaryDirectory() as folder, as_file(files("mockraft.kafka") / _OLDER_CALLS) as source:
        _javac([Path(source)], jars, Path(folder))
        with ZipFile(rest, "a") as archive:
            for path in Path(folder).rglob("*.class"):
                archive.write(path, path.relative_to(folder))


def _compile(sources: list[Path], jars: Path, target: Path) -> None:
    with TemporaryDirectory(prefix=target.name, dir=target.parent) as folder:
        classes = Path(folder, "classes")
        _javac(sources, jars, classes)
        classes.rename(target)


def _javac(sources: list[Path], jars: Path, classes: Path) -> None:
    compiler = Path(java()).resolve().with_name("javac")
    if not compiler.is_file():
        raise KafkaUnavailableError(f"{compiler} was not found: Kafka's tests on mockraft need a JDK")
    command = [str(compiler), "-proc:none", "-nowarn", "-d", str(classes), "-cp", f"{jars}{os.sep}*"]
    ended = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise KafkaUnavailableError(f"mockraft's classes do not fit into this Kafka:\n{ended.stderr}")


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
