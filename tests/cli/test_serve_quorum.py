"""Several controllers as processes: their output, and the quorum they form."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.mockraft_process import MockraftController

from ..topics import described_quorum

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
