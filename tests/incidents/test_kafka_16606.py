"""KAFKA-16606: several log directories at a level without directory assignment."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker


@pytest.mark.parametrize(("metadata_version", "leader"), [("3.6", 1), ("3.7", -1)])
def test_partition_in_a_failed_directory_keeps_its_leader_below_3_7_iv2(
    tmp_path: Path, metadata_version: str, leader: int
) -> None:
    with Controller.sync(metadata_version=metadata_version) as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        settings = {
            "controller.quorum.voters": f"{controller.node_id}@{controller.bootstrap}",
            "broker.heartbeat.interval.ms": "500",
            "replica.high.watermark.checkpoint.interval.ms": "100",
        }
        with KafkaBroker(1, tmp_path, *cluster, properties=settings) as broker:
            broker.wait_until_running()
            supported = "Multiple log directories (aka JBOD) are not supported" not in broker.log
            assert supported is (leader == -1)

            controller.state.create_topic("orders", partitions=1)
            controller.wait_until(lambda: list(tmp_path.glob("d?/orders-0")))
            if supported:
                controller.wait_for("AssignReplicasToDirs", 1)
            (replica,) = tmp_path.glob("d?/orders-0")
            replica.parent.rename(tmp_path / "gone")
            broker.wait_for_log(f"Stopping serving replicas in dir {replica.parent}")
            controller.wait_for("BrokerHeartbeat", 2, since=controller.mark())

            (partition,) = controller.state.topic("orders").partitions
            assert partition.leader == leader
