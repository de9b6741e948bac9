"""`mockraft recordings` at a controller in front of which another one answers."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft import Controller, SyncController
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ...topics import ask
from .conftest import Cli

CLUSTER = DescribeClusterRequest(endpoint_type=2)


@pytest.fixture
def double() -> Iterator[SyncController]:
    with Controller.sync(admin_port=0) as running:
        yield running


def test_a_recording_is_started_written_loaded_and_removed(double: SyncController, tmp_path: Path) -> None:
    cli = Cli(double.admin_url)
    assert cli("recordings") == "no recordings: mockraft recordings --help\n"
    with Controller.sync() as upstream:
        name, _, bootstrap = cli("recordings", "start", upstream.bootstrap).strip().partition(" bootstrap=")
        asyncio.run(ask(bootstrap, CLUSTER))
        assert upstream.bootstrap in cli("recordings")
    file = tmp_path / "stubs.json"
    assert cli("recordings", "stubs", name, "--out", file) == f"2 stubs made, in {file}\n"
    apis = [stub["match"]["api"] for stub in json.loads(file.read_text())["stubs"]]
    assert apis == ["ApiVersions", "DescribeCluster"]
    assert json.loads(cli("recordings", "stop", name)) == json.loads(file.read_text())
    assert cli("recordings", "stop", name, "--load") == "2 stubs loaded\n"
    assert len(cli.json("stubs")["stubs"]) == 2
    assert cli("recordings", "remove", name) == f"{name} is gone\n"
    cli("recordings", "remove", name)
    assert (cli.exit_code, "there is no recording" in cli.errors) == (1, True)


def test_the_journal_becomes_stubs(double: SyncController) -> None:
    asyncio.run(ask(double.bootstrap, CLUSTER))
    cli = Cli(double.admin_url)
    made = json.loads(cli("recordings", "journal", "--only", "endpointType", "--any-client", "--any-version"))
    matches = [each["match"] for each in made["stubs"]]
    assert {"api": "DescribeCluster", "where": {"endpointType": 2}} in matches
    cli("recordings", "journal", "--filter", "Fetsch")
    assert (cli.exit_code, "Fetsch" in cli.errors) == (1, True)
