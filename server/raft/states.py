"""States of a node and the transitions between them, as tables and pure functions (QuorumState; KIP-595, KIP-996).

A node without a vote, an observer, is always UNATTACHED or FOLLOWER.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey


class Role(Enum):
    """Role of a node in its epoch."""

    UNATTACHED = "unattached"
    """Follows no leader; may have voted."""
    PROSPECTIVE = "prospective"
    """Holds a pre-vote, without a new epoch."""
    CANDIDATE = "candidate"
    """Voted for itself and requests the votes of the others."""
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"
    """Led this epoch and resigned."""


class RoleChange(NamedTuple):
    """One transition between roles: whether the epoch may or must grow, and whether it requires a vote."""

    in_same_epoch: bool
    in_higher_epoch: bool
    takes_a_vote: bool = False


_HIGHER = RoleChange(in_same_epoch=False, in_higher_epoch=True)
_ANY = RoleChange(in_same_epoch=True, in_higher_epoch=True)
_VOTER = RoleChange(in_same_epoch=True, in_higher_epoch=False, takes_a_vote=True)
_NEXT_EPOCH = RoleChange(in_same_epoch=False, in_higher_epoch=True, takes_a_vote=True)
_SAME = RoleChange(in_same_epoch=True, in_higher_epoch=False)

STEPS: dict[tuple[Role, Role], RoleChange] = {
    (Role.UNATTACHED, Role.UNATTACHED): _HIGHER,
    (Role.UNATTACHED, Role.PROSPECTIVE): _VOTER,
    (Role.UNATTACHED, Role.FOLLOWER): _ANY,
    (Role.PROSPECTIVE, Role.UNATTACHED): _ANY,
    (Role.PROSPECTIVE, Role.CANDIDATE): _NEXT_EPOCH,
    (Role.PROSPECTIVE, Role.FOLLOWER): _ANY,
    (Role.CANDIDATE, Role.UNATTACHED): _HIGHER,
    (Role.CANDIDATE, Role.PROSPECTIVE): _VOTER,
    (Role.CANDIDATE, Role.FOLLOWER): _ANY,
    (Role.CANDIDATE, Role.LEADER): _VOTER,
    (Role.FOLLOWER, Role.UNATTACHED): _HIGHER,
    (Role.FOLLOWER, Role.PROSPECTIVE): _VOTER,
    (Role.FOLLOWER, Role.FOLLOWER): _ANY,
    (Role.LEADER, Role.UNATTACHED): _HIGHER,
    (Role.LEADER, Role.FOLLOWER): _HIGHER,
    (Role.LEADER, Role.RESIGNED): _SAME,
    (Role.RESIGNED, Role.UNATTACHED): _HIGHER,
    (Role.RESIGNED, Role.PROSPECTIVE): _VOTER,
    (Role.RESIGNED, Role.FOLLOWER): _ANY,
}
"""All transitions. FOLLOWER to FOLLOWER in an epoch adds the address of a leader whose address was unknown."""


def can_step(role: Role, to: Role, epoch: int, to_epoch: int, *, is_voter: bool) -> bool:
    """Return True if a node may change from `role` in `epoch` to `to` in `to_epoch`."""
    step = STEPS.get((role, to))
    if step is None or to_epoch < epoch or (step.takes_a_vote and not is_voter):
        return False
    return step.in_same_epoch if to_epoch == epoch else step.in_higher_epoch


class Voting(NamedTuple):
    """State that decides whether a node grants a vote of its epoch."""

    role: Role
    has_leader: bool = False
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """For a follower: True if the leader responded in this epoch."""


def grants(voting: Voting, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
    """Return True if a vote is granted; `is_up_to_date`: the candidate's log is not behind (canGrantVote)."""
    if pre_vote:
        if voting.role is Role.LEADER or (voting.role is Role.FOLLOWER and voting.has_fetched):
            return False
        return is_up_to_date
    if voting.role not in (Role.UNATTACHED, Role.PROSPECTIVE):
        return False
    if voting.voted is not None:
        # Grant a repeated request again: the first response may have been lost.
        known = voting.voted.directory_id
        return voting.voted.id == candidate.id and known in (NO_DIRECTORY_ID, candidate.directory_id)
    return not voting.has_leader and is_up_to_date


class Votes:
    """Votes in one election (EpochElection), by voter id; None while there is no response."""

    def __init__(self, voters: dict[int, ReplicaKey], own_id: int) -> None:
        self.voters = voters
        self._granted: dict[int, bool | None] = {**dict.fromkeys(voters), own_id: True}

    def record(self, voter_id: int, granted: bool) -> None:
        """Record a voter's response; others are ignored."""
        if voter_id in self.voters:
            self._granted[voter_id] = granted

    @property
    def majority(self) -> int:
        """Number of votes that elect."""
        return len(self.voters) // 2 + 1

    @property
    def granting(self) -> list[int]:
        """Voters that granted."""
        return sorted(voter_id for voter_id, granted in self._granted.items() if granted)

    @property
    def unrecorded(self) -> list[ReplicaKey]:
        """Voters that have not responded."""
        return [key for voter_id, key in self.voters.items() if self._granted[voter_id] is None]

    @property
    def is_granted(self) -> bool:
        """True if a majority granted."""
        return len(self.granting) >= self.majority

    @property
    def is_rejected(self) -> bool:
        """True if a majority can no longer grant."""
        return len(self.granting) + len(self.unrecorded) < self.majority
