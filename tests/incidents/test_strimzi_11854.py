"""strimzi#11854: a cluster without min.insync.replicas in its spec is rolled for ever."""

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaProcessError, KafkaTool


def test_the_clusters_min_insync_replicas_cannot_be_removed_while_elr_is_on() -> None:
    defaults = ("--entity-type", "brokers", "--entity-default")
    remove = ("--alter", *defaults, "--delete-config", "min.insync.replicas")
    configs = KafkaTool("kafka-configs")
    with Controller.sync(release="4.1", brokers=1) as controller:
        server = ("--bootstrap-server", controller.bootstrap_servers)

        found = configs.run(*server, "--describe", *defaults)
        assert "min.insync.replicas=1" in found, "nobody set it: the controller did when the log began"
        with pytest.raises(KafkaProcessError, match=r"Cluster-level min.insync.replicas cannot be removed while ELR"):
            configs.run(*server, *remove)

    with Controller.sync(release="4.0", brokers=1) as controller:
        server = ("--bootstrap-server", controller.bootstrap_servers)
        assert "min.insync.replicas" not in configs.run(*server, "--describe", *defaults)
        assert "Completed updating default config" in configs.run(*server, *remove)
