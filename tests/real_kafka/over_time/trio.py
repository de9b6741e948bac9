"""Three controllers of one quorum, each a process with a data directory of its own: Kafka's, or ours."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from mockraft.kafka.child_process import free_port, wait_until
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaController, KafkaServer, random_uuid

from tools.blocking_connection import BlockingConnection

from ..parity.conftest import AT_ONCE, SESSION_TIMEOUT_MS
from .script import described_quorum, led_epoch

NODE_IDS = (3000, 3001, 3002)

Controller: TypeAlias = KafkaController | MockraftController
BOOTSTRAP_OPTION = "--controller-quorum-bootstrap-servers"


class Trio:
    """Processes by node id; any of them may be gone or stopped."""

    def __init__(self, nodes: dict[int, Controller], cluster_id: str) -> None:
        self.nodes = nodes
        self.cluster_id = cluster_id

    @property
    def servers(self) -> list[str]:
        return [each.bootstrap for each in self.nodes.values()]

    @property
    def processes(self) -> list[Controller]:
        return list(self.nodes.values())

    def leader(self, after_epoch: int = -1) -> int | None:
        """The node that leads an epoch later than this one and has committed a record of it; None if there is none."""
        return next((node_id for node_id in self.nodes if self.leads(node_id) > after_epoch), None)

    def wait_for_leader(self, after_epoch: int = -1) -> int:
        return wait_until(lambda: self.leader(after_epoch), 60, f"a leader after epoch {after_epoch}")

    def leads(self, node_id: int) -> int:
        """The epoch that a node leads, -1 if it leads none or does not answer."""
        try:
            with closing(connect(self.nodes[node_id].bootstrap)) as connection:
                return led_epoch(described_quorum(connection))
        except OSError:
            return -1

    def pause(self, node_id: int) -> None:
        os.kill(self.nodes[node_id].pid, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        os.kill(self.nodes[node_id].pid, signal.SIGCONT)

    def start(self, node_id: int) -> None:
        self.nodes[node_id].start()
        self.nodes[node_id].wait_until_running()


def connect(bootstrap: str, timeout_s: float = 2) -> BlockingConnection:
    host, _, port = bootstrap.rpartition(":")
    return BlockingConnection((host, int(port)), "test", timeout_s)


def kafka_nodes(directory: Path) -> Trio:
    """Kafka's controllers, not yet formatted."""
    cluster_id = random_uuid()
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS), **AT_ONCE}
    nodes = {
        node_id: KafkaController(directory / str(node_id), cluster_id, node_id=node_id, properties=properties)
        for node_id in NODE_IDS
    }
    servers = ",".join(each.bootstrap for each in nodes.values())
    for each in nodes.values():
        each.properties["controller.quorum.bootstrap.servers"] = servers
    return Trio(dict(nodes), cluster_id)


def our_nodes(directory: Path) -> Trio:
    """Our controllers; how each finds its quorum is not yet among their options."""
    cluster_id = random_uuid()
    nodes = {
        node_id: MockraftController(
            directory / str(node_id),
            cluster_id,
            options=["--node-id", str(node_id), "--session-timeout-ms", str(SESSION_TIMEOUT_MS)],
        )
        for node_id in NODE_IDS
    }
    return Trio(dict(nodes), cluster_id)


def move(node: Controller) -> None:
    """Give a node that is not running another port."""
    before, node.port = node.bootstrap, free_port()
    if isinstance(node, MockraftController):
        node.options[node.options.index("--port") + 1] = str(node.port)
    else:
        # Where it looks for the leader first is left as it was: one of the others answers.
        node.properties["listeners"] = node.properties["listeners"].replace(before, node.bootstrap)


@contextmanager
def running_quorum(trio: Trio, *voters: int) -> Iterator[Trio]:
    """Run all three, of which these are voters from the start, until there is a leader; none is left afterwards."""
    entries = ",".join(f"{node_id}@{trio.nodes[node_id].bootstrap}:{random_uuid()}" for node_id in voters)
    for node_id, each in trio.nodes.items():
        if isinstance(each, MockraftController):
            is_voter = ["--initial-controllers", entries]
            each.options += is_voter if node_id in voters else [BOOTSTRAP_OPTION, ",".join(trio.servers)]
        else:
            is_voter = ["--initial-controllers", entries]
            KafkaServer.format(each, *(is_voter if node_id in voters else ["--no-initial-controllers"]))
    try:
        for each in trio.nodes.values():
            each.start()
        for each in trio.nodes.values():
            each.wait_until_running()
        trio.wait_for_leader()
        yield trio
    finally:
        for each in trio.nodes.values():
            each.kill()


@contextmanager
def both_running(directory: Path, watch: Callable[[Trio], None], *voters: int) -> Iterator[tuple[Trio, Trio]]:
    """Kafka's quorum and ours, started side by side."""
    trios = kafka_nodes(directory / "kafka"), our_nodes(directory / "mockraft")
    for trio in trios:
        watch(trio)
    with ExitStack() as undo, ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(lambda trio: undo.enter_context(running_quorum(trio, *voters)), trios)
        yield theirs, ours
