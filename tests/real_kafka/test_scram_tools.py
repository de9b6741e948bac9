"""SCRAM users made with Kafka's own tool on a real broker: they are listed, log in, and do not when they are gone."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from mockraft.kafka_cluster import KafkaCluster
from mockraft.kafka_processes import KafkaProcessError, KafkaTool, wait_until

pytestmark = pytest.mark.real_kafka

_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, controller_kind: object) -> Iterator[KafkaCluster]:
    """One broker, which clients reach without and, as its listener CLIENT, with SCRAM."""
    directory = tmp_path_factory.mktemp("scram")
    cluster = KafkaCluster(directory, controller=controller_kind, versions=("4.3.1",))  # type: ignore[arg-type]
    (broker,) = cluster.brokers.values()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    broker.properties |= {
        "listeners": f"PLAINTEXT://{broker.bootstrap},CLIENT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.client.scram-sha-256.sasl.jaas.config": _LOGIN_MODULE,
        "listener.name.client.scram-sha-512.sasl.jaas.config": _LOGIN_MODULE,
    }
    with cluster:
        yield cluster


def configs(cluster: KafkaCluster, *arguments: str) -> str:
    users = ("--bootstrap-server", cluster.bootstrap_servers, "--entity-type", "users")
    return KafkaTool("kafka-configs").run(*users, *arguments)


def may_log_in(cluster: KafkaCluster, user: str, password: str, mechanism: str) -> bool:
    (broker,) = cluster.brokers.values()
    admin = AdminClient(
        {
            "bootstrap.servers": re.findall(r"CLIENT://(\S+)", broker.properties["listeners"])[0],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }
    )
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def test_a_user_is_made_logs_in_and_is_deleted(cluster: KafkaCluster) -> None:
    alice = ("--entity-name", "alice")
    for added in ("SCRAM-SHA-256=[iterations=8192,password=wonderland]", "SCRAM-SHA-512=[password=looking-glass]"):
        told = configs(cluster, "--alter", *alice, "--add-config", added)
        assert told.strip() == "Completed updating config for user alice."
    wait_until(lambda: may_log_in(cluster, "alice", "wonderland", "SCRAM-SHA-256"), 20, "alice logged in")
    assert may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-512")
    assert not may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-256")
    described = configs(cluster, "--describe", *alice)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    configs(cluster, "--alter", *alice, "--delete-config", "SCRAM-SHA-256")
    wait_until(lambda: "SCRAM-SHA-256" not in configs(cluster, "--describe"), 20, "one credential gone")
    assert not may_log_in(cluster, "alice", "wonderland", "SCRAM-SHA-256")
    assert may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-512")


def test_the_controllers_refusal_is_told(cluster: KafkaCluster) -> None:
    both = "SCRAM-SHA-256=[password=one],SCRAM-SHA-512=[password=two]"
    with pytest.raises(KafkaProcessError, match="cannot be altered twice in the same request"):
        configs(cluster, "--alter", "--entity-name", "bob", "--add-config", both)
    with pytest.raises(KafkaProcessError, match="credential that does not exist"):
        configs(cluster, "--alter", "--entity-name", "nobody", "--delete-config", "SCRAM-SHA-256")
