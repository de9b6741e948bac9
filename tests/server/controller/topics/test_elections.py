"""Elections of leaders, on request and periodic."""

from typing import Any

import pytest
from mockraft.server.controller.topics.elections import Candidates, Elected, ElectionType, elect

from ....conftest import Cluster
from ....rows import each_row

ONLINE, PREFERRED, UNCLEAN = ElectionType.ONLINE, ElectionType.PREFERRED, ElectionType.UNCLEAN


def found(election: ElectionType, alive: set[int], **fields: Any) -> Elected:
    state = {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3], "elr": [], "last_known_elr": [], "elr_enabled": True}
    return elect(election, Candidates(**{**state, **fields}, is_acceptable=alive.__contains__))


EMPTY = {"leader": -1, "isr": []}


@pytest.mark.parametrize(
    ("election", "alive", "fields", "elected"),
    [
        *((election, {1, 2, 3}, {}, (1, False)) for election in ElectionType),
        pytest.param(ONLINE, {1, 2, 3}, {"leader": 2}, (2, False), id="a valid leader stays"),
        pytest.param(UNCLEAN, {1, 2, 3}, {"leader": 2}, (2, False), id="a valid leader stays, unclean"),
        pytest.param(PREFERRED, {1, 2, 3}, {"leader": 2}, (1, False), id="moved to the preferred"),
        pytest.param(PREFERRED, {2, 3}, {"leader": 3}, (3, False), id="kept where the preferred may not lead"),
        pytest.param(PREFERRED, {2, 3}, {"leader": -1}, (2, False), id="any valid replica without a leader"),
        pytest.param(ONLINE, {2, 3}, {"isr": [1, 3, 2]}, (2, False), id="replica order, not ISR order"),
        pytest.param(ONLINE, {2, 3}, {"isr": [1, 3]}, (3, False), id="nobody out of sync"),
        pytest.param(ONLINE, {2}, {"isr": [1, 3]}, (-1, False), id="nobody in sync is alive"),
        pytest.param(ONLINE, {2}, {**EMPTY, "elr": [2]}, (2, False), id="an eligible one without an ISR member"),
        pytest.param(ONLINE, {2}, {"isr": [1], "elr": [2]}, (-1, False), id="no eligible one beside an ISR member"),
        pytest.param(ONLINE, {1, 2, 3}, {**EMPTY, "last_known_elr": [3]}, (3, True), id="the last known leader"),
        pytest.param(PREFERRED, {1, 2, 3}, {**EMPTY, "last_known_elr": [3]}, (3, True), id="the last known, preferred"),
        pytest.param(UNCLEAN, {2, 3}, {"isr": [1]}, (2, True), id="unclean: the first living replica"),
        pytest.param(UNCLEAN, {2, 3}, {"isr": [1, 3]}, (3, False), id="unclean: one in sync before it"),
        pytest.param(UNCLEAN, set[int](), {"isr": [1]}, (-1, False), id="unclean: nobody is alive"),
    ],
)
def test_elects(election: ElectionType, alive: set[int], fields: dict[str, Any], elected: tuple[int, bool]) -> None:
    assert found(election, alive, **fields) == elected


@each_row(
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


FIVE_MINUTES_MS = 300_000


@pytest.fixture
def patient(new_cluster: type[Cluster]) -> Cluster:
    """A cluster of three whose sessions outlast the test."""
    cluster = new_cluster(session_timeout_ms=10**9, metadata_max_idle_interval_ms=0)
    cluster.start(1, 2, 3)
    return cluster


def test_leadership_returns_to_the_preferred_replica_unless_it_is_out_of_sync(patient: Any) -> None:
    back, stays = patient.create_topic("t", [1, 2], leader=2), patient.create_topic("u", [1, 2], isr=[2], leader=2)
    patient.advance(FIVE_MINUTES_MS - 1)
    assert patient.partition(back).leader == 2
    patient.advance(1)
    assert (patient.partition(back).leader, patient.partition(back).leader_epoch) == (1, 1)
    assert [record.topic_id for record, _ in patient.written()] == [back]
    assert patient.partition(stays).leader == 2


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
