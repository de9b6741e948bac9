"""A large snapshot is written in steps, between which the controller goes on."""

from pathlib import Path

import pytest
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.server.raft.raft import Raft
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord

from ....conftest import Cluster, uuid

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
