"""Example for docs/real-brokers.md: real brokers of two releases."""

from pathlib import Path

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaTool

pytestmark = pytest.mark.real_kafka


def test_leader_moves_when_its_broker_is_killed(tmp_path: Path) -> None:
    with KafkaCluster(
        tmp_path, versions=("4.3.1", "3.9.1"), metadata_version="3.9", session_timeout_ms=3000
    ) as cluster:
        topics = KafkaTool("kafka-topics")
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        topics.run(*server, "--create", "--topic", "orders", "--replica-assignment", "1:2")

        cluster.brokers[1].kill()
        cluster.brokers[2].wait_for_log(r"Leader orders-0 .* starts at leader epoch 1", timeout_s=20)
        assert "Leader: 2" in topics.run(*server, "--describe", "--topic", "orders")
