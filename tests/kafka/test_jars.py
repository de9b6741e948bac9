"""Fetching Kafka's jars, with scripts in place of Java and Maven."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.kafka import jars
from mockraft.kafka.jars import KafkaUnavailableError, classpath, jars_directory, java

Command = Callable[[str, str], None]

FETCHES = """
for argument in "$@"; do case $argument in -DoutputDirectory=*) out=${argument#*=};; esac; done
mkdir -p "$out"
echo "Downloaded from somewhere: http://somewhere/kafka_2.13-4.3.1.jar (5.1 MB at 22 MB/s)"
touch "$out/slf4j-simple-1.7.36.jar" "$out/slf4j-api-1.7.36.jar" "$out/kafka_2.13-4.3.1.jar"
echo called >> "$out/../../calls"
"""


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither Java nor Maven nor a cache."""
    jars._launcher.cache_clear()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("MOCKRAFT_CACHE", str(tmp_path / "cache"))
    yield
    jars._launcher.cache_clear()


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Put a shell script under a name into the path."""

    def write(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    return write


def test_missing_java_is_reported() -> None:
    with pytest.raises(KafkaUnavailableError, match="java was not found: real Kafka needs Java 17 or newer"):
        java()


def test_old_java_is_reported(command: Command) -> None:
    command("java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    with pytest.raises(KafkaUnavailableError, match=r'Java 17 or newer, but: openjdk version "11\.0\.2"'):
        java()


def test_takes_a_java_that_is_new_enough(command: Command, tmp_path: Path) -> None:
    command("java", """echo 'openjdk version "21.0.1" 2023-10-17' >&2""")
    assert java() == str(tmp_path / "bin" / "java")


def test_java_home_comes_before_the_path(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command("java", """echo 'openjdk version "17.0.1"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert java() == str(tmp_path / "bin" / "java")


def test_missing_maven_is_reported() -> None:
    with pytest.raises(KafkaUnavailableError, match="mvn was not found"):
        jars_directory("4.3.1")


def test_maven_failure_is_reported_and_leaves_no_cache(command: Command, tmp_path: Path) -> None:
    command("mvn", "echo '[INFO] trying'; echo '[ERROR] no such artifact'; exit 1")
    with pytest.raises(KafkaUnavailableError, match=r"could not fetch Kafka 4\.9\.9: \[ERROR\] no such artifact"):
        jars_directory("4.9.9")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["kafka-4.9.9.lock"]


def test_malformed_release_is_refused() -> None:
    with pytest.raises(KafkaUnavailableError, match=r"'\.\./x' is not a Kafka release"):
        jars_directory("../x")


@pytest.mark.parametrize("version", ["4.5.0-rc0", "4.5.0-SNAPSHOT"])
def test_a_candidate_is_found_in_the_cache(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "cache" / f"kafka-{version}"
    folder.mkdir(parents=True)
    assert jars_directory(version) == folder


def test_fetches_a_release_once(command: Command, tmp_path: Path) -> None:
    command("mvn", FETCHES)
    arrived: list[str] = []
    folder = jars_directory("4.3.1", arrived.append)
    assert folder == tmp_path / "cache" / "kafka-4.3.1"
    assert arrived == ["kafka_2.13-4.3.1.jar (5.1 MB at 22 MB/s)"]
    command("mvn", "exit 1")
    assert jars_directory("4.3.1") == folder


def test_the_logger_comes_first_on_the_class_path(command: Command) -> None:
    command("mvn", FETCHES)
    parts = classpath("4.3.1").split(os.pathsep)
    assert [Path(part).name for part in parts] == ["slf4j-simple-1.7.36.jar", "slf4j-api-1.7.36.jar", "*"]


def test_cache_defaults_to_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MOCKRAFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache_directory() == tmp_path / "mockraft"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.cache_directory() == tmp_path / ".cache" / "mockraft"
