"""`mockraft release-check` and `make release-check` of releases from Maven and from a folder of jars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mockraft.kafka.jars import jars_directory
from mockraft.releases import NEWEST

from tools.release_check.__main__ import main
from tools.release_check.steps import STEPS

from ..budgets import soak
from ..cli.cli import invoke as mockraft

pytestmark = [pytest.mark.real_kafka, soak]

ALL_PASSED = f"{len(STEPS)} of {len(STEPS)} steps passed"


def candidate(folder: Path) -> Path:
    """Return the newest release under the name of a candidate that nobody knows."""
    folder.mkdir()
    for jar in jars_directory(NEWEST).glob("*.jar"):
        (folder / jar.name.replace(f"-{NEWEST}.jar", "-9.9.0-rc0.jar")).symlink_to(jar)
    return folder


def test_methods_that_a_patch_release_changes_are_those_of_its_fixes() -> None:
    done = mockraft("release-check", "--kafka-version", "4.2.2", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["against"]) == (1, "4.2.1")
    changed = {f"{each['of_class']}.{each['name']}": each["cases"] for each in found["methods"]}
    assert changed.keys() == {
        "KRaftControlRecordStateMachine.(constructor)",
        "KRaftControlRecordStateMachine.maybeLoadLog",
        "KRaftControlRecordStateMachine.maybeLoadSnapshot",
        "KafkaRaftClient.handleFetchSnapshotRequest",
        "KafkaRaftClient.handleFetchSnapshotResponse",
        "KafkaRaftClient.initialize",
        "MessageUtil.MAX_ARRAY_LENGTH = 1000000",
        "MessageUtil.MAX_PREALLOCATED_ARRAY_CAPACITY = 1000",
        "MessageUtil.MAX_TAGGED_FIELD_COUNT = 10000",
        "RaftUtil.hasValidTopicPartition",
    }
    assert "a snapshot request for several topics is refused" in changed["KafkaRaftClient.handleFetchSnapshotRequest"]
    assert [each["what"] for each in found["changes"]] == [
        f"{kind}: `max.decompressed.message.bytes`" for kind in ("topic", "broker")
    ]


def test_a_candidate_in_a_folder_is_compared_with_the_newest_release(tmp_path: Path) -> None:
    done = mockraft("release-check", "--jars", str(candidate(tmp_path / "libs")))
    assert done.exit_code == 1
    assert "No spec and no table differs" in done.stdout
    assert f"- the jars are called 9.9.0-rc0, and kafka/kafka-version.properties has {NEWEST}" in done.stdout


def test_a_release_of_a_supported_line_passes_every_step(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    assert main(["4.3.0", "--report", str(report)]) == 0
    assert ALL_PASSED in report.read_text()


def test_jars_of_an_unknown_release_pass_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCKRAFT_CACHE", str(jars_directory(NEWEST).parent))
    report = tmp_path / "report.md"
    assert main(["--jars", str(candidate(tmp_path / "libs")), "--report", str(report)]) == 0
    assert ALL_PASSED in report.read_text()
