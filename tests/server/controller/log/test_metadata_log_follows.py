"""A log that follows another, and one whose process is killed."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.quorum.voter_set import (
    ElectionState,
    ReplicaKey,
    VoterEndpoint,
    VoterNode,
    VoterSet,
    control_records,
    read_voters,
)
from mockraft.server.raft.raft import Raft
from mockraft.wire import record_batch, uuids

from .conftest import topic, topics

VOTERS = f"1@a:1:{uuids.text_of(bytes([1]) * 16)},2@b:2:{uuids.text_of(bytes([2]) * 16)}"


@pytest.fixture
def reopen(tmp_path: Path) -> Any:
    logs: list[MetadataLog] = []

    def open_again(**options: Any) -> MetadataLog:
        while logs:
            logs.pop().close()
        config = ControllerConfig(
            node_id=1, data_dir=tmp_path / "data", metadata_log_segment_bytes=300, initial_controllers=VOTERS, **options
        )
        logs.append(MetadataLog.open(config, 1000, random.Random(1)))
        return logs[-1]

    yield open_again
    while logs:
        logs.pop().close()


def batches(*epochs_and_numbers: tuple[int, int], start: int = 0) -> bytes:
    """One topic a batch from offset 0 on, those from `start` on."""
    leader = MetadataLog.open(ControllerConfig(), 1000, random.Random(1))
    for epoch, number in epochs_and_numbers:
        leader.leader_epoch = epoch
        leader.append([topic(number)], 1000)
    return leader.read(start, 1 << 30)


@pytest.mark.parametrize("end", range(9))
def test_truncated_records_stay_truncated(reopen: Any, end: int) -> None:
    log = reopen()
    log.append_fetched(batches(*((1, n) for n in range(4)), *((3, n) for n in range(4, 8))), 3)
    assert len(list(Path(log.config.data_dir, "__cluster_metadata-0").glob("*.log"))) > 2
    assert log.truncate(EpochEndOffset(3 if end > 4 else 1, end)) == end
    log.append_fetched(batches(*((1 if n < 4 else 3, n) for n in range(end)), (5, 9), start=end), 5)
    expected = [*(f"topic-{n}" for n in range(end)), "topic-9"]
    assert topics(log) == expected
    again = reopen()
    assert (topics(again), again.end_offset, again.last_epoch) == (expected, end + 1, 5)


def test_the_logs_part_where_the_largest_common_epoch_ends(reopen: Any) -> None:
    log = reopen()
    log.append_fetched(batches((1, 0), (1, 1), (3, 2), (4, 3)), 4)
    assert log.truncate(EpochEndOffset(4, 9)) == 4
    assert log.truncate(EpochEndOffset(3, 9)) == 3
    assert log.truncate(EpochEndOffset(2, 3)) == 2, "an epoch that is not here"
    assert log.truncate(EpochEndOffset(1, 1)) == 1
    assert log.truncate(EpochEndOffset(0, 0)) == 0


def test_committed_records_are_not_truncated(reopen: Any) -> None:
    log = reopen()
    log.append_fetched(batches((1, 0), (1, 1)), 1)
    log.high_watermark = 2
    with pytest.raises(ValueError, match="committed up to 2"):
        log.truncate(EpochEndOffset(1, 1))
    assert log.end_offset == 2


def test_an_installed_snapshot_is_where_the_log_begins_after_a_restart(reopen: Any) -> None:
    leader = MetadataLog.open(ControllerConfig(), 1000, random.Random(1))
    leader.leader_epoch = 3
    leader.append([topic(1), topic(2)], 1000)
    snapshot_id = leader.write_snapshot([topic(1), topic(2)], 1000)
    assert snapshot_id is not None
    log = reopen()
    log.append_fetched(batches((1, 7)), 1)
    log.install_snapshot(snapshot_id, leader.snapshots[0].read(0, 1 << 20), 1000)
    leader.append([topic(3)], 1000)
    log.append_fetched(leader.read(2, 1 << 20), 3)
    for found in (log, reopen()):
        assert topics(found) == ["topic-1", "topic-2", "topic-3"]
        assert (found.start_offset, found.end_offset, found.last_epoch) == (2, 3, 3)
        assert list(found.voters.nodes) == [3000], "as the snapshot says"


def test_configured_voters_hold_until_a_voters_record(reopen: Any) -> None:
    log = reopen()
    assert (list(log.voters.nodes), log.voters_offset, log.kraft_version) == ([1, 2], -1, 1)
    assert log.directory_id == bytes([1]) * 16


def test_the_epoch_and_the_vote_are_remembered(reopen: Any) -> None:
    election = ElectionState(7, None, ReplicaKey(2, bytes([2]) * 16))
    reopen().save_election(election)
    assert reopen().election == election


def test_a_data_dir_of_another_directory_id_is_refused(reopen: Any, tmp_path: Path) -> None:
    reopen()
    reopen().close()
    others = VOTERS.replace(uuids.text_of(bytes([1]) * 16), uuids.text_of(bytes([9]) * 16))
    config = ControllerConfig(node_id=1, data_dir=tmp_path / "data", initial_controllers=others)
    with pytest.raises(DataDirError, match=r"its directory\.id is"):
        Raft.open(config, 1000, random.Random(1))


def test_a_follower_writes_no_batch_of_its_own(reopen: Any) -> None:
    log = reopen()
    data = batches((1, 0), (1, 1))
    log.append_fetched(data, 1)
    assert log.read(0, 1 << 20) == data
    assert [header.base_offset for header in record_batch.read_headers(data)] == [0, 1]


APPENDER = """
import random, sys
from pathlib import Path
from mockraft.server.config import ControllerConfig
from mockraft.server.raft.raft import Raft
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord

config = ControllerConfig(
    data_dir=Path(sys.argv[1]),
    metadata_log_segment_bytes=20_000,
    metadata_log_max_record_bytes_between_snapshots=60_000,
    metadata_max_retention_bytes=200_000,
)
log = Raft.open(config, 1000, random.Random(1)).log
image = [record for _, record in log.records()]
number = sum(isinstance(at.record, TopicRecord) for at in image)
while True:
    records = [RecordAt(TopicRecord(name=f"topic-{number + each}"), 0) for each in range(1 + number % 7)]
    image += records
    number += len(records)
    log.append(records, 1000)
    print(number, flush=True)
    if log.snapshot_due(1000):
        log.write_snapshot(image, 1000)
"""


@pytest.mark.parametrize("lines", [1, 400, 1500])
def test_acknowledged_records_survive_a_kill(tmp_path: Path, lines: int) -> None:
    acknowledged = 0
    for _ in range(3):
        command = [sys.executable, "-c", APPENDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as appender:
            assert appender.stdout is not None
            for _ in range(lines):
                acknowledged = int(appender.stdout.readline())
            appender.send_signal(signal.SIGKILL)
            for line in appender.stdout:
                acknowledged = int(line) if line.endswith("\n") else acknowledged
        log = Raft.open(ControllerConfig(data_dir=tmp_path), 2000, random.Random(1)).log
        names = topics(log)
        log.close()
        assert len(names) >= acknowledged
        assert names == [f"topic-{number}" for number in range(len(names))]


def test_after_a_snapshot_the_end_of_its_epoch_and_its_voters_are_those_of_the_snapshot(reopen: Any) -> None:
    leader = MetadataLog.open(ControllerConfig(), 1000, random.Random(1))
    leader.leader_epoch = 2
    for number in range(5):
        leader.append([topic(number)], 1000)
    snapshot_id = SnapshotId(5, 2)
    data = b"".join(
        snapshot.encode(
            snapshot_id,
            [at for _, at in leader.records()],
            voters=control_records(1, read_voters(VOTERS, "CONTROLLER")),
            last_contained_log_timestamp_ms=1000,
            now_ms=1000,
        )
    )
    log = reopen()
    log.install_snapshot(snapshot_id, data, 1000)
    for each in (log, reopen()):
        assert (each.start_offset, each.end_offset, each.last_epoch) == (5, 5, 2)
        assert (each.voters_offset, sorted(each.voters.nodes)) == (4, [1, 2])
    log = reopen()
    log.append_fetched(batches((2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (4, 5), (4, 6), start=5), 4)
    assert log.end_of_epoch(2) == EpochEndOffset(2, 5)
    assert log.end_of_epoch(3) == EpochEndOffset(2, 5)
    assert log.end_of_epoch(4) == EpochEndOffset(4, 7)
    assert log.end_of_epoch(1) == EpochEndOffset(2, 5)
    assert [log.check(offset, epoch) for offset, epoch in ((5, 2), (6, 4), (7, 4))] == [None, None, None]
    assert [log.check(offset, epoch) for offset, epoch in ((0, 0), (4, 2), (5, 1))] == [snapshot_id] * 3


def test_a_batch_that_is_not_complete_yet_is_no_error(reopen: Any, caplog: pytest.LogCaptureFixture) -> None:
    log = reopen()
    data = batches((1, 0), (1, 1))
    log.append_fetched(data[:-1], 1)
    assert topics(log) == ["topic-0"]
    assert caplog.messages == []


def test_voters_that_are_fetched_count_at_once(reopen: Any) -> None:
    log = reopen()
    pairs = control_records(
        1, VoterSet([VoterNode(ReplicaKey(2, bytes([2]) * 16), (VoterEndpoint("CONTROLLER", "b", 2),))])
    )
    log.append_fetched(record_batch.encode_control(pairs, base_offset=0, leader_epoch=1, timestamp_ms=1000), 1)
    assert list(log.voters.nodes) == [2]


def test_with_kraft_version_0_the_election_is_kept_with_the_voters(tmp_path: Path) -> None:
    config = ControllerConfig(node_id=1, data_dir=tmp_path, kraft_version=0)
    log = Raft.open(config, 1000, random.Random(1)).log
    log.close()
    state = json.loads((tmp_path / "__cluster_metadata-0" / "quorum-state").read_text())
    assert (state["data_version"], state["currentVoters"]) == (0, [{"voterId": 1}])
