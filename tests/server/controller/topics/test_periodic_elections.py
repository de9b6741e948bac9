"""Elections that come round each five minutes."""

from typing import Any

import pytest

from ....conftest import Cluster

FIVE_MINUTES_MS = 300_000


@pytest.fixture
def patient(new_cluster: type[Cluster]) -> Cluster:
    """A cluster of three whose sessions outlast the test."""
    cluster = new_cluster(session_timeout_ms=10**9, metadata_max_idle_interval_ms=0)
    cluster.start(1, 2, 3)
    return cluster


def test_leadership_returns_to_the_preferred_replica(patient: Any) -> None:
    topic_id = patient.create_topic("t", [1, 2], leader=2)
    patient.advance(FIVE_MINUTES_MS - 1)
    assert patient.partition(topic_id).leader == 2
    patient.advance(1)
    assert patient.partition(topic_id).leader == 1
    assert patient.partition(topic_id).leader_epoch == 1


def test_a_leader_stays_while_the_preferred_replica_is_out_of_sync(patient: Any) -> None:
    topic_id = patient.create_topic("t", [1, 2], isr=[2], leader=2)
    patient.advance(FIVE_MINUTES_MS)
    assert patient.partition(topic_id).leader == 2
    assert patient.written() == []


def test_leaders_stay_where_balancing_is_off(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(session_timeout_ms=10**9, auto_leader_rebalance_enable=False)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], leader=2)
    cluster.advance(FIVE_MINUTES_MS)
    assert cluster.partition(topic_id).leader == 2


@pytest.mark.parametrize(("allowed", "leader"), [("true", 2), ("false", -1)])
def test_a_lost_partition_gets_an_unclean_leader_where_its_topic_allows_it(
    patient: Any, allowed: str, leader: int
) -> None:
    patient.fence(1)
    topic_id = patient.create_topic("t", [1, 2], isr=[1], leader=-1)
    patient.set_config("t", "unclean.leader.election.enable", allowed)
    assert patient.partition(topic_id).leader == -1
    patient.advance(FIVE_MINUTES_MS)
    assert patient.partition(topic_id).leader == leader


def test_more_than_a_thousand_elections_are_done_in_several_batches(patient: Any) -> None:
    topic_id = patient.create_topic("t", *[[1, 2]] * 2100, leader=2)
    patient.advance(FIVE_MINUTES_MS)
    assert len(patient.written()) == 2100
    assert not patient.controller.image.topics.index.imbalanced()
    assert patient.partition(topic_id, 2099).leader == 1
