"""Partition changes when brokers come and go, with and without ELR and unclean elections."""

from typing import Any

import pytest
from mockraft.wire import records

from ....conftest import Cluster


def states(cluster: Cluster, topic_id: bytes) -> tuple[Any, ...]:
    partition = cluster.partition(topic_id)
    return partition.leader, partition.isr, partition.elr, partition.last_known_elr


def test_the_life_of_two_replicas_is_as_seen_on_a_real_controller(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2])
    cluster.fence(1)
    assert states(cluster, topic_id) == (2, (2,), (), ())
    cluster.fence(2)
    assert states(cluster, topic_id) == (-1, (), (2,), (2,))
    cluster.heartbeat(1)
    assert len(cluster.written()) == 1
    cluster.heartbeat(2)
    assert states(cluster, topic_id) == (2, (2,), (), ())


def test_last_isr_member_is_kept_and_leads_again_without_elr(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=20)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2])
    cluster.fence(1)
    cluster.fence(2)
    assert states(cluster, topic_id) == (-1, (2,), (), ())
    cluster.heartbeat(1)
    assert cluster.partition(topic_id).leader == -1
    cluster.heartbeat(2)
    assert states(cluster, topic_id) == (2, (2,), (), ())


def test_an_unclean_topic_is_led_by_whoever_comes_first(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], isr=[1])
    cluster.set_config("t", "unclean.leader.election.enable", "true")
    cluster.fence(1)
    assert states(cluster, topic_id) == (2, (2,), (), ())
    assert cluster.partition(topic_id).leader_recovery_state == 1


@pytest.mark.parametrize(("value", "leader"), [("true", 2), ("TRUE", 2), ("false", -1)])
def test_an_unclean_election_is_the_topics_choice(cluster: Cluster, value: str, leader: int) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], isr=[1])
    cluster.set_config("t", "unclean.leader.election.enable", value)
    cluster.fence(1)
    assert cluster.partition(topic_id).leader == leader


def test_min_isr_is_at_most_the_replication_factor(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2])
    cluster.set_config("t", "min.insync.replicas", "5")
    cluster.fence(2)
    assert states(cluster, topic_id) == (1, (1,), (2,), ())


def test_fencing_costs_only_the_brokers_own_partitions(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    mine = cluster.create_topic("mine", [1, 2])
    cluster.create_topic("others", [2, 3])
    cluster.fence(1)
    changed = [record.topic_id for record, _ in cluster.written() if record.api_key == 5]
    assert changed == [mine]


def test_below_3_6_a_shrinking_isr_names_its_leader_again(new_cluster: type[Cluster]) -> None:
    for level, leader_epoch in ((11, 1), (12, 0)):
        cluster = new_cluster(metadata_version=level)
        cluster.start(1, 2)
        topic_id = cluster.create_topic("t", [1, 2])
        cluster.fence(2)
        assert cluster.partition(topic_id).leader_epoch == leader_epoch


def test_completing_a_reassignment_may_fall_to_a_fencing(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2, 3], isr=[1, 2, 3], removing_replicas=[3], adding_replicas=[2])
    cluster.fence(3)
    partition = cluster.partition(topic_id)
    assert (partition.replicas, partition.is_reassigning, partition.leader_epoch) == ((1, 2), False, 1)


def test_a_broker_in_controlled_shutdown_is_not_elected(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    cluster.create_topic("hold", [2])
    topic_id = cluster.create_topic("t", [1, 2, 3])
    cluster.heartbeat(2, want_shut_down=True)
    cluster.fence(1)
    assert cluster.partition(topic_id).leader == 3


def test_registration_changes_are_written_in_the_version_of_their_content(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.heartbeat(1, want_shut_down=True)
    assert [v for r, v in cluster.written() if records.TYPES[r.api_key] == "BrokerRegistrationChangeRecord"] == [1]
