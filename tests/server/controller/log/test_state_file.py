"""A saved state: what it holds, where a log goes on from it, and files that are none."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from mockraft.releases import release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.log.files import LogFiles
from mockraft.server.controller.log.snapshot import BOOTSTRAP, SnapshotId
from mockraft.server.controller.log.state_file import SavedState, read_state, state_writer
from mockraft.server.controller.settings.features import bootstrap_records
from mockraft.server.raft.raft import Raft
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

from ....conftest import Cluster, type_name


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
