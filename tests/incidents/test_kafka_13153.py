"""KAFKA-13153: a broker has the node id of a controller."""

from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker


def test_broker_with_the_node_id_of_the_controller_exits(tmp_path: Path) -> None:
    with Controller.sync(node_id=1) as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path / "same-id", *cluster) as broker:
            broker.wait_for_log(r"Encountered fatal fault: Unexpected error in raft IO thread")
            broker.wait_for_log(r"with leader OptionalInt\[1\] .* inconsistent with current leader OptionalInt.empty")
            assert broker.wait() == 1
        controller.verify(0, "BrokerRegistration")

        with KafkaBroker(2, tmp_path / "own-id", *cluster) as broker:
            broker.wait_until_running()
            assert not controller.state.broker(2).fenced
