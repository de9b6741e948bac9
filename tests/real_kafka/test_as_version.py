"""Kafka's own controllers of several releases, and a broker on a controller that emulates another release."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaController, random_uuid
from mockraft.server.controller.settings.releases import api_ranges, feature_ranges, release_of
from mockraft.wire import client
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka


async def said_at(host: str, port: int) -> Any:
    connection = await client.connect(host, port, client_id="test")
    answer = await connection.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    await connection.close()
    return answer


@pytest.mark.parametrize("version", ["3.9.1", "4.1.1", "4.3.1"])
def test_release_table_equals_its_controllers(version: str, tmp_path: Path) -> None:
    kafka = KafkaController(tmp_path / "controller", random_uuid(), version=version)
    kafka.format()
    kafka.start()
    try:
        kafka.wait_until_running()
        answer = asyncio.run(said_at(kafka.host, kafka.port))
    finally:
        kafka.kill()
    release = release_of(version)
    assert {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys} == api_ranges(release)
    features = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    assert features == feature_ranges(release)


def test_newer_broker_runs_on_a_controller_profiled_as_older(
    start_brokers: Callable[..., dict[int, KafkaBroker]],
) -> None:
    with Controller.sync(as_version="3.9") as controller:
        broker = start_brokers(controller.bootstrap, controller.cluster_id, 1)[1]
        create_topic(broker.bootstrap, "letters")
        produce(broker.bootstrap, "letters", ["a", "b"])
        assert sorted(consume(broker.bootstrap, "letters")) == ["a", "b"]
        spoken = {exchange.api_key: exchange.api_version for exchange in controller.journal.exchanges()}
        # A 4.3.1 broker speaks Fetch 18 and BrokerHeartbeat 2 to its own release's controllers.
        assert (spoken[1], spoken[63]) == (17, 1)
        assert broker.stop() == 143
