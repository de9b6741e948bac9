"""Other people's Admin clients on a cluster that has simulated brokers alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.processes import wait_until

with warnings.catch_warnings():
    # It reads its schemas in a way that Python is about to give up.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as OtherNewTopic


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    """Two brokers, found by the second."""
    with Controller.sync() as controller:
        joining = [SimulatedBroker.sync(controller.bootstrap, controller.cluster_id, number) for number in (1, 2)]
        with joining[0] as first, joining[1] as second:
            for broker in (first, second):
                broker.wait_until(BrokerState.RUNNING)
            yield second.bootstrap_servers


def done(futures: Any) -> dict[Any, Any]:
    return {of: future.result(20) for of, future in futures.items()}


def test_confluent_kafka_makes_alters_and_deletes_topics(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    done(admin.create_topics([NewTopic("t", 2, 2, config={"retention.ms": "1000"})]))
    done(admin.create_partitions([NewPartitions("t", 3)]))

    def described() -> list[tuple[int, bool]]:
        (topic,) = done(admin.describe_topics(TopicCollection(["t"]))).values()
        return [(len(each.replicas), each.leader.id in (1, 2)) for each in topic.partitions]

    assert wait_until(lambda: described() == [(2, True)] * 3, 60, "three partitions with leaders")
    with pytest.raises(KafkaException) as refusal:
        done(admin.create_topics([NewTopic("t", 1, 1)]))
    assert refusal.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    done(admin.delete_topics(["t"]))
    assert wait_until(lambda: "t" not in admin.list_topics(timeout=10).topics, 60, "t gone from the metadata")


def test_confluent_kafka_describes_and_alters_configs(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    done(admin.create_topics([NewTopic("t", 1, 1)]))
    entry = ConfigEntry("retention.ms", "5000", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[entry])]))

    def retention_ms() -> str:
        (configs,) = done(admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")])).values()
        return str(configs["retention.ms"].value)

    assert wait_until(lambda: retention_ms() == "5000", 60, "a broker that was asked has the change in its image")
    (configs,) = done(admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")])).values()
    assert configs["node.id"].value == "1"


def test_confluent_kafka_describes_the_cluster(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    cluster = admin.describe_cluster().result(20)
    assert {node.id for node in cluster.nodes} == {1, 2}
    assert cluster.controller.id in (1, 2)


def test_kafka_python_makes_describes_and_deletes_topics(bootstrap_servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics([OtherNewTopic("t", 2, 1)])
        assert wait_until(lambda: "t" in admin.list_topics(), 60, "t in the metadata")
        (described,) = admin.describe_topics(["t"])
        assert len(described["partitions"]) == 2
        assert {node["broker_id"] for node in admin.describe_cluster()["brokers"]} == {1, 2}
        admin.delete_topics(["t"])
        assert wait_until(lambda: "t" not in admin.list_topics(), 60, "t gone from the metadata")
    finally:
        admin.close()
