"""Logs go from Kafka to mockraft and back: the controller's data dir, and the logs of replicas."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.checkpoints import read_offsets
from mockraft.brokers.log_dirs.log_loading import HeldLog, LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaProcessError, KafkaTool, random_uuid, wait_until
from mockraft.wire import record_batch

from ...clients import consume, create_topic, produce, topics_of
from ..running import registrations

pytestmark = pytest.mark.real_kafka

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
    wait_until(lambda: {"of-kafka", "of-mockraft"} <= topics_of(broker.bootstrap), 60, "both topics")
    assert registrations(broker) == before
    assert ours.stop() == 0

    started(kafkas, formatted=True)
    create_topic(broker.bootstrap, "of-kafka-again")
    wait_until(
        lambda: {"of-kafka", "of-mockraft", "of-kafka-again"} <= topics_of(broker.bootstrap), 10, "all three topics"
    )
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
    wait_until(lambda: names | {"after"} <= topics_of(second.bootstrap), 60, "the second broker's topics")
    wait_until(lambda: names | {"after"} <= topics_of(first.bootstrap), 60, "the first broker's topics")
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


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster(versions=(KAFKA_VERSION,), log_dir_count=2)


def opened(broker: KafkaBroker) -> Logs:
    """The logs in a stopped broker's directories, as ours."""
    logs = Logs(
        LogDir(RealDisk(str(path)), bytes((index,)) * 16) for index, path in enumerate(broker.log_dirs, start=1)
    )
    logs.lock()
    logs.load()
    return logs


def the_log(logs: Logs, topic: str) -> HeldLog:
    (held,) = [held for held in logs.held() if held.topic_partition == (topic, 0)]
    return held


def batches(values: list[str], each: int = 10) -> list[bytes]:
    return [
        record_batch.encode(
            [v.encode() for v in values[at : at + each]], base_offset=0, leader_epoch=0, timestamp_ms=at
        )
        for at in range(0, len(values), each)
    ]


def append(log: ReplicaLog, values: list[str]) -> None:
    epoch = log.latest_epoch
    assert epoch is not None
    for data in batches(values):
        log.append_as_leader(data, epoch, 0)


def dumped(*paths: Path) -> str:
    printed = KafkaTool("kafka-dump-log").run(
        "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, paths))
    )
    assert "isvalid: false" not in printed
    assert not re.search(r"Could not|[Ee]rror|[Ee]xception|Skipping|not match", printed), printed
    return printed


def test_kafkas_tool_reads_the_segments_that_we_write(tmp_path: Path) -> None:
    log = ReplicaLog(RealDisk(str(tmp_path)), "t-0", LogConfig(segment_bytes=2000))
    values = [f"value-{number}" for number in range(300)]
    for index, data in enumerate(batches(values)):
        log.append_as_leader(data, index // 7, 0)
    segments = sorted((tmp_path / "t-0").glob("*.log"))
    assert len(segments) > 3

    printed = dumped(*segments)
    assert re.findall(r"payload: (\S+)", printed) == values
    assert [int(found) for found in re.findall(r"\| offset: (\d+)", printed)] == list(range(300))
    assert sorted(set(map(int, re.findall(r"partitionLeaderEpoch: (\d+)", printed)))) == [0, 1, 2, 3, 4]


def test_logs_of_a_real_broker_are_read_and_it_continues_on_logs_of_mockraft(cluster: KafkaCluster) -> None:
    broker = cluster.brokers[1]
    create_topic(broker.bootstrap, "both", segment_bytes="1048576")
    theirs = [f"{codec}-{number}-{'x' * 1500}" for codec in CODECS for number in range(1000)]
    for codec in CODECS:
        chosen = [value for value in theirs if value.startswith(codec)]
        produce(broker.bootstrap, "both", chosen, compression_type=codec, enable_idempotence="true")
    broker.stop()

    logs = opened(broker)
    held = the_log(logs, "both")
    assert logs.previous_broker_epoch > 0
    assert (held.log.end_offset, held.log.high_watermark) == (len(theirs), len(theirs))
    assert len(list(Path(held.path).glob("*.log"))) > 1
    headers = held.log.batches(0)
    assert [header.base_offset for header in headers[1:]] == [header.last_offset + 1 for header in headers[:-1]]
    assert {header.attributes & 7 for header in headers} == set(range(5))
    kept = headers[len(headers) // 2].base_offset
    held.log.truncate_to(kept)
    held.log.config = LogConfig(segment_bytes=100_000)
    ours = [f"ours-{number}-{'y' * 300}" for number in range(1000)]
    append(held.log, ours)
    held.log.high_watermark = held.log.end_offset
    logs.shut_down(logs.previous_broker_epoch)

    broker.start()
    broker.wait_until_running()
    assert consume(broker.bootstrap, "both") == theirs[:kept] + ours
    more = produce(broker.bootstrap, "both", ["after"], enable_idempotence="true")
    assert consume(broker.bootstrap, "both")[-1:] == more
    assert "Skipping recovery" in broker.whole_log


def test_each_recovers_the_logs_of_the_other_after_a_kill(cluster: KafkaCluster) -> None:
    broker = cluster.brokers[1]
    create_topic(broker.bootstrap, "killed")
    theirs = produce(broker.bootstrap, "killed", [f"theirs-{number}" for number in range(500)])
    broker.kill()

    logs = opened(broker)
    held = the_log(logs, "killed")
    assert logs.previous_broker_epoch == -1
    assert held.log.end_offset == 500
    ours = [f"ours-{number}" for number in range(500)]
    append(held.log, ours)
    held.log_dir.disk.append(f"{held.log.dir_name}/00000000000000000000.log", batches(["half"])[0][:70])
    logs.close()

    broker.start()
    broker.wait_until_running()
    assert consume(broker.bootstrap, "killed") == theirs + ours


def test_the_checkpoints_of_both_are_read_by_the_other(cluster: KafkaCluster) -> None:
    broker = cluster.brokers[1]
    create_topic(broker.bootstrap, "points", partitions=4)
    produce(broker.bootstrap, "points", [str(number) for number in range(100)])
    broker.stop()

    logs = opened(broker)
    ends = {held.topic_partition: held.log.end_offset for held in logs.held()}
    assert sum(end for (topic, _), end in ends.items() if topic == "points") == 100
    found: dict[str, dict[tuple[str, int], int]] = {}
    for log_dir in logs.log_dirs:
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            found[name] = {**found.get(name, {}), **read_offsets(log_dir.disk, name)}
    assert found["recovery-point-offset-checkpoint"] == ends
    assert found["replication-offset-checkpoint"] == ends
    # A producer without keys may leave partitions empty.
    held = max(logs.held(), key=lambda held: (held.topic_partition[0] == "points", held.log.end_offset))
    partition = held.topic_partition[1]
    held.log.high_watermark = held.log.end_offset
    held.log.advance_start_offset(3)
    logs.shut_down()

    broker.start()
    broker.wait_until_running()
    earliest = KafkaTool("org.apache.kafka.tools.GetOffsetShell").run(
        "--bootstrap-server", broker.bootstrap, "--topic-partitions", f"points:{partition}", "--time", "-2"
    )
    assert earliest == f"points:{partition}:3\n"


def test_only_one_of_us_has_a_directory(cluster: KafkaCluster) -> None:
    broker = cluster.brokers[1]
    with pytest.raises(BlockingIOError, match="another broker runs on this log directory"):
        opened(broker)
    broker.stop()
    logs = opened(broker)
    broker.start()
    assert broker.wait() != 0
    assert "Failed to acquire lock on file .lock" in broker.whole_log
    logs.shut_down()
    broker.start()
    broker.wait_until_running()
