"""Measure the time to the first accepted connection and answer, and from a controller's start to three RUNNING brokers.

mockraft and Kafka's controller take turns in one run; the median of the ratios is compared. The brokers also start
with a mockraft that is ready before: no controller can be faster.

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
from mockraft.wire.connection import FrameReader, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from result import OURS, THEIRS, Gate, Result, argument_parser, in_turns, show, spread
from watched_processes import compiled_modules

KINDS: dict[str, ControllerKind] = {OURS: "mockraft", THEIRS: "kafka"}
READY = "mockraft, ready before the brokers start"
SHARE_MAX, OF_READY_MAX = 0.6, 1.05
"""Bounds of the time to three brokers, as a share of the time with Kafka's controller or with one that is ready."""

RUNNING = r"Transitioning from RECOVERY to RUNNING"


def accepted(host: str, port: int, deadline_s: float = 30) -> socket.socket:
    """Return the first connection that is accepted."""
    deadline = time.perf_counter() + deadline_s
    while time.perf_counter() < deadline:
        try:
            return socket.create_connection((host, port), timeout=deadline_s)
        except ConnectionRefusedError:
            time.sleep(0.002)
    raise TimeoutError(f"{host}:{port} accepted nothing in {deadline_s} s")


def one_controller(kind: str, folder: Path) -> tuple[float, float]:
    """Return the seconds from a controller's start to its first accepted connection, and to its first answer."""
    cluster = KafkaCluster(folder, controller=KINDS[kind], versions=())
    cluster.format()
    try:
        began = time.perf_counter()
        cluster.controller.start()
        with accepted(cluster.controller.host, cluster.controller.port) as connection:
            accept_s = time.perf_counter() - began
            connection.sendall(write_request(ApiVersionsRequest(), 0, 1, "benchmark"))
            reader = FrameReader()
            while not reader.receive_data(connection.recv(1 << 16)):
                pass
            return accept_s, time.perf_counter() - began
    finally:
        cluster.kill()


def three_brokers(kind: str, folder: Path) -> float:
    """Return the seconds until three brokers run, from their start or, if it comes first, the controller's."""
    cluster = KafkaCluster(folder, controller=KINDS.get(kind, "mockraft"))
    cluster.format()
    try:
        if kind == READY:
            cluster.controller.start()
            cluster.controller.wait_until_running()
        began = time.perf_counter()
        if kind != READY:
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
    starts = in_turns([*KINDS], one_controller, rounds)
    accepts, answers = ({kind: [each[part] for each in starts[kind]] for kind in KINDS} for part in (0, 1))
    clusters = in_turns([*KINDS, READY], three_brokers, rounds)
    sooner = [theirs / ours for ours, theirs in zip(accepts[OURS], accepts[THEIRS], strict=True)]
    shares = [
        ours / max(SHARE_MAX * theirs, OF_READY_MAX * ready)
        for ours, theirs, ready in zip(clusters[OURS], clusters[THEIRS], clusters[READY], strict=True)
    ]
    return Result(
        "Start",
        "Each run is a new process with an empty data directory on disk, formatted beforehand; Python modules are "
        f"compiled beforehand. The brokers are unmodified Kafka {KAFKA_VERSION} brokers with two log directories each, "
        "started together with the controller, or, in the last row, once it is ready. Both controllers accept "
        "connections before they can answer.",
        [
            spread("From the controller's start to the first accepted connection", "controller", "s", accepts),
            spread("From the controller's start to the first answer, to ApiVersions", "controller", "s", answers),
            spread("From the first start to three brokers RUNNING", "controller", "s", clusters),
        ],
        gates=[
            Gate.of("first connection accepted, Kafka's time ÷ mockraft's", sooner, at_least=6.0),
            Gate.of(
                f"three brokers RUNNING, time with mockraft ÷ the larger of {SHARE_MAX} × that with Kafka's controller "
                f"and {OF_READY_MAX} × that with a mockraft that is ready before",
                shares,
                at_most=1.0,
            ),
        ],
    )


@contextmanager
def compiled() -> Iterator[None]:
    """Let Python start from compiled modules, as an installed package does."""
    with compiled_modules(), tempfile.TemporaryDirectory() as folder:
        one_controller(OURS, Path(folder))
        yield


if __name__ == "__main__":
    options = argument_parser(__doc__, rounds=(5, "clusters of each kind")).parse_args()
    with compiled():
        show(measure(options.rounds), options)
