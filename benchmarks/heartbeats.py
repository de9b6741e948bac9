"""Heartbeats and fetches a second: mockraft's controller beside Kafka's own, under the same load in the same run.

Both controllers run as processes of their own; this process is the load. Requests are encoded beforehand, and each
connection has one of them under way, as a broker has. The controllers take turns, load by load.

    python benchmarks/heartbeats.py [--brokers N] [--connections M] [--seconds S] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import uvloop
from mockraft.brokers.config import draw_config, registration_of
from mockraft.brokers.observer import METADATA_TOPIC, METADATA_TOPIC_ID
from mockraft.kafka_jars import classpath, java
from mockraft.kafka_processes import KafkaController, random_uuid
from mockraft.serve_process import MockraftController
from mockraft.wire.client import KafkaConnection, connect
from mockraft.wire.connection import write_request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

NAMES = {"mockraft": "mockraft", "kafka": "Kafka 4.3.1's controller"}
ROUNDS = 3
WARM_UP_S = 2
FAR_AHEAD = 1 << 40
PACED_PER_S = 500
# Size, correlation id, tags and throttle time come first: the error code of a heartbeat or fetch response.
HEARTBEAT_ERROR = slice(13, 15)


class WarmKafkaController(KafkaController):
    """Kafka's controller with the whole of Java's optimisation, which the tests' quick starts go without."""

    def start(self) -> None:
        path = self.write_properties()
        self.launch([java(), "-Xmx768m", "-Xms768m", "-cp", classpath(self.version), "kafka.Kafka", str(path)])


AnyController = WarmKafkaController | MockraftController


class Load(NamedTuple):
    """Frames to send in turn on each connection, and at which pace (0: as fast as answers come)."""

    name: str
    frames: Sequence[bytes]
    per_s: int = 0


class Measured(NamedTuple):
    """What came of one run: answers, errors, seconds, the controller's CPU seconds, and latencies in ms, sorted."""

    answers: int
    errors: int
    seconds: float
    cpu_s: float
    latencies_ms: list[float]


class Runner(asyncio.Protocol):
    """One connection with one request under way: the answer to one is the sign for the next."""

    def __init__(self, frames: Sequence[bytes], pause_s: float, over: Callable[[], bool]) -> None:
        self.frames = frames
        self.pause_s = pause_s
        self.over = over
        self.latencies_ms: list[float] = []
        self.errors = 0
        self.done = asyncio.get_running_loop().create_future()
        self._next = 0
        self._held = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        # Paced connections do not all start at once.
        loop = asyncio.get_running_loop()
        self._due = loop.time() + random.random() * self.pause_s
        loop.call_at(self._due, self._send)

    def data_received(self, data: bytes) -> None:
        if self._held:
            data = self._held + data
        if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
            self._held = data
            return
        self._held = b""
        self.latencies_ms.append((time.perf_counter() - self._sent) * 1000)
        self.errors += data[HEARTBEAT_ERROR] != b"\0\0"
        if self.over():
            self.transport.close()
        elif self.pause_s:
            self._due += self.pause_s
            asyncio.get_running_loop().call_at(self._due, self._send)
        else:
            self._send()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.errors += not self.over()
        if not self.done.done():
            self.done.set_result(None)

    def _send(self) -> None:
        if self.over():
            self.transport.close()
            return
        frame = self.frames[self._next]
        self._next = (self._next + 1) % len(self.frames)
        self._sent = time.perf_counter()
        self.transport.write(frame)


async def run(controller: AnyController, load: Load, connections: int, seconds: float) -> Measured:
    loop = asyncio.get_running_loop()
    process = psutil.Process(controller.pid)
    cpu_before = sum(process.cpu_times()[:2])
    began = time.perf_counter()
    end = began + seconds
    pause_s = connections / load.per_s if load.per_s else 0.0
    runners = []
    for number in range(connections):
        frames = load.frames[number::connections] or load.frames
        _, runner = await loop.create_connection(
            lambda frames=frames: Runner(frames, pause_s, lambda: time.perf_counter() >= end),
            controller.host,
            controller.port,
        )
        runners.append(runner)
    await asyncio.gather(*(runner.done for runner in runners))
    latencies = [latency for runner in runners for latency in runner.latencies_ms]
    taken_s = time.perf_counter() - began
    cpu_s = sum(process.cpu_times()[:2]) - cpu_before
    return Measured(len(latencies), sum(runner.errors for runner in runners), taken_s, cpu_s, sorted(latencies))


async def register(connection: KafkaConnection, cluster_id: str, brokers: int) -> list[bytes]:
    """Register and unfence brokers 1 to `brokers`; gives a heartbeat of each as it goes over the wire."""
    chance = random.Random(1)
    frames = []
    for broker_id in range(1, brokers + 1):
        config = draw_config(broker_id, cluster_id, (), chance)
        registered = await connection.send(registration_of(config, 4))
        assert registered.error_code == 0, registered
        heartbeat = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=registered.broker_epoch,
            current_metadata_offset=FAR_AHEAD,
            want_fence=False,
            cordoned_log_dirs=[],
        )
        answered = await connection.send(heartbeat)
        assert answered.error_code == 0, answered
        assert not answered.is_fenced
        frames.append(write_request(heartbeat, 2, broker_id, str(broker_id)))
    return frames


async def fetch_frames(connection: KafkaConnection, cluster_id: str) -> tuple[bytes, bytes, int]:
    """A Fetch of the whole log, one at its end, and the bytes of the log."""

    def fetch(epoch: int, offset: int, last_epoch: int) -> FetchRequest:
        partition = FetchPartition(
            partition=0, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=last_epoch
        )
        topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        return FetchRequest(cluster_id=cluster_id, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])

    found = await connection.send(fetch(0, 0, 0), version=17)
    epoch = found.responses[0].partitions[0].current_leader.leader_epoch
    whole = await connection.send(fetch(epoch, 0, 0), version=17)
    log = whole.responses[0].partitions[0]
    requests = (fetch(epoch, 0, 0), fetch(epoch, log.high_watermark, epoch))
    of_all, of_none = (write_request(request, 17, 1, "reader") for request in requests)
    return of_all, of_none, len(log.records)


async def prepared(controller: AnyController, brokers: int) -> tuple[list[Load], int]:
    connection = await connect(controller.host, controller.port, client_id="benchmark")
    try:
        heartbeats = await register(connection, controller.cluster_id, brokers)
        of_all, of_none, log_bytes = await fetch_frames(connection, controller.cluster_id)
    finally:
        await connection.close()
    loads = [
        Load("BrokerHeartbeat, as fast as it goes", heartbeats),
        Load(f"BrokerHeartbeat, {PACED_PER_S} a second", heartbeats, PACED_PER_S),
        Load("Fetch of nothing new", [of_none]),
        Load("Fetch of the whole log", [of_all]),
    ]
    return loads, log_bytes


async def measure(
    controllers: dict[str, AnyController], brokers: int, connections: int, seconds: float
) -> tuple[dict[str, dict[str, list[Measured]]], int]:
    """Load → controller → its runs."""
    loads: dict[str, list[Load]] = {}
    log_bytes = 0
    for kind, each in controllers.items():
        loads[kind], log_bytes = await prepared(each, brokers)
        for load in loads[kind]:  # both are warm before anything counts
            await run(each, load, connections, WARM_UP_S)
    results: dict[str, dict[str, list[Measured]]] = {}
    for number, load in enumerate(loads["mockraft"]):
        for turn in range(ROUNDS):
            for kind in controllers if turn % 2 else reversed(controllers):
                measured = await run(controllers[kind], loads[kind][number], connections, seconds)
                results.setdefault(load.name, {}).setdefault(kind, []).append(measured)
    return results, log_bytes


def per_s(runs: Sequence[Measured]) -> float:
    return statistics.median(run.answers / run.seconds for run in runs)


def percentile(runs: Sequence[Measured], share: float) -> float:
    return statistics.median(
        run.latencies_ms[min(int(len(run.latencies_ms) * share), len(run.latencies_ms) - 1)] for run in runs
    )


def report(
    results: dict[str, dict[str, list[Measured]]], brokers: int, connections: int, log_bytes: int
) -> dict[str, Any]:
    rows, summary = [], []
    for load, by_kind in results.items():
        for kind, runs in by_kind.items():
            rows.append(
                [
                    load,
                    NAMES[kind],
                    f"{per_s(runs):,.0f}",
                    f"{1e6 * statistics.median(run.cpu_s / run.answers for run in runs):.0f}",
                    *(f"{percentile(runs, share):.2f}" for share in (0.5, 0.99, 1.0)),
                    sum(run.errors for run in runs),
                ]
            )
        ratio = per_s(by_kind["mockraft"]) / per_s(by_kind["kafka"])
        tail = percentile(by_kind["mockraft"], 0.99) / percentile(by_kind["kafka"], 0.99)
        summary.append(
            f"{load}: {ratio:.2f} times the answers of Kafka's controller, p99 latency {tail:.2f} times its."
        )
    return {
        "title": "Heartbeats and fetches",
        "about": f"{brokers} registered, unfenced brokers; {connections} connections with one request under way each; "
        f"the whole log is {log_bytes:,} bytes. "
        "Load and controllers share the machine's cores; CPU is the controller's own.",
        "tables": [
            {
                "title": "Answers a second and latency",
                "columns": ["load", "controller", "answers/s", "CPU µs each", "p50 ms", "p99 ms", "max ms", "errors"],
                "rows": rows,
            }
        ],
        "summary": summary,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each load, controller and turn")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        controllers: dict[str, AnyController] = {
            "mockraft": MockraftController(Path(folder) / "mockraft", random_uuid()),
            "kafka": WarmKafkaController(Path(folder) / "kafka", random_uuid()),
        }
        try:
            for each in controllers.values():
                if isinstance(each, KafkaController):
                    each.format()
                each.start()
                each.wait_until_running()
            results, log_bytes = uvloop.run(measure(controllers, options.brokers, options.connections, options.seconds))
        finally:
            for each in controllers.values():
                each.kill()
    result = report(results, options.brokers, options.connections, log_bytes)
    if options.json:
        print(json.dumps(result))
        return
    show(result)


def show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for each in result["tables"]:
        table = Table(title=each["title"], caption=result["about"])
        for column in each["columns"]:
            table.add_column(column, justify="left" if column in ("load", "controller") else "right")
        for row in each["rows"]:
            table.add_row(*map(str, row))
        console.print(table)
    console.print("\n".join(result["summary"]))


if __name__ == "__main__":
    main()
