"""Measure the cost of stubs, and compare with kfake (franz-go) and librdkafka's mock cluster.

All of them answer ApiVersions v2. The cost of stubs is the CPU time of a heartbeat in one process, whose script changes
between short rounds. kfake is built from its Go sources; librdkafka's mock runs in a process of its own through
confluent-kafka.

    python benchmarks/double.py [--quick] [--json]
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from codec_peers.other_languages import built_go
from load import API_VERSIONS_ERROR_AT, Load, Measured, TimedConnection, run
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from result import Cell, Gate, Result, Table, argument_parser, show

CONNECTIONS = 10
ROUND_REQUESTS = 1_500
HERE = Path(__file__).parent
KFAKE = "kfake (Go)"
LIBRDKAFKA = "librdkafka's mock (C)"
OURS = "mockraft"
NO_STUB, JOURNAL_OFF = "no stub", "no stub, journal off"
OTHER_API, OTHER_BROKERS = "1,000 stubs on another API", "1,000 stubs on other brokers"
MOCK_OF_LIBRDKAFKA = """
import signal, sys
from confluent_kafka import Producer
producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
broker = next(iter(producer.list_topics(timeout=20).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
signal.sigwait({signal.SIGTERM})
"""


class Server(NamedTuple):
    """A server process, and the milliseconds from its start to its first response."""

    address: tuple[str, int]
    pid: int
    first_answer_ms: float


@contextmanager
def server(*command: str) -> Iterator[Server]:
    """Start a program that prints its address first, or a line with bootstrap=ADDRESS."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().rpartition("bootstrap=")[2].split()[0].rpartition(":")
        address = (host, int(port))
        connection = TimedConnection(address)
        connection.exchange(ApiVersionsRequest(), 2)
        yield Server(address, process.pid, 1000 * (time.perf_counter() - began))
        connection.close()
    finally:
        process.terminate()
        process.wait(30)


def mockraft(*options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "mockraft", "serve", "--port", "0", "--log-level", "error", *options)


Stub = dict[str, object]
Runs = dict[str, list[Measured]]
"""Server → its runs."""


def stub(api: str, **match: object) -> Stub:
    """Return a stub that injects an error into the matching requests."""
    return {"match": {"api": api, **match}, "actions": [{"injectError": "NOT_CONTROLLER"}]}


def api_versions() -> Load:
    frame = write_request(ApiVersionsRequest(), 2, 1, "benchmark")
    return Load("ApiVersions v2", [frame], CONNECTIONS, error_at=API_VERSIONS_ERROR_AT)


def heartbeats(count: int) -> Load:
    # The broker is not registered: the request takes the complete path, and the response is short.
    frame = write_request(BrokerHeartbeatRequest(broker_id=1, broker_epoch=1), 1, 1, "1")
    return Load("BrokerHeartbeat v1", [frame] * count, CONNECTIONS, once=True)


def in_turns(servers: dict[str, Server], load: Callable[[], Load], seconds: float, turns: int) -> Runs:
    """Return the runs of each server but the first, which warms it up; the servers take turns."""
    runs: Runs = {name: [] for name in servers}
    for turn in range(turns + 1):
        for name, each in servers.items() if turn % 2 else reversed(servers.items()):
            runs[name].append(run(each.address, each.pid, load(), seconds, 0.1))
    return {name: each[1:] for name, each in runs.items()}


def table(title: str, runs: Runs) -> Table:
    """Return a table with the median rate, and mockraft's relative to it."""

    def median(name: str, figure: Callable[[Measured], float]) -> float:
        return statistics.median(map(figure, runs[name]))

    rows: list[list[Cell]] = [
        [
            name,
            f"{median(name, lambda each: each.per_s):,.0f}",
            f"{median(OURS, lambda each: each.per_s) / median(name, lambda each: each.per_s):.2f}",
            f"{median(name, lambda each: each.p50_ms):.2f}",
            f"{median(name, lambda each: each.cpu_us):.0f}",
        ]
        for name in runs
    ]
    return Table(title, ["double", "requests/s", "mockraft's ÷ this", "median ms", "CPU µs per request"], rows)


class Script(NamedTuple):
    """The instruction to scripted_double.py."""

    stubs: str | None = None
    journal: bool = True


def scripts(folder: Path) -> dict[str, Script]:
    """Return the script of each row of the table."""

    def scripted(name: str, stubs: list[Stub]) -> Script:
        path = folder / f"{name}-{len(stubs)}.json"
        path.write_text(json.dumps({"stubs": stubs}))
        return Script(str(path))

    other_api = [stub("AlterPartition", brokerId=number) for number in range(1000)]
    other_brokers = [stub("BrokerHeartbeat", brokerId=1000 + number) for number in range(1000)]
    offsets = [{"currentMetadataOffset": {"gt": 1_000_000 + number}} for number in range(10)]
    conditions = [stub("BrokerHeartbeat", where=each) for each in offsets]
    return {
        NO_STUB: Script(),
        "10 stubs on another API": scripted("api", other_api[:10]),
        OTHER_API: scripted("api", other_api),
        OTHER_BROKERS: scripted("brokers", other_brokers),
        "10 stubs with conditions on fields": scripted("fields", conditions),
        JOURNAL_OFF: Script(journal=False),
    }


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process's threads, to the nanosecond."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def under_scripts(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the CPU microseconds of a heartbeat under each script, for each round but the first."""
    wanted = scripts(folder)
    taken: dict[str, list[float]] = {name: [] for name in wanted}
    command = [sys.executable, str(HERE / "scripted_double.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        for number in range(rounds + 1):
            for name in wanted if number % 2 else reversed(wanted):
                process.stdin.write(f"{json.dumps(wanted[name]._asdict())}\n")
                process.stdin.flush()
                assert process.stdout.readline() == "ready\n"
                # The first request after a change costs more than each later one.
                run((host, int(port)), process.pid, heartbeats(CONNECTIONS))
                before_s = cpu_s(process.pid)
                answers = run((host, int(port)), process.pid, heartbeats(ROUND_REQUESTS)).answers
                taken[name].append(1e6 * (cpu_s(process.pid) - before_s) / answers)
        process.stdin.close()
    return {name: each[1:] for name, each in taken.items()}


def ratio(taken: dict[str, list[float]], name: str, beside: str) -> float:
    """Return the ratio of requests that two scripts answer in the same CPU time."""
    return statistics.median(taken[beside]) / statistics.median(taken[name])


def script_table(taken: dict[str, list[float]]) -> Table:
    """Return the CPU time of a request under each script."""
    rows: list[list[Cell]] = []
    for name, each in taken.items():
        low, middle, high = statistics.quantiles(each, n=4)
        rows.append([name, f"{middle:.1f}", f"{low:.1f} to {high:.1f}", f"{ratio(taken, name, NO_STUB):.2f}"])
    columns = [
        "script",
        "CPU µs per request",
        "middle half of the rounds",
        f"requests for the same CPU time ÷ {NO_STUB}",
    ]
    return Table("Heartbeats under stubs", columns, rows)


GATES = {
    "heartbeats for the same CPU time, 1,000 stubs on another API ÷ none": (OTHER_API, NO_STUB, 0.9),
    "heartbeats for the same CPU time, 1,000 stubs on other brokers ÷ none": (OTHER_BROKERS, NO_STUB, 0.8),
    "heartbeats for the same CPU time, journal on ÷ off": (NO_STUB, JOURNAL_OFF, 0.8),
}
"""Two scripts and the least ratio of requests."""


def measure(quick: bool) -> Result:
    """Measure the peers, then the scripts."""
    seconds, turns, rounds = (0.3, 2, 4) if quick else (1.0, 5, 40)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        programs = {OURS: mockraft(), LIBRDKAFKA: (sys.executable, "-c", MOCK_OF_LIBRDKAFKA)}
        if shutil.which("go") is not None:
            programs[KFAKE] = (built_go("kfake"),)
        doubles = {name: running.enter_context(server(*command)) for name, command in programs.items()}
        peers = in_turns(doubles, api_versions, seconds, turns)
        scripted = under_scripts(folder, rounds)
    return Result(
        "The double",
        f"{CONNECTIONS} connections with one request in flight on each; medians of {turns} turns. Each double and the "
        "load are processes of their own on the same cores. Heartbeats under stubs: one process whose script is "
        f"changed {rounds} times to each, {ROUND_REQUESTS:,} requests each time, medians.",
        [
            table("ApiVersions, compared with other doubles", peers),
            script_table(scripted),
            Table(
                "From the start of the process to its first response",
                ["double", "ms"],
                [[name, f"{each.first_answer_ms:.0f}"] for name, each in doubles.items()],
            ),
        ],
        [
            "Rates are reported, not bounded: they are of saturation.",
            "The other doubles close the connection on BrokerHeartbeat, so only Kafka can be compared for heartbeats.",
        ],
        [
            Gate(what, f"{ratio(scripted, one, other):.2f}", at_least=wanted)
            for what, (one, other, wanted) in GATES.items()
        ],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "a few seconds in all").parse_args()
    show(measure(options.quick), options)
