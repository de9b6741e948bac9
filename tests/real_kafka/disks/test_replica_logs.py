"""Log directories go from a real broker to mockraft and back: each reads, and continues, the other's logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.checkpoints import read_offsets
from mockraft.brokers.log_dirs.log_dir import LogDir
from mockraft.brokers.log_dirs.log_loading import HeldLog
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.replica_log import LogConfig, ReplicaLog
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaBroker, KafkaTool
from mockraft.wire import record_batch

from ...clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster(versions=("4.3.1",), log_dir_count=2)


def opened(broker: KafkaBroker) -> Logs:
    """The logs in a stopped broker's directories, as ours."""
    logs = Logs(
        LogDir(RealDisk(str(path)), bytes((index,)) * 16) for index, path in enumerate(broker.log_dirs, start=1)
    )
    logs.lock()
    logs.load()
    return logs


def the_log(logs: Logs, topic: str) -> HeldLog:
    (held,) = [held for held in logs.held() if held.topic == topic]
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
    held = the_log_of_partition(logs, "points", 0)
    held.log.high_watermark = held.log.end_offset
    held.log.advance_start_offset(3)
    logs.shut_down()

    broker.start()
    broker.wait_until_running()
    earliest = KafkaTool("org.apache.kafka.tools.GetOffsetShell").run(
        "--bootstrap-server", broker.bootstrap, "--topic-partitions", "points:0", "--time", "-2"
    )
    assert earliest == "points:0:3\n"


def the_log_of_partition(logs: Logs, topic: str, partition: int) -> HeldLog:
    (held,) = [held for held in logs.held() if held.topic_partition == (topic, partition)]
    return held


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
