"""KAFKA-20441: new replicas are put on a broker whose directories are all cordoned."""

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaProcessError, KafkaTool

DISKS = ("/data/d0", "/data/d1")


def test_manual_assignments_pass_the_cordon_until_4_4() -> None:
    create = ("--create", "--topic", "pinned", "--replica-assignment", "2")
    with Controller.sync(release="4.3", brokers=1) as controller:
        broker = controller.start_broker(2, log_dir_paths=DISKS, cordoned_log_dirs="*")
        server = ("--bootstrap-server", controller.bootstrap_servers)
        KafkaTool("kafka-topics").run(*server, *create)
        controller.wait_until(lambda: any(log_dir.replicas for log_dir in broker.log_dirs.values()))
        assert all(log_dir.is_cordoned for log_dir in broker.log_dirs.values()), "the disk that was to be emptied"

    with Controller.sync(release="4.4", brokers=1) as controller:
        controller.start_broker(2, log_dir_paths=DISKS, cordoned_log_dirs="*")
        server = ("--bootstrap-server", controller.bootstrap_servers)
        with pytest.raises(KafkaProcessError, match="includes broker 2, but all its log directories are cordoned"):
            KafkaTool("kafka-topics").run(*server, *create)
