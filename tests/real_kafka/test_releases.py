"""Unmodified brokers of every supported release, on controllers of their own release and of newer ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.releases import SUPPORTED, release
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..budgets import soak
from ..clients import consume, create_topic, produce
from ..topics import ask
from .running import running

pytestmark = pytest.mark.real_kafka

OLDEST, *BETWEEN, NEWEST = SUPPORTED
SOAKED = [OLDEST, *(pytest.param(version, marks=soak) for version in BETWEEN), NEWEST]


@pytest.mark.parametrize("version", SOAKED)
def test_offers_what_a_real_controller_offers(version: str, tmp_path: Path) -> None:
    with running(KafkaController(tmp_path / "controller", random_uuid(), version=version)) as kafka:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = asyncio.run(ask(kafka.bootstrap, request))
    assert {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys} == release(version).api_versions
    features = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    assert features == release(version).feature_ranges()


def assert_runs_serves_clients_and_leaves(cluster: KafkaCluster, version: str) -> None:
    broker, leaving = cluster.brokers[1], cluster.brokers[2]
    assert f"Kafka version: {version}" in broker.log
    create_topic(cluster.bootstrap_servers, "letters", partitions=3, replicas=2)
    values = [f"letter-{index}" for index in range(100)]
    produce(cluster.bootstrap_servers, "letters", values, enable_idempotence=True)
    assert sorted(consume(cluster.bootstrap_servers, "letters")) == sorted(values)
    assert leaving.stop() == 143
    assert "The controller has asked us to exit controlled shutdown" in leaving.log
    assert sorted(consume(broker.bootstrap, "letters")) == sorted(values)
    assert broker.stop() == 143


@pytest.mark.parametrize("version", SOAKED)
def test_brokers_run_on_a_controller_of_their_release(start_cluster: Callable[..., KafkaCluster], version: str) -> None:
    cluster = start_cluster(versions=(version, version))
    assert_runs_serves_clients_and_leaves(cluster, version)


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        pytest.param(version, newer, marks=() if (version, newer) == (OLDEST, NEWEST) else soak)
        for at, version in enumerate(SUPPORTED)
        for newer in SUPPORTED[at + 1 :]
    ],
)
def test_brokers_run_on_controllers_of_newer_releases(
    start_cluster: Callable[..., KafkaCluster], version: str, newer: str
) -> None:
    cluster = start_cluster(versions=(version, version), release=newer)
    assert_runs_serves_clients_and_leaves(cluster, version)
