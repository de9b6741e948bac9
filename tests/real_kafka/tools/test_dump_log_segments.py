"""Kafka's own `kafka-dump-log --cluster-metadata-decoder` reads every file of a data dir without complaint."""

import random
import re
from pathlib import Path

import pytest
from mockraft.kafka.processes import KafkaTool
from mockraft.server.config import ControllerConfig
from mockraft.server.raft.raft import Raft
from mockraft.wire import records
from mockraft.wire.metadata_log_frame import RecordAt

pytestmark = pytest.mark.real_kafka

METADATA_RECORDS = [cls for cls in map(records.by_name, records.NAMES) if cls.api_key >= 0]
EVERY_RECORD = [
    RecordAt(cls(), version) for cls in METADATA_RECORDS for version in range(cls.min_version, cls.max_version + 1)
]


@pytest.fixture(scope="module")
def partition_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs, every metadata record in every version, small segments, and a snapshot of as much."""
    config = ControllerConfig(data_dir=tmp_path_factory.mktemp("data"), metadata_log_segment_bytes=1500)
    assert config.data_dir is not None
    for epoch in (1, 2):
        log = Raft.open(config, 1_700_000_000_000, random.Random(1)).log
        for record in EVERY_RECORD:
            log.append([record, record], 1_700_000_000_000 + epoch)
        log.close()
    log = Raft.open(config, 1_700_000_000_000, random.Random(1)).log
    assert log.write_snapshot(EVERY_RECORD, 1_700_000_000_000) is not None
    log.append(EVERY_RECORD, 1_700_000_000_000)
    log.close()
    return config.data_dir / "__cluster_metadata-0"


def dumped(*paths: Path) -> str:
    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", ",".join(map(str, paths)))
    assert "isvalid: false" not in printed
    assert not re.search(r"Could not|[Ee]rror|[Ee]xception|Skipping|not match", printed), printed
    return printed


def payloads(printed: str) -> list[tuple[str, int]]:
    found = re.findall(r'payload: \{"type":"(\w+)","version":(\d+),', printed)
    return [(name, int(version)) for name, version in found]


def kafkas_names(times: int) -> list[tuple[str, int]]:
    """(type, version) of every record as the tool names it, each so often in a row."""
    snake = re.compile(r"(?<=[a-z])(?=[A-Z])")
    names = [(snake.sub("_", type(at.record).__name__).upper(), at.version) for at in EVERY_RECORD]
    return [name for name in names for _ in range(times)]


def test_the_segments_are_read_in_full(partition_dir: Path) -> None:
    segments = sorted(partition_dir.glob("*.log"))
    assert len(segments) > 3
    printed = dumped(*segments)
    assert payloads(printed) == kafkas_names(2) + kafkas_names(2) + kafkas_names(1)
    assert re.findall(r'LeaderChange: \{"version":0,"leaderId":(\d+)', printed) == ["3000"] * 3
    assert printed.count('KRaftVersion {"version":0,"kRaftVersion":1}') == 1
    assert printed.count('"endpoints":[{"name":"CONTROLLER","host":"127.0.0.1","port":9093}]') == 1
    bases = [int(base) for base in re.findall(r"^baseOffset: (\d+) ", printed, re.MULTILINE)]
    lasts = [int(last) for last in re.findall(r" lastOffset: (\d+) ", printed)]
    assert bases == [0, *(last + 1 for last in lasts[:-1])], "every batch follows the one before"


def test_the_snapshot_is_read_in_full(partition_dir: Path) -> None:
    (snapshot,) = partition_dir.glob("*.checkpoint")
    printed = dumped(snapshot)
    assert payloads(printed) == kafkas_names(1)
    assert re.search(r"SnapshotHeader \{.*KRaftVersion \{.*KRaftVoters \{.*SnapshotFooter \{", printed, re.DOTALL)
    id_in_name = re.search(r"Snapshot end offset: (\d+), epoch: (\d+)", printed)
    assert id_in_name is not None
    assert snapshot.name == f"{int(id_in_name[1]):020d}-{int(id_in_name[2]):010d}.checkpoint"
