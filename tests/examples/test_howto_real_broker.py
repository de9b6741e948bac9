"""Examples for docs/controller-in-a-test.md and docs/pytest.md: an unmodified Kafka broker."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller, SyncController
from mockraft.kafka.processes import KafkaBroker

pytestmark = pytest.mark.real_kafka


def test_real_broker_creates_a_topic(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        broker = KafkaBroker(1, tmp_path / "broker-1", controller.cluster_id, controller.bootstrap)
        try:
            broker.format()
            broker.start()
            broker.wait_until_running()

            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.create_topics([NewTopic("orders", 3)])["orders"].result(30)

            topics = controller.call(lambda: controller.running.controller.image.topics.by_name)
            assert len(topics["orders"].partitions) == 3
        finally:
            broker.kill()


def test_real_broker_retries_after_refused_registration(
    mockraft: SyncController, mockraft_real_broker: Callable[..., KafkaBroker]
) -> None:
    refused = mockraft.stub("BrokerRegistration", broker_id=1).once().inject_error("DUPLICATE_BROKER_REGISTRATION")

    broker = mockraft_real_broker(1)

    assert refused.called
    assert broker.running
    assert [each.broker_id for each in mockraft.state.brokers() if not each.fenced] == [1]
