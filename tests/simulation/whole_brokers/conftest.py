"""A seeded world of whole brokers: nodes of simulated brokers around a node of the controller, without sockets.

Each message takes a while, drawn from one `random.Random`, and some connections break instead of delivering it. Brokers
are killed and start again on the same disks.
"""

from __future__ import annotations

import dataclasses
import heapq
import random
from collections.abc import Callable, Iterable
from typing import Any

from mockraft.brokers.config import draw_config
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.effects import (
    Answered,
    BreakOff,
    ClientConnected,
    ClientGone,
    ClientRead,
    ClientSent,
    Closed,
    Connect,
    Disconnect,
    Effect,
    Event,
    Link,
    NotOpened,
    Opened,
    Send,
    ToClient,
)
from mockraft.brokers.framed_link import FramedLink
from mockraft.brokers.lifecycle import Stopped
from mockraft.brokers.node import BrokerNode
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image, Partition
from mockraft.server.journal import Journal
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.serving import effects as accepted
from mockraft.wire import record_batch
from mockraft.wire.errors import DisconnectedError
from mockraft.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.messages.produce_response import ProduceResponse

START_MS = 1_700_000_000_000
BROKERS = (1, 2, 3)
DELAY_MAX_MS = 20
SESSION_TIMEOUT_MS = 3_000
LAG_TIME_MAX_MS = 1_000
PRODUCE_VERSION = 12


class Wire:
    """One connection: `deliver` and `lost` get bytes and the end at either side, each in its order."""

    def __init__(
        self, world: BrokerWorld, to_server: Callable[[bytes], None], to_client: Callable[[bytes], None]
    ) -> None:
        self.world = world
        self.is_open = True
        self.on_lost: list[Callable[[], object]] = []
        self._sides = (to_client, to_server)
        self._last_ms = [world.now_ms, world.now_ms]

    def send(self, data: bytes, *, to_server: bool) -> None:
        """Deliver some time later, after what was sent before; or break."""
        if self.is_open and self.world.rng.random() < self.world.loss:
            self.cut()
        side = int(to_server)
        self._last_ms[side] = max(self._last_ms[side], self.world.now_ms + self.world.rng.randint(0, DELAY_MAX_MS))
        self.world.at(self._last_ms[side], lambda: self._sides[side](data) if self.is_open else None)

    def cut(self) -> None:
        """End at both sides."""
        if self.is_open:
            self.is_open = False
            for lost in self.on_lost:
                self.world.at(self.world.now_ms, lost)


class Outgoing:
    """The outgoing connections of one life of a broker, or of a client."""

    def __init__(self, world: BrokerWorld, feed: Callable[[Event], None]) -> None:
        self.world = world
        self.feed = feed
        self.wires: dict[Link, tuple[FramedLink, Wire]] = {}

    def perform(self, effect: Effect) -> None:
        match effect:
            case Connect(link):
                self._connect(link)
            case Send(link=link):
                framed, wire = self.wires[link]
                wire.send(framed.write(effect), to_server=True)
            case Disconnect(link) | BreakOff(link):
                if link in self.wires:
                    self.wires.pop(link)[1].cut()

    def cut(self) -> None:
        for _, wire in self.wires.values():
            wire.cut()
        self.wires.clear()

    def _connect(self, link: Link) -> None:
        framed = FramedLink(link)
        wire = self.world.accept(link, lambda data: self._receive(framed, data))
        if wire is None:
            refused = NotOpened(link, DisconnectedError("refused"))
            self.world.at(self.world.now_ms + 1, lambda: self.feed(refused))
            return
        self.wires[link] = (framed, wire)
        wire.on_lost.append(lambda: self._lost(framed))
        if link.handshake:
            wire.send(framed.open(), to_server=True)
        else:
            self.world.at(self.world.now_ms, lambda: self.feed(Opened(link, {})))

    def _receive(self, framed: FramedLink, data: bytes) -> None:
        for event in framed.receive(data):
            self.feed(event)

    def _lost(self, framed: FramedLink) -> None:
        if self.wires.get(framed.link, (None,))[0] is framed:
            del self.wires[framed.link]
            for event in (*framed.lost(), Closed(framed.link)):
                self.feed(event)


class Life:
    """One run of a broker."""

    def __init__(self, world: BrokerWorld, node: BrokerNode) -> None:
        self.world = world
        self.node = node
        self.outgoing = Outgoing(world, self.feed)
        self.clients: dict[int, Wire] = {}
        self.perform(node.start(world.now_ms))

    def feed(self, event: Any) -> None:
        if self.node.end is None:
            self.perform(self.node.step(event, self.world.now_ms))

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ToClient):
                self._to_client(effect.effect)
            else:
                self.outgoing.perform(effect)

    def _to_client(self, effect: Any) -> None:
        wire = self.clients.get(effect.connection_id)
        if wire is None:
            return
        if isinstance(effect, accepted.Send):
            wire.send(effect.data, to_server=False)
        elif isinstance(effect, accepted.Close):
            wire.cut()
        elif isinstance(effect, accepted.AwaitSent):
            self.world.at(self.world.now_ms, lambda: self.feed(ClientRead(effect.connection_id)))

    def end(self) -> None:
        self.node.happen(Stopped())
        self.node.close()
        self.outgoing.cut()
        for wire in list(self.clients.values()):
            wire.cut()


class BrokerWorld:
    """A controller and three brokers that serve clients; `run` lets time pass."""

    def __init__(self, seed: int, loss: float = 0.0) -> None:
        self.rng = random.Random(seed)
        self.loss = loss
        self.now_ms = START_MS
        self.config = ControllerConfig(session_timeout_ms=SESSION_TIMEOUT_MS)
        raft = Raft.open(self.config, START_MS, random.Random(seed))
        self.log = raft.log
        controller = Controller(self.config, raft, random.Random(seed), START_MS)
        self.controller = Node(controller, APIS, Journal(4, 1 << 16), random.Random(seed))
        self.agenda: list[tuple[float, int, Callable[[], Any]]] = []
        self.scheduled = self.connections = 0
        self.to_clients: dict[int, Wire] = {}
        self.disks = {n: MemoryDisk(f"/broker-{n}") for n in BROKERS}
        self.lives: dict[int, Life] = {}
        self.client = Outgoing(self, self._answered)
        self.acknowledged: list[bytes] = []
        self.waiting: dict[int, bytes] = {}
        self.produced = self.incarnations = 0
        for broker_id in BROKERS:
            self.start(broker_id)

    @property
    def image(self) -> Image:
        return self.controller.controller.image

    @property
    def brokers(self) -> dict[int, BrokerNode]:
        return {broker_id: life.node for broker_id, life in self.lives.items()}

    def start(self, broker_id: int, *, incarnation: int | None = None) -> None:
        self.incarnations += 1
        config = draw_config(
            broker_id,
            self.config.cluster_id,
            (("controller", 9093),),
            random.Random(broker_id),
            log_dir_paths=(f"/broker-{broker_id}",),
            open_disk=lambda _: self.disks[broker_id],
            host=f"broker-{broker_id}",
            port=9092,
            serve_clients=True,
            heartbeat_interval_ms=500,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            properties={"replica.lag.time.max.ms": str(LAG_TIME_MAX_MS), "replica.fetch.backoff.ms": "100"},
        )
        number = self.incarnations if incarnation is None else incarnation
        node = BrokerNode(dataclasses.replace(config, incarnation_id=number.to_bytes(16, "big")))
        self.lives[broker_id] = Life(self, node)

    def kill(self, broker_id: int) -> None:
        self.lives.pop(broker_id).end()

    # Time.

    def at(self, when_ms: float, call: Callable[[], Any]) -> None:
        self.scheduled += 1
        heapq.heappush(self.agenda, (when_ms, self.scheduled, call))

    def run(self, ms: int) -> None:
        """Let everything happen that comes due meanwhile, in order."""
        end_ms = self.now_ms + ms
        while True:
            due = [self.agenda[0][0]] if self.agenda else []
            due.append(self.controller.next_tick_ms(int(self.now_ms)))
            due += [life.node.next_deadline_ms for life in self.lives.values()]
            if min(due) > end_ms:
                break
            self.now_ms = max(self.now_ms, int(-(-min(due) // 1)))
            if self.agenda and self.agenda[0][0] <= self.now_ms:
                heapq.heappop(self.agenda)[2]()
                continue
            if self.controller.next_tick_ms(self.now_ms) <= self.now_ms:
                self._from_controller(self.controller.tick(self.now_ms))
            for life in list(self.lives.values()):
                if life.node.next_deadline_ms <= self.now_ms:
                    life.perform(life.node.tick(self.now_ms))
        self.now_ms = end_ms

    def run_until(self, condition: Callable[[], Any], limit_ms: int = 30_000) -> None:
        """AssertionError when it does not come true in time."""
        end_ms = self.now_ms + limit_ms
        while not condition():
            assert self.now_ms < end_ms, "it has not come true"
            self.run(50)

    # Connections.

    def accept(self, link: Link, receive: Callable[[bytes], None]) -> Wire | None:
        """The accepting end of a new connection, at the controller or at a broker; None when it is refused."""
        self.connections += 1
        connection_id = self.connections
        if not link.host.startswith("broker-"):
            return self._accept_at_controller(connection_id, receive)
        life = self.lives.get(int(link.host.removeprefix("broker-")))
        if life is None or life.node.clients is None:
            return None
        wire = Wire(self, lambda data: life.feed(ClientSent(connection_id, data)), receive)
        life.clients[connection_id] = wire
        wire.on_lost.append(lambda: life.clients.pop(connection_id, None))
        wire.on_lost.append(lambda: life.feed(ClientGone(connection_id)))
        life.feed(ClientConnected(connection_id, "PLAINTEXT", "127.0.0.1"))
        return wire

    def _accept_at_controller(self, connection_id: int, receive: Callable[[bytes], None]) -> Wire:
        node = self.controller

        def step(data: bytes) -> None:
            self._from_controller(node.step(connection_id, data, self.now_ms))

        def gone() -> None:
            if self.to_clients.pop(connection_id, None) is not None:
                node.disconnected(connection_id, "gone", self.now_ms)

        wire = self.to_clients[connection_id] = Wire(self, step, receive)
        wire.on_lost.append(gone)
        self._from_controller(node.connected(connection_id, f"127.0.0.1:{connection_id}", self.now_ms))
        return wire

    def _from_controller(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            wire = self.to_clients.get(effect.connection_id)
            if wire is None:
                continue
            if isinstance(effect, accepted.Send):
                wire.send(effect.data, to_server=False)
            elif isinstance(effect, accepted.Close):
                del self.to_clients[effect.connection_id]
                wire.cut()
            elif isinstance(effect, accepted.AwaitSent):
                self._from_controller(self.controller.sent(effect.connection_id, self.now_ms))

    # A client.

    def create_topic(self, name: str = "orders") -> bytes:
        """A topic with one partition on all brokers, of which two must have each record."""
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(BROKERS))
        config = CreatableTopicConfig(name="min.insync.replicas", value="2")
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[config]
        )
        self._ask(Link("client", "client", "controller", 9093, 1000, handshake=False), 7, topic)
        self.run_until(lambda: name in self.image.topics.by_name)
        return bytes(self.image.topics.by_name[name].topic_id)

    def _ask(self, link: Link, version: int, topic: CreatableTopic) -> None:
        self.client.perform(Connect(link))
        self.client.perform(Send(0, link, CreateTopicsRequest(topics=[topic], timeout_ms=5000), version))

    def partition(self, topic_id: bytes) -> Partition:
        return self.image.topics.by_id[topic_id].partitions[0]

    def hosted(self, broker_id: int, topic_id: bytes) -> HostedPartition | None:
        life = self.lives.get(broker_id)
        return None if life is None or life.node.replicas is None else life.node.replicas.hosted((topic_id, 0))

    def produce(self, topic_id: bytes, acks: int = -1) -> None:
        """Send one record to the leader; `acknowledged` has it once the leader has said so."""
        leader = self.partition(topic_id).leader
        self.produced += 1
        value = b"record %d;" % self.produced
        link = Link(f"client {self.produced}", "client", f"broker-{leader}", 9092, 1000, handshake=False)
        self.client.perform(Connect(link))
        if link not in self.client.wires:
            return
        records = record_batch.encode([value], base_offset=0, leader_epoch=0, timestamp_ms=1000)
        data = PartitionProduceData(index=0, records=records)
        topics = [TopicProduceData(name="orders", topic_id=topic_id, partition_data=[data])]
        self.waiting[self.produced] = value
        request = ProduceRequest(acks=acks, timeout_ms=2_000, topic_data=topics)
        self.client.perform(Send(self.produced, link, request, PRODUCE_VERSION))

    def _answered(self, event: Event) -> None:
        if isinstance(event, Answered) and event.request_id in self.waiting:
            value, response = self.waiting.pop(event.request_id), event.response
            assert isinstance(response, ProduceResponse)
            if response.responses[0].partition_responses[0].error_code == 0:
                self.acknowledged.append(value)
