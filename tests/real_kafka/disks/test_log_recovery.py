"""The controller's data dir changes hands: Kafka's for ours, ours for Kafka's, an old copy, a log cut to a snapshot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaProcessError, KafkaTool, random_uuid, wait_until

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka

CreateTopic = Callable[..., None]
Process = KafkaBroker | KafkaController | MockraftController
Started = Callable[..., Process]

# A small image, so small thresholds: some snapshots while topics are made, and nothing kept that the newest covers.
SNAPSHOT_OFTEN = ("--metadata-log-max-record-bytes-between-snapshots", "2000", "--metadata-max-retention-bytes", "1")


@pytest.fixture
def started() -> Iterator[Started]:
    """Start a process (formatted first, where Kafka formats) and wait until it runs; none is left after the test."""
    processes: list[Process] = []

    def start(process: Process, *, formatted: bool = False) -> Process:
        if process not in processes:
            processes.append(process)
            if not formatted and not isinstance(process, MockraftController):
                process.format()
        process.start()
        process.wait_until_running()
        return process

    yield start
    for process in processes:
        process.kill()


def topics(broker: KafkaBroker) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics)


def registrations(broker: KafkaBroker) -> int:
    return broker.whole_log.count("Successfully registered broker")


def mockraft_on(data_dir: Path, controller: KafkaController, directory: Path) -> MockraftController:
    """A mockraft controller in the place of Kafka's: same address, same data dir."""
    options = ["--data-dir", str(data_dir), "--port", str(controller.port)]
    found = MockraftController(directory, controller.cluster_id, keep_data=False, options=options)
    found.port = controller.port
    return found


def test_mockraft_takes_over_from_kafkas_controller(tmp_path: Path, started: Started) -> None:
    kafkas = KafkaController(tmp_path / "kafka", random_uuid())
    started(kafkas)
    broker = KafkaBroker(1, tmp_path / "b1", kafkas.cluster_id, kafkas.bootstrap)
    started(broker)
    create_topic(broker.bootstrap, "of-kafka", partitions=2)
    before = registrations(broker)
    kafkas.stop()
    data_dir = Path(kafkas.properties["log.dirs"])
    ours = mockraft_on(data_dir, kafkas, tmp_path / "mockraft")
    started(ours)
    create_topic(broker.bootstrap, "of-mockraft")
    wait_until(lambda: {"of-kafka", "of-mockraft"} <= topics(broker), 10, "both topics")
    assert registrations(broker) == before
    assert ours.stop() == 0

    started(kafkas, formatted=True)
    create_topic(broker.bootstrap, "of-kafka-again")
    wait_until(lambda: {"of-kafka", "of-mockraft", "of-kafka-again"} <= topics(broker), 10, "all three topics")
    assert registrations(broker) == before


def test_mockraft_starts_in_a_dir_that_kafka_formatted(tmp_path: Path, started: Started) -> None:
    kafkas = KafkaController(tmp_path / "kafka", random_uuid(), release_version="4.1-IV1")
    kafkas.format()
    ours = mockraft_on(Path(kafkas.properties["log.dirs"]), kafkas, tmp_path / "mockraft")
    started(ours)
    broker = KafkaBroker(1, tmp_path / "b1", kafkas.cluster_id, ours.bootstrap)
    started(broker)
    create_topic(broker.bootstrap, "a")
    described = KafkaTool("kafka-features").run("--bootstrap-server", broker.bootstrap, "describe")
    assert re.search(r"metadata\.version.*FinalizedVersionLevel: 4\.1-IV1", described)


def test_a_broker_follows_a_log_cut_to_a_snapshot(tmp_path: Path, started: Started) -> None:
    ours = MockraftController(tmp_path / "c", random_uuid(), options=SNAPSHOT_OFTEN)
    started(ours)
    first = KafkaBroker(1, tmp_path / "b1", ours.cluster_id, ours.bootstrap)
    started(first)
    names = {f"t-{number}" for number in range(25)}
    for name in names:
        create_topic(first.bootstrap, name)
    assert ours.data_dir is not None
    partition_dir = ours.data_dir / "__cluster_metadata-0"
    assert not (partition_dir / f"{0:020d}.log").exists(), "the log below the snapshots is gone"

    ours.kill()
    started(ours)
    create_topic(first.bootstrap, "after")
    in_chunks = {"controller.quorum.fetch.snapshot.max.bytes": "100"}
    second = KafkaBroker(2, tmp_path / "b2", ours.cluster_id, ours.bootstrap, properties=in_chunks)
    started(second)
    second.wait_for_log("downloading snapshot")
    wait_until(lambda: names | {"after"} <= topics(second), 10, "the second broker's topics")
    wait_until(lambda: names | {"after"} <= topics(first), 10, "the first broker's topics")
    newest = max(partition_dir.glob("*.checkpoint"))
    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", str(newest))
    assert '"name":"t-0"' in printed


def test_old_copy_of_the_log_is_named(tmp_path: Path, started: Started) -> None:
    ours = MockraftController(tmp_path / "c", random_uuid())
    started(ours)
    broker = KafkaBroker(1, tmp_path / "b1", ours.cluster_id, ours.bootstrap)
    started(broker)
    assert ours.data_dir is not None
    shutil.copytree(ours.data_dir, tmp_path / "copy")
    create_topic(broker.bootstrap, "not-in-the-copy")
    ours.kill()
    shutil.rmtree(ours.data_dir)
    shutil.copytree(tmp_path / "copy", ours.data_dir)
    started(ours)
    assert broker.wait(30) == 1
    assert "below the current high watermark" in broker.log
    ours.wait_for_log(r"replica 1 has the log up to \d+, epoch 1; this log ends at .* must truncate")


@pytest.mark.parametrize("lost", ["log", "end"])
def test_a_lost_log_is_refused_at_the_start(tmp_path: Path, started: Started, lost: str) -> None:
    ours = MockraftController(tmp_path / "c", random_uuid())
    for _ in range(2):
        started(ours)
        ours.kill()
    assert ours.data_dir is not None
    segment = ours.data_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    if lost == "log":
        segment.unlink()
    else:
        segment.write_bytes(segment.read_bytes()[:400])
    with pytest.raises(KafkaProcessError):
        started(ours)
    assert ours.exit_code == 4
    assert re.search("the log is gone" if lost == "log" else "its end was lost", ours.log)
    assert "Traceback" not in ours.log


def locked(controller: KafkaController | MockraftController, data_dir: Path, directory: Path) -> MockraftController:
    options = ["--data-dir", str(data_dir)]
    return MockraftController(directory, controller.cluster_id, keep_data=False, options=options)


def test_a_data_dir_in_use_is_refused(tmp_path: Path, started: Started) -> None:
    ours = MockraftController(tmp_path / "c", random_uuid())
    started(ours)
    assert ours.data_dir is not None
    with pytest.raises(KafkaProcessError, match="another controller runs on this data dir"):
        started(locked(ours, ours.data_dir, tmp_path / "other"))

    in_ours = KafkaController(tmp_path / "kafka", ours.cluster_id, properties={"log.dirs": str(ours.data_dir)})
    with pytest.raises(KafkaProcessError, match="Failed to acquire lock on file"):
        started(in_ours, formatted=True)


def test_a_data_dir_in_which_kafkas_controller_runs_is_refused(tmp_path: Path, started: Started) -> None:
    kafkas = KafkaController(tmp_path / "kafka", random_uuid())
    started(kafkas)
    with pytest.raises(KafkaProcessError, match="another controller runs on this data dir"):
        started(locked(kafkas, Path(kafkas.properties["log.dirs"]), tmp_path / "other"))
