"""Each command at a controller with two simulated brokers."""

import json
import socket
from pathlib import Path

import pytest
from mockraft import Controller, SyncController

from .conftest import Cli


def test_stubs_are_added_listed_switched_and_removed(cli: Cli) -> None:
    assert cli("stubs") == "no stubs: mockraft stubs add --help\n"
    where = ("--where", "wantFence=true", "--where", 'currentMetadataOffset={"gte": 5}')
    added = cli(
        "stubs", "add", "BrokerHeartbeat", "--broker-id", 9, *where, "--times", 2, "--inject-error", "NOT_CONTROLLER"
    )
    assert cli.exit_code == 0, cli.errors
    name = added.strip()
    listed = cli("stubs")
    assert "BrokerHeartbeat brokerId=9 wantFence=true" in " ".join(listed.split())
    assert "NOT_CONTROLLER" in listed
    assert cli("stubs", "off", name) == f"{name} is off\n"
    assert [stub["enabled"] for stub in cli.json("stubs")["stubs"]] == [False]
    assert cli("stubs", "on", name) == f"{name} is on\n"
    assert json.loads(cli("stubs", "show", name))["trigger"] == {"times": 2}
    assert name in cli("stubs", "--unused")
    assert cli("stubs", "remove", name) == f"{name} is gone\n"
    cli("stubs", "show", name)
    assert (cli.exit_code, "no stub" in cli.errors) == (1, True)


@pytest.mark.parametrize(
    ("said", "action"),
    [
        (("--drop",), {"drop": True}),
        (("--disconnect",), {"disconnectOn": True}),
        (("--delay-ms", 7), {"delayOn": 7}),
        (("--action", '{"change": {"response": {"isFenced": true}}}'), {"change": {"response": {"isFenced": True}}}),
    ],
)
def test_stub_options_become_actions(cli: Cli, said: tuple[str, ...], action: dict[str, object]) -> None:
    stub = cli.json("stubs", "add", "BrokerHeartbeat", "--broker-id", 9, *said)
    assert cli.exit_code == 0, cli.errors
    assert stub["actions"] == [action]
    assert cli("stubs", "remove", "--all") == "all stubs are gone\n"


def test_blackholed_clients_of_a_stub_are_released(cli: Cli) -> None:
    cli("stubs", "add", "--client-id", "nobody", "--blackhole", "--name", "silence", "--probability", 0.5, "--seed", 3)
    assert "silence" in cli("stubs")
    assert cli("stubs", "release", "--client-id", "nobody") == "0 released\n"
    cli("stubs", "remove", "--all")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_stub_file_is_loaded(cli: Cli, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"stubs.{suffix}"
    tree = {
        "stubs": [
            {"id": "a", "match": {"api": "Fetch", "brokerId": 9}, "scenario": {"name": "S", "requires": "Started"}}
        ],
        "faults": [{"kind": "latency", "enabled": False}],
        "plan": [{"at": 60000, "duration": 1, "fault": {"kind": "down"}}],
    }
    file.write_text(json.dumps(tree))
    assert cli("stubs", "load", file) == "added 1 stubs and 1 faults, 1 steps of a plan run\n", cli.errors
    assert "S" in cli("scenarios")
    assert cli("scenarios", "set", "S", "Gone") == "S is Gone\n"
    assert cli.json("scenarios") == {"scenarios": [{"name": "S", "state": "Gone"}]}
    assert "down" in cli("faults", "plan")
    assert "no plan" in cli("faults", "plan", "--stop")
    cli("stubs", "remove", "--all")
    cli("faults", "remove", "--all")


def test_a_file_that_is_none_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "stubs.json"
    for text in ('{"stubs": 1}', "{", '{"plan": {"chaos": {"seeds": 7}}}'):
        file.write_text(text)
        cli("stubs", "load", file)
        assert (cli.exit_code, "stubs.json" in cli.errors) == (2, True)


def test_the_steps_of_a_chaos_are_made_before_they_are_loaded(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chaos.json"
    file.write_text('{"plan": {"chaos": {"seed": 7, "kinds": ["latency"], "lengthMs": 60000}}}')
    assert "steps of a plan run" in cli("stubs", "load", file), cli.errors
    assert {step["fault"]["kind"] for step in cli.json("faults", "plan")["plan"]} == {"latency"}
    cli("faults", "remove", "--all")


def test_a_file_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    cli("stubs", "load", tmp_path / "none.json")
    assert (cli.exit_code, "none.json" in cli.errors) == (2, True)


def test_faults_are_added_listed_switched_and_removed(cli: Cli) -> None:
    assert "latencyMs=100" in cli("faults", "kinds")
    name = cli(
        "faults", "add", "latency", "latencyMs=1", "--match", "brokerId=9", "--toxicity", 0.5, "--seed", 7
    ).strip()
    assert cli.exit_code == 0, cli.errors
    assert "brokerId=9" in cli("faults")
    assert cli("faults", "off", name) == f"{name} is off\n"
    assert [fault["enabled"] for fault in cli.json("faults")["faults"]] == [False]
    assert cli("faults", "on", name) == f"{name} is on\n"
    assert name in cli("faults", "--unfired")
    assert cli("faults", "remove", name) == f"{name} is gone\n"
    assert cli("faults") == "no faults: mockraft faults add --help\n"


def test_requests_are_listed_shown_and_followed(cli: Cli) -> None:
    listed = cli("requests", "--api", "BrokerRegistration", "--limit", 5)
    assert listed.count("BrokerRegistration v4") == 2
    first = cli.json("requests", "--api", "BrokerRegistration", "--broker-id", 1)["requests"][0]
    assert json.loads(cli("requests", "show", first["id"]))["request"]["brokerId"] == 1
    assert len(cli("requests", "--follow", "--limit", 2).splitlines()) == 2
    (line,) = cli("requests", "--follow", "--limit", 1, "--json").splitlines()
    assert json.loads(line)["id"] > first["id"]
    assert cli("requests", "--search", "no such text") == "no requests\n"
    assert cli("requests", "unmatched") == "none was unexpected\n"


def test_closed_connections_are_listed_and_shown(cli: Cli, controller: SyncController) -> None:
    with socket.create_connection((controller.host, controller.port)) as client:
        client.sendall(b"\xff\xff\xff\xff")
        client.recv(1)
    entry = cli.json("requests", "--closed", "--limit", 1)["closed"][0]
    assert entry["refused"]
    listed = cli("requests", "--closed", "--connection", entry["connection"])
    assert "controller" in listed
    assert entry["reason"] in listed
    assert json.loads(cli("requests", "show", entry["id"])) == entry
    assert cli("requests", "--closed", "--search", "no such text") == "no connection was closed\n"


def test_a_number_that_the_journal_does_not_have_is_refused(cli: Cli) -> None:
    cli("requests", "show", 2**40)
    assert cli.exit_code == 1
    assert "is not in the journal" in cli.errors


def test_verify_sets_the_exit_code_and_shows_near_misses(cli: Cli) -> None:
    assert cli("requests", "verify", "BrokerRegistration", "--count", 2) == "2 requests\n"
    assert cli.exit_code == 0
    text = cli("requests", "verify", "BrokerRegistration", "--broker-id", 7, "--where", "rack=north", "--at-least", 1)
    assert cli.exit_code == 1
    assert "expected at least 1, found 0 of" in text
    assert "journal:" in text


def test_the_journal_is_saved(cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "run.jsonl"
    assert "bytes" in cli("requests", "save", lines)
    assert "BrokerRegistration" in lines.read_text()
    assert json.loads(lines.read_text().splitlines()[0])["id"] == 1


def test_brokers_are_listed_and_commanded(cli: Cli) -> None:
    listed = cli("brokers").splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["1", "active"], ["2", "active"]]
    assert cli("brokers", "fence", 1) == "broker 1: fenced\n"
    assert cli("brokers", "unfence", 1) == "broker 1: active\n"
    assert cli("brokers", "expire-session", 2) == "broker 2: fenced\n"
    assert cli("brokers", "unfence", 2) == "broker 2: active\n"
    cli("brokers", "fence", 9)
    assert (cli.exit_code, "there are [1, 2]" in cli.errors) == (1, True)
    cli("brokers", "fail-log-dir", 1, "nonsense")
    assert cli.exit_code == 1


def test_records_are_appended_and_make_topics(cli: Cli) -> None:
    assert cli("topics") == "no topics\n"
    topic_id = "AAAAAAAAAAAAAAAAAAAABw"
    result = cli("records", "append", "TopicRecord", json.dumps({"name": "orders", "topicId": topic_id}))
    assert result.startswith("written at offset "), cli.errors
    partition = {"partitionId": 0, "topicId": topic_id, "replicas": [1, 2], "isr": [1, 2], "leader": 1}
    partition |= {"removingReplicas": [], "addingReplicas": [], "leaderEpoch": 0, "partitionEpoch": 0}
    cli("records", "append", "PartitionRecord", json.dumps(partition), "--version", 0)
    assert cli.exit_code == 0, cli.errors
    assert cli("topics").splitlines()[1].split() == ["orders", "0", "1", "0", "1,2", "1,2"]
    assert cli("topics", "elect", "orders", 0, "--leader", 2) == "orders-0 is led by 2 in epoch 1\n"
    assert "PartitionChangeRecord" in cli("records", "--limit", 100)
    assert cli.json("records", "--from", 0, "--limit", 1)["records"][0]["offset"] == 0


def test_state_is_shown_and_saved(cli: Cli, tmp_path: Path) -> None:
    shown = cli("state")
    assert "3000 in epoch 1" in shown
    assert "4.4, metadata.version 33" in shown
    assert len(cli.json("state")["brokers"]) == 2
    file = tmp_path / "cluster.state"
    assert "bytes" in cli("state", "save", file)
    assert file.stat().st_size > 500
    assert cli("state", "snapshot").startswith("a snapshot up to offset ")


def test_system_clock_is_shown_but_not_moved(cli: Cli) -> None:
    assert "(the machine's clock)" in cli("clock")
    cli("clock", "advance", "9s")
    assert (cli.exit_code, 'clock="virtual"' in cli.errors) == (1, True)


def test_reset_clears_stubs_faults_and_journal(cli: Cli, controller: SyncController) -> None:
    cli("stubs", "add", "Fetch", "--broker-id", 9, "--drop")
    assert cli("state", "reset") == "stubs, faults and the journal are empty\n"
    assert cli("stubs") == "no stubs: mockraft stubs add --help\n"
    assert cli("requests", "clear") == "the journal is empty\n"


@pytest.mark.parametrize("command", [("requests", "save"), ("state", "save")], ids=" ".join)
def test_file_that_cannot_be_written_is_a_usage_error(cli: Cli, tmp_path: Path, command: tuple[str, str]) -> None:
    file = tmp_path / "missing" / "run.jsonl"
    cli(*command, file)
    assert cli.exit_code == 2
    assert str(file) in cli.errors


def test_a_controller_is_restarted_loaded_and_forgets_brokers(tmp_path: Path) -> None:
    from mockraft.kafka_api.clock import VirtualClock
    from mockraft.server.admin.serving import AdminServer
    from mockraft.server.admin.settings import AdminSettings

    with Controller.sync(clock=VirtualClock()) as alone:
        server = alone._thread.run(AdminServer.start(alone.inside, AdminSettings()))
        cli, file = Cli(server.url), tmp_path / "cluster.state"
        assert "(virtual clock)" in cli("clock", "advance", "1.5s")
        cli("state", "save", file)
        assert cli("state", "restart") == "restarted\n"
        assert cli("state", "load", file) == f"the controller is as {file} says\n"
        assert cli("state", "reset", "--state") == "as it began\n"
        cli("brokers", "unregister", 1)
        assert cli.exit_code == 1
        alone._thread.run(server.stop())
