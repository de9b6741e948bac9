"""Kafka's own command line tools against real brokers on mockraft, and against mockraft itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft import conformance
from mockraft.conformance import CannotConnectError
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaProcessError, KafkaTool, wait_until

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster()


def test_kafka_topics_creates_describes_and_deletes(cluster: KafkaCluster, by_broker: tuple[str, str]) -> None:
    topics = KafkaTool("kafka-topics")
    shape = ("--partitions", "4", "--replication-factor", "3", "--config", "retention.ms=60000")
    assert topics.run(*by_broker, "--create", "--topic", "made", *shape).strip() == "Created topic made."
    head, *partitions = topics.run(*by_broker, "--describe", "--topic", "made").strip().splitlines()
    assert "PartitionCount: 4\tReplicationFactor: 3" in head
    assert "retention.ms=60000" in head
    assert len(partitions) == 4
    for line in partitions:
        leader, replicas, isr = re.search(r"Leader: (\d+)\tReplicas: (\S+)\tIsr: (\S+)", line).groups()  # type: ignore[union-attr]
        assert sorted(replicas.split(",")) == sorted(isr.split(",")) == ["1", "2", "3"]
        assert leader == replicas.split(",")[0]
    with pytest.raises(KafkaProcessError, match="Topic 'made' already exists"):
        topics.run(*by_broker, "--create", "--topic", "made")
    topics.run(*by_broker, "--delete", "--topic", "made")
    # Another broker than the one that forwarded the request may not have read of it yet.
    wait_until(lambda: "made" not in topics.run(*by_broker, "--list").split(), 60, "the topic gone from the list")

    def folders() -> list[Path]:
        every = [folder for broker in cluster.brokers.values() for folder in broker.log_dirs]
        return [path for folder in every for path in folder.glob("made-*") if not path.name.endswith("-delete")]

    wait_until(lambda: not folders(), 60, "the replicas of a deleted topic set aside")


def test_kafka_topics_reports_refusals_of_the_controller(by_broker: tuple[str, str]) -> None:
    topics = KafkaTool("kafka-topics")
    with pytest.raises(KafkaProcessError, match="Unable to replicate the partition 5 time"):
        topics.run(*by_broker, "--create", "--topic", "wide", "--replication-factor", "5")
    with pytest.raises(KafkaProcessError, match=r"retention\.ms"):
        topics.run(*by_broker, "--create", "--topic", "odd", "--config", "retention.ms=long")


def test_kafka_metadata_quorum_sees_one_voter_and_three_observers(
    cluster: KafkaCluster, bootstrap: tuple[str, str]
) -> None:
    status = KafkaTool("kafka-metadata-quorum").run(*bootstrap, "describe", "--status")
    result = dict(re.findall(r"^(\w+): +(.*)$", status, re.MULTILINE))
    assert result["ClusterId"] == cluster.cluster_id
    assert result["LeaderId"] == "3000"
    assert int(result["HighWatermark"]) > 0
    assert re.findall(r'"id": (\d+)', result["CurrentVoters"]) == ["3000"]
    assert f'"CONTROLLER://{cluster.controller.bootstrap}"' in result["CurrentVoters"]
    assert sorted(re.findall(r'"id": (\d+)', result["CurrentObservers"])) == ["1", "2", "3"]


def test_kafka_metadata_quorum_shows_how_far_behind_each_observer_is(by_controller: tuple[str, str]) -> None:
    table = KafkaTool("kafka-metadata-quorum").run(*by_controller, "describe", "--replication")
    head, *rows = [line.split("\t") for line in table.strip().splitlines()]
    columns = [name.strip() for name in head]
    found = {row[0].strip(): dict(zip(columns, map(str.strip, row), strict=False)) for row in rows}
    assert {node: row["Status"] for node, row in found.items()} == {
        "3000": "Leader",
        "1": "Observer",
        "2": "Observer",
        "3": "Observer",
    }
    assert all(int(row["Lag"]) <= 5 for row in found.values())
    assert all(len(row["DirectoryId"]) == 22 for row in found.values())


def test_kafka_metadata_quorum_cannot_remove_the_last_controller(
    cluster: KafkaCluster, bootstrap: tuple[str, str]
) -> None:
    quorum = KafkaTool("kafka-metadata-quorum")
    status = quorum.run(*bootstrap, "describe", "--status")
    (directory_id,) = re.findall(r'"id": 3000, "directoryId": "([^"]+)"', status)
    voter = ("--controller-id", "3000", "--controller-directory-id", directory_id)
    with pytest.raises(KafkaProcessError, match=rf"Cannot remove voter .*id=3000, directoryId={directory_id}"):
        quorum.run(*bootstrap, "remove-controller", *voter)


def test_kafka_features_describes_the_finalized_levels(bootstrap: tuple[str, str]) -> None:
    table = KafkaTool("kafka-features").run(*bootstrap, "describe")
    row = r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)"
    assert {name: rest for name, *rest in re.findall(row, table)} == {
        "eligible.leader.replicas.version": ["0", "1", "1"],
        "group.version": ["0", "1", "1"],
        "kraft.version": ["0", "1", "1"],
        "metadata.version": ["3.3-IV3", "4.4-IV2", "4.4-IV2"],
        "share.version": ["0", "2", "2"],
        "streams.version": ["0", "1", "1"],
        "transaction.version": ["0", "2", "2"],
    }


def test_kafka_cluster_prints_the_cluster_id(cluster: KafkaCluster, bootstrap: tuple[str, str]) -> None:
    assert KafkaTool("kafka-cluster").run("cluster-id", *bootstrap).strip() == f"Cluster ID: {cluster.cluster_id}"


def test_kafka_cluster_lists_the_controllers_endpoint(cluster: KafkaCluster, by_controller: tuple[str, str]) -> None:
    head, row = KafkaTool("kafka-cluster").run("list-endpoints", *by_controller).strip().splitlines()
    assert head.split()[:3] == ["ID", "HOST", "PORT"]
    assert row.split()[:3] == ["3000", "127.0.0.1", str(cluster.controller.port)]
    assert row.split()[-1] == "controller"


def test_conformance_suite_reports_that_its_target_is_a_broker(cluster: KafkaCluster) -> None:
    with pytest.raises(CannotConnectError, match="is a broker's listener; --bootstrap takes the controller's"):
        asyncio.run(conformance.run(cluster.bootstrap_servers))


def test_kafka_configs_changes_a_topic_through_a_broker(by_broker: tuple[str, str], cluster: KafkaCluster) -> None:
    create_topic(cluster.bootstrap_servers, "tuned", replicas=3)
    configs = KafkaTool("kafka-configs")
    topic = (*by_broker, "--entity-type", "topics", "--entity-name", "tuned")
    configs.run(*topic, "--alter", "--add-config", "retention.ms=123456,cleanup.policy=compact")

    def described() -> str:
        return configs.run(*topic, "--describe")

    wait_until(lambda: "retention.ms=123456 " in described(), 60, "the topic's new retention.ms")
    assert "cleanup.policy=compact " in described()
    configs.run(*topic, "--alter", "--delete-config", "retention.ms")
    wait_until(lambda: "retention.ms" not in described(), 60, "retention.ms back at its default")


def test_kafka_configs_changes_a_broker_through_the_controller(
    by_broker: tuple[str, str], by_controller: tuple[str, str]
) -> None:
    configs = KafkaTool("kafka-configs")
    broker = ("--entity-type", "brokers", "--entity-name", "2")
    configs.run(*by_controller, *broker, "--alter", "--add-config", "num.io.threads=6")

    def described() -> str:
        return next(iter(re.findall(r"num\.io\.threads=6 .*", configs.run(*by_broker, *broker, "--describe"))), "")

    assert "DYNAMIC_BROKER_CONFIG:num.io.threads=6" in wait_until(described, 60, "num.io.threads of broker 2")


def test_a_cordoned_log_dir_gets_no_new_replicas(cluster: KafkaCluster, by_broker: tuple[str, str]) -> None:
    """KIP-1066: set by a dynamic config, told to the controller in heartbeats, respected by its placement."""
    broker = cluster.brokers[3]
    configs = (*by_broker, "--entity-type", "brokers", "--entity-name", "3", "--alter")
    KafkaTool("kafka-configs").run(*configs, "--add-config", f"cordoned.log.dirs={broker.log_dirs[0]}")
    broker.wait_for_log(r"(?i)cordoned", 10)
    create_topic(cluster.bootstrap_servers, "kept-out", partitions=6, replicas=3)
    wait_until(lambda: len(list(broker.log_dirs[1].glob("kept-out-*"))) == 6, 60, "six replicas in the other folder")
    assert not list(broker.log_dirs[0].glob("kept-out-*"))
    KafkaTool("kafka-configs").run(*configs, "--delete-config", "cordoned.log.dirs")
