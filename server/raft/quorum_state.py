"""One node's quorum state and every change of it (Kafka's QuorumState and the transitions of KafkaRaftClient).

State that must survive the process is in the log's `election` before it is sent to anybody.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import limits
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.quorum.voter_set import (
    BEFORE_THE_LOG,
    ElectionState,
    ReplicaKey,
    VoterEndpoint,
    VoterSet,
    control_records,
)
from mockraft.server.raft.leading import Leading
from mockraft.server.raft.outgoing import Listener, NodeEndpoint
from mockraft.server.raft.request_manager import RequestManager
from mockraft.server.raft.states import Role, Votes, Voting, can_step
from mockraft.wire import error_codes, record_batch
from mockraft.wire.printable import printable_line
from mockraft.wire.records.leader_change_message import LeaderChangeMessage, Voter

if TYPE_CHECKING:
    import random


_LOGGER = logging.getLogger("mockraft.raft")

_FETCH_TIMEOUT_PER_JITTER = 40


class InconsistentLeaderError(ValueError):
    """Raised if a node names another leader of an epoch than this node knows: one of them broke the protocol."""


@dataclass(slots=True)
class Following:
    """A follower's knowledge of its leader, and how long it may go without an answer from it."""

    fetch_timeout_ms: int
    update_voters_ms: int
    has_fetched: bool = False
    has_updated_leader: bool = False
    snapshot_id: SnapshotId | None = None
    snapshot: bytearray = field(default_factory=bytearray)


@dataclass(slots=True)
class VoterChange:
    """A change in progress: voter `key` is `doing`, "added", "removed" or "updated" (since 4.5, `kraft_versions`).

    `result` is the outcome for its request: error code and message.
    `last_offset` is that of its VotersRecord, -1 before it is written: the new voter's versions are being requested.
    """

    doing: str
    key: ReplicaKey
    deadline_ms: int
    endpoints: tuple[VoterEndpoint, ...] = ()
    ack_when_committed: bool = True
    kraft_versions: tuple[int, int] = (0, 0)
    last_offset: int = -1
    result: tuple[int, str | None] | None = None

    def committed(self, quorum: QuorumState) -> None:
        """Complete the change if the high watermark passed it; a leader that it removed resigns."""
        if 0 <= self.last_offset < quorum.log.high_watermark:
            self.finish(quorum, error_codes.NONE, None)
            if not quorum.is_voter:
                quorum.resign_requested = True
                quorum.wake()

    def finish(self, quorum: QuorumState, error_code: int, message: str | None) -> None:
        """End the change; its request is answered if it was not before."""
        if error_code != error_codes.NONE and message is None:
            message = error_codes.message(error_code)
        if error_code == error_codes.NONE:
            _LOGGER.info("node %d: voter %s is %s", quorum.config.node_id, self.key, self.doing)
        else:
            _LOGGER.warning(
                "node %d: voter %s is not %s: %s: %s",
                *(quorum.config.node_id, self.key, self.doing, error_codes.name(error_code)),
                printable_line(message or "", SHOWN_MAX),
            )
        self.result = self.result or (error_code, message)
        quorum.voter_change = None
        quorum.changed()


class QuorumState:
    """A node's role, epoch and leader, and the state of that role.

    `deadline_ms` ends the role's timeout (election or fetch), `next_ms` is when `Raft.poll` has work, `changes` counts
    what parked requests wait for beside the log's growth. Not `automatic`: no timeout elects or ends a leadership.
    """

    def __init__(self, config: ControllerConfig, log: MetadataLog, rng: random.Random) -> None:
        self.config = config
        self.log = log
        self.rng = rng
        self.automatic = True
        self.listener: Listener | None = None
        self.failure: str | None = None
        """Reason why no node of the quorum can be elected any more; None while it has a leader."""
        self.changes = 0
        self.role = Role.UNATTACHED
        self.epoch = 0
        self.leader_id: int | None = None
        self.leader_address: NodeEndpoint | None = None
        self.voted: ReplicaKey | None = None
        self.deadline_ms = NEVER_MS
        self.votes: Votes | None = None
        self.leading: Leading | None = None
        self.following: Following | None = None
        self.unacknowledged: set[int] = set()
        self.successors: list[ReplicaKey] = []
        self.voter_change: VoterChange | None = None
        self.resign_requested = False
        self.requests = RequestManager(
            config.controller_quorum_retry_backoff_ms, config.controller_quorum_request_timeout_ms, rng
        )
        self.next_ms = 0

    @property
    def key(self) -> ReplicaKey:
        """This node as a replica."""
        return ReplicaKey(self.config.node_id, self.log.directory_id)

    @property
    def is_voter(self) -> bool:
        """True if this node has a vote."""
        return self.log.voters.is_voter(self.key)

    @property
    def joins(self) -> bool:
        """True if this observer adds itself to the voters (KafkaRaftClient.shouldSendAddOrRemoveVoterRequest)."""
        config = self.config
        return config.controller_quorum_auto_join_enable and self.log.kraft_version > 0 and not self.is_voter

    @property
    def is_leader(self) -> bool:
        """Return True if this node leads `epoch`."""
        return self.role is Role.LEADER

    @property
    def voting(self) -> Voting:
        """State that decides whether this node grants a vote."""
        has_fetched = self.following is not None and self.following.has_fetched
        return Voting(self.role, self.leader_id is not None, self.voted, has_fetched)

    def address_of(self, voter_id: int) -> NodeEndpoint | None:
        """Return the address of a voter."""
        found = self.log.voters.endpoint(voter_id, self.config.controller_listener_name)
        return NodeEndpoint(voter_id, found.host, found.port) if found else None

    def wake(self) -> None:
        """Have the next poll come at once: what it waited for is no longer so."""
        self.next_ms = 0

    def changed(self) -> None:
        """Have parked requests look again, and the next poll come at once."""
        self.changes += 1
        self.wake()

    def start(self, now_ms: int) -> None:
        """Restore the role that the persisted election leaves this node; the only voter leads at once."""
        election = self.log.election
        own_id, alone = self.config.node_id, self.log.voters.is_only_voter(self.key)
        self.epoch = election.epoch
        self.deadline_ms = now_ms if alone else self._election_deadline_ms(now_ms)
        leader = None if election.leader_id is None else self.address_of(election.leader_id)
        if election.epoch < self.log.last_epoch:
            # As Kafka, which also leaves a negative epoch behind after the last one.
            if election.epoch or self.log.end_offset > self.log.start_offset:
                # Otherwise the log is a snapshot that it was given to begin with.
                _LOGGER.warning(
                    "quorum-state is at leader epoch %d, before the log's %d", election.epoch, self.log.last_epoch
                )
            self.epoch = self.log.last_epoch
        elif election.leader_id == own_id:
            self.role, self.leader_id, self.leader_address = Role.RESIGNED, own_id, self._own_address
            self.unacknowledged = set(self.log.voters.nodes) - {own_id}
        elif election.leader_id is None and election.voted == self.key:
            self.role, self.voted = Role.CANDIDATE, self.key
            self.votes = self._new_votes()
        else:
            self.leader_id, self.voted = election.leader_id, election.voted
            if leader is not None:
                self.role, self.leader_address = Role.FOLLOWER, leader
                self._follow(now_ms)
        if not self.is_voter and self.role is Role.UNATTACHED:
            self.deadline_ms = NEVER_MS
        self._save()
        if self.role is Role.CANDIDATE:
            self._count_votes(now_ms)
        elif alone:
            self.to_prospective(now_ms)

    def to_unattached(self, epoch: int, now_ms: int, leader_id: int | None = None) -> None:
        """Become unattached in `epoch`; the remaining time of a running election timeout is kept."""
        self._check(Role.UNATTACHED, epoch)
        keeps_deadline = self.role in (Role.CANDIDATE, Role.UNATTACHED, Role.RESIGNED) or (
            self.role is Role.PROSPECTIVE and self.votes is not None and not self.votes.is_rejected
        )
        if not self.is_voter:
            deadline_ms = NEVER_MS
        else:
            deadline_ms = self.deadline_ms if keeps_deadline else self._election_deadline_ms(now_ms)
        voted = self.voted if epoch == self.epoch else None
        self._step(Role.UNATTACHED, ElectionState(epoch, leader_id, voted), None, deadline_ms)

    def to_follower(self, epoch: int, leader: NodeEndpoint, now_ms: int) -> None:
        """Follow the leader of `epoch`."""
        self._check(Role.FOLLOWER, epoch)
        voted = self.voted if epoch == self.epoch else None
        self._step(Role.FOLLOWER, ElectionState(epoch, leader.id, voted), leader, NEVER_MS)
        self._follow(now_ms)

    def to_prospective(self, now_ms: int) -> None:
        """Start a pre-vote."""
        if self.epoch > limits.EPOCH_PEER_MAX and not self.may_elect:
            self.refuse_election(now_ms)
            return
        self._check(Role.PROSPECTIVE, self.epoch)
        deadline_ms = self._election_deadline_ms(now_ms)
        votes = self._new_votes()
        # No persisted state changes.
        election = ElectionState(self.epoch, self.leader_id, self.voted)
        self._step(Role.PROSPECTIVE, election, self.leader_address, deadline_ms, save=False)
        self.votes = votes
        self._count_votes(now_ms)

    def to_candidate(self, now_ms: int) -> None:
        """Start an election in the next epoch, unless the other voters would refuse that epoch."""
        if not self.may_elect:
            self.refuse_election(now_ms)
            self.lose_election(now_ms)
            return
        self._check(Role.CANDIDATE, self.epoch + 1)
        deadline_ms = self._election_deadline_ms(now_ms)
        self._step(Role.CANDIDATE, ElectionState(self.epoch + 1, None, self.key), None, deadline_ms)
        self.votes = self._new_votes()
        self._count_votes(now_ms)

    def to_resigned(self, now_ms: int) -> None:
        """Resign, and send EndQuorumEpoch to the others."""
        self._check(Role.RESIGNED, self.epoch)
        assert self.leading is not None
        successors = self.leading.successors()
        deadline_ms = self._election_deadline_ms(now_ms)
        election = ElectionState(self.epoch, self.leader_id, None)
        self._step(Role.RESIGNED, election, self.leader_address, deadline_ms, save=False)
        self.unacknowledged = set(self.log.voters.nodes) - {self.config.node_id}
        self.successors = successors

    @property
    def may_elect(self) -> bool:
        """True if there is a next epoch that the other voters accept, or there are none."""
        return self.epoch < limits.EPOCH_PEER_MAX or self.log.voters.is_only_voter(self.key)

    def refuse_election(self, now_ms: int) -> None:
        """Report that the quorum is in the last epoch that its nodes vote in; try again later, if a leader is found."""
        if self.failure is None:
            self.failure = (
                f"no leader can be elected after epoch {self.epoch}, the last one that nodes of a quorum vote in:"
                " start new controllers with empty data directories"
            )
            _LOGGER.error("node %d: %s", self.config.node_id, self.failure)
        self.deadline_ms = self._election_deadline_ms(now_ms)
        self.wake()

    def vote_for(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Persist this epoch's vote."""
        self.log.save_election(ElectionState(self.epoch, self.leader_id, candidate))
        self.voted = candidate
        self.deadline_ms = self._election_deadline_ms(now_ms)
        if self.role is Role.PROSPECTIVE:
            self.votes = self._new_votes()
        self.wake()

    def record_vote(self, voter_id: int, granted: bool, now_ms: int) -> None:
        """Record a voter's response in the current election."""
        assert self.votes is not None
        self.votes.record(voter_id, granted)
        if granted:
            self._count_votes(now_ms)
        elif self.role is Role.PROSPECTIVE and self.votes.is_rejected:
            self.lose_election(now_ms)

    def lose_election(self, now_ms: int) -> None:
        """End a failed pre-vote: follow the leader again, if one is known."""
        if self.leader_address is not None:
            self.to_follower(self.epoch, self.leader_address, now_ms)
        else:
            self.to_unattached(self.epoch, now_ms, self.leader_id)

    def maybe_transition(self, leader_id: int | None, epoch: int, leader: NodeEndpoint | None, now_ms: int) -> None:
        """Apply a reported leader and epoch (maybeTransition). InconsistentLeaderError if it contradicts this node."""
        if not self._is_consistent(leader_id, epoch):
            raise InconsistentLeaderError(
                f"told of leader {leader_id} in epoch {epoch}; known is {self.leader_id} in epoch {self.epoch}"
            )
        if epoch > self.epoch and leader_id is None:
            self.to_unattached(epoch, now_ms)
        elif leader_id is not None and (epoch > self.epoch or self.leader_id is None or self.leader_address is None):
            if leader is None:
                if epoch > self.epoch or self.leader_id is None:
                    raise InconsistentLeaderError(
                        f"leader {leader_id} of epoch {epoch} was reported without an address"
                    )
                return
            self.to_follower(epoch, leader, now_ms)

    def update_high_watermark(self, now_ms: int) -> None:
        """Advance, as leader, the high watermark to what a majority has; the first time establishes the leadership."""
        leading = self.leading
        assert leading is not None
        offset = leading.committed_offset(self.log.end_offset)
        if offset < 0 or (leading.established and offset <= self.log.high_watermark):
            return
        first = not leading.established
        leading.established = True
        self.log.high_watermark = max(offset, self.log.high_watermark)
        if self.voter_change is not None:
            self.voter_change.committed(self)
        if self.listener is not None:
            self.listener.committed(now_ms)
            if first:
                self.listener.became_leader(self.epoch, now_ms)

    def append_control(self, pairs: list[tuple[bytes, bytes]], voters: VoterSet, now_ms: int) -> int:
        """Append control records as leader, after which these are the voters; return their offset.

        Records commit at once only if this node was alone before them and is after them.
        """
        alone = voters.is_only_voter(self.key)
        self.log.commits_alone = alone and self.log.commits_alone
        offset = self.log.append_control(pairs, now_ms)
        self.log.commits_alone = alone
        assert self.leading is not None
        self.leading.change_voters(self.log.voters)
        self.changed()
        self.update_high_watermark(now_ms)
        return offset

    def _lead(self, now_ms: int) -> None:
        """Begin the epoch after a won election (LeaderState.appendStartOfEpochControlRecords)."""
        self._check(Role.LEADER, self.epoch)
        assert self.votes is not None
        granting = self.votes.granting
        log = self.log
        local, voters = log.local_voter, log.voters
        self._step(Role.LEADER, ElectionState(self.epoch, self.config.node_id, None), self._own_address, NEVER_MS)
        self.failure = None
        log.leader_epoch = self.epoch
        self.leading = Leading(
            local, voters, log.end_offset, now_ms, fetch_timeout_ms=self.config.controller_quorum_fetch_timeout_ms
        )
        message = LeaderChangeMessage(
            version=0,
            leader_id=self.config.node_id,
            voters=[Voter(voter_id=voter_id) for voter_id in voters.nodes],
            granting_voters=[Voter(voter_id=voter_id) for voter_id in granting],
        )
        pairs = [(record_batch.control_key(record_batch.LEADER_CHANGE), message.write(0))]
        if log.kraft_version and (log.voters_offset == BEFORE_THE_LOG or voters.needs_update(local)):
            pairs += control_records(log.kraft_version, voters.updated(local) or voters)
        self.append_control(pairs, voters, now_ms)

    def _count_votes(self, now_ms: int) -> None:
        assert self.votes is not None
        if not self.votes.is_granted:
            return
        if self.role is Role.PROSPECTIVE:
            self.to_candidate(now_ms)
        elif self.role is Role.CANDIDATE:
            self._lead(now_ms)

    def _follow(self, now_ms: int) -> None:
        timeout_ms = self.config.controller_quorum_fetch_timeout_ms
        # One commit answers all followers: timeouts that end at the same time split the vote. Kafka's threads differ.
        fetch_timeout_ms = timeout_ms + self._random_ms(timeout_ms // _FETCH_TIMEOUT_PER_JITTER + 1)
        self.following = Following(fetch_timeout_ms, update_voters_ms=now_ms + timeout_ms)
        self.deadline_ms = now_ms + fetch_timeout_ms

    def _step(
        self, role: Role, election: ElectionState, leader: NodeEndpoint | None, deadline_ms: int, *, save: bool = True
    ) -> None:
        if save:
            self.log.save_election(election)
        before, self.role = self.role, role
        self.epoch, self.leader_id, self.voted = election
        self.leader_address = leader
        self.deadline_ms = deadline_ms
        self.votes = self.following = None
        self.unacknowledged, self.successors = set(), []
        self.resign_requested = False
        self.changed()
        self.requests.reset()
        _LOGGER.info("node %d: %s, then %s in epoch %d", self.config.node_id, before.value, role.value, self.epoch)
        if before is Role.LEADER:
            self._lose_leadership()

    def _lose_leadership(self) -> None:
        leading, self.leading = self.leading, None
        self.log.commits_alone = False
        if self.voter_change is not None:
            self.voter_change.finish(self, error_codes.NOT_LEADER_OR_FOLLOWER, None)
        if leading is not None and leading.established and self.listener is not None:
            self.listener.lost_leadership()

    def _check(self, to: Role, epoch: int) -> None:
        if epoch > limits.EPOCH_MAX:
            raise OverflowError(f"node {self.config.node_id} is in the last epoch, {self.epoch}, and cannot leave it")
        if not can_step(self.role, to, self.epoch, epoch, is_voter=self.is_voter):
            raise InconsistentLeaderError(
                f"node {self.config.node_id} is {self.role.value} in epoch {self.epoch} and cannot be {to.value} in"
                f" epoch {epoch}"
            )

    def _is_consistent(self, leader_id: int | None, epoch: int) -> bool:
        """Return True if leader and epoch agree with this node (KafkaRaftClient.hasConsistentLeader)."""
        if leader_id == self.config.node_id:
            return self.is_leader
        return epoch != self.epoch or leader_id is None or self.leader_id in (None, leader_id)

    def _save(self) -> None:
        election = ElectionState(self.epoch, self.leader_id, self.voted)
        if election != self.log.election:
            self.log.save_election(election)

    def _new_votes(self) -> Votes:
        voters = {voter_id: node.key for voter_id, node in self.log.voters.nodes.items()}
        return Votes(voters, self.config.node_id)

    def _election_deadline_ms(self, now_ms: int) -> int:
        timeout_ms = self.config.controller_quorum_election_timeout_ms
        return now_ms + timeout_ms + self._random_ms(timeout_ms)

    def _random_ms(self, end_ms: int) -> int:
        """Return a random time that separates voters' timeouts; half the range for a sole voter, without a draw."""
        return end_ms // 2 if self.log.voters.is_only_voter(self.key) else self.rng.randrange(end_ms)

    @property
    def _own_address(self) -> NodeEndpoint:
        return NodeEndpoint(self.config.node_id, self.config.voter_host, self.config.voter_port)
