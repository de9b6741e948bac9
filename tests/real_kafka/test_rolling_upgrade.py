"""A rolling upgrade from 3.9 to 4.4 while a client produces."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Producer
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.processes import KafkaTool, wait_until

from ..budgets import soak

pytestmark = pytest.mark.real_kafka


def keep_producing(servers: str, acknowledged: list[str], upgraded: Event) -> None:
    def delivered(error: Any, message: Any) -> None:
        assert error is None
        acknowledged.append(message.value().decode())

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "request.timeout.ms": 4000})
    for number in count():
        producer.produce("letters", f"letter-{number}", on_delivery=delivered)
        producer.poll(0.002)
        if upgraded.is_set():
            break
    producer.flush()


def upgrade(cluster: KafkaCluster, releases: Sequence[str], acknowledged: list[str]) -> None:
    def all_is_well() -> None:
        wanted = len(acknowledged) + 200
        wait_until(lambda: len(acknowledged) >= wanted, 60, "200 more records")
        lagging = (*server, "--describe", "--under-replicated-partitions")
        wait_until(lambda: topics.run(*lagging).split() == [], 60, "all replicas in sync")

    server = ("--bootstrap-server", cluster.bootstrap_servers)
    topics, features = KafkaTool("kafka-topics"), KafkaTool("kafka-features")
    all_is_well()
    for release in releases:
        cluster.restart_controller(release)
        all_is_well()
    for node_id in cluster.brokers:
        cluster.restart_broker(node_id, "4.4.0")
        all_is_well()
    features.run(*server, "upgrade", "--release-version", "4.4")
    all_is_well()


CASES: list[Any] = [
    ("mockraft", ["4.4"]),
    pytest.param("mockraft", ["4.0", "4.1", "4.2", "4.3", "4.4"], marks=soak),
    pytest.param("kafka", ["4.4"], marks=soak),
]


@pytest.mark.parametrize(("controller", "releases"), CASES)
def test_rolling_upgrade_loses_nothing(tmp_path: Path, controller: ControllerKind, releases: Sequence[str]) -> None:
    with KafkaCluster(tmp_path, controller=controller, versions=("3.9.2", "3.9.2")) as cluster:
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        new_topic = ("--create", "--topic", "letters", "--partitions", "3", "--replication-factor", "2")
        KafkaTool("kafka-topics").run(*server, *new_topic)
        acknowledged, upgraded = list[str](), Event()
        with ThreadPoolExecutor() as pool:
            producing = pool.submit(keep_producing, cluster.bootstrap_servers, acknowledged, upgraded)
            try:
                upgrade(cluster, releases, acknowledged)
            finally:
                upgraded.set()
        producing.result()
        all_letters = (*server, "--topic", "letters", "--from-beginning", "--timeout-ms", "5000")
        read = KafkaTool("kafka-console-consumer").run(*all_letters).split()
        assert sorted(read) == sorted(acknowledged)
