"""KAFKA-16952: an upgrade of metadata.version gives running brokers a new broker epoch."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.records.feature_level_record import FeatureLevelRecord


@pytest.mark.parametrize(("version", "keeps_its_epoch"), [("3.8.1", False), ("3.9.2", True)])
def test_broker_registers_again_when_directories_are_assigned(
    tmp_path: Path, version: str, keeps_its_epoch: bool
) -> None:
    with Controller.sync(release=version, metadata_version="3.6") as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        voters = {"controller.quorum.voters": f"{controller.node_id}@{controller.bootstrap}"}
        with KafkaBroker(1, tmp_path, *cluster, version=version, log_dir_count=1, properties=voters) as broker:
            broker.wait_until_running()
            controller.state.append([FeatureLevelRecord(name="metadata.version", feature_level=20)])
            controller.wait_for("BrokerRegistration", 2)

        first, second = controller.requests(BrokerRegistrationRequest)
        assert first.request.incarnation_id == second.request.incarnation_id, "the same process"
        assert (first.response.broker_epoch == second.response.broker_epoch) is keeps_its_epoch
