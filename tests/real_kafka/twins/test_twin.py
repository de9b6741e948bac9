"""Twins of Kafka's own controllers, and redacted copies in Kafka's own tools."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaController, KafkaTool
from mockraft.releases import SUPPORTED
from mockraft.twin import read_history
from mockraft.twin.redaction import Redactor, redacted
from mockraft.twin.state import write_directory

from ...budgets import SOAKS
from ...clients import create_topic
from ...twin.directories import files_of

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("version", SUPPORTED if SOAKS else (SUPPORTED[0], SUPPORTED[-1]))
def test_a_twin_of_a_real_controller(version: str, tmp_path: Path) -> None:
    often = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
    with KafkaCluster(
        tmp_path, controller="kafka", versions=(version,), controller_properties=often, log_dir_count=1
    ) as cluster:
        create_topic(cluster.bootstrap_servers, "wonderland", partitions=3, replicas=1, retention_ms="60000")
        assert isinstance(cluster.controller, KafkaController)
        running = Path(cluster.controller.properties["log.dirs"])
        copy = shutil.copytree(running, tmp_path / "copy")
    before = files_of(copy)
    history = read_history(copy)
    assert history.notes == []
    assert history.cluster_id == cluster.cluster_id
    with Controller.sync(twin_of=copy) as twin:
        assert twin.running.config.release == version.rpartition(".")[0]
        assert [(broker.broker_id, broker.fenced) for broker in twin.state.brokers()] == [(1, False)]
        topic = twin.state.topic("wonderland")
        assert [(each.leader, list(each.isr)) for each in topic.partitions] == [(1, [1])] * 3
    assert files_of(copy) == before

    hidden = write_directory(redacted(history, Redactor(b"a key that is long enough")), tmp_path / "hidden")
    assert b"wonderland" not in b"".join(path.read_bytes() for path in hidden.rglob("*") if path.is_file())
    files = [str(path) for path in hidden.glob("__cluster_metadata-0/0*")]
    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", ",".join(files))
    assert not re.search(r"isvalid: false|Could not|[Ee]rror|[Ee]xception|Skipping|not match", printed), printed
    assert "wonderland" not in printed
    assert printed.count('"type":"PARTITION_RECORD"') >= 3
