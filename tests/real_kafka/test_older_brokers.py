"""Brokers of older releases, and of several at once, under the metadata version that all of them know."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaTool, wait_until

from ..budgets import soak
from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize(
    ("versions", "metadata_version"),
    [
        pytest.param(("4.1.1", "4.1.1"), "4.1-IV1", id="4.1.1", marks=soak),
        pytest.param(("3.9.1", "3.9.1"), "3.9-IV0", id="3.9.1", marks=soak),
        pytest.param(("4.3.1", "4.1.1", "3.9.1"), "3.9-IV0", id="one of each"),
    ],
)
def test_older_brokers_run_serve_clients_and_leave(
    start_cluster: Callable[..., KafkaCluster], versions: tuple[str, ...], metadata_version: str
) -> None:
    cluster = start_cluster(versions=versions, metadata_version=metadata_version)
    servers = cluster.bootstrap_servers
    for broker, version in zip(cluster.brokers.values(), versions, strict=True):
        assert f"Kafka version: {version}" in broker.log
        assert "RECOVERY to RUNNING" in broker.log
    create_topic(servers, "letters", partitions=3, replicas=len(versions))
    values = [f"letter-{index}" for index in range(500)]
    produce(servers, "letters", values, enable_idempotence=True)
    assert sorted(consume(servers, "letters")) == sorted(values)

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    read: list[bytes] = []
    try:
        consumer.subscribe(["letters"])

        def all_read() -> bool:
            read.extend(message.value() or b"" for message in consumer.consume(500, 0.1))
            return len(read) >= len(values)

        wait_until(all_read, 30, "all values in the group")
    finally:
        consumer.close()
    features = KafkaTool("kafka-features", versions[-1]).run("--bootstrap-server", servers, "describe")
    assert re.search(rf"metadata.version\s.*FinalizedVersionLevel: {re.escape(metadata_version)}\s", features), features

    leaving = cluster.brokers[len(versions)]
    assert leaving.stop() == 143
    assert "The controller has asked us to exit controlled shutdown" in leaving.log
    remaining = ",".join(broker.bootstrap for broker in cluster.brokers.values() if broker is not leaving)
    assert sorted(consume(remaining, "letters")) == sorted(values)
    cluster.stop()
