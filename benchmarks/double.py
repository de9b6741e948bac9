"""What scripting costs, beside the doubles that others use: kfake (franz-go) and librdkafka's mock cluster.

Round trips of ApiVersions v2, which all of them answer, and heartbeats under stubs. kfake is built here from its
sources (Go), librdkafka's mock runs in a process of its own through confluent-kafka.

    python benchmarks/double.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from load import Asker, Load, Measured, repeated, run
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

CONNECTIONS = 10
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


def heartbeats() -> Load:
    # Of a broker that is not registered: the whole way through the door and the handler, and a short answer.
    frame = write_request(BrokerHeartbeatRequest(broker_id=1, broker_epoch=1), 1, 1, "1")
    return Load("BrokerHeartbeat v1", repeated([frame], CONNECTIONS))


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


def scripts(folder: Path) -> dict[str, tuple[str, ...]]:
    """How mockraft is started under each script."""

    def stubbed(name: str, count: int, stub: Callable[[int], dict[str, Any]]) -> tuple[str, ...]:
        path = folder / f"{name}-{count}.json"
        path.write_text(json.dumps({"stubs": list(map(stub, range(count)))}))
        return mockraft("--stubs", str(path))

    return {
        NO_STUB: mockraft(),
        "10 stubs on another API": stubbed("api", 10, on_another_api),
        OTHER_API: stubbed("api", 1000, on_another_api),
        OTHER_BROKERS: stubbed("brokers", 1000, on_another_broker),
        "10 stubs whose fields must be looked at": stubbed("fields", 10, to_be_looked_at),
        JOURNAL_OFF: mockraft("--journal-entries-max", "0"),
    }


def gates(scripted: dict[str, Measured]) -> list[dict[str, Any]]:
    """What is held."""
    ratios = (
        ("heartbeats with 1,000 stubs on another API ÷ with none", OTHER_API, NO_STUB, 0.9),
        ("heartbeats with 1,000 stubs on other brokers ÷ with none", OTHER_BROKERS, NO_STUB, 0.8),
        ("heartbeats, journal on ÷ off", NO_STUB, JOURNAL_OFF, 0.8),
    )
    return [
        {"what": what, "measured": f"{per_s(scripted[one]) / per_s(scripted[other]):.2f}", "at_least": wanted}
        for what, one, other, wanted in ratios
    ]


def measure(quick: bool) -> dict[str, Any]:
    seconds, turns = (0.3, 1) if quick else (1.5, 3)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        programs = {
            OURS: mockraft(),
            KFAKE: (built_kfake(folder),),
            LIBRDKAFKA: (sys.executable, "-c", MOCK_OF_LIBRDKAFKA),
        }
        doubles = {name: running.enter_context(server(*command)) for name, command in programs.items()}
        peers = in_turns(doubles, api_versions, seconds, turns)
        servers = {name: running.enter_context(server(*command)) for name, command in scripts(folder).items()}
        scripted = in_turns(servers, heartbeats, seconds, turns)
    first_answers = [[name, f"{each.first_answer_ms:.0f}"] for name, each in doubles.items()]
    return {
        "title": "The double",
        "about": f"{CONNECTIONS} connections with one request under way on each; the best of {turns} turns. Every "
        "double is a process of its own and so is the load, on the same cores.",
        "tables": [
            table("ApiVersions, beside other doubles", "double", peers, KFAKE),
            table("Heartbeats under stubs", "script", scripted, NO_STUB),
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
