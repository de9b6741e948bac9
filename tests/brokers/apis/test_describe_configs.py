"""DescribeConfigs of a broker; beside a real one's in tests/real_kafka."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from mockraft.brokers.config_on_disk import LogDirPaths, draw_config_on_disk
from mockraft.brokers.log_dirs.storage_format import format_log_dirs
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.records.config_record import ConfigRecord

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OF_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5


def described(cluster: Any, kind: int, name: str, *keys: str, synonyms: bool = False) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    (result,) = (cluster.ask(request)).results
    return result


def values_of(result: Any) -> dict[str, tuple[str | None, int]]:
    return {each.name: (each.value, each.config_source) for each in result.configs}


@pytest.fixture
def cluster(cluster: Any) -> Any:
    cluster.register(1)
    cluster.create("t", {"replicas": [1]})
    return cluster


def test_a_topics_value_is_its_own_or_the_brokers_or_the_default(cluster: Any) -> None:
    keys = ("retention.ms", "segment.bytes", "min.insync.replicas", "cleanup.policy")
    cluster.apply(ConfigRecord(resource_type=TOPIC, resource_name="t", name="retention.ms", value="1000"))
    cluster.apply(ConfigRecord(resource_type=BROKER, resource_name="", name="min.insync.replicas", value="2"))
    cluster.broker.config.properties["log.segment.bytes"] = "2000000"
    assert values_of(described(cluster, TOPIC, "t", *keys)) == {
        "retention.ms": ("1000", OF_TOPIC),
        "segment.bytes": ("2000000", STATIC),
        "min.insync.replicas": ("2", DYNAMIC_DEFAULT),
        "cleanup.policy": ("delete", DEFAULT),
    }


def test_synonyms_are_returned_on_request(cluster: Any) -> None:
    cluster.apply(ConfigRecord(resource_type=BROKER, resource_name="1", name="log.retention.ms", value="7"))
    (config,) = (described(cluster, TOPIC, "t", "retention.ms", synonyms=True)).configs
    assert [(each.name, each.value, each.source) for each in config.synonyms] == [
        ("log.retention.ms", "7", DYNAMIC_BROKER),
        ("log.retention.hours", "168", DEFAULT),
    ]
    (config,) = (described(cluster, TOPIC, "t", "retention.ms")).configs
    assert config.synonyms == []


def test_a_brokers_configs_are_those_of_a_real_ones_properties(cluster: Any) -> None:
    found = values_of(described(cluster, BROKER, "1"))
    assert found["node.id"] == ("1", STATIC)
    assert found["log.dirs"] == ("/simulated/broker-1/d0", STATIC)
    assert found["listeners"] == ("PLAINTEXT://127.0.0.1:9093", STATIC)
    assert found["controller.quorum.bootstrap.servers"] == ("127.0.0.1:9", STATIC)
    assert found["num.partitions"] == ("1", DEFAULT)


def test_a_broker_describes_the_fields_that_properties_and_directories_set(cluster: Any, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("d0", "d1", "m")]
    format_log_dirs(paths[:2], 1, "a-cluster", random.Random(1), metadata_log_dir=paths[2])
    (tmp_path / "d0" / "meta.properties").unlink()
    (tmp_path / "d0").rmdir()
    (tmp_path / "d0").write_text("no directory")
    cluster.broker.config = draw_config_on_disk(
        1,
        "a-cluster",
        (("127.0.0.1", 9),),
        random.Random(1),
        LogDirPaths(paths[:2], paths[2]),
        session_timeout_ms=7000,
        properties={"log.dir.failure.timeout.ms": "4000", "broker.heartbeat.interval.ms": "2000"},
    )
    found = values_of(described(cluster, BROKER, "1"))
    assert cluster.broker.config.log_dir_failure_timeout_ms == 4000
    assert {
        key: found[key] for key in found if found[key][1] == STATIC and key.startswith(("broker", "log", "meta"))
    } == {
        "broker.heartbeat.interval.ms": ("2000", STATIC),
        "broker.session.timeout.ms": ("7000", STATIC),
        "log.dir.failure.timeout.ms": ("4000", STATIC),
        "log.dirs": (",".join(paths[:2]), STATIC),
        "metadata.log.dir": (paths[2], STATIC),
    }


def test_the_empty_name_has_configs_of_all_brokers(cluster: Any) -> None:
    assert values_of(described(cluster, BROKER, "")) == {}
    cluster.apply(ConfigRecord(resource_type=BROKER, resource_name="", name="log.cleaner.threads", value="2"))
    assert values_of(described(cluster, BROKER, "")) == {"log.cleaner.threads": ("2", DYNAMIC_DEFAULT)}


def test_unknown_groups_and_client_metrics_have_configs(cluster: Any) -> None:
    cluster.apply(ConfigRecord(resource_type=CLIENT_METRICS, resource_name="m", name="interval.ms", value="100"))
    assert values_of(described(cluster, CLIENT_METRICS, "m"))["interval.ms"] == ("100", 7)
    assert values_of(described(cluster, GROUP, "g"))["consumer.session.timeout.ms"] == ("45000", DEFAULT)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "none", "UNKNOWN_TOPIC_OR_PARTITION", ""),
        (TOPIC, "no/name", "INVALID_TOPIC_EXCEPTION", "Topic name is invalid"),
        (BROKER, "2", "INVALID_REQUEST", "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", "INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
        (BROKER, "9" * 5000, "INVALID_REQUEST", f"Broker id must be an integer, but it is: {'9' * 5000}"),
        (BROKER_LOGGER, "", "INVALID_REQUEST", "Broker id must not be empty"),
        (BROKER_LOGGER, "2", "INVALID_REQUEST", "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", "INVALID_REQUEST", "Client metrics subscription name must not be empty"),
        (GROUP, "", "INVALID_REQUEST", "Group name must not be empty"),
        (99, "x", "INVALID_REQUEST", ""),
    ],
)
def test_what_is_no_resource_is_refused(cluster: Any, kind: int, name: str, code: str, message: str) -> None:
    result = described(cluster, kind, name)
    assert (result.error_code, result.configs) == (getattr(error_codes, code), [])
    assert message in (result.error_message or "")


def test_loggers_are_those_of_the_process(cluster: Any) -> None:
    result = described(cluster, BROKER_LOGGER, "1")
    assert (result.error_code, result.configs[-1].name, result.configs[-1].config_source) == (0, "root", 6)
