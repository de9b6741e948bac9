"""One node of the quorum (Kafka's KafkaRaftClient), without sockets: time is an argument, randomness is seeded.

`poll` does what is due and returns requests to send, `received` takes their responses, and requests of other nodes
come in through `vote`, `maybe_transition`, `epoch_ends`, `fetched` and `voter_changes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log import state_file
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from mockraft.server.raft import answers, messages, voter_changes
from mockraft.server.raft.leading import ReplicaState
from mockraft.server.raft.outgoing import NodeEndpoint, Outgoing
from mockraft.server.raft.quorum_state import Following, QuorumState, VoterChange
from mockraft.server.raft.request_manager import Target
from mockraft.server.raft.states import Role, grants
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

if TYPE_CHECKING:
    import random

    from mockraft.wire.messages.api_versions_response import ApiVersionsResponse

_STEPS_MAX = 16
_FIRST_BOOTSTRAP_ID = -2

Answered = Callable[[QuorumState, Target, Any, int], bool]


class Raft(QuorumState):
    """One node's view of the quorum.

    `log` is the metadata log, whose high watermark this moves. `automatic` False: no timeout starts an election or
    ends a leadership, only `elect` and `resign` do. `listener` is notified of changes of this node.
    """

    def __init__(self, config: ControllerConfig, log: MetadataLog, rng: random.Random, now_ms: int) -> None:
        """Start on an opened log; the only voter leads a new epoch at once. OSError, StorageError: write failed."""
        super().__init__(config, log, rng)
        self._outgoing: list[Outgoing] = []
        self._outgoing_count = 0
        self._in_flight: dict[int, tuple[Target, Answered]] = {}
        self._configured_bootstrap = [
            Target(_FIRST_BOOTSTRAP_ID - number, host, port)
            for number, (host, port) in enumerate(config.bootstrap_addresses)
            if (host, port) != (config.voter_host, config.voter_port)
        ]
        self.start(now_ms)

    @classmethod
    def open(cls, config: ControllerConfig, now_ms: int, rng: random.Random) -> Raft:
        """Recover the log from `config.data_dir`, or start one in memory; the only voter leads a new epoch at once.

        A new log begins with `config.initial_state`. `config` must name the port that brokers connect to, for it goes
        into the log. DataDirError when the data dir cannot be used; OSError, ValueError for the state's file.
        """
        saved = None
        if config.initial_state is not None:
            saved = state_file.read_state(config.initial_state)
        log = MetadataLog.open(config, now_ms, rng)
        try:
            if saved is not None and log.end_offset == 0:
                log.install_snapshot(saved.id, state_file.encode(saved.id, saved.records, log, now_ms), now_ms)
            return cls(config, log, rng, now_ms)
        except (OSError, StorageError, WireError) as error:
            log.close()
            log_in = "the log in memory" if config.data_dir is None else f"data dir {config.data_dir}:"
            raise DataDirError(f"{log_in} cannot be used: {error}") from error

    @property
    def leader_endpoint(self) -> NodeEndpoint | None:
        """Address of the leader; None while unknown, and if it is this node."""
        return self.leader_address if self.leader_id != self.config.node_id else None

    @property
    def voters(self) -> VoterSet:
        """Newest voters, committed or not."""
        return self.log.voters

    @property
    def high_watermark(self) -> int:
        """High watermark as known to clients; -1 while a leader has none for its epoch."""
        if self.leading is not None and not self.leading.established:
            return -1
        return self.log.high_watermark

    def observers(self, now_ms: int) -> dict[ReplicaKey, ReplicaState]:
        """Return, as leader, the replicas without a vote that fetched in the last five minutes; else none."""
        return self.leading.observers(now_ms) if self.leading is not None else {}

    def elect(self, now_ms: int) -> None:
        """Start an election at once, without a pre-vote. ValueError: not a voter, or in the last epoch."""
        if not self.is_voter:
            raise ValueError(f"node {self.config.node_id} is no voter: {self.log.voters.keys_text()}")
        if self.role is Role.LEADER:
            return
        if not self.may_elect:
            raise ValueError(f"node {self.config.node_id} is in epoch {self.epoch}, the last one of a quorum")
        epoch = self.epoch
        if self.role is not Role.PROSPECTIVE:
            self.to_prospective(now_ms)
        if self.epoch == epoch:
            self.to_candidate(now_ms)

    def resign(self, now_ms: int) -> None:
        """Resign the leadership, so that the others elect. ValueError: this is not the leader."""
        if self.role is not Role.LEADER:
            raise ValueError(f"node {self.config.node_id} does not lead: it is {self.role.value}")
        self.to_resigned(now_ms)

    def vote(self, candidate: ReplicaKey, last_epoch: int, last_offset: int, *, pre_vote: bool, now_ms: int) -> bool:
        """Return True if this node grants its vote of this epoch to a candidate with such a log end."""
        is_up_to_date = (last_epoch, last_offset) >= (self.log.last_epoch, self.log.end_offset)
        granted = grants(self.voting, candidate, is_up_to_date=is_up_to_date, pre_vote=pre_vote)
        if granted and not pre_vote and self.voted is None:
            self.vote_for(candidate, now_ms)
        return granted

    def epoch_ends(self, leader_id: int, successors: list[ReplicaKey], now_ms: int) -> None:
        """Handle the leader's resignation: the first of the successors elects at once, the others later."""
        if self.role is not Role.FOLLOWER or self.leader_id != leader_id:
            return
        own = (ReplicaKey(self.config.node_id, NO_DIRECTORY_ID), self.key)
        position = next((number for number, key in enumerate(successors) if key in own), len(successors))
        self.deadline_ms = now_ms + self._election_backoff_ms(position, len(successors))
        self.wake()

    def fetched(self, replica: ReplicaKey, fetch_offset: int, now_ms: int) -> None:
        """Record, as leader, a fetch of a replica that has this log up to `fetch_offset`."""
        assert self.leading is not None
        if self.leading.fetched(replica, fetch_offset, self.log.end_offset, now_ms):
            self.update_high_watermark(now_ms)

    def add_voter(
        self, key: ReplicaKey, endpoints: tuple[VoterEndpoint, ...], ack_when_committed: bool, now_ms: int
    ) -> VoterChange:
        """Begin to add a voter by a request for its versions. ApiError if that is not possible now."""
        change = voter_changes.begin_addition(self, key, endpoints, ack_when_committed, now_ms)
        self._request_versions(change, now_ms)
        return change

    def update_voter(self, node: VoterNode, now_ms: int) -> VoterChange:
        """Begin to update a voter by a request for its versions. ApiError if that is not possible now."""
        change = voter_changes.begin_update(self, node, now_ms)
        self._request_versions(change, now_ms)
        return change

    def _request_versions(self, change: VoterChange, now_ms: int) -> None:
        endpoint = next(found for found in change.endpoints if found.name == self.config.controller_listener_name)
        target = Target(change.key.id, endpoint.host, endpoint.port)
        request = ApiVersionsRequest(client_software_name="mockraft", client_software_version="1")
        self._send(target, request, _versions_received, now_ms)

    def poll(self, now_ms: int) -> list[Outgoing]:
        """Do what is due and return the requests to send; one at a time is in flight to each node."""
        for _ in range(_STEPS_MAX):
            self.next_ms = NEVER_MS
            _POLLS[self.role](self, now_ms)
            if self.next_ms > now_ms:
                break
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def received(self, outgoing_id: int, response: Message | None, now_ms: int) -> None:
        """Process the response to a request, or None. Late and superseded ones are ignored."""
        target, answered = self._in_flight.pop(outgoing_id, (None, None))
        if target is None or answered is None or not self.requests.expects(target.id, outgoing_id):
            return
        self.wake()
        succeeded = False
        try:
            if response is not None or answered is _versions_received:
                succeeded = answered(self, target, response, now_ms)
        finally:
            self.requests.answered(target.id, outgoing_id, succeeded, now_ms)

    def _wait(self, until_ms: int | None) -> None:
        if until_ms is not None:
            self.next_ms = min(self.next_ms, until_ms)

    def _send(self, target: Target, message: Message, answered: Answered, now_ms: int, version_min: int = 0) -> None:
        self._outgoing_count += 1
        number = self._outgoing_count
        # Drop in-flight requests that were superseded.
        self._in_flight = {
            sent: asked for sent, asked in self._in_flight.items() if self.requests.expects(asked[0].id, sent)
        }
        self._in_flight[number] = (target, answered)
        self.requests.sent(target.id, number, now_ms)
        node_id = target.id if target.id >= 0 else None
        timeout_ms = self.config.controller_quorum_request_timeout_ms
        self._outgoing.append(
            Outgoing(number, node_id, target.host, target.port, message, version_min, message.max_version, timeout_ms)
        )

    def _send_to_voters(
        self,
        voters: list[ReplicaKey],
        message: Callable[[ReplicaKey], Message],
        answered: Answered,
        now_ms: int,
        version_min: int = 0,
    ) -> None:
        for voter in voters:
            address = self.address_of(voter.id)
            if address is not None and self.requests.is_ready(voter.id, now_ms):
                self._send(Target(*address), message(voter), answered, now_ms, version_min)

    def _poll_leader(self, now_ms: int) -> None:
        leading = self.leading
        assert leading is not None
        check_ms = leading.check_quorum_ms() if self.automatic else None
        has_others = bool(leading.voters.keys() - {self.config.node_id})
        # Kafka's process ends when its log fails; here others may share the process, which then goes on.
        is_broken = has_others and self.log.is_lost(looks=now_ms >= leading.begin_quorum_ms)
        if self.resign_requested or is_broken or (check_ms is not None and now_ms >= check_ms):
            self.to_resigned(now_ms)
            return
        voter_changes.expire(self, now_ms)
        if has_others:
            if now_ms >= leading.begin_quorum_ms:
                targets = leading.begin_quorum_targets(now_ms)
                self._send_to_voters(
                    targets, lambda voter: messages.begin_epoch(self, voter), answers.begin_epoch, now_ms
                )
            self._wait(leading.begin_quorum_ms)
        self._wait(check_ms)
        self._wait(self.voter_change.deadline_ms if self.voter_change is not None else None)

    def _poll_nominee(self, now_ms: int) -> None:
        assert self.votes is not None
        if now_ms >= self.deadline_ms:
            was_candidate = self.role is Role.CANDIDATE
            if was_candidate:
                self.to_prospective(now_ms)
            if self.votes is not None and not (was_candidate and self.automatic):
                self.lose_election(now_ms)
            return
        if not self.votes.is_rejected:
            version_min = messages.PRE_VOTE_VERSION if self.role is Role.PROSPECTIVE else 0
            self._send_to_voters(
                self.votes.unrecorded, lambda voter: messages.vote_for(self, voter), answers.vote, now_ms, version_min
            )
            self._wait(self.requests.next_ms(now_ms))
        self._wait(self.deadline_ms)

    def _poll_unattached(self, now_ms: int) -> None:
        if self.is_voter and self.automatic:
            if now_ms >= self.deadline_ms:
                self.to_prospective(now_ms)
                return
            self._wait(self.deadline_ms)
        self._fetch_from_any(now_ms)

    def _poll_follower(self, now_ms: int) -> None:
        following = self.following
        assert following is not None
        if self.is_voter:
            if now_ms >= self.deadline_ms and self.automatic:
                self.to_prospective(now_ms)
                return
            self._wait(self.deadline_ms if self.automatic else None)
        if self.is_voter or self.joins:
            if now_ms >= following.update_voters_ms:
                self._update_voters(now_ms)
            else:
                self._wait(following.update_voters_ms)
        self._fetch_from_best(now_ms)

    def _poll_resigned(self, now_ms: int) -> None:
        if now_ms >= self.deadline_ms:
            if self.may_elect:
                self.to_unattached(self.epoch + 1, now_ms)
            else:
                self.refuse_election(now_ms)
            return
        waiting = [node.key for voter_id, node in self.log.voters.nodes.items() if voter_id in self.unacknowledged]
        self._send_to_voters(waiting, lambda _: messages.end_epoch(self), answers.end_epoch, now_ms)
        self._wait(self.requests.next_ms(now_ms) if waiting else None)
        self._wait(self.deadline_ms)

    def _update_voters(self, now_ms: int) -> None:
        """Send the leader what its voters do not have of this node."""
        following, leader = self.following, self.leader_address
        assert following is not None
        assert leader is not None
        missing = self._missing_in_voters(following)
        if missing is not None and not self.requests.is_ready(leader.id, now_ms):
            # A fetch is in flight; send this before the next one.
            return
        following.update_voters_ms = now_ms + self.config.controller_quorum_fetch_timeout_ms
        if missing is not None:
            self._send(Target(*leader), *missing, now_ms, missing[0].max_version)

    def _missing_in_voters(self, following: Following) -> tuple[Message, Answered] | None:
        """Return the request for what the voters do not have: this voter's endpoints, or this observer as a voter.

        An observer first removes the voter with its id, which has another directory.
        """
        voters = self.log.voters
        if not self.is_voter:
            stale = voters.nodes.get(self.config.node_id)
            if stale is not None:
                return messages.remove_voter(self, stale.key), answers.remove_voter
            return messages.add_voter(self), answers.add_voter
        if self.log.kraft_version:
            is_needed = voters.needs_update(self.log.local_voter)
        else:
            is_needed = not following.has_updated_leader
        return (messages.update_voter(self), answers.update_voter) if is_needed else None

    def _fetch_from_best(self, now_ms: int) -> None:
        """Fetch from the leader, or from any voter if the leader does not respond (maybeSendFetchToBestNode)."""
        leader, following = self.leader_address, self.following
        assert following is not None
        assert leader is not None
        if self.requests.has_timed_out(leader.id, now_ms):
            self.requests.reset(leader.id)
            self._fetch_from_any(now_ms)
        elif self.requests.is_backing_off(leader.id, now_ms):
            self._fetch_from_any(now_ms)
        elif not self.requests.any_in_flight(now_ms):
            if following.snapshot_id is not None:
                self._send(Target(*leader), messages.fetch_rest_of_snapshot(self), answers.fetch_snapshot, now_ms)
            else:
                self._send(Target(*leader), messages.fetch_log(self), answers.fetch, now_ms, messages.TOPIC_ID_VERSION)
        self._wait(self.requests.next_ms(now_ms))

    def _fetch_from_any(self, now_ms: int) -> None:
        target = self.requests.ready_one(self._bootstrap, now_ms)
        if target is not None:
            self._send(target, messages.fetch_log(self), answers.fetch, now_ms, messages.TOPIC_ID_VERSION)
        self._wait(self.requests.next_ms(now_ms))

    @property
    def _bootstrap(self) -> list[Target]:
        """Return nodes to ask for the leader: the bootstrap servers, or the other voters if none are configured."""
        if self._configured_bootstrap:
            return self._configured_bootstrap
        found = (self.address_of(voter_id) for voter_id in self.log.voters.nodes if voter_id != self.config.node_id)
        return [Target(*address) for address in found if address is not None]

    def _election_backoff_ms(self, position: int, successors: int) -> int:
        """Return how long a successor waits; the first not at all (strictExponentialElectionBackoffMs)."""
        backoff_max_ms = self.config.controller_quorum_election_backoff_max_ms
        if position == 0:
            return 0
        if position >= successors:
            return backoff_max_ms
        return min(backoff_max_ms, (backoff_max_ms >> (successors - 1)) << (position - 1))


def _versions_received(quorum: QuorumState, target: Target, response: ApiVersionsResponse | None, now_ms: int) -> bool:
    return voter_changes.versions_received(quorum, target.id, response, now_ms)


_POLLS: dict[Role, Callable[[Raft, int], None]] = {
    Role.UNATTACHED: Raft._poll_unattached,
    Role.PROSPECTIVE: Raft._poll_nominee,
    Role.CANDIDATE: Raft._poll_nominee,
    Role.FOLLOWER: Raft._poll_follower,
    Role.LEADER: Raft._poll_leader,
    Role.RESIGNED: Raft._poll_resigned,
}
