"""kafka-configs and kafka-features change every kind of setting of a cluster with a real broker on mockraft."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaProcessError, KafkaTool, wait_until

pytestmark = pytest.mark.real_kafka

ROW = r"Feature: (\S+)\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+\s+FinalizedVersionLevel: (\S+)"


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster(versions=(KAFKA_VERSION,), metadata_version="4.2-IV1")


@pytest.mark.parametrize(
    ("entity", "settings"),
    [
        ("--entity-type users --entity-name ann", {"producer_byte_rate": "1024", "request_percentage": "12.5"}),
        ("--entity-type clients --entity-name app", {"consumer_byte_rate": "2048"}),
        ("--entity-type users --entity-name ann --entity-type clients --entity-default", {"producer_byte_rate": "7"}),
        ("--entity-type ips --entity-name 10.0.0.1", {"connection_creation_rate": "5"}),
    ],
)
def test_kafka_configs_sets_describes_and_removes_quotas(
    by_broker: tuple[str, str], entity: str, settings: dict[str, str]
) -> None:
    configs = KafkaTool("kafka-configs")
    where = (*by_broker, *entity.split())
    added = ",".join(f"{key}={value}" for key, value in settings.items())
    configs.run(*where, "--alter", "--add-config", added)

    def described() -> dict[str, float]:
        result = re.findall(r"(\w+)=([\d.]+)", configs.run(*where, "--describe"))
        return {key: float(value) for key, value in result}

    expected = {key: float(value) for key, value in settings.items()}
    wait_until(lambda: described() == expected, 60, f"the quotas of {entity}")
    configs.run(*where, "--alter", "--delete-config", ",".join(settings))
    assert wait_until(lambda: described() == {}, 60, f"no quotas of {entity}")


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        ("groups", "a-group", "consumer.session.timeout.ms", "50000"),
        ("client-metrics", "a-subscription", "interval.ms", "1000"),
    ],
)
def test_kafka_configs_sets_groups_and_client_metrics(
    by_broker: tuple[str, str], kind: str, name: str, key: str, value: str
) -> None:
    configs = KafkaTool("kafka-configs")
    where = (*by_broker, "--entity-type", kind, "--entity-name", name)
    configs.run(*where, "--alter", "--add-config", f"{key}={value}")
    assert wait_until(lambda: f"{key}={value}" in configs.run(*where, "--describe"), 60, f"{key} of {name}")


def test_kafka_configs_describes_its_changes_at_the_controller(by_controller: tuple[str, str]) -> None:
    configs = KafkaTool("kafka-configs")
    node = (*by_controller, "--entity-type", "brokers", "--entity-name", "3000")
    configs.run(*node, "--alter", "--add-config", "num.io.threads=6")
    result = configs.run(*node, "--describe")
    assert "num.io.threads=6 sensitive=false" in result
    assert "DYNAMIC_BROKER_CONFIG:num.io.threads=6, DEFAULT_CONFIG:num.io.threads=8" in result
    every = configs.run(*node, "--describe", "--all")
    assert "process.roles=controller sensitive=false" in every
    defaults = (*by_controller, "--entity-type", "brokers", "--entity-default")
    configs.run(*defaults, "--alter", "--add-config", "log.retention.ms=7000")
    assert "log.retention.ms=7000 sensitive=false" in configs.run(*defaults, "--describe")


def test_kafka_configs_reports_refusals_of_the_controller(by_broker: tuple[str, str]) -> None:
    where = (*by_broker, "--entity-type", "users", "--entity-name", "ann")
    with pytest.raises(KafkaProcessError, match="Quota producer_byte_rate must be greater than 0"):
        KafkaTool("kafka-configs").run(*where, "--alter", "--add-config", "producer_byte_rate=-1")


def test_kafka_features_upgrades_and_downgrades(
    cluster: KafkaCluster, by_broker: tuple[str, str], by_controller: tuple[str, str]
) -> None:
    features = KafkaTool("kafka-features")

    def finalized() -> dict[str, str]:
        return dict(re.findall(ROW, features.run(*by_broker, "describe")))

    assert finalized()["metadata.version"] == "4.2-IV1"
    features.run(*by_controller, "downgrade", "--feature", "transaction.version=1")
    wait_until(lambda: finalized()["transaction.version"] == "1", 60, "transaction.version 1")
    features.run(*by_broker, "upgrade", "--feature", "transaction.version=2")
    dry = features.run(*by_broker, "upgrade", "--metadata", "4.3-IV0", "--dry-run")
    assert "metadata.version can be upgraded to 30" in dry
    upgraded = features.run(*by_broker, "upgrade", "--metadata", "4.3-IV0")
    assert "metadata.version was upgraded to 30" in upgraded
    wait_until(lambda: finalized()["metadata.version"] == "4.3-IV0", 60, "metadata.version 4.3-IV0")
    assert finalized()["transaction.version"] == "2"
    with pytest.raises(KafkaProcessError, match="Refusing to perform the requested downgrade"):
        features.run(*by_controller, "downgrade", "--metadata", "4.2-IV1")
    assert cluster.brokers[1].running
