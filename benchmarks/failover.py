"""The time that a quorum of three has no active controller after a kill: mockraft's beside Kafka's own.

Three processes each, on disk, with Kafka's default timeouts; the clock runs from SIGKILL to the first registration of
a broker that another controller acknowledges.

    python benchmarks/failover.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contenders import OURS, THEIRS, registrations
from load import Asker
from mockraft.double.process import MockraftController
from mockraft.kafka.child_process import free_port
from mockraft.kafka.processes import KafkaController, KafkaServer, random_uuid

NODE_IDS = (3000, 3001, 3002)
ANSWER_S = 1.0
DEADLINE_S = 60.0

Controllers = dict[int, KafkaController | MockraftController]


@contextmanager
def quorum(kind: str, folder: Path) -> Iterator[Controllers]:
    """Three controllers that know each other by controller.quorum.voters, started."""
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
    """Register brokers until a controller acknowledges one; gives its node id."""
    deadline = time.perf_counter() + DEADLINE_S
    while time.perf_counter() < deadline:
        for node_id, controller in controllers.items():
            (request,) = registrations(controller.cluster_id, [next(broker_ids)])
            try:
                asker = Asker((controller.host, controller.port))
            except OSError:
                continue
            asker.socket.settimeout(ANSWER_S)
            try:
                if asker.ask(request, 4).error_code == 0:
                    return node_id
            except OSError:
                pass
            finally:
                asker.close()
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


def measure(rounds: int) -> dict[str, Any]:
    taken: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for number in range(rounds):
        for kind in taken if number % 2 else reversed(taken):
            with tempfile.TemporaryDirectory() as folder:
                taken[kind].append(failover_s(kind, Path(folder)))
    rows = [
        [kind, *(f"{value:.2f}" for value in (statistics.median(each), min(each), max(each))), len(each)]
        for kind, each in taken.items()
    ]
    ratio = statistics.median(taken[OURS]) / statistics.median(taken[THEIRS])
    columns = ["controller", "median s", "fastest s", "slowest s", "runs"]
    return {
        "title": "Failover",
        "about": "The active one of three controllers is killed with SIGKILL. Both wait for the same timeouts: that a "
        "leader is missed takes controller.quorum.fetch.timeout.ms (2 s), and who stands for election draws a delay.",
        "tables": [{"title": "From SIGKILL to the first registration acknowledged", "columns": columns, "rows": rows}],
        "summary": [f"mockraft's next leader is there after {ratio:.2f} of the time that Kafka's needs."],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="quorums of each kind (default 3)")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    result = measure(options.rounds)
    print(json.dumps(result) if options.json else result)


if __name__ == "__main__":
    main()
