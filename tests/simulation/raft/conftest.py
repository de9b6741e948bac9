"""A seeded world of raft nodes: messages are lost, late and doubled, nodes are cut off, crash and come back."""

import dataclasses
import heapq
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mockraft.server.apis.api import RequestContext
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.result import ApiError
from mockraft.server.raft.raft import Raft
from mockraft.serving.parked import Parked
from mockraft.wire import messages, uuids
from mockraft.wire.message import Message
from mockraft.wire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord

START_MS = 1_000_000
NEVER_MS = 1 << 62
LOSS = 0.05
DOUBLED = 0.05


VERSIONS = ApiVersionsResponse(
    supported_features=[SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
)


class RaftListener:
    """Calls that raft makes to a controller, checked as they arrive."""

    def __init__(self, node: "SimulatedNode") -> None:
        self.node = node
        self.leads = False

    def became_leader(self, epoch: int, now_ms: int) -> None:
        assert not self.leads
        self.leads = True
        assert epoch == self.node.raft.epoch
        assert self.node.raft.high_watermark >= 0

    def lost_leadership(self, now_ms: int) -> None:
        assert self.leads
        self.leads = False

    def committed(self, now_ms: int) -> None:
        assert self.node.log.high_watermark <= self.node.log.end_offset

    def truncated(self, now_ms: int) -> None:
        assert not self.leads


class SimulatedNode:
    """One node: its raft while it is up, its log while it lives."""

    def __init__(self, world: "World", config: ControllerConfig) -> None:
        self.world = world
        self.config = config
        self.rng = random.Random(f"{world.seed} {config.node_id}")
        self.log = MetadataLog.open(config, world.now_ms, self.rng)
        self.up = False
        self.parked: list[tuple[Parked[Message], Callable[[Any], None]]] = []
        self.lives = 0
        self.start()

    def start(self) -> None:
        """Begin a life over what is left of the last one."""
        if self.lives and self.config.data_dir is not None:
            self.log = MetadataLog.open(self.config, self.world.now_ms, self.rng)
        elif self.lives:
            self.log.high_watermark = self.log.start_offset
            self.log.commits_alone = False
        self.lives += 1
        self.up = True
        self.parked = []
        self.raft = Raft(self.config, self.log, self.rng, self.world.now_ms)
        self.listener = RaftListener(self)
        self.raft.listener = self.listener
        if self.raft.is_leader:
            self.listener.became_leader(self.raft.epoch, self.world.now_ms)
        self.controller: Any = SimpleNamespace(config=self.config, log=self.log, raft=self.raft)

    def crash(self) -> None:
        """Lose all but the log and the election."""
        self.up = False
        self.log.close()

    def handle(self, request: Any, version: int, respond: Callable[[Any], None]) -> None:
        """Answer a request that came in, now or when it may be answered."""
        if isinstance(request, ApiVersionsRequest):
            respond(VERSIONS)
            return
        api = APIS[request.api_key]
        now_ms = self.world.now_ms
        ctx = RequestContext(
            api.api_key, version, 1, "raft", "User:ANONYMOUS", "127.0.0.1", 1, "CONTROLLER", False, now_ms, APIS
        )
        try:
            answer = api.handle(request, ctx, self.controller)
        except ApiError as refusal:
            answer = api.error(request, refusal.error_code, refusal.message)
        if isinstance(answer, Parked):
            self.parked.append((answer, respond))
        else:
            respond(answer)

    def retry_parked(self) -> None:
        """Answer what was parked, if it is time."""
        now_ms = self.world.now_ms
        parked, self.parked = self.parked, []
        for waiting, respond in parked:
            answer = waiting.retry(now_ms, now_ms >= waiting.deadline_ms)
            if answer is None:
                self.parked.append((waiting, respond))
            else:
                respond(answer)

    def next_ms(self) -> int:
        deadlines = [parked.deadline_ms for parked, _ in self.parked]
        return min([self.raft.next_poll_ms(self.world.now_ms), *deadlines])


class World:
    """A quorum; `step` lets the next thing happen. `violent`: whether faults are still being made."""

    def __init__(self, seed: int, data_dir: Path | None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now_ms = START_MS
        self.violent = True
        self.cut: set[frozenset[int]] = set()
        self.appended = 0
        self.changes_asked = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        voters = self.rng.choice([1, 2, 3, 3, 3, 5])
        ids = range(1, voters + 2)
        directories = {node_id: self.rng.randbytes(16) for node_id in ids}
        initial = ",".join(f"{n}@host:{9000 + n}:{uuids.text_of(directories[n])}" for n in ids[:-1])
        static = ",".join(f"{n}@host:{9000 + n}" for n in ids[:-1])
        is_static = self.rng.random() < 0.2
        servers = ",".join(f"host:{9000 + n}" for n in ids[:-1])
        base = ControllerConfig(
            host="host",
            controller_quorum_voters=static if is_static else None,
            initial_controllers=None if is_static else initial,
            controller_quorum_bootstrap_servers=servers if self.rng.random() < 0.5 else None,
            metadata_log_max_record_bytes_between_snapshots=self.rng.choice([400, 5_000]),
            metadata_max_retention_bytes=self.rng.choice([1, 10_000_000]),
        )
        self.nodes = {
            n: SimulatedNode(
                self,
                dataclasses.replace(
                    base, node_id=n, port=9000 + n, data_dir=data_dir / str(n) if data_dir is not None else None
                ),
            )
            for n in ids
        }
        self._at(50, self._fault)
        self._at(20, self._client)

    def step(self) -> None:
        """Let the next thing happen: a message comes in, a timeout ends, somebody does something."""
        up = [node for node in self.nodes.values() if node.up]
        wanted = [(max(node.next_ms(), self.now_ms), node.config.node_id) for node in up]
        due_ms, node_id = min(wanted, default=(NEVER_MS, 0))
        if self._queue and self._queue[0][0] <= due_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        else:
            self.now_ms = due_ms
            self._settle(self.nodes[node_id])

    def calm(self) -> None:
        """End all faults: everybody is up and hears everybody."""
        self.violent = False
        self.cut.clear()
        for node in self.nodes.values():
            if not node.up:
                node.start()

    def leaders(self) -> list[SimulatedNode]:
        return [node for node in self.nodes.values() if node.up and node.raft.is_leader]

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, action))

    def _settle(self, node: SimulatedNode) -> None:
        """Handle the effects of an event at one node."""
        seen = None
        while node.up and seen != (node.log.end_offset, node.log.high_watermark, node.raft.changes):
            seen = (node.log.end_offset, node.log.high_watermark, node.raft.changes)
            node.retry_parked()
            for outgoing in node.raft.poll(self.now_ms):
                self._send(node, outgoing)

    def _send(self, sender: SimulatedNode, outgoing: Any) -> None:
        life, target = sender.lives, self.nodes[outgoing.port - 9000]
        api = APIS[outgoing.message.api_key]
        low, high = max(outgoing.version_min, api.min_version), min(outgoing.version_max, api.max_version)
        version = self.rng.randint(low, high) if api.api_key != 1 else self.rng.choice([17, 18])
        data = outgoing.message.write(version)

        def answered(response: Any) -> None:
            if sender.up and sender.lives == life:
                sender.raft.received(outgoing.id, response, self.now_ms)
                self._settle(sender)

        def respond(answer: Any) -> None:
            said = answer.write(version)
            if self._is_lost(sender, target):
                return
            self._at(self._delay_ms(), lambda: answered(messages.response(api.api_key).read(said, version)))

        def deliver() -> None:
            if target.up and not self._is_lost(sender, target):
                target.handle(messages.request(api.api_key).read(data, version), version, respond)
                self._settle(target)
            elif not target.up:
                self._at(1, lambda: answered(None))

        self._at(outgoing.timeout_ms, lambda: answered(None))
        for _ in range(2 if self.violent and self.rng.random() < DOUBLED else 1):
            self._at(self._delay_ms(), deliver)

    def _is_lost(self, one: SimulatedNode, other: SimulatedNode) -> bool:
        if frozenset((one.config.node_id, other.config.node_id)) in self.cut:
            return True
        return self.violent and self.rng.random() < LOSS

    def _delay_ms(self) -> int:
        slow = self.violent and self.rng.random() < 0.02
        return self.rng.randint(500, 3000) if slow else self.rng.randint(1, 15)

    def _client(self) -> None:
        """Write something, and now and then snapshot what is committed."""
        leaders = [node for node in self.leaders() if node.listener.leads]
        if leaders:
            node = self.rng.choice(leaders)
            self.appended += 1
            record = RecordAt(TopicRecord(name=f"t{self.appended}", topic_id=self.appended.to_bytes(16, "big")), 0)
            node.log.append([record] * self.rng.randint(1, 3), self.now_ms)
            self._settle(node)
        for node in self.nodes.values():
            if node.up and node.log.end_offset and node.log.snapshot_due(self.now_ms):
                node.log.write_snapshot([at for _, at in node.log.records()], self.now_ms)
        self._at(self.rng.randint(20, 400), self._client)

    def _fault(self) -> None:
        if not self.violent:
            return
        faults = [self._crash, self._crash, self._restart, self._restart, self._restart, self._cut, self._cut]
        faults += [self.cut.clear, self.cut.clear, self._resign, self._elect, self._change_voters]
        self.rng.choice(faults)()
        self._at(self.rng.randint(100, 1500), self._fault)

    def _crash(self) -> None:
        up = [node for node in self.nodes.values() if node.up]
        if len(up) > 1:
            self.rng.choice(up).crash()

    def _restart(self) -> None:
        down = [node for node in self.nodes.values() if not node.up]
        if down:
            self.rng.choice(down).start()

    def _cut(self) -> None:
        one = self.rng.choice(list(self.nodes))
        self.cut |= {frozenset((one, other)) for other in self.nodes if other != one}

    def _resign(self) -> None:
        for node in self.leaders()[:1]:
            node.raft.resign(self.now_ms)
            self._settle(node)

    def _elect(self) -> None:
        voters = [node for node in self.nodes.values() if node.up and node.raft.is_voter]
        if voters:
            node = self.rng.choice(voters)
            node.raft.elect(self.now_ms)
            self._settle(node)

    def _change_voters(self) -> None:
        """Ask a leader to add the one that has no vote, or to remove one that has."""
        for leader in self.leaders()[:1]:
            node = self.rng.choice(list(self.nodes.values()))
            if node is leader and len(leader.log.voters.nodes) == 2:
                # Lost on the way, this leaves one that has no vote with the longer log, and one that lacks its vote: a
                # hole in KIP-853 that Kafka has too.
                continue
            key: dict[str, Any] = {"voter_id": node.config.node_id, "voter_directory_id": node.log.directory_id}
            request: Any
            if node.config.node_id in leader.log.voters.nodes:
                request = RemoveRaftVoterRequest(cluster_id=None, **key)
            else:
                listeners = [Listener(name="CONTROLLER", host="host", port=node.config.port)]
                request = AddRaftVoterRequest(cluster_id=None, timeout_ms=1000, listeners=listeners, **key)
            leader.handle(request, 0, self._voters_changed)
            self._settle(leader)

    def _voters_changed(self, answer: Any) -> None:
        self.changes_asked += answer.error_code == 0


@pytest.fixture
def new_world(monkeypatch: pytest.MonkeyPatch) -> type[World]:
    # A crash here is a killed process: what it wrote is in the page cache.
    monkeypatch.setattr("os.fsync", lambda _: None)
    return World
