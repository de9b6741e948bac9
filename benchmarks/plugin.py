"""Measure the cost of the pytest plugin in runs that do not use it, and the time of a test: its controller and brokers.

A test with a client produces and consumes a record by confluent-kafka, with mockraft, kfake and librdkafka's mock. The
first tests in Go and Java are processes (first_tests.py). The runs without use are in a new virtual environment with
pytest, alternately with and without the built wheels on the path (pytest_runs.py). The median difference of CPU time is
reported.

    python benchmarks/plugin.py [--rounds N] [--json]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
import venv
from importlib.metadata import version
from pathlib import Path

from codec_peers.other_languages import built_go
from confluent_kafka import Consumer, Producer, TopicPartition
from double import KFAKE, LIBRDKAFKA, server
from first_tests import FirstTests
from mockraft import Controller, SyncController
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from result import OURS, ROOT, Gate, Result, argument_parser, show, spread
from watched_processes import compiled_modules

PLUGIN_MS_MAX = 5.0
WHOLE_MS_MAX = {0: 4.0, 1: 25.0, 3: 45.0}
"""Time of a `with` block by the number of its running brokers."""
CLIENT_MS_MAX = 150.0
START_MS_MAX = 3.0
FIRST_MS_MAX = 1000.0
FIRST_TESTS = 7
RESET_MS_MAX = 2.0
STUBS = 10


class Environment:
    """A virtual environment with pytest, a test, and a folder with the packages that users install."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        self.installed = folder / "installed"
        self.tests = folder / "tests"
        self.tests.mkdir()
        (self.tests / "test_nothing.py").write_text("def test_nothing():\n    assert True\n")
        pip = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        sources = (str(ROOT), str(ROOT / "pytest_mockraft"))
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), *sources], check=True)
        subprocess.run([*pip, "install", f"pytest=={version('pytest')}"], check=True)
        wheels = map(str, folder.glob("*.whl"))
        subprocess.run([*pip, "install", "--no-deps", "--target", str(self.installed), *wheels], check=True)

    def more_ms(self, rounds: int) -> list[float]:
        """Return the additional CPU milliseconds of a run with the packages, for each round."""
        done = self._run(str(Path(__file__).parent / "pytest_runs.py"), str(self.installed), str(rounds))
        return [float(ms) for ms in json.loads(done.stdout)]

    def import_ms(self) -> float:
        """Return the milliseconds of importing the plugin after pytest, by `-X importtime`."""
        code = "import pytest, sys; sys.path.append(sys.argv[1]); import mockraft.pytest_plugin"
        done = self._run("-X", "importtime", "-c", code, str(self.installed)).stderr
        lines = [line.split("|") for line in done.splitlines() if line.split("|")[-1].strip().startswith("mockraft")]
        return sum(int(line[1]) for line in lines if not line[2].startswith("   ")) / 1000

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        command = [str(self.python), "-P", *arguments]
        return subprocess.run(command, cwd=self.tests, env=environment, capture_output=True, text=True, check=True)


def unused(rounds: int) -> tuple[list[float], float]:
    """Return the additional milliseconds of a run, for each round, and those of importing the plugin."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        return environment.more_ms(rounds), statistics.median(environment.import_ms() for _ in range(5))


def one_test() -> tuple[float, float]:
    """Return the milliseconds of a start, and of a reset after some stubs, faults and requests."""
    began = time.perf_counter()
    with Controller.sync() as controller:
        start_ms = (time.perf_counter() - began) * 1000
        use(controller)
        began = time.perf_counter()
        controller.reset()
        return start_ms, (time.perf_counter() - began) * 1000


def use(controller: SyncController) -> None:
    for broker_id in range(STUBS):
        controller.stub("BrokerHeartbeat", broker_id=broker_id).inject_error("NOT_CONTROLLER")
        controller.faults.latency(latency_ms=0, broker_id=broker_id)
        controller.ask(BrokerHeartbeatRequest(broker_id=broker_id))


def whole(brokers: int) -> float:
    """Return the milliseconds of a `with` block with brokers that run, from its begin to its end."""
    began = time.perf_counter()
    with Controller.sync(brokers=brokers):
        pass
    return (time.perf_counter() - began) * 1000


def exchange(bootstrap: str) -> None:
    """Produce a record to a new topic, and consume it."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0})
    producer.produce("orders", b"tea", partition=0)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "log_level": 0, "group.id": "tests"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    (message,) = consumer.consume(1, 20)
    assert message.value() == b"tea"
    consumer.close()


def with_client(kfake: str) -> dict[str, float]:
    """Return the milliseconds of a test with a client for each double: its start, the exchange and its end."""
    ms = {}
    began = time.perf_counter()
    with Controller.sync(brokers=1) as controller:
        controller.state.create_topic("orders")
        exchange(controller.bootstrap_servers)
    ms[OURS] = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    with server(kfake) as started:
        exchange("{}:{}".format(*started.address))
    ms[KFAKE] = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    broker = next(iter(mock.list_topics(timeout=20).brokers.values()))
    exchange(f"{broker.host}:{broker.port}")
    del mock
    ms[LIBRDKAFKA] = (time.perf_counter() - began) * 1000
    return ms


def measure(rounds: int) -> Result:
    """Measure runs without use of the plugin, starts, whole tests and resets."""
    more, import_ms = unused(rounds)
    starts, resets = zip(*(one_test() for _ in range(rounds)), strict=True)
    figures = {
        "a run of pytest that does not use it, more": (more, PLUGIN_MS_MAX),
        "start of a controller in a test": (starts, START_MS_MAX),
        "reset": (resets, RESET_MS_MAX),
    }
    for brokers, limit in WHOLE_MS_MAX.items():
        name = f"`with Controller.sync(brokers={brokers})`" if brokers else "`with Controller.sync()`"
        figures[name] = ([whole(brokers) for _ in range(rounds + 1)][1:], limit)
    kfake = built_go("kfake")
    clients = [with_client(kfake) for _ in range(rounds // 3 + 1)][1:]
    figures[f"a record produced and consumed, {OURS}"] = ([each[OURS] for each in clients], CLIENT_MS_MAX)
    with compiled_modules():
        tests = FirstTests()
        firsts = [tests.run() for _ in range(FIRST_TESTS + 1)][1:]
    peers = {f"the same, {name}": [each[name] for each in clients] for name in (KFAKE, LIBRDKAFKA)}
    for language in firsts[0]:
        name = f"first test in {language}, from the start of its mockraft"
        figures[name] = ([each[language].of_mockraft for each in firsts], FIRST_MS_MAX)
        peers[f"the same, from the start of {language}'s process"] = [each[language].whole for each in firsts]
    return Result(
        "In a test",
        "The pytest plugin in a run of one test that does not use it: CPU time with the wheels minus CPU time without "
        "them, in turns. All runs are forks of a process that has imported pytest; single rounds vary, the "
        f"median is stable. The import alone takes {import_ms:.1f} ms of wall-clock time in a process of its own. A "
        "start ends when the controller, in a thread, listens; its modules are imported before. A reset comes after "
        f"{STUBS} stubs, {STUBS} faults and {STUBS} requests. A whole test is a `with` block whose brokers run; the "
        "rows after those have a broker, a new topic, a producer and a consumer of confluent-kafka, and the start and "
        "end of the double; kfake runs in a process, librdkafka's mock in that of the test. A first test is run by a "
        "compiled Go test or by JUnit in a new JVM: it starts `mockraft serve` with a broker by the library, adds a "
        "stub, sends a request and verifies it.",
        [spread("Milliseconds", "", "ms", {name: list(values) for name, (values, _) in figures.items()} | peers)],
        gates=[
            Gate(f"{name}, ms", f"{statistics.median(values):.2f}", at_most=limit)
            for name, (values, limit) in figures.items()
        ],
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, rounds=(60, "two runs with the package, two without")).parse_args()
    show(measure(options.rounds), options)
