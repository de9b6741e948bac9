"""Disks and brokers fail, leave and come back; acknowledged records stay."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaBroker, KafkaTool, wait_until

from ..clients import consume, create_topic, keep_producing, partitions_of
from .lost_folders import remove_while_in_use

pytestmark = pytest.mark.real_kafka

_SESSION_TIMEOUT_S = 6.0
_HEARTBEAT_INTERVAL_S = 2.0


@pytest.fixture(scope="module")
def running_cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    # The checkpoint writer is what finds a lost folder; it runs every 5 s by default.
    quick = {"replica.high.watermark.checkpoint.interval.ms": "500"}
    return start_cluster(session_timeout_ms=int(_SESSION_TIMEOUT_S * 1000), broker_properties=quick)


@pytest.fixture
def cluster(running_cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    """The cluster, with every broker up again after the test, on as many disks as before."""
    yield running_cluster
    for broker in running_cluster.brokers.values():
        if broker.running and not all(folder.is_dir() for folder in broker.log_dirs):
            broker.stop()
        if not broker.running:
            broker.format("--ignore-formatted")
            broker.start()
            broker.wait_until_running()


@pytest.fixture
def topic(cluster: KafkaCluster, request: pytest.FixtureRequest) -> str:
    """A topic of its own for the test: six partitions on three brokers, of which two must have a message."""
    name = request.node.name.removeprefix("test_")
    create_topic(cluster.bootstrap_servers, name, partitions=6, replicas=3, min_insync_replicas="2")
    return str(name)


def _led_by(broker: KafkaBroker, partitions: dict[int, tuple[int, list[int]]]) -> set[int]:
    return {number for number, (leader, _) in partitions.items() if leader == broker.node_id}


def _held_in(folder: Path, topic: str) -> set[int]:
    return {number for number in range(6) if (folder / f"{topic}-{number}").is_dir()}


def _in_no_isr(broker: KafkaBroker, partitions: dict[int, tuple[int, list[int]]]) -> bool:
    return all(broker.node_id not in isr for _, isr in partitions.values())


def _other_servers(cluster: KafkaCluster, broker: KafkaBroker) -> str:
    return ",".join(each.bootstrap for each in cluster.brokers.values() if each is not broker)


def _wait_until_in_every_isr(cluster: KafkaCluster, topic: str) -> None:
    wait_until(
        lambda: all(isr == [1, 2, 3] for _, isr in partitions_of(cluster.bootstrap_servers, topic).values()),
        40,
        f"every replica of {topic} in its ISR",
    )


def _nothing_lost(acknowledged: list[str], read: list[str]) -> bool:
    assert len(acknowledged) > 100, "too little was produced to prove anything"
    return set(acknowledged) <= set(read) and len(set(read)) == len(read)


def test_a_lost_log_dir_moves_its_leaders_and_only_those(cluster: KafkaCluster, topic: str) -> None:
    broker, servers = cluster.brokers[1], cluster.bootstrap_servers
    led = _led_by(broker, partitions_of(servers, topic))
    wait_until(lambda: sum(len(_held_in(folder, topic)) for folder in broker.log_dirs) == 6, 60, "six replicas")
    lost = next(folder for folder in broker.log_dirs if led & _held_in(folder, topic))
    in_lost = _held_in(lost, topic)
    with keep_producing(servers, topic) as acknowledged:
        before = len(acknowledged)
        remove_while_in_use(lost)
        broker.wait_for_log(r"Stopping serving replicas in dir", 20)

        def moved() -> bool:
            now = partitions_of(_other_servers(cluster, broker), topic)
            return all(1 not in isr and leader in (2, 3) for number, (leader, isr) in now.items() if number in in_lost)

        wait_until(moved, 60, f"partitions {in_lost} led by 2 or 3 and without 1 in their ISR")
        wait_until(lambda: len(acknowledged) > before + 200, 60, "messages acknowledged after the loss")
    after = partitions_of(_other_servers(cluster, broker), topic)
    assert led - in_lost <= _led_by(broker, after)
    assert all(1 in isr for number, (_, isr) in after.items() if number not in in_lost)
    assert broker.running
    assert _nothing_lost(acknowledged, consume(servers, topic))
    broker.stop()


def test_a_replaced_disk_is_filled_again(cluster: KafkaCluster, topic: str) -> None:
    broker, servers = cluster.brokers[2], cluster.bootstrap_servers
    with keep_producing(servers, topic) as acknowledged:
        assert broker.stop() == 143
        replaced = broker.log_dirs[1]
        shutil.rmtree(replaced)
        broker.format("--ignore-formatted")
        broker.start()
        broker.wait_until_running()
        _wait_until_in_every_isr(cluster, topic)
    assert sorted(number for folder in broker.log_dirs for number in _held_in(folder, topic)) == list(range(6))
    assert _held_in(replaced, topic)
    assert _nothing_lost(acknowledged, consume(servers, topic))


def test_a_killed_broker_is_fenced_after_the_session_timeout_and_returns_to_the_isr(
    cluster: KafkaCluster, topic: str
) -> None:
    broker, servers = cluster.brokers[3], cluster.bootstrap_servers
    others = _other_servers(cluster, broker)
    led = _led_by(broker, partitions_of(servers, topic))
    assert led
    with keep_producing(servers, topic) as acknowledged:
        broker.kill()
        killed = time.monotonic()
        wait_until(lambda: not _led_by(broker, partitions_of(others, topic)), 60, "other leaders")
        waited_s = time.monotonic() - killed
        assert _SESSION_TIMEOUT_S - _HEARTBEAT_INTERVAL_S - 0.5 < waited_s < _SESSION_TIMEOUT_S + 3
        wait_until(lambda: _in_no_isr(broker, partitions_of(others, topic)), 60, "no ISR with the killed broker")
        broker.start()
        broker.wait_until_running()
        _wait_until_in_every_isr(cluster, topic)
    assert _nothing_lost(acknowledged, consume(servers, topic))


def test_controlled_shutdown_moves_leaders_before_the_broker_stops(cluster: KafkaCluster, topic: str) -> None:
    broker, servers = cluster.brokers[2], cluster.bootstrap_servers
    others = _other_servers(cluster, broker)
    assert _led_by(broker, partitions_of(servers, topic))
    with keep_producing(servers, topic) as acknowledged:
        broker.terminate()
        broker.wait_for_log(r"The controller has asked us to exit controlled shutdown", 20)
        assert broker.wait() == 143
        wait_until(lambda: _in_no_isr(broker, partitions_of(others, topic)), 3, "no ISR with the broker that left")
        assert not _led_by(broker, partitions_of(others, topic))
        broker.start()
        broker.wait_until_running()
        _wait_until_in_every_isr(cluster, topic)
    assert _nothing_lost(acknowledged, consume(servers, topic))


def test_an_unregistered_broker_is_forgotten_and_may_come_back_at_once(cluster: KafkaCluster, topic: str) -> None:
    broker = cluster.brokers[1]
    others = _other_servers(cluster, broker)

    def known() -> list[str]:
        options = ("--bootstrap-server", others, "--include-fenced-brokers")
        table = KafkaTool("kafka-cluster").run("list-endpoints", *options)
        return sorted(re.findall(r"^(\d+) ", table, re.MULTILINE))

    broker.kill()
    assert known() == ["1", "2", "3"]
    result = KafkaTool("kafka-cluster").run("unregister", "--bootstrap-server", others, "--id", "1")
    assert result.strip() == "Broker 1 is no longer registered."
    wait_until(lambda: known() == ["2", "3"], 60, "broker 1 forgotten")
    broker.start()
    broker.wait_until_running()
    assert "DUPLICATE_BROKER_REGISTRATION" not in broker.log
    assert known() == ["1", "2", "3"]
    _wait_until_in_every_isr(cluster, topic)
