"""Clusters of real brokers for the tests, their clients, and what every process printed when a test fails.

``MOCKRAFT_TEST_CONTROLLER=kafka`` runs the same tests on Kafka's own controller: what passes there is true of Kafka.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.jars import KafkaUnavailableError
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.kafka.tools import java_command

from .tool_jvm import tools_in_one_jvm

_VERSIONS = ("4.3.1", "4.1.1", "3.9.1")
_LAST_LINES = 12
_LINE_LENGTH = 240
_NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
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

    def start(controllers: str, cluster_id: str, count: int, **properties: str) -> dict[int, KafkaBroker]:
        folder = tmp_path_factory.mktemp("brokers")
        usual = {"replica.lag.time.max.ms": "6000", "auto.create.topics.enable": "false"}
        usual |= {key.replace("_", "."): value for key, value in properties.items()}
        brokers = [
            KafkaBroker(node_id, folder / f"broker-{node_id}", cluster_id, controllers, properties=usual)
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


@pytest.fixture(scope="session")
def create_topic() -> Callable[..., None]:
    """Create a topic and wait until every broker of ``bootstrap`` names a leader for each of its partitions."""

    def create(bootstrap: str, name: str, *, partitions: int = 1, replicas: int = 1, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dotted)

        def knows_a_controller() -> bool:
            # A broker that runs may not have read its own records yet; librdkafka asks only once who the controller is.
            try:
                return admin.list_topics(timeout=10).controller_id > 0
            except KafkaException:
                return False

        wait_until(knows_a_controller, 60, f"a controller by {bootstrap}")
        admin.create_topics([topic], operation_timeout=60)[name].result(90)

        def led(server: str) -> bool:
            found = AdminClient({"bootstrap.servers": server}).list_topics(name, timeout=10).topics[name].partitions
            return len(found) == partitions and all(each.leader > 0 for each in found.values())

        for server in bootstrap.split(","):
            wait_until(lambda server=server: led(server), 60, f"{name} led, as {server} sees it")  # type: ignore[misc]

    return create


@pytest.fixture(scope="session")
def produce() -> Callable[..., list[str]]:
    """Produce ``values`` with acks=all and return those that were acknowledged; an error only with ``strict``."""

    def run(
        bootstrap: str, topic: str, values: Iterable[str], *, strict: bool = True, timeout_s: float = 30, **config: Any
    ) -> list[str]:
        acknowledged, errors = [], []

        def delivered(error: KafkaError | None, message: Any) -> None:
            (acknowledged if error is None else errors).append(message.value().decode() if error is None else error)

        settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "message.timeout.ms": 30_000}
        producer = Producer({**settings, **{key.replace("_", "."): value for key, value in config.items()}})
        for value in values:
            producer.produce(topic, value.encode(), on_delivery=delivered)
            producer.poll(0)
        left = producer.flush(timeout_s)
        assert not strict or (not errors and left == 0), f"{errors[:3]}, {left} not delivered"
        return acknowledged

    return run


@pytest.fixture(scope="session")
def keep_producing() -> Callable[..., AbstractContextManager[list[str]]]:
    """Produce (acks=all, idempotent) as long as the block runs; the list holds what was acknowledged."""

    @contextmanager
    def run(bootstrap: str, topic: str) -> Iterator[list[str]]:
        acknowledged: list[str] = []
        enough = threading.Event()

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                acknowledged.append(message.value().decode())

        def work() -> None:
            # A broker that has lost the partition answers a produce request only after the request's own timeout.
            settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "request.timeout.ms": 4_000}
            producer = Producer({**settings, "enable.idempotence": True})
            for number in itertools.count():
                if enough.is_set():
                    break
                producer.produce(topic, f"steady-{number}".encode(), on_delivery=delivered)
                producer.poll(0.001)
            producer.flush(30)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            wait_until(lambda: acknowledged, 30, "the first message acknowledged")
            yield acknowledged
        finally:
            enough.set()
            thread.join()

    return run


@pytest.fixture(scope="session")
def consume() -> Callable[..., list[str]]:
    """All values of a topic from its first offset to the end that its partitions had when this was called."""

    def run(bootstrap: str, topic: str, *, timeout_s: float = 30, **config: Any) -> list[str]:
        settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
        settings |= {"enable.partition.eof": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **{key.replace("_", "."): value for key, value in config.items()}})
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions

            def all_ends() -> dict[int, int]:
                try:
                    return {each: consumer.get_watermark_offsets(TopicPartition(topic, each))[1] for each in partitions}
                except KafkaException as error:
                    if error.args[0].code() not in _NO_LEADER_YET:
                        raise
                    return {}

            ends = wait_until(all_ends, timeout_s, f"leaders for all of {topic}")
            consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
            values: list[str] = []

            def at_end() -> bool:
                for message in consumer.consume(500, timeout=0.1):
                    if error := message.error():
                        raise KafkaException(error)
                    values.append(message.value().decode())
                places = consumer.position([TopicPartition(topic, each) for each in partitions])
                return all(max(place.offset, 0) >= ends[place.partition] for place in places)

            wait_until(at_end, timeout_s, f"all of {topic} up to {ends}")
            return values
        finally:
            consumer.close()

    return run


@pytest.fixture(scope="session")
def partitions_of() -> Callable[[str, str], dict[int, tuple[int, list[int]]]]:
    """Partition → (leader, ISR in order of id) as the first broker of ``bootstrap`` that answers sees them."""

    def see(bootstrap: str, topic: str) -> dict[int, tuple[int, list[int]]]:
        found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10)
        return {number: (each.leader, sorted(each.isrs)) for number, each in found.topics[topic].partitions.items()}

    return see
