import pytest
from mockraft.server.controller import quorum
from mockraft.server.controller.quorum import LocalVoter, Observers, ReplicaKey, ReplicaState, VoterState
from mockraft.wire import record_batch

DIRECTORY_ID = bytes.fromhex("e4503f1825d64cdaab2eba68c7a3116d")
LOCAL = LocalVoter(3000, DIRECTORY_ID, "CONTROLLER", "127.0.0.1", 19093)

# The values of the control records with which Kafka 4.3.1's controller began its log.
LEADER_CHANGE = bytes.fromhex("000000000bb80200000bb8000200000bb80000")
KRAFT_VERSION = bytes.fromhex("0000000100")
VOTERS = bytes.fromhex(
    "00000200000bb8e4503f1825d64cdaab2eba68c7a3116d020b434f4e54524f4c4c45520a3132372e302e302e314a950000000001000000"
)

BROKER = ReplicaKey(1, bytes(15) + b"\x07")


def control_types(pairs: list[tuple[bytes, bytes]]) -> list[int]:
    return [record_batch.control_type(key) for key, _ in pairs]


def test_a_log_begins_as_kafkas_does() -> None:
    pairs = quorum.start_of_epoch(VoterState(1), LOCAL, voters_in_log=False)
    assert [value for _, value in pairs] == [LEADER_CHANGE, KRAFT_VERSION, VOTERS]
    assert [key.hex() for key, _ in pairs] == ["00000002", "00000005", "00000006"]


def test_a_later_epoch_begins_with_a_leader_change_alone() -> None:
    state = VoterState(1)
    quorum.start_of_epoch(state, LOCAL, voters_in_log=False)
    assert control_types(quorum.start_of_epoch(state, LOCAL, voters_in_log=True)) == [record_batch.LEADER_CHANGE]


def test_a_voter_that_moved_writes_its_endpoints_again() -> None:
    state = VoterState(1)
    quorum.start_of_epoch(state, LOCAL, voters_in_log=False)
    moved = LocalVoter(3000, DIRECTORY_ID, "CONTROLLER", "127.0.0.1", 19094)
    pairs = quorum.start_of_epoch(state, moved, voters_in_log=True)
    assert control_types(pairs) == [record_batch.LEADER_CHANGE, record_batch.KRAFT_VERSION, record_batch.KRAFT_VOTERS]
    assert state.voters is not None
    assert state.voters.voters[0].endpoints[0].port == 19094


def test_with_kraft_version_0_the_voters_are_not_in_the_log() -> None:
    state = VoterState(0)
    assert control_types(quorum.start_of_epoch(state, LOCAL, voters_in_log=False)) == [record_batch.LEADER_CHANGE]
    assert state.records() == []


def test_control_batches_say_the_voters() -> None:
    written = VoterState(1)
    pairs = quorum.start_of_epoch(written, LOCAL, voters_in_log=False)
    (batch,) = record_batch.read_batches(
        record_batch.encode_control(pairs, base_offset=0, leader_epoch=1, timestamp_ms=0)
    )
    read = VoterState()
    read.apply(batch)
    assert read == written
    assert [value for _, value in read.records()] == [KRAFT_VERSION, VOTERS]


def test_an_observer_at_the_end_is_caught_up_now() -> None:
    observers = Observers()
    observers.fetched(BROKER, 20, 20, 1000)
    assert observers.states(1000) == {BROKER: ReplicaState(20, 1000, 1000, 20)}


def test_an_observer_that_has_what_there_was_at_its_last_fetch_was_caught_up_then() -> None:
    observers = Observers()
    observers.fetched(BROKER, 0, 20, 1000)
    assert observers.states(1000)[BROKER].last_caught_up_timestamp_ms == -1
    observers.fetched(BROKER, 20, 25, 1500)
    assert observers.states(1500)[BROKER] == ReplicaState(20, 1500, 1000, 25)
    observers.fetched(BROKER, 22, 30, 1600)
    assert observers.states(1600)[BROKER].last_caught_up_timestamp_ms == 1000


def test_time_does_not_go_back() -> None:
    observers = Observers()
    observers.fetched(BROKER, 20, 20, 1000)
    observers.fetched(BROKER, 20, 20, 900)
    assert observers.states(1000)[BROKER] == ReplicaState(20, 1000, 1000, 20)


def test_an_observer_is_forgotten_after_five_minutes() -> None:
    observers = Observers()
    observers.fetched(BROKER, 20, 20, 1000)
    observers.fetched(ReplicaKey(2, bytes(16)), 20, 20, 2000)
    assert len(observers.states(300_999)) == 2
    assert [key.id for key in observers.states(301_000)] == [2]


def test_one_id_with_two_directories_is_two_observers() -> None:
    observers = Observers()
    observers.fetched(BROKER, 1, 20, 1000)
    observers.fetched(ReplicaKey(1, bytes(16)), 2, 20, 1000)
    assert len(observers.states(1000)) == 2


def test_a_divergence_is_news_once_for_replicas_and_never_for_plain_readers() -> None:
    observers = Observers()
    assert observers.diverged(1, 20)
    assert not observers.diverged(1, 20)
    assert observers.diverged(1, 21)
    assert not observers.diverged(-1, 20)
    assert sum(observers.diverged(2, offset) for offset in range(5_000)) == quorum.DIVERGED_MAX - 2


def test_observers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum, "OBSERVERS_MAX", 3)
    observers = Observers()
    for replica_id in (1, 2, 1, 3, 4):
        observers.fetched(ReplicaKey(replica_id, bytes(16)), 1, 20, 1000)
    assert [key.id for key in observers.states(1000)] == [2, 3, 4]
