"""KAFKA-13528: a broker of another cluster."""

from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, random_uuid


def test_broker_with_the_id_of_another_cluster_never_starts_and_never_ends(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        with KafkaBroker(1, tmp_path / "stranger", random_uuid(), controller.bootstrap) as broker:
            broker.wait_for_log("Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response")
            controller.wait_for("Fetch", 20)
            assert broker.running
            controller.verify(0, "BrokerRegistration")

        with KafkaBroker(1, tmp_path / "own", controller.cluster_id, controller.bootstrap) as broker:
            broker.wait_until_running()
