"""`mockraft conformance` and `mockraft differences` as commands: their output, files and exit codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.conformance.known_differences import known_differences
from mockraft.conformance.requests import request
from mockraft.conformance.target import look_up

from ..rows import each_row
from .cli import invoke as mockraft
from .cli import one_line


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Controller.sync() as controller:
        yield controller.bootstrap


def test_an_area_is_run_and_summed_up(bootstrap: str, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"run.{kind}" for kind in ("json", "junit", "html")}
    options = [text for kind, path in files.items() for text in (f"--{kind}", str(path))]
    done = mockraft("conformance", "--bootstrap", bootstrap, "--area", "scram", "--area", "acls", *options)
    assert done.exit_code == 0, done.output
    assert "0 failed" in done.stdout
    assert "scram" in done.stdout
    assert [verdict["area"] for verdict in json.loads(files["json"].read_text())["verdicts"]].count("acls") == 3
    assert all(path.stat().st_size > 500 for path in files.values())


def test_a_level_is_run_and_summed_up_for_publication(bootstrap: str, tmp_path: Path) -> None:
    page = tmp_path / "result.md"
    done = mockraft("conformance", "--bootstrap", bootstrap, "--level", "core", "--area", "log", "--summary", str(page))
    assert done.exit_code == 0, done.output
    assert "| Level | core: brokers run on it" in page.read_text()
    assert "| Failed | 0 |" in page.read_text()
    listed = mockraft("conformance", "--list", "--level", "core", "--area", "log").stdout
    assert "[must," in listed
    assert "[should," not in listed


def test_a_kept_run_and_a_living_controller_are_compared_with(bootstrap: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    again = ("conformance", "--bootstrap", bootstrap, "--area", "producer ids")
    assert mockraft(*again, "--json", str(kept)).exit_code == 0
    tree = json.loads(kept.read_text())
    tree["target"] = "elsewhere:1"
    tree["verdicts"][0]["outcome"] = "failed"
    kept.write_text(json.dumps(tree))
    done = mockraft(*again, "--against", str(kept))
    assert done.exit_code == 0
    assert "1 of 5 cases have another verdict on elsewhere:1" in done.stdout
    assert f"0 of 5 cases have another verdict on {bootstrap}" in mockraft(*again, "--against", bootstrap).stdout
    assert "0 of 5 cases have another verdict on kafka-4.3.1" in mockraft(*again, "--against", "kafka-4.3.1").stdout


def test_failure_is_printed_with_its_reproduction_command() -> None:
    config = {"name": "log.cleanup.policy", "value": "compact"}
    cluster_wide = {"resources": [{"resourceType": 4, "resourceName": "", "configs": [config]}]}

    async def set_cleanup_policy(bootstrap: str) -> None:
        connection = await (await look_up(bootstrap)).open()
        await connection.send(request("IncrementalAlterConfigs", cluster_wide, 1), version=1)
        await connection.close()

    with Controller.sync() as controller:
        asyncio.run(set_cleanup_policy(controller.bootstrap))
        only = ("--only", "the configs of a new topic are told")
        done = mockraft("conformance", "--bootstrap", controller.bootstrap, *only)
        again = f"again: mockraft conformance --bootstrap {controller.bootstrap} --only"
    assert done.exit_code == 1
    assert "cleanup.policy: value should be 'delete', is 'compact'" in done.stdout
    assert again in done.stdout


def test_a_wrong_cluster_id_is_reported(bootstrap: str) -> None:
    done = mockraft("conformance", "--bootstrap", bootstrap, "--cluster-id", "another")
    assert done.exit_code == 6
    assert "INCONSISTENT_CLUSTER_ID; cluster id another" in done.stderr


@each_row(
    ("options", "code", "expected"),
    [
        ((), 2, "--bootstrap"),
        (("--bootstrap", "nowhere"), 2, "is not host:port"),
        (("--bootstrap", "127.0.0.1:1"), 6, "Is a controller listening there?"),
        (("--bootstrap", "127.0.0.1:1", "--area", "none"), 2, "there is no area"),
        (("--bootstrap", "127.0.0.1:1", "--only", "no such case"), 2, "no case is called so"),
        (("--bootstrap", "127.0.0.1:1", "--level", "core", "--area", "quorum"), 2, "level core has no case"),
        (("--bootstrap", "127.0.0.1:1", "--against", "nothing"), 2, "nor one of: kafka-3.7.2, kafka-3.8.1"),
        (("--bootstrap", "127.0.0.1:1", "--against", __file__), 2, "is no conformance run"),
    ],
)
def test_a_bad_call_gets_advice(options: tuple[str, ...], code: int, expected: str) -> None:
    done = mockraft("conformance", *options)
    assert done.exit_code == code
    assert expected in one_line(done.stderr)


def test_cases_are_listed_without_a_controller() -> None:
    texts = ("exists", "negative broker id", "isolation level of shares", "no number is written")
    done = mockraft("conformance", "--list", *(option for text in texts for option in ("--only", text)))
    assert done.exit_code == 0
    assert "a topic that exists is refused  [must, ReplicationControlManagerTest.testCreateTopics]" in done.stdout
    assert "a negative broker id may register  [quirk," in done.stdout
    assert "isolation level of shares of a group can be set  [should, GroupConfig, since Kafka 4.1]" in done.stdout
    assert (
        "shares of a group is an unknown config  [quirk, GroupConfig, since Kafka 4.0, before Kafka 4.1]" in done.stdout
    )
    assert "a rate that is no number is written  [quirk," in done.stdout


def test_known_differences_are_printed_as_text_and_json() -> None:
    result = mockraft("differences").stdout
    listed = json.loads(mockraft("differences", "--json").stdout)
    assert [each["id"] for each in listed] == [each.id for each in known_differences()]
    assert all(f"{each['id']}  (" in result for each in listed)
