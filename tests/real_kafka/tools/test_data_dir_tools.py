"""Kafka's tools that read a controller's data dir: kafka-metadata-shell, kafka-dump-log, kafka-storage."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, KafkaProcessError, KafkaTool, wait_until

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    """A cluster in use: a topic, a quota, a SCRAM user; snapshots are written often."""
    often = {"metadata.log.max.record.bytes.between.snapshots": "400"}
    # The newest kafka-metadata-shell on Maven is that of 4.3.1.
    cluster = start_cluster(versions=(KAFKA_VERSION,) * 2, controller_properties=often, metadata_version="4.3")
    create_topic(cluster.bootstrap_servers, "kept", partitions=2, replicas=2, retention_ms="60000")
    configs = ("--bootstrap-server", cluster.bootstrap_servers, "--alter", "--entity-type", "users")
    quota = ("--entity-name", "alice", "--add-config", "producer_byte_rate=1024")
    KafkaTool("kafka-configs").run(*configs, *quota)
    KafkaTool("kafka-configs").run(*configs, "--entity-name", "bob", "--add-config", "SCRAM-SHA-256=[password=secret]")
    return cluster


@pytest.fixture(scope="module")
def data_dir(cluster: KafkaCluster) -> Path:
    """Directory of the running controller's log, with snapshots that contain all of the above."""
    controller = cluster.controller
    kafkas = Path(controller.properties["log.dirs"]) if isinstance(controller, KafkaController) else None
    path = kafkas or controller.data_dir  # type: ignore[union-attr]
    assert path is not None
    end_offset = int(quorum_status(cluster)["HighWatermark"])

    def snapshot_after_all() -> bool:
        found = [int(each.name[:20]) for each in path.glob("__cluster_metadata-0/*.checkpoint")]
        return bool(found) and max(found) >= end_offset

    wait_until(snapshot_after_all, 60, f"a snapshot up to {end_offset}")
    return path


@pytest.fixture(scope="module")
def partition_dir(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the log and its snapshots, as a running controller leaves them."""
    copy = tmp_path_factory.mktemp("copy") / "__cluster_metadata-0"
    shutil.copytree(data_dir / "__cluster_metadata-0", copy)
    return copy


def quorum_status(cluster: KafkaCluster) -> dict[str, str]:
    status = KafkaTool("kafka-metadata-quorum").run(
        "--bootstrap-controller", cluster.controller.bootstrap, "describe", "--status"
    )
    return dict(re.findall(r"^(\w+): +(.*)$", status, re.MULTILINE))


@pytest.fixture(params=["log", "snapshot"])
def file(request: pytest.FixtureRequest, partition_dir: Path, tmp_path: Path) -> Path:
    """The log from its beginning, all segments of it in one file, and the newest snapshot."""
    if request.param == "snapshot":
        return max(partition_dir.glob("*.checkpoint"))
    whole = tmp_path / f"{0:020d}.log"
    whole.write_bytes(b"".join(segment.read_bytes() for segment in sorted(partition_dir.glob("*.log"))))
    return whole


def shell_prints(file: Path, *parts: str, command: Sequence[str] = (), stdin: str = "") -> str:
    """Output of kafka-metadata-shell once it has all these parts: a command may run before everything is read."""
    shell = KafkaTool("kafka-metadata-shell", "4.3.1")

    def printed() -> str:
        text = shell.run("--snapshot", str(file), *command, stdin=stdin)
        return text if all(part in text for part in parts) else ""

    return wait_until(printed, 60, f"{parts} in what kafka-metadata-shell prints")


def test_kafka_metadata_shell_shows_the_whole_cluster(file: Path) -> None:
    printed = shell_prints(
        file,
        "/image/cluster/brokers/1\n",
        "/image/cluster/brokers/2\n",
        "/image/cluster/controllers/3000\n",
        "/image/clientQuotas/user(alice)/producer_byte_rate\n",
        "/image/configs/TOPIC:kept/retention.ms\n",
        "/image/features/metadataVersion\n",
        "/image/scram/SCRAM-SHA-256/bob\n",
        "/image/topics/byName/kept/1\n",
        command=("find", "/image"),
    )
    assert "/image/cluster/brokers/3" not in printed


def test_kafka_metadata_shell_takes_commands_from_a_person(file: Path) -> None:
    typed = "cd /image/topics/byName/kept\npwd\ncat 0\ncat /image/cluster/brokers/1\nexit\n"
    printed = shell_prints(file, "[ Kafka Metadata Shell ]", "/image/topics/byName/kept\n", stdin=typed)
    result = re.search(r"replicas=\[(\d), (\d)\], directories=\[(\S+), (\S+)\], isr=\[(\d), (\d)\]", printed)
    assert result is not None, printed
    assert {result[1], result[2]} == {result[5], result[6]} == {"1", "2"}
    assert len(result[3]) == len(result[4]) == 22
    assert re.search(r"BrokerRegistration\(id=1, .*fenced=false", printed)


def test_kafka_metadata_shell_keeps_off_a_data_dir_in_use(data_dir: Path) -> None:
    segment = data_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    with pytest.raises(KafkaProcessError, match="no broker or controller process is using this directory"):
        KafkaTool("kafka-metadata-shell", "4.3.1").run("--snapshot", str(segment), "ls")


def test_kafka_dump_log_reads_log_and_snapshot_of_a_running_controller(file: Path) -> None:
    options = ("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(file))
    printed = KafkaTool("kafka-dump-log").run(*options)
    assert "isvalid: false" not in printed
    assert "Could not decode" not in printed
    assert re.search(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"kept"', printed)
    assert re.search(r'"type":"PARTITION_RECORD","version":2,.*"replicas":\[\d,\d\]', printed)
    assert re.search(r'"type":"USER_SCRAM_CREDENTIAL_RECORD","version":0,"data":\{"name":"bob"', printed)


def test_kafka_storage_recognizes_a_formatted_data_dir(cluster: KafkaCluster, data_dir: Path, tmp_path: Path) -> None:
    as_kafkas = KafkaController(tmp_path, cluster.cluster_id, properties={"log.dirs": str(data_dir)})
    result = KafkaTool("kafka-storage").run("info", "-c", str(as_kafkas.write_properties()))
    assert f"Found log directory:\n  {data_dir}\n" in result
    assert re.search(rf"cluster\.id={cluster.cluster_id}, directory\.id=\S+, node\.id=3000, version=1", result)
    with pytest.raises(KafkaProcessError, match="is already formatted"):
        as_kafkas.format()
