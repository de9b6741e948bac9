"""Logs at levels of metadata.version from before KRaft's release, as Kafka 3.7 to 3.9 format them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mockraft.cli.exit_codes import ExitCode
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaTool, random_uuid

from ..budgets import soak
from ..cli.cli import completed, started
from ..clients import create_topic, topics_of
from .running import running

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(300)]


@pytest.mark.parametrize("version", [pytest.param("3.7.2", marks=soak), "3.9.2"])
def test_a_log_at_3_3_iv0_goes_on_with_mockraft_and_then_with_kafka(tmp_path: Path, version: str) -> None:
    kafka = KafkaController(tmp_path / "kafka", random_uuid(), version=version, release_version="3.3-IV0")
    broker = KafkaBroker(1, tmp_path / "broker", kafka.cluster_id, kafka.bootstrap, version=version)
    data_dir = kafka.properties["log.dirs"]
    with running(kafka), running(broker):
        create_topic(broker.bootstrap, "before")
        broker.stop()
        kafka.stop()

    options = ("--port", kafka.port, "--data-dir", data_dir, "--release", version.rpartition(".")[0])
    with (
        started("serve", *options, ready=r"mockraft ready .* metadata_version=4\n") as (mockraft, _),
        running(broker, formatted=True),
    ):
        create_topic(broker.bootstrap, "after")
        assert broker.stop() == 143
        assert "The controller has asked us to exit controlled shutdown" in broker.log
        mockraft.terminate()
        assert mockraft.wait(60) == 0

    with running(kafka, formatted=True), running(broker, formatted=True):
        assert topics_of(broker.bootstrap) == {"before", "after"}
        broker.stop()
        kafka.stop()

    segments = ",".join(map(str, sorted(Path(data_dir, "__cluster_metadata-0").glob("*.log"))))
    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", segments)
    types = set(re.findall(r'payload: \{"type":"(\w+)"', printed))
    assert {"FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"} <= types
    assert types & {"NO_OP_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"} == set()

    refused = completed("serve", "--port", 0, "--data-dir", data_dir)
    assert refused.returncode == ExitCode.UNUSABLE_DIRECTORY
    about = "metadata.version 4 is not supported by controllers of Kafka 4.4; serve with --release 3.9"
    assert about in refused.stderr
