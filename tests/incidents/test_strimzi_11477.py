"""strimzi#11477: brokers that are gone, but registered, let a topic have more replicas than there are brokers."""

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaProcessError, KafkaTool


def test_stale_registrations_count_as_places_for_replicas() -> None:
    gone = (4, 5, 6)
    create = ("--create", "--partitions", "1", "--replication-factor", "6", "--topic")
    with Controller.sync(brokers=6, session_timeout_ms=1000) as controller:
        for broker_id in gone:
            controller.brokers[broker_id].kill()
        controller.wait_until(lambda: all(controller.state.broker(broker_id).fenced for broker_id in gone))
        server = ("--bootstrap-server", controller.bootstrap_servers)

        KafkaTool("kafka-topics").run(*server, *create, "orders")
        described = KafkaTool("kafka-topics").run(*server, "--describe", "--under-replicated-partitions")
        assert "Topic: orders" in described, "under-replicated from its first moment"
        (partition,) = controller.state.topic("orders").partitions
        assert sorted(partition.replicas) == [1, 2, 3, 4, 5, 6]
        assert sorted(partition.isr) == [1, 2, 3]

        for broker_id in gone:
            KafkaTool("kafka-cluster").run("unregister", *server, "--id", str(broker_id))
        with pytest.raises(KafkaProcessError, match=r"only 3 broker\(s\) are registered"):
            KafkaTool("kafka-topics").run(*server, *create, "refused")
