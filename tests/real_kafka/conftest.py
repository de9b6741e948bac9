"""Clusters of real brokers for the tests, their clients, and what every process printed when a test fails.

``MOCKRAFT_TEST_CONTROLLER=kafka`` runs the same tests on Kafka's own controller: what passes there is true of Kafka.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION, KafkaUnavailableError
from mockraft.kafka.processes import KafkaBroker
from mockraft.kafka.tools import java_command

from .tool_jvm import tools_in_one_jvm

_VERSIONS = (KAFKA_VERSION, "4.1.1", "3.9.1")
_LAST_LINES = 12
_LINE_LENGTH = 240

_NOTED = re.compile(r" (WARN|ERROR|FATAL) |BrokerLifecycleManager|Traceback|Exception")

_clusters: list[Any] = []
_not_run: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fetch the jars and archive their classes before a clock runs; without Java or Maven run the rest, save in CI."""
    real = [item for item in items if item.get_closest_marker("real_kafka")]
    if not real or config.option.collectonly:
        return
    try:
        for version in _VERSIONS:
            java_command(version, (), "kafka.Kafka")
    except KafkaUnavailableError as error:
        if os.environ.get("CI") != "true":
            _not_run.append(f"{len(real)} tests with real Kafka were left out: {error}")
            items[:] = [item for item in items if item not in real]
            config.hook.pytest_deselected(items=real)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """That nothing was left to run, and why, is said; it is no failure outside CI."""
    if _not_run and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _not_run:
        terminalreporter.write_line(line, yellow=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    report: pytest.TestReport = yield
    if report.failed:
        for process in (process for cluster in _clusters for process in cluster.processes):
            state = "running" if process.running else f"ended with {process.exit_code}"
            report.sections.append((f"{process.name}, {state}", _worth_reading(process.whole_log)))
    return report


def _worth_reading(log: str) -> str:
    lines = [line[:_LINE_LENGTH] for line in log.splitlines()]
    noted = [line for line in lines[:-_LAST_LINES] if _NOTED.search(line) and "NetworkClient" not in line]
    return "\n".join([*noted[-2 * _LAST_LINES :], *lines[-_LAST_LINES:]])


@pytest.fixture(scope="session", autouse=True)
def one_jvm_for_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kafka's tools run in one JVM, one after another."""
    with tools_in_one_jvm(tmp_path_factory.mktemp("tools")):
        yield


@pytest.fixture(scope="session")
def controller_kind() -> ControllerKind:
    """The controller under test: Kafka's or mockraft's."""
    return cast(ControllerKind, os.environ.get("MOCKRAFT_TEST_CONTROLLER", "mockraft"))


@pytest.fixture(scope="module")
def start_cluster(
    tmp_path_factory: pytest.TempPathFactory, controller_kind: ControllerKind
) -> Iterator[Callable[..., KafkaCluster]]:
    """Start a `KafkaCluster` with these arguments; no process of it is left after the module's tests."""
    started = []

    def start(**options: Any) -> KafkaCluster:
        kwargs = {"controller": controller_kind, **options}
        # A topic comes into being when a test creates it, not when it looks for it.
        usual = {"replica.lag.time.max.ms": "6000", "auto.create.topics.enable": "false"}
        kwargs["broker_properties"] = {**usual, **kwargs.get("broker_properties", {})}
        cluster = KafkaCluster(tmp_path_factory.mktemp("cluster"), **kwargs)
        started.append(cluster)
        _clusters.append(cluster)
        return cluster.__enter__()

    yield start
    for cluster in started:
        cluster.kill()
        _clusters.remove(cluster)


@pytest.fixture(scope="module")
def watch_processes() -> Iterator[Callable[[Any], None]]:
    """`watch_processes(thing)`: what its `processes` printed is in the report of a test of the module that fails."""
    watched: list[Any] = []

    def watch(thing: Any) -> None:
        watched.append(thing)
        _clusters.append(thing)

    yield watch
    for each in watched:
        _clusters.remove(each)


class Brokers:
    """Real brokers of a controller that somebody else started."""

    def __init__(self, brokers: list[KafkaBroker]) -> None:
        self.processes = brokers


@pytest.fixture(scope="module")
def start_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[int, KafkaBroker]]]:
    """`start_brokers(controllers, cluster_id, count)`: real brokers that run, by id; none is left after the module."""
    started: list[Brokers] = []

    def start(
        controllers: str, cluster_id: str, count: int, version: str = KAFKA_VERSION, **properties: str
    ) -> dict[int, KafkaBroker]:
        folder = tmp_path_factory.mktemp("brokers")
        usual = {"replica.lag.time.max.ms": "6000", "auto.create.topics.enable": "false"}
        usual |= {key.replace("_", "."): value for key, value in properties.items()}
        brokers = [
            KafkaBroker(
                node_id, folder / f"broker-{node_id}", cluster_id, controllers, properties=usual, version=version
            )
            for node_id in range(1, count + 1)
        ]
        started.append(Brokers(brokers))
        _clusters.append(started[-1])
        with ThreadPoolExecutor(max_workers=2) as pool:
            for done in [pool.submit(broker.format) for broker in brokers]:
                done.result()
        for broker in brokers:
            broker.start()
        for broker in brokers:
            broker.wait_until_running()
        return {broker.node_id: broker for broker in brokers}

    yield start
    for each in started:
        for broker in each.processes:
            broker.kill()
        _clusters.remove(each)
