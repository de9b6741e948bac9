"""One raft node whose peers are scripted by the test."""

import random
from typing import Any

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.quorum.voter_set import ReplicaKey
from mockraft.server.raft.outgoing import Outgoing
from mockraft.server.raft.raft import Raft
from mockraft.wire import messages, uuids
from mockraft.wire.messages import fetch_response, vote_response

START_MS = 100_000
TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"


def directory_id(node_id: int) -> bytes:
    return bytes([node_id]) * 16


class RaftListener:
    """Calls that the controller received, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def became_leader(self, epoch: int, now_ms: int) -> None:
        self.calls.append(f"leads {epoch}")

    def lost_leadership(self) -> None:
        self.calls.append("lost")

    def committed(self, now_ms: int) -> None:
        self.calls.append("committed")

    def truncated(self) -> None:
        self.calls.append("truncated")


class LoneNode:
    """Node 1, or another, of voters 1 … n, and its clock."""

    def __init__(self, voters: int = 3, node_id: int = 1, log: Any = None, **options: Any) -> None:
        self.now_ms = START_MS
        ids = range(1, voters + 1)
        if "controller_quorum_voters" not in options:
            each = (f"{n}@node{n}:{9000 + n}:{uuids.text_of(directory_id(n))}" for n in ids)
            options = {"initial_controllers": ",".join(each), **options}
        self.config = ControllerConfig(node_id=node_id, host=f"node{node_id}", port=9000 + node_id, **options)
        rng = random.Random(1)
        self.raft = Raft.open(self.config, self.now_ms, rng) if log is None else self._over(log, rng)
        self.log = self.raft.log
        self.listener = RaftListener()
        self.raft.listener = self.listener
        self.sent: list[Outgoing] = []

    def _over(self, log: Any, rng: random.Random) -> Raft:
        return Raft(self.config, log, rng, self.now_ms)

    def poll(self, after_ms: int = 0) -> list[Outgoing]:
        self.now_ms += after_ms
        self.sent = self.raft.poll(self.now_ms)
        return self.sent

    def poll_at_deadline(self) -> list[Outgoing]:
        return self.poll(self.raft.deadline_ms - self.now_ms)

    def answer(self, outgoing: Outgoing, response: Any) -> list[Outgoing]:
        """The other node's response, by way of its bytes; then what the node sends next."""
        if response is not None:
            version = outgoing.version_max
            response = messages.response(outgoing.message.api_key).read(response.write(version), version)
        self.raft.received(outgoing.id, response, self.now_ms)
        return self.poll()

    def vote(self, outgoing: Outgoing, granted: bool, *, epoch: int | None = None, leader_id: int = -1) -> Any:
        partition = vote_response.PartitionData(
            partition_index=0,
            leader_id=leader_id,
            leader_epoch=self.raft.epoch if epoch is None else epoch,
            vote_granted=granted,
        )
        topics = [vote_response.TopicData(topic_name=TOPIC, partitions=[partition])]
        return self.answer(outgoing, vote_response.VoteResponse(topics=topics))

    def fetched(self, outgoing: Outgoing, *, leader_id: int, epoch: int | None = None, **fields: Any) -> Any:
        """The answer to a fetch."""
        leader = fetch_response.LeaderIdAndEpoch(
            leader_id=leader_id, leader_epoch=self.raft.epoch if epoch is None else epoch
        )
        partition = fetch_response.PartitionData(
            partition_index=0, current_leader=leader, **{"high_watermark": -1, "records": b"", **fields}
        )
        topics = [fetch_response.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])]
        return self.answer(outgoing, fetch_response.FetchResponse(responses=topics))

    def lead(self) -> list[Outgoing]:
        """Win an election; gives what the new leader sends."""
        self.raft.elect(self.now_ms)
        for outgoing in self.poll():
            self.vote(outgoing, True)
            if self.raft.is_leader:
                break
        assert self.raft.is_leader
        return self.sent

    def follow(self, leader_id: int = 2, epoch: int = 5) -> list[Outgoing]:
        """Hear of a leader; gives what is sent to it."""
        self.raft.maybe_transition(leader_id, epoch, self.raft.address_of(leader_id), self.now_ms)
        return self.poll()

    def fetch_from(self, node_id: int) -> None:
        """Another node fetches from the end of this leader's log."""
        self.raft.fetched(ReplicaKey(node_id, directory_id(node_id)), self.log.end_offset, self.now_ms)


@pytest.fixture
def new_node() -> type[LoneNode]:
    return LoneNode
