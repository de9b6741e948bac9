"""strimzi#10799: a broker is taken for the active controller."""

from pathlib import Path

from confluent_kafka.admin import AdminClient
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaTool


def test_brokers_name_a_broker_as_the_controller(tmp_path: Path) -> None:
    with (
        Controller.sync() as controller,
        KafkaBroker(17, tmp_path, controller.cluster_id, controller.bootstrap) as broker,
    ):
        broker.wait_until_running()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        described = admin.describe_cluster().result(10)
        assert described.controller is not None
        assert described.controller.id == 17

        server = ("--bootstrap-server", broker.bootstrap)
        status = KafkaTool("kafka-metadata-quorum").run(*server, "describe", "--status")
        assert f"LeaderId:               {controller.node_id}" in status
