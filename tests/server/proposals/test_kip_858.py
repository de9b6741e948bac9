"""KIP-858 as its text words it, where Kafka 4.3.1 shipped it otherwise: one test for each such wording."""

from typing import Any

import pytest
from mockraft.wire import directory_ids, error_codes
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ...topics import topic
from .conftest import Proposed

A, B, C, NOWHERE = (bytes([8] * 15 + [number]) for number in (1, 2, 3, 4))
PROFILE = "kip-858"


@pytest.fixture
def cluster(proposed: type[Proposed]) -> Proposed:
    """Broker 1 with directories A and B, broker 2 with C, both unfenced."""
    cluster = proposed(PROFILE)
    cluster.start(1, log_dirs=[A, B])
    cluster.start(2, log_dirs=[C])
    return cluster


def create(cluster: Proposed, name: str, replication_factor: int = 2) -> bytes:
    (created,) = cluster.ask(CreateTopicsRequest(topics=[topic(name, 1, replication_factor)], timeout_ms=1000)).topics
    assert created.error_code == error_codes.NONE
    return bytes(created.topic_id)


def assign(cluster: Proposed, broker_id: int, directory: bytes, topic_id: bytes) -> Any:
    words = cluster.overlay.module("AssignReplicasToDirsRequest")
    assigned = words.TopicData(topic_name=topic_id, partitions=[words.PartitionData(partition_index=0)])
    return cluster.ask(
        words.AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=cluster.broker(broker_id).broker_epoch,
            directories=[words.DirectoryData(id=directory, topics=[assigned])],
        )
    )


def test_the_id_of_unassigned_is_zero(cluster: Proposed) -> None:
    partition = cluster.partition(create(cluster, "t"))
    assert sorted(partition.replicas) == [1, 2], "the brokers have one directory and two"
    assert partition.directories == (bytes(16), bytes(16))


@pytest.mark.parametrize("reserved", [bytes(16), directory_ids.LOST, bytes(15) + bytes([99])])
def test_the_first_hundred_ids_are_no_directories(proposed: type[Proposed], reserved: bytes) -> None:
    cluster = proposed(PROFILE)
    response = cluster.ask(cluster.registration_request(1, log_dirs=[A, reserved]))
    assert response.error_code == error_codes.INVALID_REGISTRATION


def test_an_assignment_names_its_topic_in_topic_name(cluster: Proposed) -> None:
    topic_id = create(cluster, "t")
    response = assign(cluster, 2, C, topic_id)
    assert response.directories[0].topics[0].topic_id == topic_id
    assert response.directories[0].topics[0].partitions[0].error_code == error_codes.NONE
    partition = cluster.partition(topic_id)
    assert partition.directory(2) == C


def test_registration_change_version_3_contains_online_directories(cluster: Proposed) -> None:
    cluster.heartbeat(1, offline_log_dirs=[A])
    record, version = cluster.said()[-1]
    assert (type(record).__name__, version, record.log_dirs) == ("BrokerRegistrationChangeRecord", 3, [B])
    assert cluster.replayed().cluster.brokers[1].log_dirs == (B,)


def test_registration_contains_online_directories(cluster: Proposed) -> None:
    cluster.register(3, log_dirs=[NOWHERE])
    record, version = cluster.said()[-1]
    assert (record.log_dirs, version) == ([NOWHERE], 4)


@pytest.mark.parametrize(
    ("message", "field", "since", "tag"),
    [
        ("BrokerRegistrationRequest", "LogDirs", 2, -1),
        ("BrokerHeartbeatRequest", "OfflineLogDirs", 1, 0),
        ("RegisterBrokerRecord", "LogDirs", 3, 0),
        ("PartitionRecord", "Directories", 1, -1),
        ("PartitionChangeRecord", "Directories", 1, -1),
    ],
)
def test_fields_have_the_versions_and_tags_of_the_text(
    cluster: Proposed, message: str, field: str, since: int, tag: int
) -> None:
    (spec,) = (each for each in cluster.overlay.schema(message).root.fields if each.name == field)
    assert (spec.versions.low, spec.tag) == (since, tag)


def test_every_partition_change_contains_all_directories(cluster: Proposed) -> None:
    topic_id = create(cluster, "t")
    assign(cluster, 1, A, topic_id)
    cluster.fence(1)
    changes = [record for record, _ in cluster.said() if type(record).__name__ == "PartitionChangeRecord"]
    partition = cluster.partition(topic_id)
    assert [record.directories for record in changes] == [list(partition.directories)]
    assert cluster.replayed().topics.partition(topic_id, 0) == partition


def test_an_offline_directory_that_was_never_registered_fails_the_heartbeat(cluster: Proposed) -> None:
    response = cluster.heartbeat(1, offline_log_dirs=[A, NOWHERE], want_fence=True)
    assert response.error_code == error_codes.LOG_DIR_NOT_FOUND
    assert cluster.written() == []
    assert (cluster.broker(1).fenced, cluster.broker(1).offline_log_dirs) == (False, ())
    for _ in range(2):
        assert cluster.heartbeat(1, offline_log_dirs=[A]).error_code == error_codes.NONE
        assert cluster.broker(1).offline_log_dirs == (A,), "still a registered one"
    cluster.register(1, log_dirs=[B])
    assert cluster.broker(1).offline_log_dirs == ()


def test_broker_with_several_directories_stays_fenced_until_assignments_are_confirmed(cluster: Proposed) -> None:
    topic_id = create(cluster, "t")
    assert cluster.heartbeat(1).is_fenced is False, "one that is unfenced stays so"
    cluster.fence(1)
    cluster.fence(2)
    assert cluster.heartbeat(1).is_fenced is True
    assert cluster.heartbeat(2).is_fenced is False, "it has one directory"
    assign(cluster, 1, B, topic_id)
    assert cluster.heartbeat(1).is_fenced is False
