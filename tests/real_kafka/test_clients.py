"""Clients of three real brokers whose only controller is mockraft."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaBroker, KafkaTool, wait_until

from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    # KIP-848 members hear of a new assignment in their heartbeats, by default every 5 s.
    quick = {f"group.consumer.{limit}heartbeat.interval.ms": "500" for limit in ("", "min.")}
    return start_cluster(broker_properties={**quick, "auto.create.topics.enable": "true"})


def test_three_brokers_with_two_log_dirs_each_reach_running(cluster: KafkaCluster) -> None:
    for broker in cluster.brokers.values():
        steps = re.findall(r"Transitioning from (\w+) to (\w+)", broker.log)
        assert steps == [("STARTING", "RECOVERY"), ("RECOVERY", "RUNNING")]
        assert "Successfully registered broker" in broker.log
        assert not re.search(r" (ERROR|FATAL) ", broker.log)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    seen = admin.describe_cluster().result(10)
    assert sorted(node.id for node in seen.nodes) == [1, 2, 3]
    assert seen.cluster_id == cluster.cluster_id


def _has_six(replicas: Callable[[], list[int]]) -> bool:
    return sum(replicas()) == 6


def test_both_log_dirs_of_a_broker_get_replicas(cluster: KafkaCluster) -> None:
    create_topic(cluster.bootstrap_servers, "spread", partitions=6, replicas=3)
    for broker in cluster.brokers.values():

        def replicas(broker: KafkaBroker = broker) -> list[int]:
            return [len(list(folder.glob("spread-*"))) for folder in broker.log_dirs]

        wait_until(partial(_has_six, replicas), 60, f"six replicas on {broker.name}")
        assert min(replicas()) >= 2


def test_a_topic_is_created_for_its_first_message(cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers
    produce(servers, "sprung-up", ["first"])
    assert consume(servers, "sprung-up") == ["first"]


def test_a_transaction_is_seen_when_committed_and_not_when_aborted(cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers
    create_topic(servers, "transacted", partitions=2, replicas=3)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "cash-desk"})
    producer.init_transactions(30)
    for kept in (True, False, True):
        producer.begin_transaction()
        for index in range(10):
            producer.produce("transacted", f"{kept}-{index}".encode(), partition=index % 2)
        producer.flush(30)
        (producer.commit_transaction if kept else producer.abort_transaction)(30)
    committed = consume(servers, "transacted", isolation_level="read_committed")
    assert sorted(committed) == sorted(f"True-{index}" for index in range(10) for _ in range(2))
    everything = consume(servers, "transacted", isolation_level="read_uncommitted")
    assert len(everything) == 30


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shares_the_partitions_of_a_topic(cluster: KafkaCluster, protocol: str) -> None:
    """`consumer` is KIP-848's protocol, in which the broker's coordinator assigns."""
    servers, topic = cluster.bootstrap_servers, f"shared-{protocol}"
    create_topic(servers, topic, partitions=4, replicas=3)
    settings = {"bootstrap.servers": servers, "group.id": f"group-{protocol}", "auto.offset.reset": "earliest"}
    members = [Consumer({**settings, "group.protocol": protocol}) for _ in range(2)]
    try:
        for member in members:
            member.subscribe([topic])

        def shared_fairly() -> bool:
            for member in members:
                member.poll(0.05)
            return [len(member.assignment()) for member in members] == [2, 2]

        wait_until(shared_fairly, 40, "two partitions for each member")
        values = [f"value-{index}" for index in range(400)]
        produce(servers, topic, values, sticky_partitioning_linger_ms=0)
        seen: list[str] = []

        def all_seen() -> bool:
            seen.extend(
                (message.value() or b"").decode() for member in members for message in member.consume(200, 0.05)
            )
            return len(seen) >= len(values)

        wait_until(all_seen, 60, "all values in one member or the other")
        assert sorted(seen) == sorted(values)
        for member in members:
            member.commit(asynchronous=False)
    finally:
        for member in members:
            member.close()
    group = ("--bootstrap-server", servers, "--describe", "--group", f"group-{protocol}")
    result = KafkaTool("kafka-consumer-groups").run(*group)
    lines = [line.split() for line in result.splitlines() if topic in line]
    assert sum(int(line[3]) for line in lines) == len(values)
    assert [line[5] for line in lines] == ["0"] * 4


def test_neither_the_controller_nor_a_broker_logged_an_error(cluster: KafkaCluster) -> None:
    errors = {
        process.name: [
            line for line in process.log.splitlines() if re.search(r" (ERROR|FATAL|CRITICAL) |Traceback", line)
        ]
        for process in cluster.processes
    }
    assert not any(errors.values()), errors
