"""A leader's view of its replicas, and what follows from it: high watermark, majority (Kafka's LeaderState)."""

from __future__ import annotations

from dataclasses import dataclass

from mockraft.kafka_api.refusals import Repeats
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey, VoterNode, VoterSet

OBSERVER_SESSION_TIMEOUT_MS = 300_000
OBSERVERS_MAX = 100_000
REFUSALS_LOGGED_AT = 10
"""The first ones are not logged: a broker that looks for the leader, or had another one, is refused once or twice."""
DIVERGED_MAX = 1_000
CAUGHT_UP_FETCH_AGE_MS = 3_600_000


@dataclass(slots=True)
class ReplicaState:
    """Progress of a replica. Offsets and times (ms) are -1 while unknown."""

    log_end_offset: int = -1
    last_fetch_timestamp_ms: int = -1
    last_caught_up_timestamp_ms: int = -1
    leader_end_offset_at_last_fetch: int = -1

    def fetched(self, fetch_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Record a valid fetch from `fetch_offset` (ReplicaState.updateFollowerState)."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_timestamp_ms = max(now_ms, self.last_caught_up_timestamp_ms)
        elif self.leader_end_offset_at_last_fetch <= fetch_offset:
            # It has everything the leader had at its previous fetch, so it was caught up then.
            self.last_caught_up_timestamp_ms = max(self.last_fetch_timestamp_ms, self.last_caught_up_timestamp_ms)
        self.leader_end_offset_at_last_fetch = leader_end_offset
        self.last_fetch_timestamp_ms = max(now_ms, self.last_fetch_timestamp_ms)
        self.log_end_offset = fetch_offset


class Leading:
    """One epoch of a leader.

    `established`: the high watermark is past the epoch's first record. `volatile_voters` are, at kraft.version 0, the
    voters as they reported themselves (UpdateRaftVoter), for the upgrade of kraft.version.
    """

    def __init__(
        self, local: VoterNode, voters: VoterSet, epoch_start_offset: int, now_ms: int, *, fetch_timeout_ms: int
    ) -> None:
        self.local = local
        self.epoch_start_offset = epoch_start_offset
        self.established = False
        self.volatile_voters = voters.updated(local, ignore_directory_id=True) or voters
        self.voters: dict[int, tuple[VoterNode, ReplicaState]] = {}
        self._observers: dict[ReplicaKey, ReplicaState] = {}
        self._diverged: set[tuple[int, int]] = set()
        self.refused = Repeats(logged_at=REFUSALS_LOGGED_AT)
        self._fetched_voters: set[int] = set()
        self._check_quorum_timeout_ms = fetch_timeout_ms * 3 // 2
        self._check_quorum_deadline_ms = now_ms + self._check_quorum_timeout_ms
        self._begin_quorum_interval_ms = fetch_timeout_ms // 2
        self.begin_quorum_ms = now_ms
        self.change_voters(voters)

    def change_voters(self, voters: VoterSet) -> None:
        """Replace the voters; progress of known replicas is kept (updateVoterAndObserverStates)."""
        before = self.voters
        self.voters = {}
        for voter_id, node in voters.nodes.items():
            known = before.pop(voter_id, None)
            if known is not None and (known[0].is_voter(node.key) or node.is_voter(known[0].key)):
                state = known[1]
            else:
                state = self._observers.get(node.key) or ReplicaState()
            self._observers.pop(node.key, None)
            self.voters[voter_id] = (node, state)
        for node, state in before.values():
            self._observers.setdefault(node.key, state)

    def fetched(self, replica: ReplicaKey, fetch_offset: int, leader_end_offset: int, now_ms: int) -> bool:
        """Record a valid fetch; return True if it came from a voter."""
        state = self.state_of(replica)
        if state is None:
            if len(self._observers) >= OBSERVERS_MAX:
                # Any client can claim to be an observer; the oldest is removed first.
                del self._observers[next(iter(self._observers))]
            state = self._observers[replica] = ReplicaState()
        state.fetched(fetch_offset, leader_end_offset, now_ms)
        return self.contacted(replica, now_ms)

    def contacted(self, replica: ReplicaKey, now_ms: int) -> bool:
        """Record contact of a replica; contact with a majority extends the leadership. Return True for a voter.

        The only voter needs nobody: then any observer's contact does. So the time is not over already when an observer
        becomes the second voter (LeaderState.updateCheckQuorumForFollowingVoter).
        """
        is_follower = self.is_voter(replica) and replica.id != self.local.key.id
        if is_follower:
            self._fetched_voters.add(replica.id)
        majority = len(self.voters) // 2 + 1 - (self.local.key.id in self.voters)
        if len(self._fetched_voters) >= majority:
            self._fetched_voters.clear()
            self._check_quorum_deadline_ms = now_ms + self._check_quorum_timeout_ms
        return is_follower

    def is_voter(self, replica: ReplicaKey) -> bool:
        """Return True if the replica is a voter."""
        voter = self.voters.get(replica.id)
        return voter is not None and voter[0].is_voter(replica)

    def state_of(self, replica: ReplicaKey) -> ReplicaState | None:
        """Return the progress of a voter or observer."""
        return self.voters[replica.id][1] if self.is_voter(replica) else self._observers.get(replica)

    def is_caught_up(self, replica: ReplicaKey, now_ms: int) -> bool:
        """Return True if an observer caught up once and fetched within the last hour (isReplicaCaughtUp)."""
        state = self._observers.get(replica)
        return (
            state is not None
            and state.last_caught_up_timestamp_ms > 0
            and state.last_fetch_timestamp_ms > now_ms - CAUGHT_UP_FETCH_AGE_MS
        )

    def committed_offset(self, end_offset: int) -> int:
        """Return the offset that a majority of the voters has; -1 while it is not above the epoch's start."""
        own_id = self.local.key.id
        ends = sorted(
            (
                end_offset if voter_id == own_id else state.log_end_offset
                for voter_id, (_, state) in self.voters.items()
            ),
            reverse=True,
        )
        offset = ends[len(ends) // 2]
        return offset if offset > self.epoch_start_offset else -1

    def check_quorum_ms(self) -> int | None:
        """Return the deadline for contact with a majority; None in a quorum of one."""
        return None if len(self.voters) == 1 else self._check_quorum_deadline_ms

    def begin_quorum_targets(self, now_ms: int) -> list[ReplicaKey]:
        """Return voters to send BeginQuorumEpoch, as they did not fetch lately; set the next time."""
        self.begin_quorum_ms = now_ms + self._begin_quorum_interval_ms
        return [
            node.key
            for voter_id, (node, state) in self.voters.items()
            if voter_id != self.local.key.id
            and now_ms - state.last_fetch_timestamp_ms >= self._begin_quorum_interval_ms
        ]

    def successors(self) -> list[ReplicaKey]:
        """Return the other voters, the furthest first."""
        others = [voter for voter in self.voters.values() if not voter[0].is_voter(self.local.key)]
        return [node.key for node, _ in sorted(others, key=lambda voter: (-voter[1].log_end_offset, voter[0].key))]

    def diverged(self, replica_id: int, fetch_offset: int) -> bool:
        """Record that a replica's log diverges; return True if that should be logged.

        Once per replica and offset, and for the first thousand only, however often a follower repeats it.
        """
        found = (replica_id, fetch_offset)
        if replica_id < 0 or found in self._diverged or len(self._diverged) >= DIVERGED_MAX:
            return False
        self._diverged.add(found)
        return True

    def observers(self, now_ms: int) -> dict[ReplicaKey, ReplicaState]:
        """Return replicas without a vote that fetched in the last five minutes: every broker."""
        self._observers = {
            key: state
            for key, state in self._observers.items()
            if now_ms - state.last_fetch_timestamp_ms < OBSERVER_SESSION_TIMEOUT_MS or key == self.local.key
        }
        return self._observers

    def has_directory_ids(self) -> bool:
        """Return True if every volatile voter reported its directory."""
        return all(node.key.directory_id != NO_DIRECTORY_ID for node in self.volatile_voters.nodes.values())
