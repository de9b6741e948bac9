"""`mockraft capture` as a process."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.child_process import free_port
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.wire.client import DisconnectedError
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..rows import each_row
from ..topics import ask
from .cli import DEADLINE_S, completed, invoke, one_line, started


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
