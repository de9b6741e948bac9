import contextlib
import signal
import socket
import subprocess
import sys
from pathlib import Path

from mockraft.kafka.child_process import wait_until
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..cli.cli import DEADLINE_S
from ..rows import each_row


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
