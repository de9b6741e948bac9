"""Every pair of roles, every kind of vote: the tables as a whole."""

import itertools

import pytest
from mockraft.server.controller.quorum.election_state import NO_DIRECTORY_ID, ReplicaKey
from mockraft.server.raft.states import Role, Votes, Voting, can_step, grants

U, P, C, F, L, R = Role
ME, YOU = ReplicaKey(1, bytes(15) + b"\1"), ReplicaKey(2, bytes(15) + b"\2")

IN_SAME_EPOCH = {
    (U, P), (U, F),
    (P, U), (P, F),
    (C, P), (C, F), (C, L),
    (F, P), (F, F),
    (L, R),
    (R, P), (R, F),
}  # fmt: skip
IN_HIGHER_EPOCH = {(role, to) for role in Role for to in (U, F)} | {(P, C)}
VOTERS_ONLY = {(role, to) for role in Role for to in (P, C, L)}


@pytest.mark.parametrize(("role", "to"), list(itertools.product(Role, Role)))
def test_every_way_from_role_to_role(role: Role, to: Role) -> None:
    same, higher = (role, to) in IN_SAME_EPOCH, (role, to) in IN_HIGHER_EPOCH
    assert can_step(role, to, 5, 5, is_voter=True) == same
    assert can_step(role, to, 5, 6, is_voter=True) == higher
    assert not can_step(role, to, 5, 4, is_voter=True)
    assert can_step(role, to, 5, 5, is_voter=False) == (same and (role, to) not in VOTERS_ONLY)
    assert can_step(role, to, 5, 6, is_voter=False) == (higher and (role, to) not in VOTERS_ONLY)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("has_fetched", [True, False])
def test_pre_votes_are_granted_by_role_and_log(role: Role, has_fetched: bool) -> None:
    voting = Voting(role, has_leader=True, voted=YOU, has_fetched=has_fetched)
    expected = role is not L and not (role is F and has_fetched)
    assert grants(voting, ME, is_up_to_date=True, pre_vote=True) == expected
    assert not grants(voting, ME, is_up_to_date=False, pre_vote=True)


@pytest.mark.parametrize("role", list(Role))
def test_votes_are_granted_by_role_and_log(role: Role) -> None:
    voting = Voting(role)
    assert grants(voting, ME, is_up_to_date=True, pre_vote=False) == (role in (U, P))
    assert not grants(voting, ME, is_up_to_date=False, pre_vote=False)


@pytest.mark.parametrize("role", [U, P])
def test_a_vote_is_granted_once_and_repeated(role: Role) -> None:
    for is_up_to_date in (True, False):
        assert grants(Voting(role, voted=ME), ME, is_up_to_date=is_up_to_date, pre_vote=False)
        assert not grants(Voting(role, voted=YOU), ME, is_up_to_date=is_up_to_date, pre_vote=False)
        assert not grants(
            Voting(role, voted=ME), ME._replace(directory_id=bytes(16)), is_up_to_date=True, pre_vote=False
        )
    forgotten = Voting(role, voted=ReplicaKey(ME.id, NO_DIRECTORY_ID))
    assert grants(forgotten, ME, is_up_to_date=True, pre_vote=False)


def test_a_voter_with_a_leader_grants_no_vote() -> None:
    assert not grants(Voting(U, has_leader=True), ME, is_up_to_date=True, pre_vote=False)


@pytest.mark.parametrize(("voters", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_elects(voters: int, majority: int) -> None:
    votes = Votes({voter: ReplicaKey(voter, bytes(16)) for voter in range(1, voters + 1)}, 1)
    for voter in range(2, majority + 1):
        assert not votes.is_granted
        votes.record(voter, True)
    assert votes.is_granted
    assert votes.granting == list(range(1, majority + 1))
    assert [key.id for key in votes.unrecorded] == list(range(majority + 1, voters + 1))


def test_election_is_lost_without_a_possible_majority() -> None:
    votes = Votes({voter: ReplicaKey(voter, bytes(16)) for voter in range(1, 6)}, 1)
    votes.record(2, False)
    votes.record(3, False)
    votes.record(9, False)
    assert not votes.is_rejected
    votes.record(4, False)
    assert votes.is_rejected
