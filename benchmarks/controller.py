"""Compare mockraft's controller with Kafka's: throughput, latency and CPU time of heartbeats, fetches, registrations.

Each runs in its own process with an empty data directory and gets the same requests from load.c, in turns, on the same
cores.

    python benchmarks/controller.py [--quick] [--json]
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from contenders import (
    PURE,
    SPEED,
    Contender,
    address,
    brokers_up,
    contenders,
    fetch,
    heartbeat,
    leader_epoch,
    registrations,
)
from load import Load, Measured, TimedConnection, ceiling, run
from mockraft.wire.connection import write_request
from result import THEIRS, Cell, Gate, Result, Table, argument_parser, show

BROKERS = 100
FEW, MANY, VERY_MANY = 10, 100, 1000
PACED_PER_S = 500
SAME = 1.03
"""The JVM is warm when three seconds in a row were not faster than this times the best one before."""
CONNECT_S = 0.1
SETTINGS = {"metadata.max.idle.interval.ms": "0"}
"""No NoOpRecords while a controller is idle: a Fetch from the end of the log would find them."""

NOTHING_NEW, WHOLE_LOG = f"Fetch of nothing new, {MANY} connections", f"Fetch of the whole log, {MANY} connections"
REGISTRATION = f"BrokerRegistration, {MANY} connections"
HEARTBEATS = {count: f"BrokerHeartbeat, {count:,} connections" for count in (FEW, MANY, VERY_MANY)}
PACED = f"BrokerHeartbeat, {PACED_PER_S} per second on {VERY_MANY:,} connections"
PEER = "server in C that answers at once"
CPU_MOST_OF_PEER = {SPEED: 3.6, PURE: 5.2}
"""Bounds: CPU time for an answer to a heartbeat, on 100 connections, ÷ that of the peer in the same run."""
CPU_MOST = 1.0
"""Bound: CPU time for an answer to a heartbeat ÷ Kafka's, at each number of connections."""
PACED_MOST = 0.7
"""Bound: CPU time and p99 of a heartbeat at a fixed rate ÷ Kafka's."""
REGISTRATIONS_LEAST = 3.0
"""Bound: registrations per second ÷ Kafka's. Other rates at saturation are reported."""

Runs = dict[str, dict[str, list[Measured]]]
"""Load → controller → its runs, one for each round."""


class Sizes(NamedTuple):
    """Seconds of a run, least and most seconds of warm-up before each load, rounds, registrations in a run."""

    seconds: float = 1.0
    warm_up_least_s: int = 4
    warm_up_most_s: int = 12
    rounds: int = 5
    registrations: int = 3000


QUICK = Sizes(0.3, 1, 1, 2, 500)


class Prepared:
    """A controller with registered brokers, and its loads."""

    def __init__(self, controller: Contender, sizes: Sizes) -> None:
        self.controller = controller
        self._sizes = sizes
        self._broker_ids = itertools.count(BROKERS + 1)
        connection = TimedConnection(address(controller))
        cluster_id = controller.cluster_id
        epochs = brokers_up(connection, cluster_id, BROKERS)
        heartbeats = [write_request(heartbeat(each, epoch), 2, each, str(each)) for each, epoch in epochs.items()]
        epoch = leader_epoch(connection, cluster_id)
        end = connection.exchange(fetch(cluster_id, epoch, 0, 0), 17).responses[0].partitions[0].high_watermark
        of_all = write_request(fetch(cluster_id, epoch, 0, 0), 17, 1, "1")
        of_none = write_request(fetch(cluster_id, epoch, end, epoch), 17, 1, "1")

        def load(name: str, frames: Sequence[bytes], connections: int, per_s: int = 0) -> Callable[[], Load]:
            connection.socket.sendall(frames[0])
            answer_bytes = 4 + len(connection.receive_frame())
            return lambda: Load(name, frames, connections, per_s, answer_bytes=answer_bytes)

        self.loads = [
            *(load(name, heartbeats, count) for count, name in HEARTBEATS.items()),
            load(PACED, heartbeats, VERY_MANY, PACED_PER_S),
            load(NOTHING_NEW, [of_none], MANY),
            load(WHOLE_LOG, [of_all], MANY),
            self._registering,
        ]
        connection.close()

    def _registering(self) -> Load:
        ids = list(itertools.islice(self._broker_ids, self._sizes.registrations))
        requests = registrations(self.controller.cluster_id, ids)
        frames = [write_request(each, 4, each.broker_id, str(each.broker_id)) for each in requests]
        return Load(REGISTRATION, frames, MANY, once=True)

    def run(self, number: int) -> Measured:
        """Run a load once."""
        load = self.loads[number]()
        warm_up_s = 0.0 if load.once else CONNECT_S
        measured = run(address(self.controller), self.controller.pid, load, self._sizes.seconds, warm_up_s)
        if measured.errors:
            raise RuntimeError(f"{load.name}: {measured.errors} answers had an error code")
        return measured


def warm_up(prepared: Prepared, number: int, sizes: Sizes) -> int:
    """Run a load until it gets no faster; return how many times that was."""
    rates: list[float] = []
    while len(rates) < sizes.warm_up_most_s:
        rates.append(prepared.run(number).per_s)
        before, last = rates[:-3], rates[-3:]
        if len(rates) >= sizes.warm_up_least_s and max(last) < SAME * max(before, default=0):
            break
    return len(rates)


def throughput(controllers: dict[str, Contender], sizes: Sizes) -> tuple[Runs, list[int]]:
    """Return the runs, and how many times Kafka's controller served each load before."""
    prepared = {kind: Prepared(each, sizes) for kind, each in controllers.items()}
    results: Runs = {}
    warm_ups = []
    for number, make in enumerate(prepared[THEIRS].loads):
        name = make().name
        is_paced = make().per_s > 0
        warm_ups.append(warm_up(prepared[THEIRS], number, sizes) if not is_paced else 1)
        for kind in prepared:
            if kind != THEIRS:
                prepared[kind].run(number)
        for turn in range(sizes.rounds):
            for kind in prepared if turn % 2 else reversed(prepared):
                results.setdefault(name, {}).setdefault(kind, []).append(prepared[kind].run(number))
            if name in HEARTBEATS.values():
                measured = ceiling(prepared[PURE].loads[number](), sizes.seconds / 2)
                results[name].setdefault(PEER, []).append(measured)
    return results, warm_ups


def median(runs: Sequence[Measured], figure: Callable[[Measured], float]) -> float:
    return statistics.median(map(figure, runs))


def ratios(
    by_kind: dict[str, list[Measured]], kind: str, figure: Callable[[Measured], float], other: str = THEIRS
) -> list[float]:
    """Return the figure of a controller ÷ Kafka's, or another's, for each round."""
    return [figure(ours) / figure(theirs) for ours, theirs in zip(by_kind[kind], by_kind[other], strict=True)]


def throughput_table(results: Runs) -> Table:
    rows: list[list[Cell]] = []
    for load, by_kind in results.items():
        for kind, runs in by_kind.items():
            compared = ["1.00"] * 3
            if kind != THEIRS:
                figures: tuple[Callable[[Measured], float], ...] = (
                    lambda each: each.per_s,
                    lambda each: each.cpu_us,
                    lambda each: each.p99_ms,
                )
                compared = [f"{statistics.median(ratios(by_kind, kind, figure)):.2f}" for figure in figures]
            rows.append(
                [
                    load,
                    kind,
                    f"{median(runs, lambda each: each.per_s):,.0f}",
                    compared[0],
                    f"{median(runs, lambda each: each.cpu_us):.1f}",
                    compared[1],
                    f"{median(runs, lambda each: each.p50_ms):.2f}",
                    f"{median(runs, lambda each: each.p99_ms):.2f}",
                    compared[2],
                    f"{100 * median(runs, lambda each: each.load_cpu_s / each.seconds):.0f} %",
                ]
            )
    columns = ["load", "controller", "answers/s", "÷ Kafka's", "CPU µs each", "÷ Kafka's"]
    columns += ["p50 ms", "p99 ms", "÷ Kafka's", "load's share of a core"]
    return Table("Throughput and latency", columns, rows)


def cpu_us(each: Measured) -> float:
    return each.cpu_us


class Bound(NamedTuple):
    """A bound of one controller under one load: a figure ÷ that of another server, for each round."""

    load: str
    kind: str
    what: str
    figure: Callable[[Measured], float]
    at_most: float | None = None
    at_least: float | None = None
    other: str = THEIRS


def bounds() -> list[Bound]:
    """Return all bounds."""
    found = []
    for kind, most in CPU_MOST_OF_PEER.items():
        found.append(Bound(HEARTBEATS[MANY], kind, "CPU time ÷ the peer's", cpu_us, most, other=PEER))
        found += [Bound(load, kind, "CPU time ÷ Kafka's", cpu_us, CPU_MOST) for load in HEARTBEATS.values()]
        found.append(Bound(PACED, kind, "CPU time ÷ Kafka's", cpu_us, PACED_MOST))
        found.append(Bound(PACED, kind, "p99 ÷ Kafka's", lambda each: each.p99_ms, PACED_MOST))
    rate = "answers per second ÷ Kafka's"
    found.append(Bound(REGISTRATION, SPEED, rate, lambda each: each.per_s, at_least=REGISTRATIONS_LEAST))
    return found


def gates(results: Runs) -> list[Gate]:
    """Return the bounds with their values; those of `mockraft[speed]` are not met where it is not installed."""
    found = []
    for bound in bounds():
        name, by_kind = f"{bound.load}, {bound.kind}: {bound.what}", results[bound.load]
        if bound.kind in by_kind:
            found.append(
                Gate.of(
                    name,
                    ratios(by_kind, bound.kind, bound.figure, bound.other),
                    at_least=bound.at_least,
                    at_most=bound.at_most,
                )
            )
        else:
            found.append(Gate(name, "mockraft-speed is not installed", bound.at_least, bound.at_most))
    return found


def measure(sizes: Sizes) -> Result:
    """Measure all loads on new controllers."""
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder), SETTINGS) as controllers:
        results, warm_ups = throughput(controllers, sizes)
    return Result(
        "The controller",
        f"{BROKERS} registered, unfenced brokers, then registrations. One request is in flight on each connection; the "
        "load (`benchmarks/load`) is one process on the same cores that sends prepared frames. Medians of "
        f"{sizes.rounds} rounds of {sizes.seconds:g} s, in turns; ratios are of the same round. CPU is the "
        "controller's own. At a fixed rate a latency begins when the request is due. Kafka's controller runs with the "
        "JVM options of its start script (-Xmx1G -Xms1G, G1) and serves each load before it is measured, for "
        f"{sizes.warm_up_least_s} to {sizes.warm_up_most_s} runs, until the best of three runs is no faster than "
        f"{SAME:g} times the best before ({', '.join(map(str, warm_ups))} runs). No controller writes records while it "
        "is idle. The peer (`benchmarks/load/echo.c`) sends as many bytes as mockraft does, at once: its CPU time is "
        "the kernel's, and its rate is the limit of the load and of every server in another process. Rates at "
        "saturation are reported; bounds are on CPU time, on latency at a fixed rate, and on registrations.",
        [throughput_table(results)],
        gates=gates(results),
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "a tenth of everything, to check that it runs").parse_args()
    show(measure(QUICK if options.quick else Sizes()), options)
