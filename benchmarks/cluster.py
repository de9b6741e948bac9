"""Compare the controllers with a large cluster: single operations, memory, and pauses of other clients' heartbeats.

Topics of 1,000 partitions are created up to 100,000 partitions, a new broker fetches the log, then further topics are
created until a snapshot is written, and at last one of the three brokers, which has a replica of each partition, loses
its session. Meanwhile load.c sends heartbeats at a fixed rate: a latency begins when a heartbeat was due, so the
longest one is the longest pause of the controller.

    python benchmarks/cluster.py [--quick] [--json]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
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
    data_folder,
    end_of,
    fetch,
    heartbeat,
    leader_epoch,
    registrations,
    shrink_or_grow,
)
from load import Load, RunningLoad, TimedConnection
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.wire.connection import write_request
from result import THEIRS, Cell, Gate, Result, Table, argument_parser, show

PARTITIONS_A_TOPIC = 1000
HEARTBEATS_PER_S, CONNECTIONS = 500, 100
"""Each connection sends five a second, so that those that waited delay no others."""
PAUSE_MS_MAX = 50
MEMORY_LEAST = 5.0
SNAPSHOT_S_MAX = 60.0
SESSION_MS, FENCED_S_MAX = 4_500, 60.0
LOST = 3
"""The broker that stops to send heartbeats."""
IDLE_S = 2.0
"""The pauses of the machine itself are seen while the controller has nothing else to do."""
PARTIAL = ".checkpoint.part"
FIRST = ("bootstrap.checkpoint", ".checkpoint", PARTIAL)
"""Names of the snapshots that a formatted folder has, without zeros."""

Figures = dict[str, dict[str, list[float]]]
"""Controller → figure → values."""


class Sizes(NamedTuple):
    """Single operations, topics of 1,000 partitions, bytes of log until a snapshot (more than those topics have)."""

    operations: int = 150
    topics: int = 100
    snapshot_bytes: int = 13_500_000


QUICK = Sizes(20, 5, 800_000)


def operations(controllers: dict[str, Contender], sizes: Sizes) -> dict[str, dict[str, list[float]]]:
    """Return the milliseconds of single operations (name → controller → values)."""
    taken: dict[str, dict[str, list[float]]] = {}
    for kind, controller in controllers.items():
        connection = TimedConnection(address(controller))
        brokers_up(connection, controller.cluster_id, 3)
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


class Growing:
    """A controller whose cluster grows while other clients send heartbeats."""

    def __init__(self, controller: Contender) -> None:
        self.controller = controller
        self._connection = TimedConnection(address(controller))
        epochs = brokers_up(self._connection, controller.cluster_id, 3)
        frames = {each: write_request(heartbeat(each, epoch), 2, each, str(each)) for each, epoch in epochs.items()}
        self._heartbeats = Load("heartbeats", list(frames.values()), CONNECTIONS, HEARTBEATS_PER_S)
        del frames[LOST]
        self._heartbeats_of_others = self._heartbeats._replace(frames=list(frames.values()))
        self.topics = 0
        self.log_bytes = 0

    def close(self) -> None:
        self._connection.close()

    def pause_ms(self, work: Callable[[], None], heartbeats: Load | None = None) -> float:
        """Return the longest latency of a heartbeat while `work` is done."""
        load = RunningLoad(address(self.controller), self.controller.pid, heartbeats or self._heartbeats, 600)
        time.sleep(0.2)  # the load runs before and after the work, so that its end is measured too
        try:
            work()
            time.sleep(0.1)
        finally:
            measured = load.stop()
        # Kafka's controller answers REQUEST_TIMED_OUT to a heartbeat that it could not process within a second.
        if measured.errors and isinstance(self.controller, MockraftController):
            raise RuntimeError(f"{measured.errors} heartbeats had an error code")
        return measured.max_ms

    def create_topic(self) -> float:
        """Create a topic of 1,000 partitions; return the milliseconds."""
        request = create_topic(f"large-{self.topics}", PARTITIONS_A_TOPIC, 3)
        created, seconds = self._connection.timed(request, 7)
        assert created.topics[0].error_code == 0, created
        self.topics += 1
        return 1000 * seconds

    def catch_up(self) -> float:
        """Fetch the whole log as a new broker does; return the milliseconds of waiting for responses."""
        epoch = leader_epoch(self._connection, self.controller.cluster_id)
        waited_s, offset, self.log_bytes = 0.0, 0, 0
        while True:
            request = fetch(self.controller.cluster_id, epoch, offset, epoch if offset else 0)
            answer, seconds = self._connection.timed(request, 17)
            waited_s += seconds
            records = answer.responses[0].partitions[0].records
            if not records:
                return 1000 * waited_s
            self.log_bytes += len(records)
            offset = end_of(records)

    def write_snapshot(self) -> None:
        """Create topics until a snapshot begins, and wait until it is written."""
        folder, deadline = data_folder(self.controller), time.monotonic() + SNAPSHOT_S_MAX
        while not snapshots(folder, f"*{PARTIAL}") and not snapshots(folder):
            self.create_topic()
            _check(deadline, f"no snapshot begins after {self.topics} topics")
        while not snapshots(folder):
            time.sleep(0.01)
            _check(deadline, "no snapshot ends")

    def fencing_pause_ms(self) -> float:
        """Return the longest latency of the other brokers' heartbeats until the lost broker is fenced.

        Infinite for a Kafka controller that leaves heartbeats without an answer for ten seconds.
        """
        try:
            return self.pause_ms(self._wait_until_fenced, self._heartbeats_of_others)
        except (RuntimeError, OSError):
            if isinstance(self.controller, MockraftController):
                raise
            return float("inf")

    def _wait_until_fenced(self) -> None:
        """Ask for a topic on the lost broker alone, without creating it, until that is refused."""
        request, deadline = create_topic_on("refused", [LOST]), time.monotonic() + FENCED_S_MAX
        request.validate_only = True
        while self._connection.exchange(request, 7).topics[0].error_code == 0:
            time.sleep(0.2)
            if time.monotonic() > deadline:
                raise TimeoutError(f"broker {LOST} is not fenced in {FENCED_S_MAX:g} s")


def snapshots(folder: Path, pattern: str = "*.checkpoint") -> list[Path]:
    """Return snapshots other than the first one, which a formatted folder has."""
    return [path for path in folder.rglob(pattern) if path.name.strip("0-") not in FIRST]


def _check(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"{what} in {SNAPSHOT_S_MAX:g} s")


def large(controllers: dict[str, Contender], sizes: Sizes) -> tuple[Figures, dict[str, Growing]]:
    """Return figures of a large cluster for each controller."""
    figures: Figures = {}
    grown: dict[str, Growing] = {}
    for kind, controller in controllers.items():
        growing = grown[kind] = Growing(controller)
        values: dict[str, list[float]] = figures.setdefault(kind, {})
        created: list[float] = []
        catch_ups: list[float] = []

        def create(growing: Growing = growing, created: list[float] = created) -> None:
            created.extend(growing.create_topic() for _ in range(sizes.topics))

        def catch_up(growing: Growing = growing, catch_ups: list[float] = catch_ups) -> None:
            catch_ups.extend(growing.catch_up() for _ in range(3))

        values["idle pause"] = [growing.pause_ms(lambda: time.sleep(IDLE_S))]
        values["creating pause"] = [growing.pause_ms(create)]
        values["memory"] = [psutil.Process(controller.pid).memory_info().rss / (1 << 20)]
        values["catch-up pause"] = [growing.pause_ms(catch_up)]
        values["create"], values["catch-up"] = created, catch_ups
        values["snapshot pause"] = [growing.pause_ms(growing.write_snapshot)]
        values["fencing pause"] = [growing.fencing_pause_ms()]
        growing.close()
    return figures, grown


def operations_table(taken: dict[str, dict[str, list[float]]]) -> Table:
    rows: list[list[Cell]] = []
    for name, by_kind in taken.items():
        for kind, values in by_kind.items():
            p99 = sorted(values)[len(values) * 99 // 100]
            ratio = statistics.median(by_kind[THEIRS]) / statistics.median(values)
            rows.append([name, kind, f"{statistics.median(values):.2f}", f"{p99:.2f}", f"{ratio:.0f}"])
    columns = ["operation", "controller", "p50 ms", "p99 ms", "Kafka's p50 ÷ this"]
    return Table("Single operations, one after the other", columns, rows)


def large_table(figures: Figures, topics: int) -> Table:
    partitions = f"{topics * PARTITIONS_A_TOPIC:,} partitions"
    names = {
        "create": f"CreateTopics with {PARTITIONS_A_TOPIC:,} partitions, ms",
        "catch-up": f"catch-up Fetch of the log of {partitions}, ms",
        "memory": f"resident memory at {partitions}, MiB",
        "idle pause": f"longest pause for other clients in {IDLE_S:g} s without other work, ms",
        "creating pause": "longest pause for other clients while topics are created, ms",
        "catch-up pause": "longest pause for other clients during catch-ups, ms",
        "snapshot pause": "longest pause for other clients until a snapshot is written, ms",
        "fencing pause": "longest pause for other clients while a broker of all partitions is fenced, ms",
    }
    rows: list[list[Cell]] = [
        [name, *(f"{statistics.median(each[key]):.1f}" for each in figures.values())] for key, name in names.items()
    ]
    return Table("A large cluster", ["", *figures], rows)


def gates(single: dict[str, dict[str, list[float]]], figures: Figures) -> list[Gate]:
    """Return the bounds of mockraft's best controller."""
    best, theirs = next(iter(figures)), THEIRS
    fewest = min(statistics.median(each[theirs]) / statistics.median(each[best]) for each in single.values())
    ratio = figures[theirs]["memory"][0] / figures[best]["memory"][0]
    pauses = {
        "CreateTopics of 1,000 partitions": "creating pause",
        "a catch-up": "catch-up pause",
        "a snapshot": "snapshot pause",
        "the fencing of a broker": "fencing pause",
    }
    fencing = figures[best]["fencing pause"][0] / figures[theirs]["fencing pause"][0]
    return [
        Gate("single operations, Kafka's time ÷ mockraft's, least", f"{fewest:.2f}", at_least=1.0),
        Gate("resident memory, Kafka's ÷ mockraft's", f"{ratio:.2f}", at_least=MEMORY_LEAST),
        *(
            Gate(
                f"longest pause for other clients during {name}, ms",
                f"{figures[best][key][0]:.1f}",
                at_most=PAUSE_MS_MAX,
            )
            for name, key in pauses.items()
        ),
        Gate("longest pause during the fencing of a broker, mockraft's ÷ Kafka's", f"{fencing:.2f}", at_most=1.0),
    ]


def measure(sizes: Sizes) -> Result:
    """Measure single operations, then a large cluster on new controllers."""
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder), {}) as controllers:
        single = operations(controllers, sizes)
    settings = {"metadata.log.max.record.bytes.between.snapshots": str(sizes.snapshot_bytes)}
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder), settings, SESSION_MS) as controllers:
        figures, grown = large(controllers, sizes)
    logs = ", ".join(f"{kind}: {each.log_bytes / 1e6:.1f} MB, {each.topics} topics" for kind, each in grown.items())
    return Result(
        "A large cluster",
        f"{sizes.topics} topics of {PARTITIONS_A_TOPIC:,} partitions on three brokers, then catch-ups, then more "
        f"topics until a snapshot begins after {sizes.snapshot_bytes / 1e6:.1f} MB of log ({logs}), then one broker "
        f"loses its session. Meanwhile {CONNECTIONS} connections send {HEARTBEATS_PER_S:,} heartbeats a second at "
        "fixed times; the longest latency from the time when one was due is the longest pause. Load and controllers "
        f"share the cores. Bounds are of the first controller, {next(iter(figures))}.",
        [operations_table(single), large_table(figures, sizes.topics)],
        gates=gates(single, figures),
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "a tenth of everything, to check that it runs").parse_args()
    show(measure(QUICK if options.quick else Sizes()), options)
