"""Unmodified brokers of every supported release, on controllers of their own release and of newer ones.

The rows of a soak are evidence: see `broker_runs`.
"""

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
from . import broker_runs
from .broker_runs import PAIRS, RUNS, finalized_metadata_version, recorded
from .running import running

pytestmark = pytest.mark.real_kafka

OLDEST, *BETWEEN, NEWEST = SUPPORTED
ENDS = {OLDEST, NEWEST}
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


@pytest.mark.parametrize(
    ("version", "controller"), [pytest.param(*pair, marks=() if set(pair) <= ENDS else soak) for pair in PAIRS]
)
def test_brokers_run_on_controllers_of_their_release_and_newer_ones(
    start_cluster: Callable[..., KafkaCluster], version: str, controller: str
) -> None:
    metadata_version = release(version).metadata_versions[release(version).features["metadata.version"].max_level].name
    with recorded(version, controller, metadata_version):
        cluster = start_cluster(versions=(version, version), release=controller)
        assert_runs_serves_clients_and_leaves(cluster, version)
        assert finalized_metadata_version(cluster.controller.bootstrap) == metadata_version


def test_evidence_has_every_pair() -> None:
    assert [(row["broker"], row["controller_release"], row["result"]) for row in broker_runs.read()] == [
        (version, release(controller).name, RUNS) for version, controller in PAIRS
    ]
