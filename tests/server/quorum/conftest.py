"""Three nodes without sockets: requests travel between them as bytes, on a virtual clock."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka_api.effects import Close, Effect, Send
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.node import Node
from mockraft.server.raft.outgoing import Outgoing, SendToNode
from mockraft.server.raft.raft import Raft
from mockraft.server.running_quorum import quorum_configs
from mockraft.wire.connection import FrameReader, read_response, write_request

START_MS = 1_700_000_000_000
HOP_MS = 1
"""Delay of a request or a response."""


@dataclass(eq=False)
class Asked:
    """A request that is with another node: its answer is due from connection `connection_id` there."""

    sender: int
    node: Node
    receiver: int
    outgoing: Outgoing
    version: int
    deadline_ms: int


class World:
    """Nodes 3000, 3001, …, of which any may be dead, and links, of which any may be cut."""

    def __init__(self, data_dir: Path, nodes: int = 3, seed: int = 1, **options: Any) -> None:
        self.now_ms = START_MS
        self.rng = random.Random(seed)
        config = ControllerConfig(cluster_id="a-cluster", **options)
        ports = {config.node_id + index: 9093 + index for index in range(nodes)}
        self.configs = quorum_configs(config, data_dir, ports)
        self.nodes: dict[int, Node] = {}
        self.apart: set[int] = set()
        self.responses: dict[int, Any] = {}
        self._connections_made = 0
        self._asked: dict[tuple[int, int], Asked] = {}
        self._clients: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._things = 0
        for node_id in self.configs:
            self.start(node_id)

    def start(self, node_id: int) -> None:
        """Start a node with what its folder has."""
        config = self.configs[node_id]
        rng = random.Random(self.rng.random())
        raft = Raft.open(config, self.now_ms, rng)
        self.nodes[node_id] = Node(Controller(config, raft, rng, self.now_ms), APIS)

    def kill(self, node_id: int) -> None:
        """End a node at once; requests that are with it break off."""
        self.nodes.pop(node_id).controller.log.close()
        for key in [key for key in self._clients if key[0] == node_id]:
            del self._clients[key]
        for key, asked in list(self._asked.items()):
            if asked.receiver == node_id:
                del self._asked[key]
                self._later(lambda asked=asked: self._answer(asked, None))  # type: ignore[misc]

    def controller(self, node_id: int) -> Controller:
        return self.nodes[node_id].controller

    @property
    def active(self) -> int | None:
        """Of those that think they are, the one with the newest epoch."""
        epochs = {node_id: node.controller.epoch for node_id, node in self.nodes.items()}
        best = max(epochs, key=epochs.__getitem__)
        return None if epochs[best] == STANDBY else best

    def elect(self, node_id: int) -> None:
        """Let a node stand for election now, and time pass until it is the active one."""
        self.controller(node_id).raft.elect(self.now_ms)
        self.tick(node_id)
        self.until(lambda: self.active == node_id and self.settled(), f"{node_id} to lead")

    def settled(self) -> bool:
        """Return True if all nodes that reach the active one have its whole log, committed."""
        if self.active is None:
            return False
        log = self.controller(self.active).log
        return all(
            node.controller.log.high_watermark == log.end_offset
            for node_id, node in self.nodes.items()
            if self.reach(node_id, self.active)
        )

    def reach(self, one: int, other: int) -> bool:
        return (one in self.apart) == (other in self.apart)

    def ask(self, node_id: int, request: Any, version: int | None = None) -> int:
        """Send a request as a client; its response will be in `responses` under the number that this gives."""
        version = request.max_version if version is None else version
        connection_id = self._connect(node_id)
        self._clients[node_id, connection_id] = (connection_id, request.api_key, version)
        self._step(node_id, connection_id, write_request(request, version, 1, "client"))
        return connection_id

    def answer(self, node_id: int, request: Any, version: int | None = None) -> Any:
        """Send a request and let time pass until it is answered."""
        number = self.ask(node_id, request, version)
        self.until(lambda: number in self.responses, f"an answer to {type(request).__name__}")
        return self.responses[number]

    def until(self, condition: Callable[[], bool], what: str, within_ms: int = 30_000) -> None:
        """Let time pass until it holds."""
        end_ms = self.now_ms + within_ms
        while not condition():
            assert self.now_ms < end_ms, f"waited {within_ms} ms for {what}"
            self.pass_time(1)

    def pass_time(self, ms: int) -> None:
        """So many milliseconds go by; what is due happens at its time, in order."""
        end_ms = self.now_ms + ms
        while (due_ms := self._next_ms()) <= end_ms:
            self.now_ms = max(self.now_ms + 1, due_ms)
            self._happen()
        self.now_ms = end_ms

    def _next_ms(self) -> int:
        due = [node.next_tick_ms(self.now_ms) for node in self.nodes.values()]
        due += [asked.deadline_ms for asked in self._asked.values()]
        return max(self.now_ms + 1, min([*due, self._due[0][0] if self._due else 1 << 62]))

    def _happen(self) -> None:
        while self._due and self._due[0][0] <= self.now_ms:
            self._due.pop(0)[2]()
        for key, asked in list(self._asked.items()):
            if asked.deadline_ms <= self.now_ms:
                self._asked.pop(key, None)
                self._answer(asked, None)
        for node_id in list(self.nodes):
            if self.nodes[node_id].next_tick_ms(self.now_ms) <= self.now_ms:
                self.tick(node_id)

    def tick(self, node_id: int) -> None:
        self._perform(node_id, self.nodes[node_id].tick(self.now_ms))

    def _later(self, do: Callable[[], None]) -> None:
        self._things += 1
        self._due.append((self.now_ms + HOP_MS, self._things, do))

    def _connect(self, node_id: int) -> int:
        self._connections_made += 1
        self._perform(node_id, self.nodes[node_id].connected(self._connections_made, "127.0.0.1", self.now_ms))
        return self._connections_made

    def _step(self, node_id: int, connection_id: int, data: bytes) -> None:
        self._perform(node_id, self.nodes[node_id].step(connection_id, data, self.now_ms))

    def _perform(self, node_id: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendToNode):
                node = self.nodes[node_id]
                self._later(lambda node=node, out=effect.outgoing: self._deliver(node_id, node, out))  # type: ignore[misc]
            elif isinstance(effect, Send):
                self._sent(node_id, effect)
            elif isinstance(effect, Close):
                raise AssertionError(f"{node_id} closed a connection: {effect.reason}")

    def _deliver(self, sender: int, node: Node, outgoing: Outgoing) -> None:
        receiver = next(node_id for node_id, config in self.configs.items() if config.voter_port == outgoing.port)
        version = outgoing.version_max
        asked = Asked(sender, node, receiver, outgoing, version, self.now_ms + outgoing.timeout_ms)
        if receiver not in self.nodes:
            self._answer(asked, None)
            return
        connection_id = self._connect(receiver)
        self._asked[receiver, connection_id] = asked
        if self.reach(sender, receiver):
            self._step(receiver, connection_id, write_request(outgoing.message, version, 1, f"raft-client-{sender}"))

    def _sent(self, node_id: int, sent: Send) -> None:
        asked = self._asked.pop((node_id, sent.connection_id), None)
        if asked is None:
            client = self._clients.get((node_id, sent.connection_id))
            if client is not None:
                number, api_key, version = client
                self.responses[number] = _body(sent.data, api_key, version)
            return
        if not self.reach(asked.sender, asked.receiver):
            self._asked[node_id, -sent.connection_id] = asked
            return
        response = _body(sent.data, asked.outgoing.message.api_key, asked.version)
        self._later(lambda: self._answer(asked, response))

    def _answer(self, asked: Asked, response: Any) -> None:
        # A process that was killed and started again has other connections: what the old one asked is lost.
        if self.nodes.get(asked.sender) is asked.node:
            self._perform(asked.sender, asked.node.answered(asked.outgoing.id, response, self.now_ms))


def _body(data: bytes, api_key: int, version: int) -> Any:
    (frame,) = FrameReader().receive_data(data)
    return read_response(frame, api_key, version)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three nodes, of which 3000 leads."""
    world = World(tmp_path)
    world.elect(3000)
    return world


@pytest.fixture
def new_world(tmp_path: Path) -> Callable[..., World]:
    """To make a world with options of its own, in which nobody leads yet."""
    return lambda **options: World(tmp_path, **options)
