"""Partitions added, moved and led by Kafka's own tools, on two real brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaBroker, KafkaProcessError, KafkaTool, wait_until

from ...clients import consume, partitions_of, produce

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster(versions=(KAFKA_VERSION, KAFKA_VERSION), session_timeout_ms=3000)


@pytest.fixture
def run(cluster: KafkaCluster) -> Callable[..., str]:
    """`run(tool, *arguments)`: what the tool printed."""

    def run_tool(name: str, *arguments: str) -> str:
        return KafkaTool(name).run("--bootstrap-server", cluster.bootstrap_servers, *arguments)

    return run_tool


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """`plan(topic, replicas)`: the option that has partition 0 moved there."""

    def write(topic: str, replicas: list[int]) -> tuple[str, str]:
        path = tmp_path / f"{topic}.json"
        partition = {"topic": topic, "partition": 0, "replicas": replicas}
        path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        return "--reassignment-json-file", str(path)

    return write


def holds(broker: KafkaBroker, topic: str) -> bool:
    return any((folder / f"{topic}-0").is_dir() for folder in broker.log_dirs)


def test_kafka_topics_adds_partitions(run: Any, cluster: KafkaCluster) -> None:
    run("kafka-topics", "--create", "--topic", "grows", "--replica-assignment", "1:2")
    wait_until(lambda: all(holds(each, "grows") for each in cluster.brokers.values()), 60, "each broker heard of it")
    run("kafka-topics", "--alter", "--topic", "grows", "--partitions", "2", "--replica-assignment", "1:2,2:1")
    run("kafka-topics", "--alter", "--topic", "grows", "--partitions", "4")

    def led() -> bool:
        found = partitions_of(cluster.bootstrap_servers, "grows")
        return len(found) == 4 and all(leader > 0 and isr == [1, 2] for leader, isr in found.values())

    wait_until(led, 60, "four partitions, led and in sync")
    assert partitions_of(cluster.bootstrap_servers, "grows")[1][0] == 2
    with pytest.raises(KafkaProcessError, match=r"currently has 4 partition\(s\); 3 would not be an increase"):
        run("kafka-topics", "--alter", "--topic", "grows", "--partitions", "3")


def test_kafka_reassign_partitions_moves_a_partition_to_another_broker(
    run: Any, plan: Any, cluster: KafkaCluster
) -> None:
    run("kafka-topics", "--create", "--topic", "moves", "--replica-assignment", "1")
    sent = produce(cluster.bootstrap_servers, "moves", [f"before-{number}" for number in range(500)])
    result = run("kafka-reassign-partitions", *plan("moves", [2]), "--execute")
    assert "Successfully started partition reassignment for moves-0" in result
    completed = "Reassignment of partition moves-0 is completed."
    wait_until(
        lambda: completed in run("kafka-reassign-partitions", *plan("moves", [2]), "--verify"), 30, "a partition moved"
    )
    wait_until(lambda: partitions_of(cluster.bootstrap_servers, "moves") == {0: (2, [2])}, 60, "it seen by both")
    wait_until(lambda: not holds(cluster.brokers[1], "moves"), 60, "the old replica set aside")
    assert holds(cluster.brokers[2], "moves")
    sent += produce(cluster.bootstrap_servers, "moves", [f"after-{number}" for number in range(10)])
    assert consume(cluster.bootstrap_servers, "moves") == sent


def test_kafka_reassign_partitions_calls_a_slow_move_back(run: Any, plan: Any, cluster: KafkaCluster) -> None:
    run("kafka-topics", "--create", "--topic", "slow", "--replica-assignment", "1")
    produce(cluster.bootstrap_servers, "slow", ["x" * 10_000] * 400)
    # A fetch is 1 MB: the second one has to wait for the throttle.
    moving = plan("slow", [2])
    run("kafka-reassign-partitions", *moving, "--execute", "--throttle", "1000")
    listed = run("kafka-reassign-partitions", "--list")
    assert "slow-0: replicas: 2,1. adding: 2. removing: 1." in listed
    assert "Successfully cancelled partition reassignment for: slow-0" in run(
        "kafka-reassign-partitions", *moving, "--cancel"
    )
    assert "No partition reassignments found." in run("kafka-reassign-partitions", "--list")
    wait_until(lambda: not holds(cluster.brokers[2], "slow"), 60, "the new replica set aside")
    assert partitions_of(cluster.bootstrap_servers, "slow") == {0: (1, [1])}


def test_kafka_leader_election_brings_the_leader_home_and_elects_uncleanly(run: Any, cluster: KafkaCluster) -> None:
    first, second = cluster.brokers.values()
    run("kafka-topics", "--create", "--topic", "led", "--replica-assignment", "1:2")

    def see(leader: int, isr: list[int], by: KafkaBroker) -> None:
        wait_until(lambda: partitions_of(by.bootstrap, "led") == {0: (leader, isr)}, 60, f"leader {leader}, ISR {isr}")

    def elect(kind: str, by: KafkaBroker) -> str:
        where = ("--bootstrap-server", by.bootstrap, "--topic", "led", "--partition", "0")
        return KafkaTool("kafka-leader-election").run(*where, "--election-type", kind)

    assert "Valid replica already elected for partitions led-0" in elect("preferred", first)
    first.stop()
    see(2, [2], second)
    first.start()
    first.wait_until_running()
    see(2, [1, 2], second)
    result = elect("preferred", second)
    assert "Successfully completed leader election (PREFERRED) for partitions led-0" in result
    see(1, [1, 2], second)
    second.kill()
    see(1, [1], first)
    first.kill()
    second.start()
    second.wait_until_running()
    see(-1, [], second)
    result = elect("unclean", second)
    assert "Successfully completed leader election (UNCLEAN) for partitions led-0" in result
    see(2, [2], second)
    first.start()
    first.wait_until_running()
    see(2, [1, 2], first)
