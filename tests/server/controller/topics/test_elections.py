"""Elections of leaders, on request and periodic."""

from typing import Any

import pytest
from mockraft.server.controller.topics.elections import Candidates, Elected, Election, elect

from ....conftest import Cluster

ONLINE, PREFERRED, UNCLEAN = Election.ONLINE, Election.PREFERRED, Election.UNCLEAN


def found(election: Election, alive: set[int], **fields: Any) -> Elected:
    state = {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3], "elr": [], "last_known_elr": [], "elr_enabled": True}
    return elect(election, Candidates(**{**state, **fields}, is_acceptable=alive.__contains__))


@pytest.mark.parametrize("election", Election)
def test_a_valid_leader_that_is_preferred_stays(election: Election) -> None:
    assert found(election, {1, 2, 3}) == (1, False)


@pytest.mark.parametrize(("election", "leader"), [(ONLINE, 2), (UNCLEAN, 2), (PREFERRED, 1)])
def test_only_a_preferred_election_moves_a_valid_leader(election: Election, leader: int) -> None:
    assert found(election, {1, 2, 3}, leader=2) == (leader, False)


def test_a_preferred_election_keeps_the_leader_when_the_first_replica_may_not_lead() -> None:
    assert found(PREFERRED, {2, 3}, leader=3) == (3, False)


def test_a_preferred_election_elects_any_valid_replica_without_leader() -> None:
    assert found(PREFERRED, {2, 3}, leader=-1) == (2, False)


def test_the_next_leader_is_the_first_in_replica_order_not_isr_order() -> None:
    assert found(ONLINE, {2, 3}, isr=[1, 3, 2]) == (2, False)


def test_a_replica_out_of_sync_is_not_elected() -> None:
    assert found(ONLINE, {2, 3}, isr=[1, 3]) == (3, False)
    assert found(ONLINE, {2}, isr=[1, 3]) == (-1, False)


def test_eligible_replica_is_elected_only_without_an_isr_member() -> None:
    assert found(ONLINE, {2}, leader=-1, isr=[], elr=[2]) == (2, False)
    assert found(ONLINE, {2}, isr=[1], elr=[2]) == (-1, False)


def test_last_known_leader_regains_an_empty_partition_uncleanly() -> None:
    state = {"leader": -1, "isr": [], "last_known_elr": [3]}
    assert found(ONLINE, {1, 2, 3}, **state) == (3, True)
    assert found(PREFERRED, {1, 2, 3}, **state) == (3, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"elr_enabled": False},
        {"elr": [2]},
        {"isr": [2]},
        {"last_known_elr": [3, 1]},
        {"last_known_elr": []},
        {"last_known_elr": [2]},
        {"replicas": [1, 2]},
    ],
)
def test_last_known_leader_does_not_regain_it_otherwise(fields: dict[str, Any]) -> None:
    assert found(ONLINE, {1, 3}, **{"leader": -1, "isr": [], "last_known_elr": [3], **fields}) == (-1, False)


def test_an_unclean_election_takes_the_first_living_replica() -> None:
    assert found(UNCLEAN, {2, 3}, isr=[1]) == (2, True)


def test_an_unclean_election_prefers_one_in_sync() -> None:
    assert found(UNCLEAN, {2, 3}, isr=[1, 3]) == (3, False)


def test_unclean_election_needs_a_live_replica() -> None:
    assert found(UNCLEAN, set(), isr=[1]) == (-1, False)


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
