"""Compare mockraft's controller with Kafka's: throughput, latency of single operations, metadata of a large cluster.

Each runs in its own process with an empty data directory and gets the same requests; this process is the load.

    python benchmarks/controller.py [--quick] [--json]
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from contenders import (
    Contender,
    address,
    brokers_up,
    contenders,
    create_topic,
    create_topic_on,
    end_of,
    fetch,
    heartbeat,
    leader_epoch,
    registrations,
    shrink_or_grow,
)
from load import Load, Measured, TimedConnection, dealt, repeated, run
from mockraft.wire.connection import write_request
from result import OURS, THEIRS, Cell, Gate, Result, Table, argument_parser, show

BROKERS = 100
FEW, MANY, VERY_MANY = 10, 100, 1000
PACED_PER_S = 500
PARTITIONS_A_TOPIC = 1000

Runs = dict[str, dict[str, list[Measured]]]
"""Load → controller → its runs."""


class Sizes(NamedTuple):
    """Seconds per load and of warm-up, rounds, registrations a round, single operations, topics of 1,000 partitions."""

    seconds: float = 1.0
    warm_up_s: float = 3.0
    turns: int = 3
    registrations: int = 3000
    operations: int = 150
    topics: int = 100


QUICK = Sizes(0.3, 0.5, 1, 500, 20, 5)


def throughput(both: dict[str, Contender], sizes: Sizes) -> Runs:
    """Send heartbeats, fetches and registrations, most of them as fast as responses arrive."""
    loads: dict[str, list[Callable[[], Load]]] = {kind: _loads(each, sizes) for kind, each in both.items()}
    for kind, makers in loads.items():
        load = makers[1]()
        run(address(both[kind]), both[kind].pid, load, sizes.warm_up_s)
    results: Runs = {}
    for number in range(len(loads[OURS])):
        for turn in range(sizes.turns):
            for kind in both if turn % 2 else reversed(both):
                load = loads[kind][number]()
                measured = run(address(both[kind]), both[kind].pid, load, sizes.seconds)
                results.setdefault(load.name, {}).setdefault(kind, []).append(measured)
    return results


def _loads(controller: Contender, sizes: Sizes) -> list[Callable[[], Load]]:
    connection = TimedConnection(address(controller))
    epochs = brokers_up(connection, controller.cluster_id, BROKERS)
    heartbeats = [write_request(heartbeat(broker, epoch), 2, broker, str(broker)) for broker, epoch in epochs.items()]
    epoch = leader_epoch(connection, controller.cluster_id)
    end = connection.exchange(fetch(controller.cluster_id, epoch, 0, 0), 17).responses[0].partitions[0].high_watermark
    of_all = write_request(fetch(controller.cluster_id, epoch, 0, 0), 17, 1, "1")
    of_none = write_request(fetch(controller.cluster_id, epoch, end, epoch), 17, 1, "1")
    connection.close()
    next_id = itertools.count(BROKERS + 1)

    def registering() -> Load:
        ids = list(itertools.islice(next_id, sizes.registrations))
        requests = registrations(controller.cluster_id, ids)
        frames = [write_request(each, 4, each.broker_id, str(each.broker_id)) for each in requests]
        return Load(f"BrokerRegistration, {MANY} connections", dealt(frames, MANY))

    return [
        *(
            lambda count=count: Load(f"BrokerHeartbeat, {count:,} connections", repeated(heartbeats, count))
            for count in (FEW, MANY, VERY_MANY)
        ),
        lambda: Load(f"BrokerHeartbeat, {PACED_PER_S} per second", repeated(heartbeats, MANY), PACED_PER_S),
        lambda: Load(f"Fetch of nothing new, {MANY} connections", repeated([of_none], MANY)),
        lambda: Load(f"Fetch of the whole log, {MANY} connections", repeated([of_all], MANY)),
        registering,
    ]


def operations(both: dict[str, Contender], sizes: Sizes) -> dict[str, dict[str, list[float]]]:
    """Return the milliseconds of single operations for each controller."""
    taken: dict[str, dict[str, list[float]]] = {}
    for kind, controller in both.items():
        connection = TimedConnection(address(controller))
        for name, seconds in _operations(connection, controller.cluster_id, sizes):
            taken.setdefault(name, {}).setdefault(kind, []).append(1000 * seconds)
        connection.close()
    return taken


def _operations(connection: TimedConnection, cluster_id: str, sizes: Sizes) -> Iterator[tuple[str, float]]:
    for number in range(sizes.operations):
        created, seconds = connection.timed(create_topic(f"small-{number}", 1, 3), 7)
        assert created.topics[0].error_code == 0, created
        yield "CreateTopics, one partition", seconds
    epochs = brokers_up(connection, cluster_id, 3)
    topic_id = connection.exchange(create_topic_on("moving", (1, 2, 3)), 7).topics[0].topic_id
    for number in range(sizes.operations):
        isr = (1, 2) if number % 2 == 0 else (1, 2, 3)
        answered, seconds = connection.timed(shrink_or_grow(epochs, topic_id, isr, number), 3)
        assert answered.error_code == 0, answered
        assert answered.topics[0].partitions[0].error_code == 0, answered
        yield "AlterPartition", seconds
    first = 1_000_000
    for request in registrations(cluster_id, range(first, first + sizes.operations)):
        registered, seconds = connection.timed(request, 4)
        assert registered.error_code == 0, registered
        yield "BrokerRegistration", seconds


def large(both: dict[str, Contender], sizes: Sizes) -> tuple[dict[str, dict[str, list[float]]], dict[str, int]]:
    """Return, for each controller, figures of a large cluster (name → values) and the bytes of its log."""
    figures: dict[str, dict[str, list[float]]] = {}
    log_bytes: dict[str, int] = {}
    for kind, controller in both.items():
        connection = TimedConnection(address(controller))
        brokers_up(connection, controller.cluster_id, 3)
        values = figures.setdefault(kind, {})
        for number in range(sizes.topics):
            created, seconds = connection.timed(create_topic(f"large-{number}", PARTITIONS_A_TOPIC, 3), 7)
            assert created.topics[0].error_code == 0, created
            values.setdefault("create", []).append(1000 * seconds)
        values["memory"] = [psutil.Process(controller.pid).memory_info().rss / (1 << 20)]
        for _ in range(3):
            seconds, log_bytes[kind] = _catch_up(connection, controller.cluster_id)
            values.setdefault("fetch", []).append(1000 * seconds)
        connection.close()
    return figures, log_bytes


def _catch_up(connection: TimedConnection, cluster_id: str) -> tuple[float, int]:
    """Fetch the whole log as a new broker does; return the seconds of waiting for responses, and the bytes."""
    epoch = leader_epoch(connection, cluster_id)
    waited_s, offset, received = 0.0, 0, 0
    while True:
        answer, seconds = connection.timed(fetch(cluster_id, epoch, offset, epoch if offset else 0), 17)
        waited_s += seconds
        records = answer.responses[0].partitions[0].records
        if not records:
            return waited_s, received
        received += len(records)
        offset = end_of(records)


def percentile(runs: Sequence[Measured], share: float) -> float:
    """Return the median over the runs of this percentile of latency."""
    return statistics.median(at(run.latencies_ms, share) for run in runs)


def at(ordered: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def per_s(runs: Sequence[Measured]) -> float:
    return statistics.median(run.answers / run.seconds for run in runs)


def throughput_table(results: Runs) -> tuple[Table, dict[str, float]]:
    """Return the table, and for each load mockraft's throughput ÷ Kafka's."""
    rows: list[list[Cell]] = []
    ratios = {}
    for load, by_kind in results.items():
        for kind in (OURS, THEIRS):
            runs = by_kind[kind]
            rows.append(
                [
                    load,
                    kind,
                    f"{per_s(runs):,.0f}",
                    f"{1e6 * statistics.median(run.cpu_s / run.answers for run in runs):.0f}",
                    *(f"{percentile(runs, share):.2f}" for share in (0.5, 0.99)),
                    f"{100 * statistics.median(run.load_cpu_s / run.seconds for run in runs):.0f} %",
                    sum(run.errors for run in runs),
                ]
            )
        ratios[load] = per_s(by_kind[OURS]) / per_s(by_kind[THEIRS])
    columns = [
        "load",
        "controller",
        "responses/s",
        "CPU µs each",
        "p50 ms",
        "p99 ms",
        "load's share of a core",
        "errors",
    ]
    return Table("Throughput and latency", columns, rows), ratios


def operations_table(taken: dict[str, dict[str, list[float]]]) -> tuple[Table, dict[str, float]]:
    """Return the table, and for each operation Kafka's median ÷ mockraft's."""
    rows: list[list[Cell]] = []
    ratios = {}
    for name, by_kind in taken.items():
        ours, theirs = (sorted(by_kind[kind]) for kind in (OURS, THEIRS))
        ratios[name] = at(theirs, 0.5) / at(ours, 0.5)
        values = [f"{at(each, share):.2f}" for each in (ours, theirs) for share in (0.5, 0.99)]
        rows.append([name, *values, f"{ratios[name]:.0f}"])
    columns = ["operation", "p50 ms", "p99 ms", "Kafka's p50 ms", "Kafka's p99 ms", "x"]
    return Table("Single operations, one after the other", columns, rows), ratios


def large_table(figures: dict[str, dict[str, list[float]]], topics: int) -> tuple[Table, dict[str, float]]:
    """Return the table, and for each figure Kafka's ÷ mockraft's."""
    names = {
        "create": f"CreateTopics with {PARTITIONS_A_TOPIC:,} partitions, ms",
        "fetch": f"catch-up Fetch of the log of {topics * PARTITIONS_A_TOPIC:,} partitions, ms",
        "memory": f"resident memory at {topics * PARTITIONS_A_TOPIC:,} partitions, MiB",
    }
    rows: list[list[Cell]] = []
    ratios = {}
    for key, name in names.items():
        ours, theirs = (statistics.median(figures[kind][key]) for kind in (OURS, THEIRS))
        ratios[key] = theirs / ours
        rows.append([name, f"{ours:.1f}", f"{theirs:.1f}", f"{ratios[key]:.1f}"])
    return Table("A large cluster", ["", "mockraft", "Kafka's controller", "x"], rows), ratios


def measure(sizes: Sizes) -> Result:
    """Measure throughput and single operations, then a large cluster on new controllers."""
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder)) as both:
        answers, answer_ratios = throughput_table(throughput(both, sizes))
        single, single_ratios = operations_table(operations(both, sizes))
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder)) as both:
        figures, log_bytes = large(both, sizes)
    big, big_ratios = large_table(figures, sizes.topics)
    heartbeats = [ratio for load, ratio in answer_ratios.items() if "Heartbeat" in load and "connections" in load]
    (registering,) = (ratio for load, ratio in answer_ratios.items() if "Registration" in load)
    gates = {
        "heartbeats per second, mockraft's ÷ Kafka's, mean": (statistics.geometric_mean(heartbeats), 1.0),
        "registrations per second, mockraft's ÷ Kafka's": (registering, 1.0),
        "single operations, Kafka's time ÷ mockraft's, least": (min(single_ratios.values()), 1.0),
        "resident memory, Kafka's ÷ mockraft's": (big_ratios["memory"], 4.0),
    }
    return Result(
        "The controller",
        f"{BROKERS} registered, unfenced brokers, then registrations and single operations. The large cluster has "
        f"{sizes.topics} topics of {PARTITIONS_A_TOPIC:,} partitions on three brokers; its log has "
        f"{log_bytes[OURS] / 1e6:.1f} MB (Kafka's: {log_bytes[THEIRS] / 1e6:.1f} MB). One request is in flight on each "
        "connection. Load and controllers share the cores; CPU is the controller's own. Kafka's controller runs with "
        "the JVM options of its start script (-Xmx1G -Xms1G, G1).",
        [answers, single, big],
        [f"{load}: {ratio:.2f} times the throughput of Kafka's controller." for load, ratio in answer_ratios.items()],
        [Gate(what, f"{measured:.2f}", at_least=least) for what, (measured, least) in gates.items()],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "a tenth of everything, to check that it runs").parse_args()
    show(measure(QUICK if options.quick else Sizes()), options)
