"""Failed and cordoned directories in heartbeats."""

import pytest
from mockraft.server.controller.brokers.log_dirs import check_registered
from mockraft.server.controller.result import ApiError
from mockraft.wire import uuids

from ....conftest import Cluster, uuid

A, B, C = uuid(1), uuid(2), uuid(3)
T, U = uuid(5), uuid(6)
HIGH = b"\xf0" + A[1:]


@pytest.fixture
def two_dirs(cluster: Cluster) -> Cluster:
    """Broker 1 has directories A and B, broker 2 has C; t-0 of 1 and 2 lies in A, t-1 in B, both led by 1."""
    cluster.start(1, log_dirs=[A, B])
    cluster.start(2, log_dirs=[C])
    cluster.create_topic("t", [1, 2], directories=[A, C], topic_id=T)
    cluster.create_topic("u", [1, 2], directories=[B, C], topic_id=U)
    return cluster


def test_a_failure_of_another_brokers_directory_is_ignored(two_dirs: Cluster) -> None:
    assert two_dirs.heartbeat(1, offline_log_dirs=[C]).error_code == 0
    assert two_dirs.written() == []


def test_a_follower_in_a_failed_directory_leaves_the_isr_and_the_leader_stays(two_dirs: Cluster) -> None:
    topic_id = two_dirs.create_topic("v", [2, 1], directories=[C, A])
    two_dirs.heartbeat(1, offline_log_dirs=[A])
    partition = two_dirs.partition(topic_id)
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 0)


def test_the_new_leader_is_the_first_replica_that_is_in_sync_whatever_the_order_of_the_isr(two_dirs: Cluster) -> None:
    """KIP-18's rule: the first of the assigned replicas that is in the new ISR; those assigned stay."""
    two_dirs.start(3, log_dirs=[uuid(4)])
    topic_id = two_dirs.create_topic("v", [1, 2, 3], isr=[3, 2, 1], directories=[A, C, uuid(4)])
    two_dirs.heartbeat(1, offline_log_dirs=[A])
    partition = two_dirs.partition(topic_id)
    assert (partition.leader, partition.isr, partition.replicas) == (2, (3, 2), (1, 2, 3))


def test_replacing_a_registration_keeps_replicas_and_no_cordons(two_dirs: Cluster) -> None:
    before = two_dirs.partition(T)
    two_dirs.heartbeat(1, cordoned_log_dirs=[A, B])
    assert two_dirs.broker(1).has_uncordoned_log_dirs is False
    two_dirs.register(1, log_dirs=[B])
    assert two_dirs.partition(T) == before
    assert two_dirs.broker(1).has_online_dir(A) is False
    assert two_dirs.broker(1).cordoned_log_dirs is None


def test_failed_directories_are_handled_in_javas_order(cluster: Cluster) -> None:
    cluster.start(1, log_dirs=[A, HIGH, B])
    in_a = cluster.create_topic("t", [1], directories=[A])
    in_high = cluster.create_topic("u", [1], directories=[HIGH])
    cluster.heartbeat(1, offline_log_dirs=[A, HIGH])
    changed = [getattr(record, "topic_id", None) for record, _ in cluster.written()]
    assert changed == [in_high, in_a, None]
    assert cluster.broker(1).log_dirs == (B,)


def test_partition_without_another_replica_keeps_its_broker_eligible_without_a_leader(two_dirs: Cluster) -> None:
    topic_id = two_dirs.create_topic("alone", [1], directories=[A])
    two_dirs.heartbeat(1, offline_log_dirs=[A])
    partition = two_dirs.partition(topic_id)
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1,))


def test_replica_in_a_failed_directory_is_not_elected(two_dirs: Cluster) -> None:
    two_dirs.heartbeat(1, offline_log_dirs=[A])
    two_dirs.fence(2)
    partition = two_dirs.partition(T)
    assert (partition.leader, partition.elr) == (-1, (2,))


@pytest.mark.parametrize(
    ("reported", "recorded"),
    [
        ([None], []),
        ([[]], [[]]),
        ([[], []], [[]]),
        ([[A], None, [A]], [[A]]),
        ([[A, B], [B, A], [A, B, A]], [[A, B]]),
        ([[A], [A, B], []], [[A], [A, B], []]),
        ([[A, A]], [[A, A]]),
        ([[uuid(99)]], [[uuid(99)]]),
    ],
)
def test_cordoned_directories_are_written_when_the_set_changes(
    cluster: Cluster, reported: list[list[bytes] | None], recorded: list[list[bytes]]
) -> None:
    cluster.start(1, log_dirs=[A, B])
    found = []
    for cordoned in reported:
        cluster.heartbeat(1, cordoned_log_dirs=cordoned)
        found += [(version, record.cordoned_log_dirs) for record, version in cluster.written()]
    assert found == [(3, cordoned) for cordoned in recorded]


def test_a_directory_that_was_never_registered_is_named(cluster: Cluster) -> None:
    cluster.start(1, log_dirs=[A, B])
    check_registered(cluster.broker(1), [A])
    with pytest.raises(ApiError, match=f"Broker 1 did not register log directory {uuids.text_of(C)}"):
        check_registered(cluster.broker(1), [C])


def test_a_heartbeat_that_changes_nothing_has_no_reason_to_log(
    two_dirs: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    two_dirs.heartbeat(1)
    assert caplog.messages == []
