"""The raft quorum of one voter: its control records, and the observers that follow it.

Source: Kafka's LeaderState, VoterSet and ReplicaState.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mockraft.wire import record_batch
from mockraft.wire.record_batch import Batch
from mockraft.wire.records.k_raft_version_record import KRaftVersionRecord
from mockraft.wire.records.leader_change_message import LeaderChangeMessage
from mockraft.wire.records.leader_change_message import Voter as LeaderChangeVoter
from mockraft.wire.records.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord

TOPIC_NAME = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
PARTITION = 0

OBSERVER_SESSION_TIMEOUT_MS = 300_000
OBSERVERS_MAX = 100_000
DIVERGED_MAX = 1_000

_KRAFT_VERSION_MAX = 1


@dataclass(frozen=True, slots=True)
class LocalVoter:
    """This controller as a voter: who it is and where brokers reach it."""

    node_id: int
    directory_id: bytes
    listener_name: str
    host: str
    port: int

    def as_voter(self) -> Voter:
        """The entry of a VotersRecord."""
        return Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=[Endpoint(name=self.listener_name, host=self.host, port=self.port)],
            k_raft_version_feature=KRaftVersionFeature(
                min_supported_version=0, max_supported_version=_KRAFT_VERSION_MAX
            ),
        )


@dataclass(slots=True)
class VoterState:
    """What the control records of a log say: kraft.version and the newest voter set, None when it has none."""

    kraft_version: int = 0
    voters: VotersRecord | None = None

    def apply(self, batch: Batch) -> None:
        """Take in a control batch. WireError on a record that cannot be read."""
        for key, value in batch.records:
            control_type = record_batch.control_type(key)
            if control_type == record_batch.KRAFT_VERSION:
                self.kraft_version = KRaftVersionRecord.read(value or b"", 0).k_raft_version
            elif control_type == record_batch.KRAFT_VOTERS:
                self.voters = VotersRecord.read(value or b"", 0)

    def records(self) -> list[tuple[bytes, bytes]]:
        """KRaftVersion and Voters as control records; none where kraft.version is 0 (the voters are configuration)."""
        if self.kraft_version == 0 or self.voters is None:
            return []
        version = KRaftVersionRecord(version=0, k_raft_version=self.kraft_version)
        return [
            (record_batch.control_key(record_batch.KRAFT_VERSION), version.write(0)),
            (record_batch.control_key(record_batch.KRAFT_VOTERS), self.voters.write(0)),
        ]


def start_of_epoch(state: VoterState, local: LocalVoter, *, voters_in_log: bool) -> list[tuple[bytes, bytes]]:
    """The control records with which a leader begins its epoch; `state` takes on a changed voter set.

    LeaderChange always; KRaftVersion and Voters when the log itself never had them or this voter's endpoints moved
    (LeaderState.appendStartOfEpochControlRecords).
    """
    voter = LeaderChangeVoter(voter_id=local.node_id)
    leader_change = LeaderChangeMessage(version=0, leader_id=local.node_id, voters=[voter], granting_voters=[voter])
    records = [(record_batch.control_key(record_batch.LEADER_CHANGE), leader_change.write(0))]
    if state.kraft_version > 0:
        wanted = VotersRecord(version=0, voters=[local.as_voter()])
        if not voters_in_log or state.voters != wanted:
            state.voters = wanted
            records += state.records()
    return records


class ReplicaKey(NamedTuple):
    """A replica of the log: node id and the id of the directory it keeps the log in (zero where not told)."""

    id: int
    directory_id: bytes


@dataclass(slots=True)
class ReplicaState:
    """How far a replica has come. Offsets and times (ms) are -1 while unknown."""

    log_end_offset: int = -1
    last_fetch_timestamp_ms: int = -1
    last_caught_up_timestamp_ms: int = -1
    leader_end_offset_at_last_fetch: int = -1


class Observers:
    """The replicas that fetch the log without a vote: every broker. Forgotten after five minutes without a fetch.

    At most `OBSERVERS_MAX` are remembered, as anyone can claim to be one; the first seen is forgotten first.
    """

    def __init__(self) -> None:
        self._states: dict[ReplicaKey, ReplicaState] = {}
        self._diverged: set[tuple[int, int]] = set()

    def fetched(self, replica: ReplicaKey, fetch_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note a valid fetch from `fetch_offset` (ReplicaState.updateFollowerState)."""
        state = self._states.get(replica)
        if state is None:
            if len(self._states) >= OBSERVERS_MAX:
                del self._states[next(iter(self._states))]
            state = self._states[replica] = ReplicaState()
        if fetch_offset >= leader_end_offset:
            state.last_caught_up_timestamp_ms = max(now_ms, state.last_caught_up_timestamp_ms)
        elif 0 < state.leader_end_offset_at_last_fetch <= fetch_offset:
            # It has all that the leader had when it asked the last time, so it was caught up then.
            state.last_caught_up_timestamp_ms = max(state.last_fetch_timestamp_ms, state.last_caught_up_timestamp_ms)
        state.leader_end_offset_at_last_fetch = leader_end_offset
        state.last_fetch_timestamp_ms = max(now_ms, state.last_fetch_timestamp_ms)
        state.log_end_offset = fetch_offset

    def diverged(self, replica_id: int, fetch_offset: int) -> bool:
        """Note that a replica's log is not this one's; whether that is news worth a line in the log.

        Once per replica and offset, and for the first thousand only, however long a follower repeats itself.
        """
        found = (replica_id, fetch_offset)
        if replica_id < 0 or found in self._diverged or len(self._diverged) >= DIVERGED_MAX:
            return False
        self._diverged.add(found)
        return True

    def states(self, now_ms: int) -> dict[ReplicaKey, ReplicaState]:
        """The observers of the last five minutes."""
        self._states = {
            key: state
            for key, state in self._states.items()
            if now_ms - state.last_fetch_timestamp_ms < OBSERVER_SESSION_TIMEOUT_MS
        }
        return self._states
