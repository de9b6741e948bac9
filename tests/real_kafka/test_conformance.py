"""Every case of the conformance suite passes on Kafka's own controller, or it is a wrong case."""

import asyncio
from pathlib import Path

import pytest
from mockraft import conformance
from mockraft.kafka_processes import KafkaController, random_uuid

pytestmark = pytest.mark.real_kafka


def test_kafkas_own_controller_conforms(tmp_path: Path) -> None:
    controller = KafkaController(tmp_path, random_uuid())
    controller.format()
    controller.start()
    try:
        controller.wait_until_running()
        found = asyncio.run(conformance.run(controller.bootstrap))
    finally:
        controller.kill()
    assert [(each.name, each.reason) for each in found.failures] == []
