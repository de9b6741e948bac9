"""Measure the time without an active controller after a kill, with mockraft and with Kafka's controllers.

Three controller processes write to disk and use Kafka's default timeouts. The time is from SIGKILL until another
controller acknowledges the first broker registration.

    python benchmarks/failover.py [--rounds N] [--json]
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from contenders import registrations
from load import TimedConnection
from mockraft.kafka.child_process import free_port
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaController, KafkaServer, random_uuid
from result import OURS, THEIRS, Gate, Result, argument_parser, show, spread

NODE_IDS = (3000, 3001, 3002)
ANSWER_S = 1.0
DEADLINE_S = 60.0
SETTLED_S = 0.25
"""Time before a kill in which both followers get the last record: without it, one of them could not be elected.

Half of the 500 ms that a Fetch waits at most, so that the timeouts of followers are equally old in all kills.
"""

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


def failover_s(controllers: Controllers, broker_ids: Iterator[int]) -> float:
    """Kill the active controller; return the time until another one acknowledges a registration. Start it again."""
    leader = active(controllers, broker_ids)
    time.sleep(SETTLED_S)
    killed = controllers.pop(leader)
    began = time.perf_counter()
    killed.kill()
    try:
        active(controllers, broker_ids)
        taken_s = time.perf_counter() - began
    finally:
        controllers[leader] = killed
    killed.start()
    killed.wait_until_running()
    return taken_s


def measure(rounds: int) -> Result:
    """Kill active controllers of both kinds in turns."""
    taken: dict[str, list[float]] = {OURS: [], THEIRS: []}
    broker_ids = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        quorums = {kind: running.enter_context(quorum(kind, Path(folder, str(n)))) for n, kind in enumerate(taken)}
        for number in range(rounds):
            for kind in taken if number % 2 else reversed(taken):
                taken[kind].append(failover_s(quorums[kind], broker_ids))
    ratio = statistics.median(taken[OURS]) / statistics.median(taken[THEIRS])
    return Result(
        "Failover",
        "The active one of three controllers is killed with SIGKILL, and started again afterwards, in turns in two "
        "quorums that run all the time. The timeouts are equal: followers notice the loss after "
        "controller.quorum.fetch.timeout.ms (2 s), mockraft's up to 50 ms later, each at another time. If both ask for "
        "votes at once, or the one that is behind asks last, a random time of 1 to 4 s follows, with both kinds. So "
        "the medians of all kills are compared.",
        [spread("From SIGKILL to the first acknowledged registration", "controller", "s", taken)],
        gates=[Gate("time without an active controller, mockraft's ÷ Kafka's", f"{ratio:.2f}", at_most=1.0)],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, rounds=(5, "kills of each kind")).parse_args()
    show(measure(options.rounds), options)
