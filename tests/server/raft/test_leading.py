import pytest
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from mockraft.server.raft import leading as leading_module
from mockraft.server.raft.leading import Leading, ReplicaState

BROKER = ReplicaKey(11, bytes(15) + b"\x07")
FETCH_TIMEOUT_MS = 2000


def node(voter_id: int, directory_id: bytes | None = None) -> VoterNode:
    directory_id = bytes(15) + bytes([voter_id]) if directory_id is None else directory_id
    return VoterNode(ReplicaKey(voter_id, directory_id), (VoterEndpoint("CONTROLLER", "127.0.0.1", 9000 + voter_id),))


def leader(*voter_ids: int, epoch_start_offset: int = 10) -> Leading:
    voters = VoterSet(node(voter_id) for voter_id in voter_ids or (1,))
    return Leading(node(1), voters, epoch_start_offset, 1000, fetch_timeout_ms=FETCH_TIMEOUT_MS)


def test_an_observer_at_the_end_is_caught_up_for_an_hour() -> None:
    leading = leader()
    leading.fetched(BROKER, 20, 20, 1000)
    leading.fetched(BROKER, 20, 20, 900)
    assert leading.observers(1000) == {BROKER: ReplicaState(20, 1000, 1000, 20)}, "time does not go back"
    assert [leading.is_caught_up(BROKER, now_ms) for now_ms in (1000, 3_600_999, 3_601_000)] == [True, True, False]
    assert not leading.is_caught_up(ReplicaKey(9, bytes(16)), 1000)


def test_observer_caught_up_time_is_that_of_its_previous_fetch() -> None:
    leading = leader()
    leading.fetched(BROKER, 0, 20, 1000)
    assert leading.observers(1000)[BROKER].last_caught_up_timestamp_ms == -1
    assert not leading.is_caught_up(BROKER, 1000)
    leading.fetched(BROKER, 20, 25, 1500)
    assert leading.observers(1500)[BROKER] == ReplicaState(20, 1500, 1000, 25)
    leading.fetched(BROKER, 22, 30, 1600)
    assert leading.observers(1600)[BROKER].last_caught_up_timestamp_ms == 1000


def test_an_observer_is_forgotten_after_five_minutes_and_has_one_directory() -> None:
    leading = leader()
    leading.fetched(BROKER, 20, 20, 1000)
    leading.fetched(ReplicaKey(11, bytes(16)), 20, 20, 2000)
    assert len(leading.observers(300_999)) == 2
    assert [key.directory_id for key in leading.observers(301_000)] == [bytes(16)]


def test_a_divergence_is_news_once_for_replicas_and_never_for_plain_readers() -> None:
    leading = leader()
    assert leading.diverged(1, 20)
    assert not leading.diverged(1, 20)
    assert leading.diverged(1, 21)
    assert not leading.diverged(-1, 20)
    assert leading.diverged(0, 20), "a node, not a reader"
    assert sum(leading.diverged(2, offset) for offset in range(5_000)) == leading_module.DIVERGED_MAX - 3


def test_observers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading_module, "OBSERVERS_MAX", 3)
    leading = leader()
    for replica_id in (12, 13, 12, 14, 15):
        leading.fetched(ReplicaKey(replica_id, bytes(16)), 1, 20, 1000)
    assert [key.id for key in leading.observers(1000)] == [13, 14, 15]


def test_records_of_a_majority_are_committed() -> None:
    assert leader(1).committed_offset(20) == 20, "alone all"
    leading = leader(1, 2, 3)
    assert leading.committed_offset(20) == -1
    leading.fetched(node(2).key, 15, 20, 1000)
    assert leading.committed_offset(20) == 15
    leading.fetched(node(3).key, 18, 20, 1000)
    assert leading.committed_offset(20) == 18
    assert leading.committed_offset(16) == 16


def test_records_of_earlier_epochs_are_committed_with_one_of_this_epoch() -> None:
    leading = leader(1, 2, epoch_start_offset=10)
    leading.fetched(node(2).key, 10, 20, 1000)
    assert leading.committed_offset(20) == -1
    leading.fetched(node(2).key, 11, 20, 1000)
    assert leading.committed_offset(20) == 11


def test_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    leading = leader(1, 2, 3)
    leading.change_voters(VoterSet([node(2), node(3)]))
    leading.fetched(node(2).key, 20, 20, 1000)
    assert leading.committed_offset(20) == -1
    leading.fetched(node(3).key, 19, 20, 1000)
    assert leading.committed_offset(20) == 19
    assert node(1).key in leading.observers(10_000_000), "it still is a replica"


def test_voter_is_identified_by_id_and_directory() -> None:
    leading = leader(1, 2)
    assert not leading.fetched(ReplicaKey(2, bytes(16)), 20, 20, 1000)
    assert leading.committed_offset(20) == -1
    assert leading.fetched(node(2).key, 20, 20, 1000)


def test_replica_state_is_kept_when_a_replica_becomes_or_ceases_to_be_a_voter() -> None:
    leading = leader(1)
    leading.fetched(node(2).key, 20, 20, 1000)
    leading.change_voters(VoterSet([node(1), node(2)]))
    assert leading.observers(1000) == {}
    assert leading.committed_offset(20) == 20
    leading.change_voters(VoterSet([node(1)]))
    assert list(leading.observers(1000)) == [node(2).key]


def test_voters_keep_their_state_when_they_get_directories() -> None:
    voters = VoterSet([node(1, NO_DIRECTORY_ID), node(2, NO_DIRECTORY_ID)])
    leading = Leading(node(1), voters, 10, 1000, fetch_timeout_ms=FETCH_TIMEOUT_MS)
    leading.fetched(node(2).key, 20, 20, 1000)
    assert leading.has_directory_ids() is False
    leading.change_voters(VoterSet([node(1), node(2)]))
    assert leading.committed_offset(20) == 20


def test_a_majority_must_fetch_within_one_and_a_half_fetch_timeouts() -> None:
    leading = leader(1, 2, 3, 4, 5)
    assert leading.check_quorum_ms() == 4000
    leading.contacted(node(2).key, 2000)
    leading.contacted(node(2).key, 2100)
    assert leading.check_quorum_ms() == 4000
    leading.contacted(node(3).key, 2200)
    assert leading.check_quorum_ms() == 5200
    leading.contacted(node(4).key, 2300)
    assert leading.check_quorum_ms() == 5200, "a new majority counts from now on"
    leading.contacted(BROKER, 2400)
    leading.contacted(node(2).key, 2500)
    assert leading.check_quorum_ms() == 5500


def test_single_voter_needs_no_check_quorum() -> None:
    assert leader(1).check_quorum_ms() is None


def test_idle_voters_get_begin_quorum_epoch() -> None:
    leading = leader(1, 2, 3)
    assert [key.id for key in leading.begin_quorum_targets(1000)] == [2, 3]
    assert leading.begin_quorum_ms == 2000
    leading.fetched(node(2).key, 20, 20, 1500)
    assert [key.id for key in leading.begin_quorum_targets(2000)] == [3]


def test_the_furthest_voter_should_succeed() -> None:
    leading = leader(1, 2, 3, 4)
    leading.fetched(node(3).key, 20, 20, 1000)
    leading.fetched(node(4).key, 10, 20, 1000)
    assert [key.id for key in leading.successors()] == [3, 4, 2]
