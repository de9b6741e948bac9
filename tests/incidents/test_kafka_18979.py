"""KAFKA-18979: brokers report a kraft.version that the quorum does not have."""

import re
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaTool
from mockraft.wire.records.feature_level_record import FeatureLevelRecord


def finalized(feature: str, *bootstrap: str) -> int:
    """Return the level that kafka-features shows."""
    described = KafkaTool("kafka-features").run(*bootstrap, "describe")
    found = re.search(rf"^Feature: {feature}\s.*FinalizedVersionLevel: (\d+)\s", described, re.MULTILINE)
    assert found is not None, described
    return int(found[1])


@pytest.mark.parametrize(("version", "reported"), [("3.9.2", 1), ("4.0.2", 0)])
def test_feature_level_record_is_taken_for_the_version_of_the_quorum(
    tmp_path: Path, version: str, reported: int
) -> None:
    with Controller.sync(release="3.9", features={"kraft.version": 0}) as controller:
        controller.state.append([FeatureLevelRecord(name="kraft.version", feature_level=1)])
        assert finalized("kraft.version", "--bootstrap-controller", controller.bootstrap) == 0

        cluster = (controller.cluster_id, controller.bootstrap)
        voters = {"controller.quorum.voters": f"{controller.node_id}@{controller.bootstrap}"}
        with KafkaBroker(1, tmp_path, *cluster, version=version, properties=voters) as broker:
            broker.wait_until_running()
            assert finalized("kraft.version", "--bootstrap-server", broker.bootstrap) == reported
