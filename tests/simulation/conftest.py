"""A seeded world: brokers that come and go around one controller, in a time of its own.

Everything that happens is drawn from one `random.Random`; what reaches the controller is kept in a journal, as bytes.
"""

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from mockraft.kafka_api.effects import Close, Send
from mockraft.kafka_api.journal import Journal
from mockraft.releases import release
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image, Partition
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import read_response, write_request
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_request import TopicData as IsrTopic
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as PlacedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as PlacedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest

from tools.differential import (
    acl_requests,
    broker_requests,
    partition_requests,
    setting_requests,
    topic_requests,
)
from tools.differential.drawn import DRAWINGS
from tools.differential.generator import Generator
from tools.differential.names import Names
from tools.differential.steps import api_name

START_MS = 1_700_000_000_000
LEVELS = (7, 11, 12, 16, 17, 22, 23, 29, 30, 30, 33, 33, 33, 33)
BROKERS = 5
TOPICS = 6
METADATA_TOPIC_ID = bytes(15) + b"\1"
LIVES = {"BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker", "AssignReplicasToDirs"}
DRAWN = [
    draw
    for module in (acl_requests, broker_requests, partition_requests, setting_requests, topic_requests)
    for draw in DRAWINGS[module.__name__]
    if draw[1] not in LIVES  # the world's own brokers live their lives
]


class Input(NamedTuple):
    """One thing that reached the node: the bytes of a request, a tick ("tick") or its restart ("restart")."""

    now_ms: int
    what: bytes | str


@dataclass
class SimulatedBroker:
    """A broker's knowledge of itself; `heard_ms` is when the controller last received a heartbeat of this epoch."""

    broker_id: int
    log_dirs: list[bytes]
    incarnation: int = 0
    epoch: int = -1
    previous_epoch: int = -1
    alive: bool = False
    stopping: bool = False
    offline: list[bytes] = field(default_factory=list)
    cordoned: list[bytes] | None = None
    heard_ms: int = -1


class World:
    """Brokers, topics and a controller. `step` lets one thing happen; `image` is what the controller knows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.config = ControllerConfig(
            metadata_version=self.rng.choice(LEVELS),
            session_timeout_ms=9000,
            delegation_token_secret_key=self.rng.choice((None, "key")),
            super_users=self.rng.choice(("", "User:ANONYMOUS")),
        )
        self.now_ms = START_MS
        self.journal: list[Input] = []
        self.machine = Machine(self.config, seed)
        self.log = self.machine.raft.log
        self.started_ms = self.now_ms
        self.brokers = {n: SimulatedBroker(n, self._directories(n)) for n in range(1, BROKERS + 1)}
        self.correlation_id = 0
        self.told_high_watermarks = [0]
        self.asked: set[str] = set()
        self.names = Names(self.config.cluster_id)
        self.read_offset = 0
        versions = {api_name(api_key): versions for api_key, versions in release().api_versions.items()}
        levels = release().feature_ranges()
        self.generator = Generator(seed, self.names.model, versions, levels, DRAWN)
        self.events: list[tuple[int, Callable[[], None]]] = [
            (8, self.start_broker),
            (30, self.heartbeat),
            (2, self.kill),
            (3, self.shut_down),
            (2, self.lose_directory),
            (2, self.cordon),
            (1, self.unregister),
            (6, self.assign_directory),
            (3, self.send_stale),
            (20, self.let_time_pass),
            (60, self.ask_anything),
            (6, self.fetch_log),
            (1, self.restart_controller),
        ]

    @property
    def controller(self) -> Controller:
        return self.machine.node.controller

    @property
    def image(self) -> Image:
        return self.controller.image

    def step(self) -> str:
        """Let one thing happen; gives its name."""
        weights = [weight for weight, _ in self.events]
        (event,) = self.rng.choices([event for _, event in self.events], weights)
        event()
        return str(event.__name__)

    def ask(self, request: Any, version: int) -> Any:
        """The node's answer to the request."""
        self.correlation_id += 1
        frame = self._deliver(write_request(request, version, self.correlation_id, "simulation"))
        return read_answer(frame, request.api_key, version)

    def ask_anything(self) -> None:
        """Whatever a tool or a broker might ask, right or slightly wrong, itself or forwarded."""
        for offset, (record, version) in self.log.records(self.read_offset):
            self.names.take(record, version, offset)
        self.read_offset = self.log.end_offset
        step = self.generator.step()
        if step.api == "UpdateFeatures" and not step.body.get("validateOnly"):
            return  # which features there are is the seed's choice
        if "NaN" in str(step.body):
            return  # it is a quota like another, but no image that has it is like any other
        self.asked.add(step.api)
        self.correlation_id += 1
        request, version = self.names.request_of(step)
        frame = self._deliver(write_request(request, version, self.correlation_id, "simulation"))
        if step.api == "CreateDelegationToken" and step.principal and frame is not None:
            envelope = read_answer(frame, api_keys.ENVELOPE, 0)
            if envelope.response_data:
                token = read_answer(envelope.response_data, api_keys.CREATE_DELEGATION_TOKEN, step.version)
                self.names.hmacs.append(base64.b64encode(token.hmac).decode())

    def fetch_log(self) -> None:
        """A broker reads the log from somewhere, and is told how far it is committed."""
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self.log.leader_epoch,
            fetch_offset=self.rng.randrange(self.log.start_offset, self.log.end_offset + 1),
            last_fetched_epoch=self.log.leader_epoch,
            partition_max_bytes=1 << 20,
        )
        topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        result = self.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[topic]), 17).responses[0].partitions[0]
        assert result.error_code == 0, result
        self.told_high_watermarks.append(result.high_watermark)

    def let_time_pass(self) -> None:
        """Some milliseconds to some seconds pass, and the controller does what comes due meanwhile, when it does."""
        until_ms = self.now_ms + self.rng.choice((20, 300, 1500, 4000))
        while (due_ms := self.machine.node.next_tick_ms(self.now_ms)) <= until_ms:
            self.now_ms = due_ms
            self._enter(Input(due_ms, "tick"))
        self.now_ms = until_ms

    def restart_controller(self) -> None:
        self._enter(Input(self.now_ms, "restart"))
        self.started_ms = self.now_ms

    def replayed(self) -> MetadataLog:
        """The log of a new node that gets the same inputs at the same times."""
        machine = Machine(self.config, self.seed)
        for entry in self.journal:
            machine.enter(entry)
        return machine.raft.log

    def _enter(self, entry: Input) -> bytes | None:
        self.journal.append(entry)
        return self.machine.enter(entry)

    def _deliver(self, data: bytes) -> bytes | None:
        return self._enter(Input(self.now_ms, data))

    def start_broker(self) -> None:
        """A dead broker starts, cleanly or not; a living one may tell its registration anew."""
        broker = self._any_broker()
        registered = self.image.cluster.brokers.get(broker.broker_id)
        log_dirs = broker.log_dirs
        if broker.alive and registered is not None:
            log_dirs = list(registered.log_dirs)
        else:
            broker.incarnation += 1
            broker.offline, broker.cordoned, broker.stopping = [], None, False
        request = self._registration(broker, log_dirs)
        response = self.ask(request, 4)
        if response.error_code == 0:
            broker.alive = True
            if response.broker_epoch != broker.epoch:
                broker.heard_ms = -1
            broker.epoch, broker.previous_epoch = response.broker_epoch, -1
        else:
            assert response.error_code == error_codes.DUPLICATE_BROKER_REGISTRATION, response

    def heartbeat(self) -> None:
        living = [broker for broker in self.brokers.values() if broker.alive]
        if living:
            self._heartbeat(self.rng.choice(living))

    def kill(self) -> None:
        self._any_broker().alive = False

    def shut_down(self) -> None:
        broker = self._any_broker()
        if broker.alive:
            broker.stopping = True
            self._heartbeat(broker)

    def lose_directory(self) -> None:
        broker = self._any_broker()
        online = [directory for directory in broker.log_dirs if directory not in broker.offline]
        if len(online) > 1:
            broker.offline.append(self.rng.choice(online))

    def cordon(self) -> None:
        broker = self._any_broker()
        broker.cordoned = self.rng.sample(broker.log_dirs, self.rng.randint(0, len(broker.log_dirs)))

    def unregister(self) -> None:
        broker = self._any_broker()
        self.ask(UnregisterBrokerRequest(broker_id=broker.broker_id), 0)
        broker.alive = False

    def assign_directory(self) -> None:
        found = self._any_partition()
        if found is None:
            return
        topic_id, partition_id, partition = found
        broker = self.brokers[self.rng.choice(partition.replicas)]
        registered = self.image.cluster.brokers.get(broker.broker_id)
        log_dirs = broker.log_dirs
        if partition.leader == -1 and registered is not None and registered.log_dirs:
            # Kafka elects by the directory from before: a failed one told now would be led.
            log_dirs = list(registered.log_dirs)
        topic = PlacedTopic(topic_id=topic_id, partitions=[PlacedPartition(partition_index=partition_id)])
        directories = [DirectoryData(id=self.rng.choice(log_dirs), topics=[topic])]
        request = AssignReplicasToDirsRequest(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, directories=directories
        )
        self.ask(request, 0)

    def send_stale(self) -> None:
        """A broker of the past speaks: it must be refused and leave nothing behind."""
        broker_id = self._any_broker().broker_id
        end_offset = self.log.end_offset
        for request, version in (
            (BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=1, want_fence=True), 2),
            (AlterPartitionRequest(broker_id=broker_id, broker_epoch=1, topics=[IsrTopic()]), 3),
        ):
            assert self.ask(request, version).error_code == error_codes.STALE_BROKER_EPOCH
        assert self.log.end_offset == end_offset

    def _heartbeat(self, broker: SimulatedBroker) -> None:
        lag = self.rng.choice((0, 0, 0, 1, 5, 50))
        # Kafka decides a failed directory by the state before the heartbeat: told while unfencing, it would be led.
        registered = self.image.cluster.brokers[broker.broker_id]
        is_failing = registered.fenced and not {*broker.offline}.isdisjoint(registered.log_dirs)
        request = BrokerHeartbeatRequest(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            current_metadata_offset=max(-1, self.log.end_offset - 1 - lag),
            want_fence=is_failing or self.rng.random() < 0.05,
            want_shut_down=broker.stopping,
            offline_log_dirs=broker.offline,
            cordoned_log_dirs=broker.cordoned,
        )
        response = self.ask(request, 2)
        assert response.error_code == 0, response
        broker.heard_ms = self.now_ms
        if response.should_shut_down:
            assert not self.image.topics.index.leads_any(broker.broker_id)
            assert self.image.cluster.brokers[broker.broker_id].fenced
            broker.alive, broker.previous_epoch = False, broker.epoch

    def _any_broker(self) -> SimulatedBroker:
        return self.rng.choice(list(self.brokers.values()))

    def _any_partition(self) -> tuple[bytes, int, Partition] | None:
        if not self.image.topics.by_id:
            return None
        topic = self.rng.choice(list(self.image.topics.by_id.values()))
        partition_id = self.rng.choice(list(topic.partitions))
        return topic.topic_id, partition_id, topic.partitions[partition_id]

    def _registration(self, broker: SimulatedBroker, log_dirs: list[bytes]) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=broker.broker_id,
            cluster_id=self.config.cluster_id,
            incarnation_id=(broker.incarnation << 64 | broker.broker_id).to_bytes(16, "big"),
            listeners=[Listener(name="P", host="h", port=9092, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in release().feature_ranges().items()
            ],
            log_dirs=log_dirs,
            previous_broker_epoch=broker.previous_epoch,
        )

    def _directories(self, broker_id: int) -> list[bytes]:
        return [bytes([0x50 * n, *[broker_id] * 14, n]) for n in range(1, self.rng.randint(1, 3) + 1)]


class Machine:
    """The node of a world and what survives it: the same inputs make the same log."""

    def __init__(self, config: ControllerConfig, seed: int) -> None:
        self.config = config
        self.rng = random.Random(seed)
        self.raft = Raft.open(config, START_MS, random.Random(seed))
        self._start(START_MS)

    def enter(self, entry: Input) -> bytes | None:
        """Let one thing reach the node; what it sends, None for silence and for the end of the connection."""
        if entry.what == "restart":
            self._start(entry.now_ms)
        elif entry.what == "tick":
            self.node.tick(entry.now_ms)
        else:
            assert isinstance(entry.what, bytes)
            return self._step(entry.what, entry.now_ms)
        return None

    def _start(self, now_ms: int) -> None:
        controller = Controller(self.config, self.raft, self.rng, now_ms)
        journal = Journal(4, 1 << 16)
        journal.subscribe(self._look_for_failure)
        self.node = Node(controller, APIS, journal, self.rng)
        self.connection_id = 0
        self._connect(now_ms)

    def _look_for_failure(self, entry: Any) -> None:
        failure = getattr(entry, "failure", None)
        assert failure is None, failure

    def _connect(self, now_ms: int) -> None:
        self.connection_id += 1
        self.node.connected(self.connection_id, "127.0.0.1:9", now_ms)

    def _step(self, data: bytes, now_ms: int) -> bytes | None:
        effects = self.node.step(self.connection_id, data, now_ms)
        if any(isinstance(effect, Close) for effect in effects):
            self.node.disconnected(self.connection_id, "closed", now_ms)
            self._connect(now_ms)
            return None
        sent = [effect.data for effect in effects if isinstance(effect, Send)]
        return b"".join(sent)[4:] or None


def read_answer(frame: bytes | None, api_key: int, version: int) -> Any:
    assert frame is not None
    return read_response(frame, api_key, version)


@pytest.fixture
def new_world() -> type[World]:
    return World
