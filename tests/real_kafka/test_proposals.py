"""Unmodified brokers work with a proposal that only adds to the protocol."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker

pytestmark = pytest.mark.real_kafka

KIP_9999 = Path(__file__).parents[1] / "examples" / "kip-9999"


def test_real_broker_runs_on_a_controller_that_serves_a_proposal(tmp_path: Path) -> None:
    with Controller.sync(schemas=KIP_9999) as controller:
        broker = KafkaBroker(1, tmp_path / "broker-1", controller.cluster_id, controller.bootstrap)
        try:
            broker.format()
            broker.start()
            broker.wait_until_running()
            assert not controller.call(lambda: controller.running.controller.image.cluster.brokers[1].fenced)
        finally:
            broker.kill()
