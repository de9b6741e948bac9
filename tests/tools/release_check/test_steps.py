"""The steps of a release check where something fails, and how the command is called, without Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from mockraft.codegen.spec import SpecError
from mockraft.conformance import baseline
from mockraft.conformance.verdicts import Outcome
from mockraft.kafka.jars import LOGGING_JARS, KafkaUnavailableError, jars_directory
from mockraft.kafka.processes import KafkaBroker, KafkaProcessError
from mockraft.releases import NEWEST
from mockraft.wire.overlay import SHIPPED

from tools.release_check import __main__ as command
from tools.release_check import steps
from tools.release_check.jars_folder import link_into, version_of
from tools.release_check.judged import compared, difference
from tools.release_check.report import FailedError
from tools.release_check.steps import fetch_jars, generate_code, read_classes, run_broker
from tools.release_check.subject import Subject

from ...rows import each_row
from ...wire.conftest import Answer

JARS = ("kafka-clients", "kafka-metadata", "kafka-raft", "kafka_2.13")


def subject(version: str, folder: Path) -> Subject:
    return Subject(version, folder, lambda line: None)


def lacks_java() -> str:
    raise KafkaUnavailableError("java was not found")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing but the logger of a supported release, and no Maven to fetch more."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MOCKRAFT_CACHE", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (folder / f"kafka-{NEWEST}").mkdir(parents=True)
    for name in LOGGING_JARS:
        (folder / f"kafka-{NEWEST}" / name).write_text("logger")
    return folder


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "libs"
    folder.mkdir()
    for name in JARS:
        (folder / f"{name}-4.5.0-SNAPSHOT.jar").touch()
    (folder / "kafka-clients-4.5.0-SNAPSHOT-test.jar").touch()
    return folder


def test_built_jars_are_found_as_a_release(
    built: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / LOGGING_JARS[1]).write_text("its own")
    version = version_of(built)
    link_into(tmp_path / "other", built, version)
    monkeypatch.setenv("MOCKRAFT_CACHE", str(tmp_path / "other"))
    folder = jars_directory(version)
    assert {path.name for path in folder.iterdir()} == {path.name for path in built.iterdir()} | {*LOGGING_JARS}
    assert [(folder / name).read_text() for name in LOGGING_JARS] == ["logger", "logger"]


def test_a_folder_of_two_versions_is_refused(built: Path) -> None:
    (built / "kafka-clients-4.4.0.jar").touch()
    with pytest.raises(KafkaUnavailableError, match=r"has kafka-clients of 4\.4\.0 and 4\.5\.0-SNAPSHOT"):
        version_of(built)


def test_a_missing_jar_is_named(built: Path) -> None:
    (built / "kafka-raft-4.5.0-SNAPSHOT.jar").unlink()
    with pytest.raises(KafkaUnavailableError, match=r"lacks kafka-raft-4\.5\.0-SNAPSHOT\.jar"):
        version_of(built)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [([], "name a release"), (["4.5.0", "--jars", "."], "one of them"), (["4.5"], "'4.5' is not a Kafka release")],
)
def test_a_wrong_call_is_refused_with_what_to_do(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert error in capsys.readouterr().err


def test_without_java_nothing_runs_and_one_line_says_why(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "java", lacks_java)
    assert command.main(["4.5.0-rc0", "--report", str(tmp_path / "report.md")]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "release-check: java was not found\n")
    assert not (tmp_path / "report.md").exists()


def test_a_release_that_maven_lacks_points_to_a_folder_of_jars(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "java", lambda: "java")
    with pytest.raises(KafkaUnavailableError, match="JARS=DIR"):
        fetch_jars(subject("4.5.0-rc0", tmp_path))


def test_classes_that_cannot_be_read_are_a_failure(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FailedError, match=r"Kafka 4\.5\.0's jars are not available"):
        read_classes(subject("4.5.0", tmp_path))


def test_messages_that_cannot_be_generated_are_a_failure(tmp_path: Path) -> None:
    folder = tmp_path / "schemas_json" / "4.5.0" / "message"
    folder.mkdir(parents=True)
    (folder / "NewRequest.json").write_text('{"type": "request", "name": "NewRequest"}')
    with pytest.raises(SpecError, match=r"4\.5\.0/message/NewRequest\.json"):
        generate_code(subject("4.5.0", tmp_path))


@each_row(("version", "served"), [("4.3.0", "4.3"), ("4.5.0-rc0", "4.4"), ("4.4.1", "4.4")])
def test_mockraft_serves_the_release_itself_or_the_newest(tmp_path: Path, version: str, served: str) -> None:
    assert subject(version, tmp_path).served.name == served


def test_a_broker_that_does_not_start_is_a_failure_with_both_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NeverStarts(KafkaBroker):
        def format(self, *options: str) -> str:
            raise KafkaProcessError("broker 1 ended with exit code 1\n  | no such feature")

    monkeypatch.setattr(steps, "KafkaBroker", NeverStarts)
    with pytest.raises(FailedError, match=r"^broker 1 ended with exit code 1$") as raised:
        run_broker(subject("4.5.0-rc0", tmp_path))
    assert "| no such feature" in raised.value.found.detail
    assert "mockraft ready" in raised.value.found.detail


def test_cases_with_another_outcome_are_a_failure_and_listed_first() -> None:
    mine, theirs = baseline.read("kafka-4.4.0"), baseline.read("kafka-4.4.0")
    assert compared(mine, theirs).detail == ""
    first, second, third, fourth, *_ = theirs.verdicts
    first.outcome, first.reason = Outcome.NOT_APPLICABLE, "no such API"
    assert compared(mine, theirs).line.endswith("1 apply to one of the two only")
    second.outcome, second.reason = Outcome.FAILED, "got NONE, wanted INVALID_REQUEST"
    mine.verdicts[1].outcome, mine.verdicts[1].reason = second.outcome, second.reason
    third.outcome, mine.verdicts[2].outcome = Outcome.FAILED, Outcome.NOT_APPLICABLE
    mine.verdicts[3].outcome = Outcome.FAILED
    with pytest.raises(FailedError, match=rf"^1 of {len(mine.verdicts)} cases end otherwise .* 2 fail there") as raised:
        compared(mine, theirs)
    reason = "got NONE, wanted INVALID_REQUEST"
    assert raised.value.found.detail.splitlines()[2:] == [
        f"| {second.name} | failed | failed | {reason} | {reason} |",
        f"| {third.name} | not applicable | failed |  |  |",
        f"| {fourth.name} | failed | passed |  |  |",
        f"| {first.name} | passed | not applicable |  | no such API |",
    ]


@each_row(
    ("answer", "what"),
    [
        (Answer(b"\x00\x05", {"throttleTimeMs": 5}, ""), "WireError"),
        (Answer(bytes.fromhex("000000050000"), {"throttleTimeMs": 6, "errorCode": 0}, ""), "its JSON is not Kafka's"),
        (Answer(b"", {}, "UnsupportedVersionException"), "Kafka does not take the body: UnsupportedVersionException"),
    ],
)
def test_a_body_that_is_not_kafkas_is_described(answer: Answer, what: str) -> None:
    tree = {"throttleTimeMs": 5, "errorCode": 0}
    assert what in difference(SHIPPED, "HeartbeatResponse", 1, tree, answer)


def test_a_body_that_is_kafkas_has_no_difference() -> None:
    tree = {"throttleTimeMs": 5, "errorCode": 0}
    assert difference(SHIPPED, "HeartbeatResponse", 1, tree, Answer(bytes.fromhex("000000050000"), tree, "")) == ""
