"""AssignReplicasToDirs: which assignments are noted, and what an offline directory leads to."""

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

from ...conftest import Cluster

A, B, NOWHERE = (bytes([8] * 15 + [n]) for n in (1, 2, 3))


@pytest.fixture
def placed(cluster: Cluster) -> Cluster:
    """Brokers 1 (directories A and B) and 2; topic t: partitions 0 on 1 and 2, 1 on 2 only."""
    cluster.start(1, log_dirs=[A, B])
    cluster.start(2)
    cluster.topic_id = cluster.create_topic("t", [1, 2], [2])
    return cluster


def assign(cluster: Cluster, *assignments: tuple[bytes, int], broker_id: int = 1, topic_id: bytes | None = None) -> Any:
    """SendToNode for each (directory, partition of t) in a DirectoryData of its own."""
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=cluster.broker(broker_id).broker_epoch,
        directories=[
            DirectoryData(
                id=directory,
                topics=[
                    TopicData(
                        topic_id=topic_id or cluster.topic_id, partitions=[PartitionData(partition_index=partition)]
                    )
                ],
            )
            for directory, partition in assignments
        ],
    )
    return cluster.ask(request)


def codes(response: Any) -> list[int]:
    assert response.error_code == 0
    return [p.error_code for d in response.directories for t in d.topics for p in t.partitions]


def test_below_its_level_it_is_unsupported(new_cluster: type[Cluster]) -> None:
    response = new_cluster(metadata_version=16).ask(AssignReplicasToDirsRequest())
    assert (response.error_code, response.directories) == (error_codes.UNSUPPORTED_VERSION, [])


def test_reports_invalid_assignments_per_partition(placed: Cluster) -> None:
    assert codes(assign(placed, (A, 0), topic_id=bytes([1] * 16))) == [error_codes.UNKNOWN_TOPIC_ID]
    assert placed.written() == []
    response = assign(placed, (B, 7), (A, 0), (A, 1))
    assert [directory.id for directory in response.directories] == [B, A, A]
    assert [directory.topics[0].topic_id for directory in response.directories] == [placed.topic_id] * 3
    assert codes(response) == [error_codes.UNKNOWN_TOPIC_OR_PARTITION, 0, error_codes.NOT_LEADER_OR_FOLLOWER]
    assert len(placed.written()) == 1


def test_all_assignments_are_written_before_the_leaders_that_follow(placed: Cluster) -> None:
    placed.topic_id = placed.create_topic("u", [1, 2], [1, 2])
    codes(assign(placed, (NOWHERE, 0), (A, 1)))
    assert [(record.partition_id, record.leader) for record, _ in placed.written()] == [(0, -2), (1, -2), (0, 2)]


def test_assigning_never_elects_uncleanly(placed: Cluster) -> None:
    placed.fence(1)
    placed.topic_id = placed.create_topic("w", [1, 2], isr=[1], leader=-1)
    placed.set_config("w", "unclean.leader.election.enable", "true")
    assert codes(assign(placed, (B, 0))) == [0]
    assert placed.partition(placed.topic_id).directories[0] == B
    assert placed.partition(placed.topic_id).leader == -1
