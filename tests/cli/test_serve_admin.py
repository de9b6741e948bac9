"""`mockraft serve` as processes: the HTTP API of one, and the quorum that several form."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.mockraft_process import MockraftController

from ..topics import described_quorum
from .cli import DEADLINE_S, completed, started

Serve = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts `mockraft serve` with an admin API; gives the process and the API's url."""
    with ExitStack() as undo:

        def start(*options: str) -> tuple[subprocess.Popen[str], str]:
            where = ("--port", "0", "--admin-port", "0")
            ready = r".* admin=(http://127\.0\.0\.1:\d+) .*\n"
            process, found = undo.enter_context(started("serve", *where, *options, ready=ready))
            return process, found[1]

        yield start


def get(url: str, token: str = "") -> dict[str, object]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        tree: dict[str, object] = json.load(answer)
    return tree


def test_the_ready_line_has_the_admin_url(serve: Serve) -> None:
    _, url = serve("--brokers", "1")
    assert get(f"{url}/v1/health")["nodes"] == [3000]


def test_a_quorum_has_one_admin_api(serve: Serve) -> None:
    _, url = serve("--controllers", "3")
    assert get(f"{url}/v1/health")["nodes"] == [3000, 3001, 3002]


def test_the_token_comes_out_of_a_file(serve: Serve, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    _, url = serve("--admin-token-file", str(token))
    assert "requests" in get(f"{url}/v1/requests", "secret")


def test_a_virtual_clock_stands_still(serve: Serve) -> None:
    _, url = serve("--virtual-clock")
    assert get(f"{url}/v1/clock") == get(f"{url}/v1/clock")
    assert get(f"{url}/v1/clock")["virtual"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_cleanly_on_a_signal_during_a_stream(serve: Serve, number: signal.Signals) -> None:
    process, url = serve()
    with urllib.request.urlopen(f"{url}/v1/requests/stream", timeout=DEADLINE_S) as stream:
        assert stream.readline() == b": mockraft\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_admin_port_that_is_taken_ends_it_with_code_3(serve: Serve) -> None:
    _, url = serve()
    port = url.rpartition(":")[2]
    ended = completed("serve", "--port", "0", "--admin-port", port)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr


def test_an_admin_api_that_is_off_is_not_even_imported() -> None:
    looks = (
        "import sys, mockraft.cli.serve.command, mockraft.cli.serve.admin, mockraft.cli.serve.quorum; "
        "import mockraft.server.double; "
        "print([name for name in sys.modules if name.startswith(('fastapi', 'uvicorn', 'mockraft.server.admin'))])"
    )
    ended = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, timeout=DEADLINE_S)
    assert ended.stdout == "[]\n"


CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"


def described(port: int) -> Any:
    """The quorum as the controller on this port tells it; None while it does not lead."""

    partition = asyncio.run(described_quorum(f"127.0.0.1:{port}"))
    return None if partition.error_code else partition


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., MockraftController]]:
    """`process(name, …)`: a controller that is not started yet; it is ended with the test."""
    made: list[MockraftController] = []

    def make(name: str, **options: Any) -> MockraftController:
        made.append(MockraftController(tmp_path / name, CLUSTER_ID, **options))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def test_three_controllers_in_one_process_print_addresses_and_elect_a_leader(process: Callable[..., Any]) -> None:
    quorum = process("quorum", controllers=3)
    quorum.start()
    quorum.wait_until_running()
    assert quorum.bootstrap.count(",") == 2
    assert f"bootstrap={quorum.bootstrap} cluster_id={CLUSTER_ID} node_id=3000,3001,3002" in quorum.whole_log
    leaders = {found.leader_id for port in range(quorum.port, quorum.port + 3) if (found := described(port))}
    assert len(leaders) == 1
    assert quorum.stop() == 0


def test_processes_with_the_same_voters_are_a_quorum_and_another_follows_it(process: Callable[..., Any]) -> None:
    voters = [process("voter-1"), process("voter-2")]
    named = ",".join(f"{number}@{each.bootstrap}" for number, each in enumerate(voters, start=1))
    for number, each in enumerate(voters, start=1):
        each.options += ["--node-id", str(number), "--controller-quorum-voters", named]
        each.start()
    follower = process("follower")
    follower.options += ["--node-id", "3", "--controller-quorum-bootstrap-servers", voters[0].bootstrap]
    follower.start()
    for each in (*voters, follower):
        each.wait_until_running()

    def whole() -> bool:
        found = next((found for each in voters if (found := described(each.port))), None)
        return found is not None and [observer.replica_id for observer in found.observers] == [3]

    assert wait_until(whole, 60, "a leader that the follower follows")
