"""The start of `mockraft serve`, and a disk that fails: exit code, reason, health, and directories that it refuses."""

import asyncio
import contextlib
import errno
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from mockraft import Controller
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import wait_until
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..cli.cli import DEADLINE_S, completed, invoke, started
from ..configs import BROKER, SET, change_configs
from ..rows import each_row
from ..topics import ask

READY = r"mockraft ready bootstrap=(\S+) cluster_id=\S+ node_id=\S+ admin=(\S+) .*\n"
FIRST_SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


class Served(NamedTuple):
    process: subprocess.Popen[str]
    bootstrap: str
    admin: str

    def fill_disk(self, data_dir: Path) -> None:
        """Let no file grow beyond the present size of the log."""
        self._limit((data_dir / FIRST_SEGMENT).stat().st_size)

    def empty_disk(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, hard))

    def ask(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(self.admin + path, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return json.load(answer)

    def leader(self) -> int | None:
        """Node id of the leader; None while health is 503."""
        with suppress(urllib.error.HTTPError):
            return cast(int, self.ask("/v1/health")["leaderId"])
        return None

    def health(self) -> tuple[int, str]:
        """Status and detail of /v1/health."""
        try:
            return 200, self.ask("/v1/health")["status"]
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)["detail"]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start `mockraft serve` with a data directory, `data`."""
    with ExitStack() as undo:

        def start(*options: str) -> Served:
            arguments = ("serve", "--port", "0", "--data-dir", tmp_path / "data", *options)
            process, ready = undo.enter_context(started(*arguments, ready=READY))
            return Served(process, ready[1], ready[2])

        yield start


def test_a_full_disk_ends_it_with_its_own_exit_code_and_one_reason(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("--log-json")
    served.fill_disk(tmp_path / "data")
    _, errors = served.process.communicate(timeout=DEADLINE_S)
    assert served.process.returncode == 5
    *lines, last = errors.splitlines()
    failed = [line["message"] for line in map(json.loads, lines) if line["level"] == "error"]
    assert len(failed) == 2, "the failed write and the end, once each"
    assert re.match(rf"mockraft serve: node 3000: .*{FIRST_SEGMENT}: cannot be written: .*File too large", last)
    again = serve()
    assert invoke("health", "--bootstrap", again.bootstrap).exit_code == 0


def test_a_quorum_goes_on_without_its_leaders_directory_and_ends_without_all(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("--controllers", "3", "--admin-port", "0")
    first = served.leader()
    shutil.rmtree(tmp_path / "data" / f"controller-{first}")
    wait_until(lambda: served.leader() not in (None, first), DEADLINE_S, "another leader")
    shutil.rmtree(tmp_path / "data")
    _, errors = served.process.communicate(timeout=DEADLINE_S)
    assert served.process.returncode == 5
    assert re.search(rf"mockraft serve: node 3000: .*{FIRST_SEGMENT}: is lost: No such file", errors)


async def test_told_to_stay_it_is_down_until_a_write_succeeds(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve("--stay-after-failure", "--admin-port", "0")
    assert served.health() == (200, "up")
    served.fill_disk(tmp_path / "data")
    change = change_configs((BROKER, "", (SET, "max.connections", "5")))
    assert (await ask(served.bootstrap, change)).responses[0].error_code == error_codes.KAFKA_STORAGE_ERROR
    wait_until(lambda: served.health()[0] == 503, DEADLINE_S, "an unhealthy controller")
    assert "File too large" in served.health()[1]
    assert (await ask(served.bootstrap, DescribeClusterRequest(endpoint_type=2))).controller_id == 3000
    wait_until(lambda: "writes are refused until one succeeds" in _error_line(served.process), DEADLINE_S, "its line")
    assert served.process.poll() is None
    served.empty_disk()
    wait_until(lambda: served.health() == (200, "up"), DEADLINE_S, "a healthy controller")
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        served.ask("/v1/snapshots", method="POST")
    assert "is lost: No such file" in served.health()[1]


def _error_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def test_health_command_names_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Controller.sync(data_dir=tmp_path) as controller:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full_disk)
            wait_until(lambda: controller.running.controller.failure, DEADLINE_S, "a failed write")
            done = invoke("health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        assert done.exit_code == 1
        assert done.stdout.startswith(f"{controller.bootstrap} cannot commit: {tmp_path}")
        wait_until(lambda: not controller.running.controller.failure, DEADLINE_S, "a successful write")
        done = invoke("health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        assert (done.exit_code, done.stdout) == (0, f"{controller.bootstrap} answers: leader 3000 in epoch 1\n")


async def test_without_an_active_controller_nothing_is_healthy() -> None:
    async with Controller() as controller:
        raft = controller.running.controller.raft
        raft.automatic = False
        raft.to_unattached(raft.epoch + 1, controller.now_ms)
        assert controller.failure == "no controller is active"
        done = await asyncio.to_thread(invoke, "health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        assert (done.exit_code, done.stdout) == (1, f"{controller.bootstrap} cannot commit: no controller is active\n")
        controller.running.script(Raft.elect)
        assert controller.failure is None


@each_row(
    ("name", "old", "new", "said"),
    [
        (
            "__cluster_metadata-0/quorum-state",
            '"leaderEpoch":1,',
            '"leaderEpoch":2147483647,',
            "leader epoch 2147483647",
        ),
        ("__cluster_metadata-0/leader-epoch-checkpoint", "1 0", "-1 0", "leader epoch -1"),
        ("meta.properties", "version=1", "version=9", "version 9"),
    ],
)
def test_a_damaged_data_directory_is_refused_in_one_line(
    tmp_path: Path, name: str, old: str, new: str, said: str
) -> None:
    with Controller.sync(data_dir=tmp_path):
        pass
    path = tmp_path / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = completed("serve", "--port", "0", "--data-dir", tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("mockraft serve: ")
    assert str(path) in line
    assert said in line


def test_a_data_directory_that_cannot_be_made_is_refused_in_one_line() -> None:
    done = completed("serve", "--port", "0", "--data-dir", "/proc/mockraft")
    assert (done.returncode, len(done.stderr.splitlines())) == (4, 1)
    assert "data dir /proc/mockraft: cannot be used" in done.stderr


def test_listens_before_the_controller_is_imported() -> None:
    code = """
import socket, sys, types
from mockraft import cli
late = {"asyncio", "ssl", "mockraft.server.controller.controller", "mockraft.server.node"}
def serve(config, rng, options, listening):
    with socket.create_connection(listening.getsockname()):
        print(config.port, late & set(sys.modules))
    return 0
sys.modules["mockraft.cli.serve.process"] = types.SimpleNamespace(serve=serve)
cli.main(["serve", "--port", "0"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "0 set()\n"


def test_start_imports_no_module_of_stubs_and_faults() -> None:
    code = """
import sys
from mockraft import cli
from mockraft.cli.serve import command, process, stubs
assert stubs.stub_file(None) is None
print(*sys.modules)
"""
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    ours = ("mockraft.server.scripted", "mockraft.server.stubs.stub", "mockraft.server.state")
    late = (*ours, "argparse", "pydantic", "rich")
    assert {name for name in loaded if name.startswith("mockraft.server.apis.create_")} == set()
    assert {name for name in loaded if name.startswith(late) or ".stubs.faults." in name} == {
        "mockraft.server.stubs.faults.registry",
        "mockraft.server.stubs.stub_list",
    }


def test_answers_a_client_that_connects_while_it_starts(tmp_path: Path) -> None:
    controller = MockraftController(tmp_path, "MkU3OEVBNTcwNTJENDM2Qk")

    def connected() -> socket.socket | None:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection((controller.host, controller.port), timeout=DEADLINE_S)
        return None

    controller.start()
    try:
        with wait_until(connected, DEADLINE_S, "a listening controller") as early:
            early.sendall(write_request(ApiVersionsRequest(), 0, 7, "early"))
            reader = FrameReader()
            while not (frames := reader.receive_data(early.recv(1 << 16))):
                pass
        assert read_response(frames[0], ApiVersionsRequest.api_key, 0).error_code == 0
    finally:
        controller.stop()


@each_row("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_between_listening_and_readiness_ends_it_without_error(number: signal.Signals) -> None:
    code = """
import os, sys
from mockraft import cli
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "mockraft.cli.serve.process":
            os.kill(os.getpid(), int(sys.argv[1]))
sys.meta_path.insert(0, Finder())
cli.main(["serve", "--port", "0"])
"""
    command = [sys.executable, "-c", code, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
