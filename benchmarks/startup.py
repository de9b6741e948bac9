"""Time to the first accepted connection, and from a controller's start to three real brokers RUNNING.

mockraft and Kafka's own controller take turns in one run; what counts is the ratio of their medians.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from mockraft.kafka.cluster import ControllerKind, KafkaCluster

KINDS: tuple[ControllerKind, ...] = get_args(ControllerKind)
NAMES = {"mockraft": "mockraft", "kafka": "Kafka 4.3.1's controller"}
RUNNING = r"Transitioning from RECOVERY to RUNNING"


def accept_s(host: str, port: int, deadline_s: float = 30) -> float:
    """Seconds until a TCP connection is accepted."""
    began = time.perf_counter()
    while time.perf_counter() - began < deadline_s:
        try:
            with socket.create_connection((host, port), timeout=1):
                return time.perf_counter() - began
        except ConnectionRefusedError:
            time.sleep(0.002)
    raise TimeoutError(f"{host}:{port} accepted nothing in {deadline_s} s")


def one_controller(kind: ControllerKind, folder: Path) -> float:
    cluster = KafkaCluster(folder, controller=kind, versions=())
    cluster.format()
    try:
        began = time.perf_counter()
        cluster.controller.start()
        accept_s(cluster.controller.host, cluster.controller.port)
        return time.perf_counter() - began
    finally:
        cluster.kill()


def three_brokers(kind: ControllerKind, folder: Path) -> float:
    cluster = KafkaCluster(folder, controller=kind)
    cluster.format()
    try:
        began = time.perf_counter()
        cluster.controller.start()
        for broker in cluster.brokers.values():
            broker.start()
        for broker in cluster.brokers.values():
            broker.wait_for_log(RUNNING, 60)
        return time.perf_counter() - began
    finally:
        cluster.kill()


def in_turns(measure: Any, rounds: int) -> dict[str, list[float]]:
    """Seconds of each kind; who begins changes with every round, so that neither always finds the caches warmer."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 else reversed(KINDS):
            with tempfile.TemporaryDirectory() as folder:
                taken[kind].append(measure(kind, Path(folder)))
    return taken


def table(title: str, taken: dict[str, list[float]]) -> dict[str, Any]:
    rows = [
        [NAMES[kind], *(f"{seconds:.2f}" for seconds in (statistics.median(each), min(each), max(each))), len(each)]
        for kind, each in taken.items()
    ]
    return {"title": title, "columns": ["controller", "median s", "fastest s", "slowest s", "runs"], "rows": rows}


def measure(rounds: int) -> dict[str, Any]:
    accepts = in_turns(one_controller, 2 * rounds)
    clusters = in_turns(three_brokers, rounds)
    first, ours, theirs = (
        statistics.median(each) for each in (accepts["mockraft"], clusters["mockraft"], clusters["kafka"])
    )
    return {
        "title": "Start",
        "about": "A new process each time, with an empty data dir on disk; all storage is formatted and all of Python "
        "compiled before the clock runs. The brokers are unmodified Kafka 4.3.1 with two log dirs each, started "
        "together with the controller.",
        "tables": [
            table("From the controller's start to the first accepted connection", accepts),
            table("From the controller's start to three brokers RUNNING", clusters),
        ],
        "summary": [
            f"mockraft accepts {statistics.median(accepts['kafka']) / first:.1f} times sooner than Kafka's controller.",
            f"Three brokers are RUNNING after {ours / theirs:.2f} of the time that they take with Kafka's controller.",
        ],
        "gates": [
            {
                "what": "first connection accepted, Kafka's time ÷ mockraft's",
                "measured": f"{statistics.median(accepts['kafka']) / first:.2f}",
                "at_least": 5.0,
            },
            {
                "what": "three brokers RUNNING, mockraft's time ÷ that with Kafka's controller",
                "measured": f"{ours / theirs:.2f}",
                "at_most": 1.0,
            },
        ],
    }


@contextmanager
def compiled() -> Iterator[None]:
    """Python starts from compiled modules, as an installed package does, wherever and however this is run."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        try:
            with tempfile.TemporaryDirectory() as folder:
                one_controller("mockraft", Path(folder))
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="clusters of each kind (default 3)")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    with compiled():
        result = measure(options.rounds)
    if options.json:
        print(json.dumps(result))
        return
    for each in result["tables"]:
        print(f"\n{each['title']}\n{each['columns']}")
        print("\n".join(str(row) for row in each["rows"]))
    print("\n" + "\n".join(result["summary"]))


if __name__ == "__main__":
    main()
