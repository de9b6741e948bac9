"""Clients of three real brokers whose only controller is mockraft."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
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


def test_an_idempotent_producer_writes_every_message_once_and_in_order(cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers
    create_topic(servers, "idempotent", replicas=3)
    values = [f"value-{index}" for index in range(5_000)]
    assert produce(servers, "idempotent", values, enable_idempotence=True) == values
    assert consume(servers, "idempotent") == values


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


def test_offsets_are_committed_in_the_transaction_of_the_output(cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers
    create_topic(servers, "orders", replicas=3)
    create_topic(servers, "invoices", replicas=3)
    produce(servers, "orders", [f"order-{index}" for index in range(20)])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "billing"})
    producer.init_transactions(30)
    try:
        consumer.subscribe(["orders"])
        orders: list[bytes] = []
        producer.begin_transaction()

        def all_read() -> bool:
            orders.extend(message.value() or b"" for message in consumer.consume(20, 0.1))
            return len(orders) == 20

        wait_until(all_read, 60, "20 orders")
        for order in orders:
            producer.produce("invoices", order.replace(b"order", b"invoice"))
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, 20)], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        assert consumer.committed([TopicPartition("orders", 0)], 30)[0].offset == 20
    finally:
        consumer.close()
    assert consume(servers, "invoices", isolation_level="read_committed") == [f"invoice-{index}" for index in range(20)]


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


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_kafka_python_produces_and_consumes(cluster: KafkaCluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer  # its import is what warns

    servers = cluster.bootstrap_servers.split(",")
    create_topic(cluster.bootstrap_servers, "pure-python", partitions=2, replicas=2)
    values = [f"value-{index}".encode() for index in range(200)]
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for value in values:
        producer.send("pure-python", value)
    producer.flush(30)
    producer.close()
    options = {"bootstrap_servers": servers, "group_id": "py", "auto_offset_reset": "earliest"}
    # The first broker that it asks may not know the topic yet; by default it asks again after five minutes.
    consumer = KafkaConsumer("pure-python", metadata_max_age_ms=1_000, **options)
    seen: list[bytes] = []

    def all_seen() -> bool:
        seen.extend(record.value for records in consumer.poll(200).values() for record in records)
        return len(seen) >= len(values)

    try:
        wait_until(all_seen, 60, "all values")
    finally:
        consumer.close()
    assert sorted(seen) == sorted(values)


def test_console_consumer_prints_the_console_producers_records(cluster: KafkaCluster) -> None:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    create_topic(cluster.bootstrap_servers, "console", replicas=3)
    lines = [f"line {index}" for index in range(50)]
    KafkaTool("kafka-console-producer").run(*server, "--topic", "console", stdin="\n".join(lines) + "\n")
    printed = KafkaTool("kafka-console-consumer").run(
        *server, "--topic", "console", "--from-beginning", "--max-messages", "50", "--timeout-ms", "20000"
    )
    assert printed.splitlines() == lines


def test_neither_the_controller_nor_a_broker_logged_an_error(cluster: KafkaCluster) -> None:
    errors = {
        process.name: [
            line for line in process.log.splitlines() if re.search(r" (ERROR|FATAL|CRITICAL) |Traceback", line)
        ]
        for process in cluster.processes
    }
    assert not any(errors.values()), errors
