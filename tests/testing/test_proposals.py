"""`--profile` and `--schemas` on the commands and on Controller."""

import json
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.wire.overlay import SHIPPED, in_use

from ..cli.cli import invoke as run
from ..rows import each_row

KIP_9999 = str(Path(__file__).parents[2] / "examples" / "kip-9999")
UNREGISTER = {"brokerId": 1, "reason": "moved"}


def test_a_message_of_a_folder_is_written_read_and_explained() -> None:
    options = ("--schemas", KIP_9999, "--request", "UnregisterBroker", "--version", "1")
    written = run("encode", *options, json.dumps(UNREGISTER)).stdout.strip()
    assert written == "00000001066d6f76656400"
    assert json.loads(run("decode", *options, written).stdout) == UNREGISTER
    explained = run("explain", *options, written)
    assert '"moved"' in explained.stdout


def test_frame_records_its_proposal_folder() -> None:
    asked = run("encode", "--schemas", KIP_9999, "--request", "9000", "--version", "0", "--frame", '{"brokerId": 1}')
    read = json.loads(run("decode", "--schemas", KIP_9999, "--frame", asked.stdout.strip()).stdout)
    assert (read["header"]["requestApiKey"], read["body"]) == (9000, {"brokerId": 1})


@each_row("key", ["DiskHealth", "DiskHealthRecord", "900"])
def test_a_record_of_a_folder_is_read_with_its_frame_and_without(key: str) -> None:
    tree = {"brokerId": 1, "healthyPercent": 7}
    options = ("--schemas", KIP_9999, "--record", key, "--version", "0")
    assert json.loads(run("decode", *options, "00000001 00000007 00").stdout) == tree
    framed = run("encode", *options, "--framed", json.dumps(tree)).stdout.strip()
    read = json.loads(run("decode", "--schemas", KIP_9999, "--framed", framed).stdout)
    assert read == {"type": "DiskHealthRecord", "version": 0, "data": tree}
    assert "DiskHealthRecord v0" in run("explain", "--schemas", KIP_9999, "--framed", framed).stdout


def test_profile_follows_its_wording() -> None:
    bare = "00000001 0000000000000009 0000000000000010 01 00"
    options = ("--request", "BrokerHeartbeat", "--version", "1")
    assert json.loads(run("decode", "--profile", "kip-1066", *options, bare, "01 00").stdout)["cordonedLogDirs"] == []
    assert "cordonedLogDirs" not in run("decode", *options, bare, "00").stdout


def test_proposal_of_a_command_is_reset_after_it() -> None:
    run("decode", "--schemas", KIP_9999, "--request", "9000", "--version", "0", "00000001 00")
    assert in_use() is SHIPPED
    assert run("decode", "--request", "9000", "--version", "0", "00000001 00").exit_code == 2


@each_row(
    ("options", "says"),
    [
        (("--profile", "kip-9"), "--profile: 'kip-9' is none of kip-18"),
        (("--schemas", "nowhere"), "nowhere: there is no such folder"),
    ],
)
def test_invalid_option_has_exit_code_2_and_lists_choices(options: tuple[str, ...], says: str) -> None:
    result = run("decode", *options, "--request", "63", "--version", "0", "00")
    assert result.exit_code == 2
    assert says in result.stderr


def test_controller_refuses_the_same_proposals_as_the_commands() -> None:
    with pytest.raises(ValueError, match="there is no profile"):
        Controller(profile=["kip-858", "kip-9"])
    with pytest.raises(ValueError, match="there is no such folder"):
        Controller(schemas="nowhere")


def test_threaded_controller_serves_a_proposal() -> None:
    with Controller.sync(profile="kip-858", schemas=[KIP_9999]) as controller:
        assert controller.messages.request(9000).__name__ == "DescribeDiskHealthRequest"
        assert controller.call(lambda: controller.running.config.proposals) == {"kip-858"}
