"""A seeded world: brokers that come and go around one controller, in a time of its own.

Everything that happens is drawn from one `random.Random`; what reaches the controller is kept in a journal, as bytes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from mockraft.server.apis.api import RequestContext, answer
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.features import supported_features
from mockraft.server.controller.image import Image, Partition
from mockraft.server.controller.metadata_log import MetadataLog
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes, messages
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_request import BrokerState as IsrMember
from mockraft.wire.messages.alter_partition_request import PartitionData as IsrPartition
from mockraft.wire.messages.alter_partition_request import TopicData as IsrTopic
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as PlacedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as PlacedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest

START_MS = 1_700_000_000_000
LEVELS = (7, 11, 12, 16, 17, 22, 23, 29, 30, 30, 30, 30, 30, 30)
BROKERS = 5
TOPICS = 6


class Input(NamedTuple):
    """One thing that reached the controller: a request as bytes, a tick ("tick") or its restart ("restart")."""

    now_ms: int
    what: int | str
    version: int = 0
    data: bytes = b""


@dataclass
class SimulatedBroker:
    """What one broker knows of itself; `heard_ms` is when the controller last had a heartbeat of this epoch."""

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
        self.chance = random.Random(seed)
        self.config = ControllerConfig(metadata_version=self.chance.choice(LEVELS), session_timeout_ms=9000)
        self.now_ms = START_MS
        self.journal: list[Input] = []
        self.raft = Raft.open(self.config, self.now_ms, random.Random(seed))
        self.log = self.raft.log
        self.controller = Controller(self.config, self.raft, random.Random(seed), self.now_ms)
        self.started_ms = self.now_ms
        self.brokers = {n: SimulatedBroker(n, self._directories(n)) for n in range(1, BROKERS + 1)}
        self.events: list[tuple[int, Callable[[], None]]] = [
            (8, self.start_broker),
            (30, self.heartbeat),
            (2, self.kill),
            (3, self.shut_down),
            (2, self.lose_directory),
            (2, self.cordon),
            (1, self.unregister),
            (5, self.create_topic),
            (1, self.delete_topic),
            (1, self.create_partitions),
            (4, self.reassign),
            (3, self.elect),
            (3, self.set_config),
            (15, self.propose_isr),
            (6, self.assign_directory),
            (3, self.send_stale),
            (20, self.let_time_pass),
            (1, self.restart_controller),
        ]

    @property
    def image(self) -> Image:
        return self.controller.image

    def step(self) -> str:
        """Let one thing happen; gives its name."""
        weights = [weight for weight, _ in self.events]
        (event,) = self.chance.choices([event for _, event in self.events], weights)
        event()
        return str(event.__name__)

    def ask(self, request: Any, version: int) -> Any:
        """The controller's answer to the request as it reads it from bytes."""
        entry = Input(self.now_ms, request.api_key, version, request.write(version))
        self.journal.append(entry)
        return deliver(self.controller, entry)

    def let_time_pass(self) -> None:
        """Some milliseconds to some seconds pass, and the controller does what comes due meanwhile, when it does."""
        until_ms = self.now_ms + self.chance.choice((20, 300, 1500, 4000))
        while (due_ms := self.controller.next_tick_ms(self.now_ms)) <= until_ms:
            self.now_ms = due_ms
            self.journal.append(Input(due_ms, "tick"))
            self.controller.tick(due_ms)
        self.now_ms = until_ms

    def restart_controller(self) -> None:
        self.journal.append(Input(self.now_ms, "restart"))
        self.controller = Controller(self.config, self.raft, self.controller.chance, self.now_ms)
        self.started_ms = self.now_ms

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
            self._heartbeat(self.chance.choice(living))

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
            broker.offline.append(self.chance.choice(online))

    def cordon(self) -> None:
        broker = self._any_broker()
        broker.cordoned = self.chance.sample(broker.log_dirs, self.chance.randint(0, len(broker.log_dirs)))

    def unregister(self) -> None:
        broker = self._any_broker()
        self.ask(UnregisterBrokerRequest(broker_id=broker.broker_id), 0)
        broker.alive = False

    def create_topic(self) -> None:
        name = f"topic-{self.chance.randrange(TOPICS)}"
        topic = CreatableTopic(
            name=name, num_partitions=self.chance.randint(1, 4), replication_factor=self.chance.randint(1, 3)
        )
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)

    def delete_topic(self) -> None:
        if self.image.topics.by_id:
            topic_id = self.chance.choice(list(self.image.topics.by_id))
            self.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000), 6)

    def create_partitions(self) -> None:
        found = self._any_partition()
        if found is not None:
            topic = self.image.topics.by_id[found[0]]
            asked = CreatePartitionsTopic(name=topic.name, count=len(topic.partitions) + 1, assignments=None)
            self.ask(CreatePartitionsRequest(topics=[asked], timeout_ms=1000), 3)

    def reassign(self) -> None:
        """A partition is sent to some brokers, or called back."""
        found = self._any_partition()
        if found is None:
            return
        topic_id, partition_id, partition = found
        target = None
        if not partition.is_reassigning or self.chance.random() < 0.5:
            target = self.chance.sample(list(self.brokers), self.chance.randint(1, 3))
        moved = ReassignablePartition(partition_index=partition_id, replicas=target)
        topic = ReassignableTopic(name=self.image.topics.by_id[topic_id].name, partitions=[moved])
        self.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)

    def elect(self) -> None:
        """Some partition, or now and then all of them, by either kind of election."""
        found = self._any_partition()
        if found is None:
            return
        topic_id, partition_id, _ = found
        places = [TopicPartitions(topic=self.image.topics.by_id[topic_id].name, partitions=[partition_id])]
        request = ElectLeadersRequest(
            election_type=self.chance.randint(0, 1),
            topic_partitions=None if self.chance.random() < 0.2 else places,
        )
        self.ask(request, 2)

    def set_config(self) -> None:
        topics = list(self.image.topics.by_name)
        if topics:
            key, values = self.chance.choice(
                (("min.insync.replicas", ["1", "2", "3"]), ("unclean.leader.election.enable", ["true", "false"]))
            )
            config = AlterableConfig(name=key, config_operation=0, value=self.chance.choice(values))
            resource = AlterConfigsResource(resource_type=2, resource_name=self.chance.choice(topics), configs=[config])
            self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)

    def propose_isr(self) -> None:
        """Some broker proposes some ISR, most often one that it may propose."""
        found = self._any_partition()
        if found is None:
            return
        topic_id, partition_id, partition = found
        sender = partition.leader if self.chance.random() < 0.9 else self._any_broker().broker_id
        registration = self.image.cluster.brokers.get(sender)
        others = [replica for replica in partition.replicas if replica != partition.leader]
        isr = [partition.leader, *self.chance.sample(others, self.chance.randint(0, len(others)))]
        data = IsrPartition(
            partition_index=partition_id,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch - (self.chance.random() < 0.1),
            leader_recovery_state=0 if self.chance.random() < 0.8 else partition.leader_recovery_state,
            new_isr_with_epochs=[IsrMember(broker_id=member, broker_epoch=-1) for member in isr],
        )
        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=-1 if registration is None else registration.broker_epoch,
            topics=[IsrTopic(topic_id=topic_id, partitions=[data])],
        )
        self.ask(request, 3)

    def assign_directory(self) -> None:
        found = self._any_partition()
        if found is None:
            return
        topic_id, partition_id, partition = found
        broker = self.brokers[self.chance.choice(partition.replicas)]
        registered = self.image.cluster.brokers.get(broker.broker_id)
        log_dirs = broker.log_dirs
        if partition.leader == -1 and registered is not None and registered.log_dirs:
            # Kafka elects by the directory from before: a failed one told now would be led.
            log_dirs = list(registered.log_dirs)
        topic = PlacedTopic(topic_id=topic_id, partitions=[PlacedPartition(partition_index=partition_id)])
        directories = [DirectoryData(id=self.chance.choice(log_dirs), topics=[topic])]
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
        lag = self.chance.choice((0, 0, 0, 1, 5, 50))
        # Kafka decides a failed directory by the state before the heartbeat: told while unfencing, it would be led.
        registered = self.image.cluster.brokers[broker.broker_id]
        is_failing = registered.fenced and not {*broker.offline}.isdisjoint(registered.log_dirs)
        request = BrokerHeartbeatRequest(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            current_metadata_offset=max(-1, self.log.end_offset - 1 - lag),
            want_fence=is_failing or self.chance.random() < 0.05,
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
        return self.chance.choice(list(self.brokers.values()))

    def _any_partition(self) -> tuple[bytes, int, Partition] | None:
        if not self.image.topics.by_id:
            return None
        topic = self.chance.choice(list(self.image.topics.by_id.values()))
        partition_id = self.chance.choice(list(topic.partitions))
        return topic.topic_id, partition_id, topic.partitions[partition_id]

    def _registration(self, broker: SimulatedBroker, log_dirs: list[bytes]) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=broker.broker_id,
            cluster_id=self.config.cluster_id,
            incarnation_id=(broker.incarnation << 64 | broker.broker_id).to_bytes(16, "big"),
            listeners=[Listener(name="P", host="h", port=9092, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=f.min_level, max_supported_version=f.max_level)
                for name, f in supported_features().items()
            ],
            log_dirs=log_dirs,
            previous_broker_epoch=broker.previous_epoch,
        )

    def _directories(self, broker_id: int) -> list[bytes]:
        return [bytes([0x50 * n, *[broker_id] * 14, n]) for n in range(1, self.chance.randint(1, 3) + 1)]


def deliver(controller: Controller, entry: Input) -> Any:
    """Let the controller answer one journalled request."""
    api = APIS[int(entry.what)]
    ctx = RequestContext(
        api_key=api.api_key,
        api_version=entry.version,
        correlation_id=1,
        client_id="simulation",
        connection_id=1,
        listener="CONTROLLER",
        principal="User:ANONYMOUS",
        client_address="127.0.0.1",
        forwarded=False,
        now_ms=entry.now_ms,
        apis=APIS,
    )
    request = messages.request(api.api_key).read(entry.data, entry.version)
    response = answer(api, request, ctx, controller)
    assert ctx.failure is None, ctx.failure
    return messages.response(api.api_key).read(response.write(entry.version), entry.version)


def replay(journal: list[Input], config: ControllerConfig, seed: int) -> MetadataLog:
    """The log of a new controller that gets the same inputs at the same times."""
    raft = Raft.open(config, START_MS, random.Random(seed))
    controller = Controller(config, raft, random.Random(seed), START_MS)
    for entry in journal:
        if entry.what == "tick":
            controller.tick(entry.now_ms)
        elif entry.what == "restart":
            controller = Controller(config, raft, controller.chance, entry.now_ms)
        else:
            deliver(controller, entry)
    return raft.log


@pytest.fixture
def new_world() -> type[World]:
    return World


@pytest.fixture
def replay_journal() -> Callable[[list[Input], ControllerConfig, int], MetadataLog]:
    return replay
