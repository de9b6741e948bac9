"""Measure the time without an active controller after a kill, with mockraft and with Kafka's controllers.

Three controller processes write to disk and use Kafka's default timeouts. The time is from SIGKILL until another
controller acknowledges the first broker registration.

    python benchmarks/failover.py [--rounds N] [--json]
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contenders import registrations
from load import TimedConnection
from mockraft.double.process import MockraftController
from mockraft.kafka.child_process import free_port
from mockraft.kafka.processes import KafkaController, KafkaServer, random_uuid
from result import OURS, THEIRS, Gate, Result, argument_parser, in_turns, show, spread

NODE_IDS = (3000, 3001, 3002)
ANSWER_S = 1.0
DEADLINE_S = 60.0

Controllers = dict[int, KafkaController | MockraftController]


@contextmanager
def quorum(kind: str, folder: Path) -> Iterator[Controllers]:
    """Start three controllers that are listed in controller.quorum.voters."""
    cluster_id = random_uuid()
    ports = {node_id: free_port() for node_id in NODE_IDS}
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
    made = {node_id: _controller(kind, folder, cluster_id, node_id, port, voters) for node_id, port in ports.items()}
    try:
        for each in made.values():
            each.start()
        for each in made.values():
            each.wait_until_running()
        yield made
    finally:
        for each in made.values():
            each.kill()


def _controller(
    kind: str, folder: Path, cluster_id: str, node_id: int, port: int, voters: str
) -> KafkaController | MockraftController:
    directory = folder / str(node_id)
    if kind == OURS:
        options = ["--node-id", str(node_id), "--port", str(port), "--controller-quorum-voters", voters]
        ours = MockraftController(directory, cluster_id, options=options)
        ours.port = port
        return ours
    kafka = KafkaController(directory, cluster_id, node_id=node_id, properties={"controller.quorum.voters": voters})
    kafka.port = port
    del kafka.properties["controller.quorum.bootstrap.servers"]
    kafka.properties["listeners"] = f"CONTROLLER://{kafka.bootstrap}"
    KafkaServer.format(kafka)
    return kafka


def active(controllers: Controllers, broker_ids: Iterator[int]) -> int:
    """Register brokers until a controller acknowledges one; return its node id."""
    deadline = time.perf_counter() + DEADLINE_S
    while time.perf_counter() < deadline:
        for node_id, controller in controllers.items():
            (request,) = registrations(controller.cluster_id, [next(broker_ids)])
            try:
                connection = TimedConnection((controller.host, controller.port), ANSWER_S)
            except OSError:
                continue
            try:
                if connection.exchange(request, 4).error_code == 0:
                    return node_id
            except OSError:
                pass
            finally:
                connection.close()
        time.sleep(0.005)
    raise TimeoutError(f"no active controller in {DEADLINE_S} s")


def failover_s(kind: str, folder: Path) -> float:
    broker_ids = itertools.count(1)
    with quorum(kind, folder) as controllers:
        leader = active(controllers, broker_ids)
        killed = controllers.pop(leader)
        began = time.perf_counter()
        killed.kill()
        try:
            active(controllers, broker_ids)
        finally:
            controllers[leader] = killed
        return time.perf_counter() - began


def measure(rounds: int) -> Result:
    """Kill active controllers of both kinds."""
    taken = in_turns((OURS, THEIRS), failover_s, rounds)
    ratios = [ours / theirs for ours, theirs in zip(taken[OURS], taken[THEIRS], strict=True)]
    return Result(
        "Failover",
        "The active one of three controllers is killed with SIGKILL. The timeouts are equal: followers notice the loss "
        "after controller.quorum.fetch.timeout.ms (2 s), and a candidate waits for a random time before its election.",
        [spread("From SIGKILL to the first acknowledged registration", "controller", "s", taken)],
        gates=[Gate.of("time without an active controller, mockraft's ÷ Kafka's", ratios, at_most=1.0)],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, rounds=(3, "quorums of each kind")).parse_args()
    show(measure(options.rounds), options)
