"""A log that follows another, one whose process is killed, and the saved state from which a log goes on."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mockraft.releases import release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.log.files import LogFiles
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import BOOTSTRAP, EpochEndOffset, SnapshotId
from mockraft.server.controller.log.state_file import SavedState, read_state, state_writer
from mockraft.server.controller.quorum.voter_set import (
    ElectionState,
    ReplicaKey,
    VoterEndpoint,
    VoterNode,
    VoterSet,
    control_records,
    read_voters,
)
from mockraft.server.controller.settings.features import bootstrap_records
from mockraft.server.raft.raft import Raft
from mockraft.wire import record_batch, uuids
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

from ....conftest import Cluster, type_name
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


@pytest.fixture
def saved(cluster: Cluster, tmp_path: Path) -> Path:
    """The state of a controller with two brokers and a topic."""
    cluster.start(1, 2)
    cluster.create_topic("orders", [1, 2])
    return state_writer(cluster.controller, cluster.now_ms, show_secrets=True)(tmp_path)


def snapshot_of(path: Path, *records: Any, snapshot_id: SnapshotId = snapshot.BOOTSTRAP) -> Path:
    """A snapshot as Kafka writes it."""
    framed = [RecordAt(each, 0) for each in records]
    batches = snapshot.encode(snapshot_id, framed, voters=(), last_contained_log_timestamp_ms=0, now_ms=0)
    path.write_bytes(b"".join(batches))
    return path


def level(feature: str, number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=feature, feature_level=number)


def test_a_state_has_the_cluster_and_not_its_controllers(cluster: Cluster, saved: Path) -> None:
    state = read_state(saved)
    assert saved.name == SnapshotId(cluster.log.end_offset, cluster.log.leader_epoch).file_name
    assert (state.id.end_offset, state.id.epoch) == (cluster.log.end_offset, cluster.log.leader_epoch)
    assert state.cluster_id == cluster.config.cluster_id
    kinds = {type_name(at.record) for at in state.records}
    assert {"FeatureLevelRecord", "RegisterBrokerRecord", "TopicRecord", "PartitionRecord"} <= kinds
    assert not kinds & {"RegisterControllerRecord", "NoOpRecord"}


def test_a_new_log_begins_with_a_state_and_goes_on_after_it(cluster: Cluster, saved: Path) -> None:
    config = ControllerConfig(cluster_id=cluster.config.cluster_id, initial_state=saved)
    rng = random.Random(2)
    raft = Raft.open(config, cluster.now_ms, rng)
    image = Controller(config, raft, rng, cluster.now_ms).image
    assert raft.log.start_offset == cluster.log.end_offset < raft.log.end_offset
    assert image.topics.by_name == cluster.controller.image.topics.by_name
    assert image.cluster.brokers == cluster.controller.image.cluster.brokers
    assert raft.log.snapshots[-1].id == read_state(saved).id


def test_a_renamed_state_keeps_its_offset(cluster: Cluster, saved: Path) -> None:
    renamed = saved.rename(saved.with_name("state"))
    assert read_state(renamed).id.end_offset == cluster.log.end_offset


def test_a_snapshot_of_kafka_is_a_state_at_its_names_offset(tmp_path: Path) -> None:
    at = SnapshotId(77, 5)
    path = snapshot_of(tmp_path / at.file_name, level("metadata.version", 30), snapshot_id=at)
    assert read_state(path) == SavedState(at, "", [RecordAt(level("metadata.version", 30), 0)])
    assert read_state(path.rename(tmp_path / "unnamed")).id == SnapshotId(1, 5)
    assert read_state(snapshot_of(path, level("metadata.version", 30))).id == SnapshotId(77, 1)


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([], "no state to begin with: it has no metadata.version"),
        ([FenceBrokerRecord(id=7, epoch=1)], "FenceBrokerRecord: broker 7 is not registered"),
    ],
)
def test_a_snapshot_that_is_no_state_is_named(tmp_path: Path, records: list[Any], text: str) -> None:
    path = snapshot_of(tmp_path / "state", *records)
    with pytest.raises(ValueError, match=text) as refused:
        read_state(path)
    assert str(path) in str(refused.value)


def test_other_files_are_no_state(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text(json.dumps({"no": "snapshot"}))
    with pytest.raises(ValueError, match="no saved state and no snapshot of the metadata log"):
        read_state(path)


@pytest.fixture
def formatted(tmp_path: Path) -> Any:
    """The first records of a data dir that was formatted with these records."""

    def records_after(*records: Any, **options: Any) -> list[RecordAt] | None:
        config = ControllerConfig(data_dir=tmp_path, **options)
        files = LogFiles(config, random.Random(1))
        try:
            snapshot_of(tmp_path / "bootstrap.checkpoint", *records)
            return files.bootstrap_records()
        finally:
            files.close()

    return records_after


def test_features_left_out_at_the_format_are_off(formatted: Any) -> None:
    user = UserScramCredentialRecord(name="admin", mechanism=1, salt=b"s", iterations=4096)
    found = formatted(level("metadata.version", 30), level("kraft.version", 1), user)
    assert RecordAt(user, 0) in found
    levels = {at.record.name: at.record.feature_level for at in found if isinstance(at.record, FeatureLevelRecord)}
    default = {each.name for each, _ in bootstrap_records(30, release()) if isinstance(each, FeatureLevelRecord)}
    assert levels == {"metadata.version": 30}
    assert default > {"metadata.version"}


def test_features_chosen_at_the_format_are_on(formatted: Any) -> None:
    found = formatted(level("metadata.version", 30), level("group.version", 1))
    assert RecordAt(level("group.version", 1), 0) in found
    assert RecordAt(level("metadata.version", 21), 0) in formatted(metadata_version=21)


def test_features_chosen_at_a_format_of_4_4_are_in_the_first_snapshot(formatted: Any, tmp_path: Path) -> None:
    chosen = (level("metadata.version", 30), level("group.version", 1))
    found = formatted(*chosen)
    (tmp_path / "bootstrap.checkpoint").rename(tmp_path / "__cluster_metadata-0" / BOOTSTRAP.file_name)
    files = LogFiles(ControllerConfig(data_dir=tmp_path), random.Random(1))
    assert files.bootstrap_records() == found
    files.close()


def test_a_format_that_no_controller_supports_is_named(formatted: Any, tmp_path: Path) -> None:
    unknown = r"bootstrap\.checkpoint: metadata\.version 99 is not supported by controllers of Kafka 4\.4"
    with pytest.raises(DataDirError, match=unknown):
        formatted(level("metadata.version", 99))
    (tmp_path / "bootstrap.checkpoint").unlink()
    with pytest.raises(
        DataDirError, match=r"share\.version 2 is not supported .* Kafka 4\.3; serve with --release 4\.4"
    ):
        formatted(level("metadata.version", 30), level("share.version", 2), release="4.3")


@pytest.mark.parametrize("note", [b'{"endOffset": "abc"}', b"[]", b"1", b"[" * 9_999, b"\xff"])
def test_another_note_is_no_state(tmp_path: Path, note: bytes) -> None:
    path = snapshot_of(tmp_path / "x", level("metadata.version", 29), NoOpRecord(unknown_tagged_fields=[(7_777, note)]))
    with pytest.raises(ValueError, match="no saved state"):
        read_state(path)
