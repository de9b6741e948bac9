from typing import Any

import pytest
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.wire import error_codes
from mockraft.wire.messages.fetch_snapshot_request import SnapshotId as RequestSnapshotId
from mockraft.wire.messages.fetch_snapshot_request import TopicSnapshot

from ...fetches import snapshot_request


@pytest.fixture
def snapshot(controller: Controller) -> Snapshot:
    image = [record for _, record in controller.log.records()]
    assert controller.log.write_snapshot(image, 5000) is not None
    return controller.log.snapshots[0]


def partition_of(response: Any) -> Any:
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


def test_a_snapshot_is_fetched_in_chunks(rig: Any, controller: Controller, snapshot: Snapshot) -> None:
    connection, data = rig.connect(), b""
    while len(data) < snapshot.size:
        asked = snapshot_request(snapshot.id, position=len(data), max_bytes=100)
        partition = partition_of(rig.ask(connection, asked, 1))
        assert (partition.error_code, partition.size, partition.position) == (0, snapshot.size, len(data))
        assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == snapshot.id
        assert len(partition.unaligned_records) == min(100, snapshot.size - len(data))
        data += partition.unaligned_records
    assert data == snapshot.read(0, snapshot.size)
    assert list(Snapshot(snapshot.id, data).records()) == list(snapshot.records())


@pytest.mark.parametrize(("version", "endpoints"), [(0, 0), (1, 1)])
def test_the_leader_is_named(rig: Any, snapshot: Snapshot, version: int, endpoints: int) -> None:
    response = rig.ask(rig.connect(), snapshot_request(snapshot.id), version)
    leader = partition_of(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (3000, 1)
    assert [node.node_id for node in response.node_endpoints] == [3000] * endpoints


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"current_leader_epoch": 0}, error_codes.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 2}, error_codes.UNKNOWN_LEADER_EPOCH),
        ({"snapshot_id": RequestSnapshotId(end_offset=5, epoch=1)}, error_codes.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": RequestSnapshotId(end_offset=0, epoch=0)}, error_codes.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, error_codes.POSITION_OUT_OF_RANGE),
        ({"position": 1 << 40}, error_codes.POSITION_OUT_OF_RANGE),
    ],
)
def test_a_bad_request_is_refused_in_the_partition(
    rig: Any, snapshot: Snapshot, fields: dict[str, Any], error: int
) -> None:
    response = rig.ask(rig.connect(), snapshot_request(snapshot.id, **fields), 1)
    partition = partition_of(response)
    assert (response.error_code, partition.error_code, partition.unaligned_records) == (0, error, b"")
    assert partition.current_leader.leader_id == 3000


def test_the_position_behind_the_last_byte_and_the_snapshot_of_formatting_are_never_served(
    rig: Any, controller: Controller, snapshot: Snapshot
) -> None:
    controller.log.snapshots.insert(0, Snapshot(SnapshotId(0, 0), b"x"))
    behind = snapshot_request(snapshot.id, position=snapshot.size)
    formatting = snapshot_request(SnapshotId(0, 0))
    found = [partition_of(rig.ask(rig.connect(), asked, 1)).error_code for asked in (behind, formatting)]
    assert found == [error_codes.POSITION_OUT_OF_RANGE, error_codes.SNAPSHOT_NOT_FOUND]


def test_another_topic_is_unknown(rig: Any, snapshot: Snapshot) -> None:
    for name, index in (("other", 0), ("__cluster_metadata", 1)):
        asked = snapshot_request(snapshot.id, partition=index)
        asked.topics[0].name = name
        response = rig.ask(rig.connect(), asked, 1)
        assert response.topics[0].name == name
        partition = partition_of(response)
        assert (partition.index, partition.error_code) == (index, error_codes.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("topics", [[], [TopicSnapshot(name="__cluster_metadata", partitions=[])]])
def test_no_partition_is_refused_at_the_top(rig: Any, snapshot: Snapshot, topics: list[TopicSnapshot]) -> None:
    response = rig.ask(rig.connect(), snapshot_request(snapshot.id, topics=topics), 1)
    assert (response.error_code, response.topics) == (error_codes.INVALID_REQUEST, [])


def test_another_cluster_is_refused_first(
    rig: Any, controller: Controller, snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    response = rig.ask(rig.connect(), snapshot_request(snapshot.id, cluster_id="other", topics=[]), 1)
    assert (response.error_code, response.topics) == (error_codes.INCONSISTENT_CLUSTER_ID, [])
    assert "may not fetch the metadata log: 'INCONSISTENT_CLUSTER_ID: Expected" in caplog.messages[-1]
    own = snapshot_request(snapshot.id, cluster_id=controller.config.cluster_id)
    assert partition_of(rig.ask(rig.connect(), own, 1)).size


def test_a_negative_limit_is_an_error(rig: Any, snapshot: Snapshot) -> None:
    response = rig.ask(rig.connect(), snapshot_request(snapshot.id, max_bytes=-1), 1)
    assert response.error_code == error_codes.UNKNOWN_SERVER_ERROR
