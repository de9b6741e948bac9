"""Ids by hostname for real brokers: the printed line starts one, and Kafka's own controller is read as well."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaController

from ..cli.cli import invoke
from ..clients import create_topic
from .running import running

pytestmark = pytest.mark.real_kafka


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


def resolve(bootstrap: str, data_dir: Path, *arguments: str) -> str:
    where = ["--data-dir", str(data_dir), "--bootstrap-controller", bootstrap]
    done = invoke("broker-id", "resolve", *where, *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def kafka_controller(tmp_path: Path) -> Iterator[KafkaController]:
    with running(KafkaController(tmp_path / "controller", "T0ta1ly_Mocked-Cluster")) as controller:
        yield controller


def named_by(line: str, folder: Path, cluster_id: str, bootstrap: str) -> KafkaBroker:
    """A real broker whose server.properties has the line that was printed."""
    key, _, value = line.strip().partition("=")
    assert key == "node.id"
    return KafkaBroker(int(value), folder, cluster_id, bootstrap, log_dir_count=1)


def test_a_real_broker_that_lost_its_disks_is_itself_again(tmp_path: Path, data_dir: Path) -> None:
    with Controller.sync() as controller:
        at = (controller.bootstrap, data_dir, "--host", "machine-1")
        line = resolve(*at, "--generate")
        assert line == "node.id=1001\n"
        where = (tmp_path / "broker", controller.cluster_id, controller.bootstrap)
        with running(named_by(line, *where)) as broker:
            create_topic(broker.bootstrap, "kept")
        for disk in (*broker.log_dirs, broker.metadata_log_dir):
            shutil.rmtree(disk)
        again = resolve(*at)
        assert again == line
        with running(named_by(again, *where)) as broker:
            found = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics("kept", timeout=10)
            assert found.topics["kept"].partitions[0].replicas == [1001]


def test_kafkas_controller_reports_live_brokers(
    kafka_controller: KafkaController, tmp_path: Path, data_dir: Path
) -> None:
    at = (kafka_controller.bootstrap, data_dir)
    line = resolve(*at, "--host", "machine-1", "--id", "2999")
    with running(named_by(line, tmp_path / "b", kafka_controller.cluster_id, kafka_controller.bootstrap)):
        where = ["--data-dir", str(data_dir), "--bootstrap-controller", kafka_controller.bootstrap]
        second = ["--host", "machine-2", "--id", "2999", "--wait-ms", "1"]
        taken = invoke("broker-id", "resolve", *where, *second)
        assert taken.exit_code == 1
        assert "a broker with it runs" in taken.stderr
        assert resolve(*at, "--host", "machine-2", "--generate") == "node.id=3001\n"
