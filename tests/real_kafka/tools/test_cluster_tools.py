"""Kafka's tools that look at a cluster as a whole: its brokers, their folders, groups and telemetry."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaProcessError, KafkaTool, wait_until

from ...clients import create_topic, produce

pytestmark = pytest.mark.real_kafka

TELEMETRY = {"GetTelemetrySubscriptions", "PushTelemetry"}
"""APIs that a broker serves only with a telemetry plugin."""


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    for_share_groups = ("replication.factor", "min.isr", "num.partitions")
    properties = {f"share.coordinator.state.topic.{key}": "1" for key in for_share_groups}
    return start_cluster(session_timeout_ms=3000, broker_properties=properties)


@pytest.fixture
def run(cluster: KafkaCluster) -> Callable[..., str]:
    """`run(tool, *arguments)`: what the tool printed."""

    def run_tool(name: str, *arguments: str) -> str:
        return KafkaTool(name).run(*arguments, "--bootstrap-server", cluster.bootstrap_servers)

    return run_tool


def states(printed: str) -> dict[int, str]:
    """Broker → fenced or unfenced, as kafka-cluster list-endpoints prints them."""
    return {int(node): state for node, state in re.findall(r"^(\d+) .* (\w+) +broker", printed, re.MULTILINE)}


def test_kafka_log_dirs_shows_each_replica_in_one_of_two_folders(
    cluster: KafkaCluster, run: Callable[..., str]
) -> None:
    create_topic(cluster.bootstrap_servers, "placed", partitions=4, replicas=3)

    def described() -> list[dict[str, Any]]:
        printed = run("kafka-log-dirs", "--describe", "--topic-list", "placed")
        brokers: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])["brokers"]
        return brokers

    def count(broker: dict[str, Any]) -> int:
        return sum(len(each["partitions"]) for each in broker["logDirs"])

    # CreateTopics responds when a broker knows the topic; each broker makes its folders when it hears of them.
    wait_until(lambda: [count(each) for each in described()] == [4, 4, 4], 60, "every broker to have its replicas")
    for broker in described():
        folders = {each["logDir"]: each for each in broker["logDirs"]}
        assert set(folders) == {str(path) for path in cluster.brokers[broker["broker"]].log_dirs}
        assert all(each["error"] is None for each in folders.values())
        found = [replica["partition"] for each in folders.values() for replica in each["partitions"]]
        assert sorted(found) == [f"placed-{number}" for number in range(4)]


def test_kafka_broker_api_versions_finds_every_forwarded_api_usable(
    cluster: KafkaCluster, run: Callable[..., str]
) -> None:
    """Once a broker has forwarded anything, it offers clients only what its controller offers too."""
    create_topic(cluster.bootstrap_servers, "forwarded")
    printed = run("kafka-broker-api-versions")
    assert sorted(re.findall(r"\(id: (\d+) ", printed)) == ["1", "2", "3"]
    unusable = set(re.findall(r"\t(\w+)\(\d+\): UNSUPPORTED", printed))
    assert unusable == TELEMETRY


def test_kafka_client_metrics_adds_and_removes_a_subscription(run: Callable[..., str]) -> None:
    metrics = ("--metrics", "org.apache.kafka.producer.", "--interval", "1000", "--match", "client_id=app.*")
    run("kafka-client-metrics", "--alter", "--name", "watched", *metrics)

    def described() -> str:
        return run("kafka-client-metrics", "--describe", "--name", "watched")

    wait_until(lambda: "interval.ms=1000" in described(), 60, "the subscription, as brokers see it")
    assert {"match=client_id=app.*", "metrics=org.apache.kafka.producer."} <= set(described().split())
    run("kafka-client-metrics", "--delete", "--name", "watched")
    wait_until(lambda: "watched" not in run("kafka-client-metrics", "--list"), 60, "the subscription gone")


def test_a_share_group_reads_and_kafkas_group_tools_see_it(cluster: KafkaCluster, run: Callable[..., str]) -> None:
    """share.version 1, the state topic that brokers create by themselves, and a group's config."""
    create_topic(cluster.bootstrap_servers, "shared", replicas=3)
    produce(cluster.bootstrap_servers, "shared", ["one", "two"])
    of_group = (
        "--entity-type",
        "groups",
        "--entity-name",
        "sharers",
        "--add-config",
        "share.auto.offset.reset=earliest",
    )
    run("kafka-configs", "--alter", *of_group)
    read = run("kafka-console-share-consumer", "--topic", "shared", "--group", "sharers", "--max-messages", "2")
    assert sorted(read.split()) == ["one", "two"]
    assert re.search(r"^sharers +Share +share", run("kafka-groups", "--list"), re.MULTILINE)
    described = run("kafka-share-groups", "--describe", "--group", "sharers")
    assert re.search(r"^sharers +shared +0 ", described, re.MULTILINE)


def test_kafka_cluster_unregisters_a_stopped_broker(cluster: KafkaCluster, run: Callable[..., str]) -> None:
    def listed() -> dict[int, str]:
        return states(run("kafka-cluster", "list-endpoints", "--include-fenced-brokers"))

    assert listed() == dict.fromkeys((1, 2, 3), "unfenced")
    cluster.brokers[3].kill()
    wait_until(lambda: listed() == {1: "unfenced", 2: "unfenced", 3: "fenced"}, 60, "broker 3 fenced")
    assert run("kafka-cluster", "unregister", "--id", "3").strip() == "Broker 3 is no longer registered."
    wait_until(lambda: listed() == dict.fromkeys((1, 2), "unfenced"), 60, "broker 3 unregistered")
    by_controller = ("--bootstrap-controller", cluster.controller.bootstrap)
    with pytest.raises(KafkaProcessError, match="Broker ID 3 is not currently registered"):
        KafkaTool("kafka-cluster").run("unregister", *by_controller, "--id", "3")
    cluster.brokers[3].start()
    wait_until(lambda: listed() == dict.fromkeys((1, 2, 3), "unfenced"), 60, "broker 3 registered anew")
