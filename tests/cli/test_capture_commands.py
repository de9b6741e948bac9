"""`mockraft capture`, `record` and `replay` as processes."""

import json
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.cli.exit_codes import ExitCode
from mockraft.kafka.child_process import free_port
from mockraft.server.stubs.stub import Stub, stub
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.wire.client import DisconnectedError
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..rows import each_row
from ..topics import ask
from .cli import DEADLINE_S, Result, completed, invoke, one_line, started


@contextmanager
def capturing(*options: str, command: str = "capture") -> Iterator[tuple[subprocess.Popen[str], Endpoint]]:
    ready = rf"mockraft {command} ready bootstrap=(\S+):(\d+) out=\S+\n"
    with started(command, "--listen", "127.0.0.1:0", *options, ready=ready) as (process, found):
        yield process, Endpoint(found[1], int(found[2]))


async def use(listener: Endpoint) -> None:
    assert (await ask(str(listener), DescribeClusterRequest(endpoint_type=2))).error_code == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
async def test_stopped_or_killed_capture_contains_all_traffic(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = tmp_path / "run.pcapng"
    async with Controller() as controller:
        with capturing("--upstream", controller.bootstrap, "--out", str(path)) as (process, listener):
            await use(listener)
            process.send_signal(number)
            _, errors = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == code, errors
            if code == 0:
                assert "connections 1, requests 2 (ApiVersions 1, DescribeCluster 1)" in errors
    assert [each.api_key for each in read_exchanges(path) if each.response] == [18, 60]


async def test_stubs_are_recorded_from_a_controller_in_use(tmp_path: Path) -> None:
    path = tmp_path / "stubs.json"
    async with Controller() as controller:
        options = ["--upstream", controller.bootstrap, "--out", str(path)]
        with capturing(*options, command="record") as (process, listener):
            await use(listener)
            process.terminate()
            _, errors = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, errors
        stubs = json.loads(path.read_text())["stubs"]
        assert [each["match"]["api"] for each in stubs] == ["ApiVersions", "DescribeCluster"]
        assert stubs[1]["actions"][0]["answer"]["brokers"][0]["port"] == controller.port


async def test_early_end_of_recording_is_reported_by_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    options = ["--out", str(path), "--max-bytes", "200"]
    async with Controller() as controller:
        with capturing("--upstream", controller.bootstrap, *options) as (process, listener):
            await use(listener)
            process.terminate()
            _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert f"recording ended early: {path} has reached its limit of 200 bytes" in errors


@each_row(
    ("options", "code", "complaint"),
    [
        (["--listen", "0.0.0.0:9", "--upstream", "c:9", "--out", "x"], 2, "use --advertise HOST"),
        (["--listen", "here", "--upstream", "c:9", "--out", "x"], 2, "'here' is not host:port"),
        (["--listen", "127.0.0.1:0", "--upstream", "c", "--out", "x"], 2, "'c' is not host:port"),
        (["--listen", "127.0.0.1:0", "--upstream", "c:9", "--out", "no/x"], 2, "cannot write no/x: No such file"),
        (["--listen", "127.0.0.1:0", "--upstream", "c:9", "--out", "x", "--filter", "Fech"], 2, "no API 'Fech'"),
    ],
)
def test_invalid_options_are_reported(options: list[str], code: int, complaint: str) -> None:
    ended = invoke("capture", *options)
    assert ended.exit_code == code
    assert complaint in one_line(ended.stderr)


def test_recording_on_an_unadvertisable_address_is_refused(tmp_path: Path) -> None:
    options = ["--listen", "0.0.0.0:0", "--upstream", "127.0.0.1:9", "--out", "x"]
    ended = completed("record", *options, cwd=tmp_path)
    assert ended.returncode == 2
    assert "brokers cannot connect to 0.0.0.0" in one_line(ended.stderr)


async def test_unreachable_controller_is_reported_during_recording(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with capturing("--upstream", nobody, "--out", str(tmp_path / "x"), command="record") as (process, listener):
        with pytest.raises(DisconnectedError):
            await use(listener)
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert f"cannot connect to {nobody}: Connection refused" in errors


CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
SOME = ["--filter", "ApiVersions,BrokerRegistration,BrokerHeartbeat"]


def replay(bootstrap: str, *options: str) -> Result:
    return invoke("replay", "--capture", str(CAPTURE), "--port", "19093", "--bootstrap", bootstrap, *options)


def test_equal_answers_are_reported_with_exit_code_0(tmp_path: Path) -> None:
    with Controller.sync(release="4.3") as controller:
        result = replay(controller.bootstrap, "--filter", "ApiVersions")
    assert result.exit_code == 0, result.output
    assert "34 of 34 responses as captured" in result.output
    assert "603 Fetch, --filter" in one_line(result.output)


def test_a_difference_is_shown_with_both_values_and_is_exit_code_1(tmp_path: Path) -> None:
    path, junit = tmp_path / "report.json", tmp_path / "report.xml"
    with Controller.sync(release="4.3") as controller:
        # The first two are the replay's own: version 5, and then 4.
        lie = stub("ApiVersions").on_call(3).change(response={"throttleTimeMs": 5, "errorCode": 41})
        controller.call(controller.running.node.script.stubs.add, lie)
        result = replay(controller.bootstrap, "--filter", "ApiVersions", "--json", str(path), "--junit", str(junit))
    assert result.exit_code == 1
    (failure,) = ET.parse(junit).iter("failure")
    assert failure.get("message") == "1 difference in 34 responses"
    assert failure.text == "errorCode: 0 NONE → 41 NOT_CONTROLLER 1x (first #1 of controller-4.3.1.pcap)"
    assert "Changed (1) ApiVersions errorCode: 0 NONE → 41 NOT_CONTROLLER 1x first #1 of" in one_line(result.output)
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["differences"] == [
        {"api": "ApiVersions", "path": "errorCode", "kind": "changed", "expected": 0, "actual": 41, "count": 1}
        | {"first": {"exchange": 1, "session": "controller-4.3.1.pcap"}}
    ]
    assert (report["sent"], report["same"]) == (34, 33)
    assert report["apis"][0]["api"] == "ApiVersions"


def test_a_clock_that_cannot_be_moved_ends_the_replay_at_once() -> None:
    with Controller.sync(release="4.3", admin_port=0) as controller:
        result = replay(controller.bootstrap, "--admin", str(controller.admin_url))
    assert result.exit_code == ExitCode.NO_ANSWER
    assert "cannot be moved: HTTP/1.1 409 Conflict" in one_line(result.output)


@each_row(
    ("options", "complaint"),
    [
        (["--speed", "fast"], "'fast' is neither max nor a number over 0"),
        (["--speed", "0"], "neither max nor a number over 0"),
        (["--speed", "2", "--admin", "http://127.0.0.1:8080"], "a virtual clock has no pace: leave --speed at max"),
        (["--filter", "Nope"], "there is no API 'Nope'"),
        (["--capture", "no.pcap"], "no.pcap: cannot be opened: No such file or directory"),
        (["--capture", __file__], "not a pcap or pcapng file"),
        (["--port", "1"], "has no Kafka exchanges to port 1"),
    ],
)
def test_unreplayable_requests_are_reported(options: list[str], complaint: str) -> None:
    result = invoke("replay", "--capture", str(CAPTURE), "--bootstrap", "127.0.0.1:1", *options)
    assert result.exit_code == 2
    assert complaint in one_line(result.output)


def test_no_controller_is_exit_code_6() -> None:
    result = replay(f"127.0.0.1:{free_port()}")
    assert result.exit_code == 6
    assert "cannot connect" in result.output


def test_a_capture_becomes_a_stub_file(tmp_path: Path) -> None:
    path = tmp_path / "stubs.json"
    result = invoke("record", "--capture", str(CAPTURE), "--port", "19093", "--out", str(path), *SOME)
    assert result.exit_code == 0, result.output
    stubs = [Stub.from_json(each) for each in json.loads(path.read_text())["stubs"]]
    assert {each.match.api for each in stubs} == {("ApiVersions",), ("BrokerRegistration",), ("BrokerHeartbeat",)}
    assert f"{len(stubs)} stubs of 866 exchanges in {path}" in result.output.replace("\n", " ")


def test_a_controller_that_serves_the_recorded_stubs_answers_the_capture_as_it_is(tmp_path: Path) -> None:
    """Even what a new controller cannot know: that brokers had been registered, with these epochs."""
    path = tmp_path / "stubs.json"
    asked = ["--filter", "BrokerRegistration,AllocateProducerIds,DescribeQuorum"]
    assert invoke("record", "--capture", str(CAPTURE), "--port", "19093", "--out", str(path), *asked).exit_code == 0
    with Controller.sync() as controller:
        assert replay(controller.bootstrap, *asked).exit_code == 1
    with Controller.sync() as controller:
        for each in json.loads(path.read_text())["stubs"]:
            controller.call(controller.running.node.script.stubs.add, Stub.from_json(each))
        result = replay(controller.bootstrap, *asked)
    assert result.exit_code == 0, result.output


@each_row("options", [[], ["--capture", str(CAPTURE), "--upstream", "127.0.0.1:9"]])
def test_a_recording_has_one_source(options: list[str]) -> None:
    result = invoke("record", "--out", "-", *options)
    assert result.exit_code == 2
    assert "use either --capture or --upstream" in one_line(result.output)
