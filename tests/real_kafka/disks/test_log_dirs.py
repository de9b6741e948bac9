"""A real broker on directories that mockraft formatted, with mockraft as its controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.brokers.log_dirs.meta_properties import META_PROPERTIES, MetaProperties
from mockraft.cli import application
from mockraft.kafka.processes import KafkaBroker, KafkaTool
from typer.testing import CliRunner

pytestmark = pytest.mark.real_kafka


def directory_id(path: Path) -> bytes:
    found = MetaProperties.read((path / META_PROPERTIES).read_bytes()).directory_id
    assert found is not None
    return found


def test_real_broker_runs_on_directories_formatted_by_mockraft(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        broker = KafkaBroker(1, tmp_path, controller.cluster_id, controller.bootstrap)
        config = str(broker.write_properties())
        done = CliRunner().invoke(application(), ["format", "-t", controller.cluster_id, "-c", config])
        assert done.exit_code == 0, done.output
        ids = {directory_id(path) for path in broker.log_dirs}
        try:
            broker.start()
            broker.wait_until_running()
            registered = controller.running.controller.image.cluster.brokers[1]
            assert set(registered.log_dirs) == ids
            assert not registered.fenced
        finally:
            broker.kill()
        assert {directory_id(path) for path in broker.log_dirs} == ids
        assert directory_id(broker.metadata_log_dir) not in ids


def test_older_kafka_reads_directories_formatted_by_mockraft(tmp_path: Path) -> None:
    broker = KafkaBroker(1, tmp_path, "T0ta1ly_Mocked-Cluster", "127.0.0.1:9093", version="3.9.1")
    broker.properties["controller.quorum.voters"] = "3000@127.0.0.1:9093"
    config = str(broker.write_properties())
    CliRunner().invoke(application(), ["format", "-t", broker.cluster_id, "-c", config])
    told = KafkaTool("kafka-storage", "3.9.1").run("info", "-c", config)
    assert "node.id=1, version=1" in told
    assert "Found problem" not in told
