"""Snapshots: what they hold, and large ones, written in steps between which the controller goes on."""

from pathlib import Path

import pytest
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.server.controller.quorum.voter_set import ReplicaKey, VoterEndpoint, VoterNode, VoterSet, control_records
from mockraft.server.raft.raft import Raft
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.topic_record import TopicRecord

from ....conftest import Cluster, uuid

# `kafka-storage format --standalone` of Kafka 4.3.1 wrote this.
KAFKAS = bytes.fromhex(
    "00000000000000000000009a0000000002b03c9595002000000002000001a1f839dd7b000001a1f839dd7b"
    "ffffffffffffffffffffffffffff000000032a0000000800000003160000000001a1f839dd7800001e00000208000000"
    "050a000000010000820100000408000000066e00000200000bb8e4503f1825d64cdaab2eba68c7a3116d020b434f4e54"
    "524f4c4c45520a3132372e302e302e314a9500000000010000000000000000000000030000003f00000000029db6cdde"
    "002000000000000001a1f839dd82000001a1f839dd82ffffffffffffffffffffffffffff000000011a00000008000000"
    "040600000000"
)
DIRECTORY_ID = bytes.fromhex("e4503f1825d64cdaab2eba68c7a3116d")


def voters() -> list[tuple[bytes, bytes]]:
    node = VoterNode(ReplicaKey(3000, DIRECTORY_ID), (VoterEndpoint("CONTROLLER", "127.0.0.1", 19093),))
    return control_records(1, VoterSet([node]))


def encoded(records: list[RecordAt]) -> list[bytes]:
    return list(
        snapshot.encode(SnapshotId(40, 3), records, voters=voters(), last_contained_log_timestamp_ms=7, now_ms=9)
    )


RECORDS = [RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)]


def test_the_batches_are_kafkas_byte_for_byte() -> None:
    head, foot = snapshot.encode(
        SnapshotId(0, 0), [], voters=voters(), last_contained_log_timestamp_ms=0x1A1F839DD78, now_ms=0x1A1F839DD7B
    )
    assert head == KAFKAS[: len(head)]
    assert (len(head), len(foot)) == (166, 75)
    kafkas_foot = KAFKAS[len(head) :]
    assert foot[:17] == kafkas_foot[:17]
    assert foot[43:] == kafkas_foot[43:], "all but the CRC and the two timestamps"


def test_records_come_back() -> None:
    found = Snapshot(SnapshotId(40, 3), b"".join(encoded(RECORDS)))
    assert list(found.records()) == RECORDS
    assert {batch.leader_epoch for batch in found.batches()} == {3}
    offsets = [(batch.base_offset, batch.last_offset) for batch in found.batches()]
    assert offsets == [(0, 2), (3, 3), (4, 4)]


def test_kafkas_snapshot_is_read() -> None:
    assert list(Snapshot(SnapshotId(0, 0), KAFKAS).records()) == []


def test_a_large_image_is_split_into_batches() -> None:
    many = [
        RecordAt(ConfigRecord(resource_type=2, resource_name=str(n), name="a", value="b"), 0) for n in range(10_001)
    ]
    large = [RecordAt(ConfigRecord(resource_type=2, name="a", value="b" * 30_000), 0) for _ in range(40)]
    for records, batches in ((many, 2), (large, 2)):
        parts = [part for part in encoded(records) if part]
        assert len(parts) == batches + 2
        assert list(Snapshot(SnapshotId(40, 3), b"".join(parts)).records()) == records


def test_reads_any_slice_from_memory_and_from_a_file(tmp_path: Path) -> None:
    data = b"".join(encoded(RECORDS))
    path = tmp_path / SnapshotId(40, 3).file_name
    path.write_bytes(data)
    for found in (Snapshot(SnapshotId(40, 3), data), Snapshot(SnapshotId(40, 3), path)):
        assert found.size == len(data)
        chunks = [found.read(position, 10) for position in range(0, found.size, 10)]
        assert b"".join(chunks) == data
        found.delete()
    assert not path.exists()


@pytest.mark.parametrize("kept", [slice(None, -1), slice(0, 0)])
def test_a_snapshot_without_its_footer_is_refused(kept: slice) -> None:
    with pytest.raises(WireError, match=r"-0000000003\.checkpoint: does not end with a SnapshotFooter"):
        list(Snapshot(SnapshotId(40, 3), b"".join(encoded(RECORDS)[kept])).records())


def test_a_snapshot_without_its_header_is_refused() -> None:
    data = record_batch.encode([b"x"], base_offset=0, leader_epoch=3, timestamp_ms=0)
    with pytest.raises(WireError, match="does not begin with a SnapshotHeader"):
        list(Snapshot(SnapshotId(40, 3), data).records())


def test_a_damaged_snapshot_is_refused() -> None:
    data = bytearray(b"".join(encoded(RECORDS)))
    data[200] ^= 1
    with pytest.raises(WireError, match="CRC"):
        list(Snapshot(SnapshotId(40, 3), bytes(data)).records())


def test_file_names_are_kafkas() -> None:
    assert SnapshotId(123, 4).file_name == "00000000000000000123-0000000004.checkpoint"
    assert snapshot.parse_file_name("00000000000000000123-0000000004.checkpoint") == SnapshotId(123, 4)
    for other in (
        "00000000000000000123-0000000004.checkpoint.part",
        "bootstrap.checkpoint",
        "00000000000000000123.log",
    ):
        assert snapshot.parse_file_name(other) is None


def test_the_footer_comes_last() -> None:
    *_, last = record_batch.read_batches(b"".join(encoded(RECORDS)))
    assert record_batch.control_type(last.records[0][0]) == record_batch.SNAPSHOT_FOOTER


LARGE = 2_000


def topics(first: int, count: int) -> list[RecordAt]:
    return [RecordAt(TopicRecord(name=f"t{n}", topic_id=uuid(n)), 0) for n in range(first, first + count)]


def restored(snapshot: Snapshot) -> Image:
    image = Image()
    for record, _ in snapshot.records():
        image.apply(record, 0)
    return image


def is_being_written(cluster: Cluster) -> bool:
    return cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms


@pytest.fixture(params=["in memory", "on disk"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    """A controller that has begun to write a large snapshot."""
    data_dir = tmp_path / "data" if request.param == "on disk" else None
    cluster = Cluster(data_dir=data_dir, metadata_log_max_record_bytes_between_snapshots=50_000)
    cluster.start(1)
    cluster.write(*topics(0, LARGE))
    cluster.controller.tick(cluster.now_ms)
    assert is_being_written(cluster)
    assert cluster.log.snapshots == []
    return cluster


def finish(cluster: Cluster) -> None:
    for _ in range(20):
        cluster.controller.tick(cluster.now_ms)
        if not is_being_written(cluster):
            return
    raise AssertionError("the snapshot has no end")


def test_it_has_the_state_at_its_beginning_whatever_is_written_meanwhile(cluster: Cluster) -> None:
    offset, at_first = cluster.log.end_offset, cluster.controller.image.copy()
    topic_id = cluster.create_topic("meanwhile", [1])
    cluster.controller.tick(cluster.now_ms)
    cluster.set_config("meanwhile", "retention.ms", "1")
    cluster.fence(1)
    finish(cluster)
    (snapshot,) = cluster.log.snapshots
    assert snapshot.id == SnapshotId(offset, cluster.log.last_epoch)
    assert restored(snapshot).topics.by_id == at_first.topics.by_id
    assert restored(snapshot).cluster.brokers == at_first.cluster.brokers
    assert restored(snapshot).configs == at_first.configs
    assert next(cluster.log.records(offset))[0] == offset
    assert cluster.partition(topic_id).leader == -1


def test_the_log_is_recovered_with_it(cluster: Cluster) -> None:
    cluster.create_topic("meanwhile", [1])
    finish(cluster)
    raft = Raft(cluster.config, cluster.log, cluster.rng, cluster.now_ms)
    if cluster.config.data_dir is not None:
        cluster.controller.close()
        raft = Raft.open(cluster.config, cluster.now_ms, cluster.rng)
    assert len(raft.log.snapshots) == 1
    again = Controller(cluster.config, raft, cluster.rng, cluster.now_ms)
    assert again.image.topics == cluster.controller.image.topics


def test_an_abandoned_one_leaves_no_file(cluster: Cluster, tmp_path: Path) -> None:
    partial = list(tmp_path.rglob("*.part"))
    assert bool(partial) is (cluster.config.data_dir is not None)
    cluster.controller.close()
    assert not list(tmp_path.rglob("*.checkpoint*"))


def test_it_is_dropped_if_there_is_a_newer_one_at_its_end(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("meanwhile", [1])
    image = cluster.controller.image
    newer = cluster.log.write_snapshot(image.to_records(image.metadata_version), cluster.now_ms)
    finish(cluster)
    assert [each.id for each in cluster.log.snapshots] == [newer]
    assert len(list(tmp_path.rglob("*.checkpoint*"))) == (cluster.config.data_dir is not None)


def test_retention_keeps_what_was_written_meanwhile(tmp_path: Path) -> None:
    limits = {"metadata_log_max_record_bytes_between_snapshots": 50_000, "metadata_max_retention_bytes": 1_000}
    cluster = Cluster(data_dir=tmp_path / "data", **limits)
    for number in range(3):
        cluster.write(*topics(10_000 * number, LARGE))
        cluster.controller.tick(cluster.now_ms)
        cluster.write(*topics(10_000 * number + LARGE, 10))
        finish(cluster)
        cluster.write(*topics(10_000 * number + LARGE + 10, 10))
    assert len(cluster.log.snapshots) == 1
    assert len(list(tmp_path.rglob("*.log"))) == 2
    cluster.controller.close()
    raft = Raft.open(cluster.config, cluster.now_ms, cluster.rng)
    again = Controller(cluster.config, raft, cluster.rng, cluster.now_ms)
    assert again.image.topics == cluster.controller.image.topics
    assert len(again.image.topics.by_id) == 3 * (LARGE + 20)
