"""strimzi#11685: an operator restarts brokers for ever over a min.insync.replicas that ELR protects."""

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaProcessError, KafkaTool


def test_min_insync_replicas_of_a_broker_cannot_be_set_while_elr_is_on() -> None:
    alter = ("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", "min.insync.replicas=2")
    with Controller.sync(release="4.1", brokers=1, session_timeout_ms=1000) as controller:
        server = ("--bootstrap-server", controller.bootstrap_servers)

        for _ in range(2):
            with pytest.raises(KafkaProcessError, match=r"Broker-level min.insync.replicas cannot be altered"):
                KafkaTool("kafka-configs").run(*server, *alter)
            # The operator's answer to a refused change; a restart does not make the next attempt succeed.
            controller.brokers[1].shut_down()
            controller.start_broker(1)
            server = ("--bootstrap-server", controller.bootstrap_servers)

        KafkaTool("kafka-features").run(*server, "downgrade", "--feature", "eligible.leader.replicas.version=0")
        assert "Completed updating config for broker 1" in KafkaTool("kafka-configs").run(*server, *alter)
