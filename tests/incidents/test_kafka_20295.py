"""KAFKA-20295: a controller that is gone blocks the upgrade of metadata.version."""

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaProcessError, KafkaTool
from mockraft.wire.json_form import Json
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord


def test_registration_of_a_removed_controller_blocks_the_upgrade() -> None:
    levels: Json = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 29}]
    ghost: Json = {"controllerId": 90, "incarnationId": "AAAAAAAAAAAAAAAAAAAAAQ", "endPoints": [], "features": levels}
    features, upgrade = KafkaTool("kafka-features"), ("upgrade", "--feature", "metadata.version=33")
    with Controller.sync(metadata_version="4.2", brokers=1) as controller:
        server = ("--bootstrap-server", controller.bootstrap_servers)
        controller.state.append([{"type": "RegisterControllerRecord", "record": ghost}])

        with pytest.raises(KafkaProcessError, match="Controller 90 only supports versions 7-29"):
            features.run(*server, *upgrade)

        unregistered = KafkaTool("kafka-cluster").run("unregister-controller", *server, "--id", "90")
        assert "does not support the controller unregistration API" in unregistered, "which needs the level above"

        controller.state.append([UnregisterControllerRecord(controller_id=90)])
        assert "metadata.version was upgraded to 33" in features.run(*server, *upgrade)
