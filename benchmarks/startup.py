"""Measure the time to the first accepted connection, and from a controller's start to three RUNNING Kafka brokers.

mockraft and Kafka's controller take turns in one run; the median of the ratios is compared.

    python benchmarks/startup.py [--rounds N] [--json]
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from result import OURS, THEIRS, Gate, Result, argument_parser, in_turns, show, spread
from watched_processes import compiled_modules

KINDS: dict[str, ControllerKind] = {OURS: "mockraft", THEIRS: "kafka"}
RUNNING = r"Transitioning from RECOVERY to RUNNING"


def accept_s(host: str, port: int, deadline_s: float = 30) -> float:
    """Return the seconds until a TCP connection is accepted."""
    began = time.perf_counter()
    while time.perf_counter() - began < deadline_s:
        try:
            with socket.create_connection((host, port), timeout=1):
                return time.perf_counter() - began
        except ConnectionRefusedError:
            time.sleep(0.002)
    raise TimeoutError(f"{host}:{port} accepted nothing in {deadline_s} s")


def one_controller(kind: str, folder: Path) -> float:
    cluster = KafkaCluster(folder, controller=KINDS[kind], versions=())
    cluster.format()
    try:
        began = time.perf_counter()
        cluster.controller.start()
        accept_s(cluster.controller.host, cluster.controller.port)
        return time.perf_counter() - began
    finally:
        cluster.kill()


def three_brokers(kind: str, folder: Path) -> float:
    cluster = KafkaCluster(folder, controller=KINDS[kind])
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


def measure(rounds: int) -> Result:
    """Measure both kinds of controllers in turns."""
    accepts = in_turns([*KINDS], one_controller, 2 * rounds)
    clusters = in_turns([*KINDS], three_brokers, rounds)
    sooner = [theirs / ours for ours, theirs in zip(accepts[OURS], accepts[THEIRS], strict=True)]
    shares = [ours / theirs for ours, theirs in zip(clusters[OURS], clusters[THEIRS], strict=True)]
    return Result(
        "Start",
        "Each run is a new process with an empty data directory on disk, formatted beforehand; Python modules are "
        f"compiled beforehand. The brokers are unmodified Kafka {KAFKA_VERSION} brokers with two log directories each, "
        "started together with the controller.",
        [
            spread("From the controller's start to the first accepted connection", "controller", "s", accepts),
            spread("From the controller's start to three brokers RUNNING", "controller", "s", clusters),
        ],
        gates=[
            Gate.of("first connection accepted, Kafka's time ÷ mockraft's", sooner, at_least=6.0),
            Gate.of("three brokers RUNNING, time with mockraft ÷ time with Kafka's controller", shares, at_most=0.6),
        ],
    )


@contextmanager
def compiled() -> Iterator[None]:
    """Let Python start from compiled modules, as an installed package does."""
    with compiled_modules(), tempfile.TemporaryDirectory() as folder:
        one_controller(OURS, Path(folder))
        yield


if __name__ == "__main__":
    options = argument_parser(__doc__, rounds=(3, "clusters of each kind")).parse_args()
    with compiled():
        show(measure(options.rounds), options)
