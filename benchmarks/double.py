"""The cost of scripting, beside other doubles: kfake (franz-go) and librdkafka's mock cluster.

Round trips of ApiVersions v2, which all of them answer, and heartbeats under stubs: these in one process that changes
its script between short rounds, by the processor time of a request. kfake is built here from its sources (Go),
librdkafka's mock runs in a process of its own through confluent-kafka.

    python benchmarks/double.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from load import Asker, Load, Measured, dealt, repeated, run
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

CONNECTIONS = 10
ROUND_REQUESTS = 1_500
HERE = Path(__file__).parent
KFAKE = "kfake (Go)"
LIBRDKAFKA = "librdkafka's mock (C)"
OURS = "mockraft"
NO_STUB, JOURNAL_OFF = "no stub", "no stub, journal off"
OTHER_API, OTHER_BROKERS = "1,000 stubs on another API", "1,000 stubs on other brokers"
KFAKE_MODULES = (
    "github.com/twmb/franz-go@v1.22.2",
    "github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260918054303-01f206a7e32c",
)
MOCK_OF_LIBRDKAFKA = """
import signal, sys
from confluent_kafka import Producer
producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
broker = next(iter(producer.list_topics(timeout=20).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
signal.sigwait({signal.SIGTERM})
"""


class Server(NamedTuple):
    """A process that answers, and the milliseconds from its start to its first answer."""

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
        said = process.stdout.readline()
        host, _, port = (
            said.partition("bootstrap=")[2].partition(" ")[0].strip().rpartition(":")
            if ("bootstrap=" in said)
            else said.strip().rpartition(":")
        )
        address = (host, int(port))
        asker = Asker(address)
        asker.ask(ApiVersionsRequest(), 2)
        yield Server(address, process.pid, 1000 * (time.perf_counter() - began))
        asker.close()
    finally:
        process.terminate()
        process.wait(30)


def mockraft(*options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "mockraft", "serve", "--port", "0", "--log-level", "error", *options)


def built_kfake(folder: Path) -> str:
    """kfake as a program."""
    shutil.copy(HERE / "kfake" / "main.go", folder)
    for command in (("mod", "init", "bench"), ("get", *KFAKE_MODULES), ("build", "-o", "kfake", ".")):
        subprocess.run(["go", *command], cwd=folder, check=True, capture_output=True)
    return str(folder / "kfake")


def on_another_api(number: int) -> dict[str, Any]:
    return {"match": {"api": "AlterPartition", "brokerId": number}, "actions": [{"injectError": "NOT_CONTROLLER"}]}


def on_another_broker(number: int) -> dict[str, Any]:
    return {
        "match": {"api": "BrokerHeartbeat", "brokerId": 1000 + number},
        "actions": [{"injectError": "NOT_CONTROLLER"}],
    }


def to_be_looked_at(number: int) -> dict[str, Any]:
    where = {"currentMetadataOffset": {"gt": 1_000_000 + number}}
    return {"match": {"api": "BrokerHeartbeat", "where": where}, "actions": [{"injectError": "NOT_CONTROLLER"}]}


def api_versions() -> Load:
    frame = write_request(ApiVersionsRequest(), 2, 1, "benchmark")
    return Load("ApiVersions v2", repeated([frame], CONNECTIONS))


def heartbeats(count: int) -> Load:
    # Of a broker that is not registered: the whole way through the door and the handler, and a short answer.
    frame = write_request(BrokerHeartbeatRequest(broker_id=1, broker_epoch=1), 1, 1, "1")
    return Load("BrokerHeartbeat v1", dealt([frame] * count, CONNECTIONS))


def in_turns(servers: dict[str, Server], load: Callable[[], Load], seconds: float, turns: int) -> dict[str, Measured]:
    """The best of each server's runs, which take turns."""
    runs: dict[str, list[Measured]] = {name: [] for name in servers}
    for turn in range(turns + 1):
        for name, each in servers.items() if turn % 2 else reversed(servers.items()):
            runs[name].append(run(each.address, each.pid, load(), seconds))
    return {
        name: max(each[1:], key=lambda measured: measured.answers / measured.seconds) for name, each in runs.items()
    }


def table(title: str, first: str, measured: dict[str, Measured], beside: str) -> dict[str, Any]:
    rows = [
        [
            name,
            f"{per_s(each):,.0f}",
            f"{per_s(each) / per_s(measured[beside]):.2f}",
            f"{each.latencies_ms[len(each.latencies_ms) // 2]:.2f}",
            f"{1e6 * each.cpu_s / each.answers:.0f}",
        ]
        for name, each in measured.items()
    ]
    columns = [first, "requests/s", f"÷ {beside}", "median ms", "CPU µs a request"]
    return {"title": title, "columns": columns, "rows": rows}


def per_s(measured: Measured) -> float:
    return measured.answers / measured.seconds


def scripts(folder: Path) -> dict[str, dict[str, Any]]:
    """The instruction to scripted_double.py for each script."""

    def stubbed(name: str, count: int, stub: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        path = folder / f"{name}-{count}.json"
        path.write_text(json.dumps({"stubs": list(map(stub, range(count)))}))
        return {"stubs": str(path), "journal": True}

    return {
        NO_STUB: {"stubs": None, "journal": True},
        "10 stubs on another API": stubbed("api", 10, on_another_api),
        OTHER_API: stubbed("api", 1000, on_another_api),
        OTHER_BROKERS: stubbed("brokers", 1000, on_another_broker),
        "10 stubs whose fields must be looked at": stubbed("fields", 10, to_be_looked_at),
        JOURNAL_OFF: {"stubs": None, "journal": False},
    }


def cpu_s(pid: int) -> float:
    """Seconds of processor time of a process's threads, to the nanosecond."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def under_scripts(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Microseconds of processor time a heartbeat under each script, one figure a round; the first is not counted."""
    wanted = scripts(folder)
    taken: dict[str, list[float]] = {name: [] for name in wanted}
    command = [sys.executable, str(HERE / "scripted_double.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        for number in range(rounds + 1):
            for name in wanted if number % 2 else reversed(wanted):
                process.stdin.write(f"{json.dumps(wanted[name])}\n")
                process.stdin.flush()
                assert process.stdout.readline() == "ready\n"
                # What a script costs the first time somebody asks is not what each request costs.
                run((host, int(port)), process.pid, heartbeats(CONNECTIONS))
                before_s = cpu_s(process.pid)
                answers = run((host, int(port)), process.pid, heartbeats(ROUND_REQUESTS)).answers
                taken[name].append(1e6 * (cpu_s(process.pid) - before_s) / answers)
        process.stdin.close()
    return {name: each[1:] for name, each in taken.items()}


def ratio(taken: dict[str, list[float]], name: str, beside: str) -> float:
    """The ratio of requests that two scripts answer in the same processor time."""
    return statistics.median(taken[beside]) / statistics.median(taken[name])


def script_table(taken: dict[str, list[float]]) -> dict[str, Any]:
    rows = []
    for name, each in taken.items():
        low, middle, high = statistics.quantiles(each, n=4)
        rows.append([name, f"{middle:.1f}", f"{low:.1f} to {high:.1f}", f"{ratio(taken, name, NO_STUB):.2f}"])
    columns = ["script", "CPU µs a request", "half of the rounds", f"requests for the same CPU ÷ {NO_STUB}"]
    return {"title": "Heartbeats under stubs", "columns": columns, "rows": rows}


def gates(taken: dict[str, list[float]]) -> list[dict[str, Any]]:
    """The bounds."""
    ratios: Sequence[tuple[str, str, str, float]] = (
        ("heartbeats for the same CPU with 1,000 stubs on another API ÷ with none", OTHER_API, NO_STUB, 0.9),
        ("heartbeats for the same CPU with 1,000 stubs on other brokers ÷ with none", OTHER_BROKERS, NO_STUB, 0.8),
        ("heartbeats for the same CPU, journal on ÷ off", NO_STUB, JOURNAL_OFF, 0.8),
    )
    return [
        {"what": what, "measured": f"{ratio(taken, one, other):.2f}", "at_least": wanted}
        for what, one, other, wanted in ratios
    ]


def measure(quick: bool) -> dict[str, Any]:
    seconds, turns, rounds = (0.3, 1, 4) if quick else (1.5, 3, 60)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        programs = {
            OURS: mockraft(),
            KFAKE: (built_kfake(folder),),
            LIBRDKAFKA: (sys.executable, "-c", MOCK_OF_LIBRDKAFKA),
        }
        doubles = {name: running.enter_context(server(*command)) for name, command in programs.items()}
        peers = in_turns(doubles, api_versions, seconds, turns)
        scripted = under_scripts(folder, rounds)
    first_answers = [[name, f"{each.first_answer_ms:.0f}"] for name, each in doubles.items()]
    return {
        "title": "The double",
        "about": f"{CONNECTIONS} connections with one request under way on each; the best of {turns} turns. Every "
        "double is a process of its own and so is the load, on the same cores. Heartbeats under stubs: "
        f"one process whose script changes {rounds} times to each, {ROUND_REQUESTS:,} requests each time, medians.",
        "tables": [
            table("ApiVersions, beside other doubles", "double", peers, KFAKE),
            script_table(scripted),
            {"title": "From a process's start to its first answer", "columns": ["double", "ms"], "rows": first_answers},
        ],
        "summary": ["The others close the connection on a BrokerHeartbeat, so heartbeats have no peer but Kafka."],
        "gates": gates(scripted),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds in all, for a look")
    parser.add_argument("--json", action="store_true", help="the result as JSON, for run.py")
    options = parser.parse_args()
    result = measure(options.quick)
    if options.json:
        print(json.dumps(result))
        return
    for each in result["tables"]:
        print(f"\n{each['title']}\n{each['columns']}")
        print("\n".join(str(row) for row in each["rows"]))
    for gate in result["gates"]:
        print(gate)


if __name__ == "__main__":
    main()
