"""Commands print names that clients, brokers and files chose without what steers a terminal, or forges a line."""

import json
import re
import socket
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, SyncController, VerificationError
from mockraft.cli.admin.api import AdminClient
from mockraft.cli.command_line import Command
from mockraft.cli.commands import MOCKRAFT
from mockraft.cli.conformance import screen as conformance
from mockraft.cli.run.screen import Moment, Screen
from mockraft.cli.terminal import Terminal
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.releases import release
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from .cli import Result, invoke

FORGED = "2026-01-01 00:00:00 ERROR forged"
HOSTILE = f"evil\x1b]0;title\x07\x1b[8m\x9b31m\u202e\u2066\U000e0001\x7f[link=evil]:bomb:\n{FORGED}"
SHOWN = r"evil\u001b]0;title\u0007\u001b[8m\u009b31m\u202e\u2066"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e007f]")
STYLES_OF_RICH = re.compile(r"\x1b\[(?!8m)[0-9;]*m")
FEATURES = tuple(release().features)
UUID = bytes(range(1, 17))
FRAME = write_request(ApiVersionsRequest(client_software_name=HOSTILE, client_software_version="1"), 3, 1, HOSTILE)

READING = (
    "stubs",
    "scenarios",
    "requests",
    "requests --follow --after-id 0 --limit 1",
    "requests show ID",
    "requests verify ApiVersions --count 77",
    "brokers",
    "topics",
    "records",
    "twin diff --from DATA",
    "twin records --from DATA",
    "twin plan --all --from DATA PLAN",
    "decode --frame FRAME",
    "explain --frame FRAME",
)
"""Commands that show the name, with what is replaced in capitals."""


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if command.run is not None:
        yield path
    for name, each in command.subcommands.items():
        yield from commands(each, (*path, name))


def assert_printable(text: str) -> None:
    assert RAW.search(STYLES_OF_RICH.sub("", text)) is None
    assert "\x1b]8" not in text
    assert not any(line.strip().startswith(FORGED) for line in STYLES_OF_RICH.sub("", text).splitlines())


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncController]:
    """A controller that has the name in all places."""
    with Controller.sync(data_dir=tmp_path_factory.mktemp("names"), admin_port=0, assert_all_used=False) as running:
        request(running, FRAME)
        request(running, write_request(registration(running.cluster_id), 4, 2, HOSTILE))
        topic = CreateTopicsRequest(topics=[CreatableTopic(name=HOSTILE, num_partitions=1, replication_factor=1)])
        request(running, write_request(topic, 7, 3, HOSTILE))
        script(AdminClient(running.admin_url, None))
        yield running


@pytest.fixture(scope="module")
def places(controller: SyncController, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The values of the words in capitals."""
    words = {"ID": str(controller.requests()[0].id), "DATA": str(controller.running.config.data_dir)}
    plan = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.write_text(json.dumps([{"reassign": {"topic": HOSTILE, "partition": 0, "replicas": [1, 7]}}]))
    return {**words, "FRAME": FRAME.hex(), "ADMIN": controller.admin_url, "PLAN": str(plan)}


def registration(cluster_id: str) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=cluster_id,
        incarnation_id=UUID,
        listeners=[Listener(name=HOSTILE, host=HOSTILE, port=9092)],
        features=[Feature(name=name, min_supported_version=0, max_supported_version=99) for name in FEATURES],
        rack=HOSTILE,
        log_dirs=[UUID],
    )


def request(controller: SyncController, frame: bytes) -> None:
    host, port = controller.bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(frame)
        client.recv(65_536)


def script(api: AdminClient) -> None:
    """Have the name in stubs and scenarios, and records that no request makes."""
    scenario = {"name": HOSTILE, "then": HOSTILE}
    stub: Any = {"name": HOSTILE, "match": {"api": "Vote"}, "actions": [{"drop": True}], "scenario": scenario}
    api.send("POST", "/v1/stubs", stub)
    topic_id = "AAAAAAAAAAAAAAAAAAAAZA"
    partition = {"partitionId": 0, "topicId": topic_id, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    partition |= {"replicas": [1], "isr": [1], "removingReplicas": [], "addingReplicas": [], "directories": []}
    config = {"resourceType": 2, "resourceName": HOSTILE, "name": "retention.ms", "value": HOSTILE}
    records = {"TopicRecord": {"name": HOSTILE, "topicId": topic_id}, "PartitionRecord": partition}
    written: Any = [{"type": name, "record": tree} for name, tree in {**records, "ConfigRecord": config}.items()]
    api.send("POST", "/v1/records", {"records": written})


def printed(places: dict[str, str], *arguments: str) -> Result:
    return invoke(*arguments, environment={"FORCE_COLOR": "1", "MOCKRAFT_ADMIN": places["ADMIN"]})


def test_commands_that_read_show_names_escaped(places: dict[str, str]) -> None:
    for line in READING:
        done = printed(places, *(places.get(word, word) for word in line.split()))
        assert_printable(done.output)
        assert SHOWN in "".join(STYLES_OF_RICH.sub("", done.output).split()), (line, done)


def test_json_has_the_name_as_it_is(places: dict[str, str]) -> None:
    for line in READING:
        if line.split()[0] in ("requests", "twin", "brokers", "topics", "records", "stubs") and "verify" not in line:
            as_json = [] if "show" in line else ["--json"]
            done = printed(places, *(places.get(word, word) for word in line.split()), *as_json)
            assert_printable(done.output)
            assert any(HOSTILE in text for text in strings(json.loads(done.stdout))), line


def strings(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from strings(each)


def test_every_command_shows_what_it_was_given_escaped(places: dict[str, str]) -> None:
    for path in commands(MOCKRAFT):
        assert_printable(printed(places, *path, f"--no-{HOSTILE}").output)


def test_one_console_shows_all_of_rich() -> None:
    source = Path(MOCKRAFT.call.__code__.co_filename).parent
    assert [path.name for path in source.rglob("*.py") if re.search(r"\bConsole\(", path.read_text())] == []


def test_the_screen_and_reports_of_tests_show_names_escaped(controller: SyncController) -> None:
    with pytest.raises(VerificationError) as failure:
        controller.verify(77, "ApiVersions")
    drawn = StringIO()
    terminal = Terminal(file=drawn, force_terminal=True, width=500, height=50)
    terminal.print(Screen(Moment.of(controller.running, 0)))
    detail = {"expected": HOSTILE, "got": {}}
    failed = Verdict("case", "topics", "must", "KIP-500", Outcome.FAILED, HOSTILE, detail=detail)
    conformance.Screen(terminal).summary(Run("h:1", HOSTILE, 30, HOSTILE, verdicts=[failed]))
    for text in (str(failure.value), drawn.getvalue()):
        assert_printable(text)
        assert SHOWN in text
