"""Jars of Kafka's integration tests, and a controller of ours that stands in front of them on the class path."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

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
