"""The short way of repeated requests: both ways give the same responses, records, journal and state."""

import gc
import random
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from mockraft import stub
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.effects import Effect, Send
from mockraft.server.journal import Entry, Exchange
from mockraft.server.repeats import REQUEST_BYTES_MAX
from mockraft.wire import codec_path
from mockraft.wire.connection import write_request
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

from ..budgets import budget
from ..conftest import directory, registration_request, uuid
from .conftest import Rig

NEVER_REGISTERED = 99
BEFORE_CORDONING = 29
REPEATED = (ApiVersionsRequest, BrokerHeartbeatRequest, FetchRequest)
Make = Callable[..., Rig]


class Node:
    """A rig whose bytes go the short way where they can, or all the long one."""

    def __init__(self, rig: Rig, answer: Callable[[int, bytes, int], bytes | None]) -> None:
        self.rig = rig
        self.answer = answer
        self.heard: list[Any] = []
        self.short_answers = 0
        self.short_apis: Counter[int] = Counter()
        self.connections = [rig.connect() for _ in range(3)]

    def receive(self, connection: int, data: bytes) -> list[Effect]:
        node = self.rig.node
        response = self.answer(connection, data, 1_000 * self.rig.now_ms)
        if response is not None:
            self.short_answers += 1
            self.short_apis[int.from_bytes(data[4:6])] += 1
            return [Send(connection, response)]
        return node.step(connection, data, self.rig.now_ms)

    def listen(self, entry: Entry) -> None:
        self.heard.append(entry.to_json())

    def observers(self) -> Any:
        """The progress of observers, as DescribeQuorum lists it."""
        observers = self.rig.controller.raft.observers(self.rig.now_ms)
        return {replica: vars_of(state) for replica, state in observers.items()}

    def state(self) -> Any:
        """Everything that later requests and readers of the journal can notice."""
        controller: Controller = self.rig.controller
        states = controller.heartbeats
        return (
            controller.log.read(0, 1 << 30),
            [entry.to_json() for entry in self.rig.node.journal.entries],
            [[entry.request_frame, entry.response_frame] for entry in self.rig.node.journal.exchanges()],
            list(controller.sessions.contacts_ms.items()),
            {broker_id: vars_of(state) for broker_id, state in states.brokers.items()},
            states._active_offsets.lowest(),
            self.rig.node.received_bytes,
            self.rig.node.journal.counters(),
            self.rig.node.journal.bytes_held,
            self.rig.node.journal.mark(),
            self.heard,
            self.observers(),
            controller.raft.leading and controller.raft.leading._check_quorum_deadline_ms,
            [self.rig.node.client_of(connection) for connection in self.connections],
            self.rig.node.parked,
        )


def vars_of(state: Any) -> list[Any]:
    return [getattr(state, name) for name in state.__slots__]


class Script:
    """Random requests of a few brokers, mostly heartbeats that repeat."""

    def __init__(self, rng: random.Random, controller: Controller) -> None:
        self.rng = rng
        self.controller = controller
        self.correlation_id = 0
        self.recent: deque[bytes] = deque(maxlen=8)
        self.usual: dict[int, dict[str, Any]] = {}

    def frame(self, message: Message, version: int, client_id: str | None) -> bytes:
        self.correlation_id += self.rng.choice([1, 1, 70_000])
        return write_request(message, version, self.correlation_id, client_id)

    def heartbeat(self) -> bytes:
        rng = self.rng
        broker_id = rng.choice([1, 2, 3] * 3 + [NEVER_REGISTERED])
        registration = self.controller.image.cluster.brokers.get(broker_id)
        fields = self.usual.setdefault(broker_id, {"version": rng.randrange(3), "client_id": str(broker_id)})
        if rng.random() < 0.1:
            fields = {
                "version": rng.randrange(3),
                "client_id": rng.choice([None, "", "1", "é" * 140]),
                "want_fence": rng.random() < 0.3,
                "want_shut_down": rng.random() < 0.2,
                "offline_log_dirs": rng.choice([[], [], [directory(broker_id)]]),
                "cordoned_log_dirs": rng.choice([None, [], [directory(broker_id)]]),
            }
            if rng.random() < 0.3 and not fields["want_shut_down"]:
                self.usual[broker_id] = fields
        fields = dict(fields)
        version, client_id = fields.pop("version"), fields.pop("client_id")
        if version < 1:
            fields.pop("offline_log_dirs", None)
        if version < 2:
            fields.pop("cordoned_log_dirs", None)
        end = self.controller.log.end_offset
        offset = rng.choice(
            [end - 1, end - 1, end, -1, 0 if registration is None else registration.registration_offset]
        )
        epoch = -1 if registration is None else registration.broker_epoch
        heartbeat = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=rng.choice([epoch] * 15 + [5]),
            current_metadata_offset=offset,
            **{"want_fence": False, **fields},
        )
        return self.frame(heartbeat, version, client_id)

    def fetch(self) -> bytes:
        rng, log = self.rng, self.controller.log
        replica_id = rng.choice([-1, 1, 2, 2, 3000, 3001])
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=rng.choice([self.controller.raft.epoch] * 9 + [0, 7]),
            fetch_offset=rng.choice([0] * 4 + [log.end_offset] * 4 + [2, log.end_offset - 1, 10**6]),
            last_fetched_epoch=rng.choice([self.controller.raft.epoch] * 5 + [0]),
            high_watermark=rng.choice([log.high_watermark] * 3 + [-1]),
        )
        request = FetchRequest(
            cluster_id=rng.choice([self.controller.config.cluster_id] * 9 + ["another"]),
            max_wait_ms=rng.choice([0] * 80 + [50]),
            max_bytes=rng.choice([0, 1 << 20]),
            topics=[FetchTopic(topic_id=rng.choice([CLUSTER_METADATA_ID] * 9 + [bytes(16)]), partitions=[partition])],
        )
        request.replica_state.replica_id = replica_id
        return self.frame(request, 17, rng.choice(["raft-client-1", "", None]))

    def api_versions(self) -> bytes:
        version = self.rng.choice([0, 2, 3, 3, 4, 4, 4, 99])
        client_id = self.rng.choice(["3", "admin", "", None])
        if version == 99:
            self.correlation_id += 1
            header = (18).to_bytes(2) + version.to_bytes(2) + self.correlation_id.to_bytes(4) + b"\xff\xff\0"
            return len(header).to_bytes(4) + header
        software: dict[str, Any] = {
            "client_software_name": self.rng.choice(["kafka", "kafka", ""]),
            "client_software_version": "1",
        }
        return self.frame(ApiVersionsRequest(**(software if version >= 3 else {})), version, client_id)

    def routine(self) -> bytes:
        """Return a request of the kinds that repeat, often a recent one with another correlation id."""
        if self.recent and self.rng.random() < 0.6:
            self.correlation_id += 1
            sent = self.rng.choice(self.recent)
            return sent[:8] + self.correlation_id.to_bytes(4) + sent[12:]
        made = self.rng.choice([self.heartbeat, self.heartbeat, self.fetch, self.api_versions])()
        self.recent.append(made)
        return made

    def other(self) -> bytes:
        rng, broker_id = self.rng, self.rng.choice([1, 2, 3])
        message: Message
        match rng.randrange(10):
            case 0:
                message = CreateTopicsRequest(
                    topics=[CreatableTopic(name=f"t{self.correlation_id}", num_partitions=2, replication_factor=1)]
                )
                return self.frame(message, 7, "admin")
            case 1:
                return self.frame(UnregisterBrokerRequest(broker_id=broker_id), 0, "admin")
            case 2:
                level = rng.randrange(BEFORE_CORDONING, max(self.controller.release.metadata_versions) + 1)
                update = FeatureUpdateKey(feature="metadata.version", max_version_level=level, upgrade_type=1)
                return self.frame(UpdateFeaturesRequest(feature_updates=[update]), 2, "admin")
            case _:
                cluster_id = self.controller.config.cluster_id
                message = registration_request(cluster_id, broker_id, incarnation_id=uuid(rng.randrange(1 << 20)))
                return self.frame(message, 4, str(broker_id))


@pytest.fixture(params=["pure", *({codec_path.path} - {"pure"})])
def both(request: pytest.FixtureRequest, make_rig: Make, make_controller: Callable[..., Controller]) -> list[Node]:
    """Equal nodes: one that takes the short way, in Python or C, and one that never does."""
    from .conftest import OFFERED

    config = ControllerConfig(metadata_version=BEFORE_CORDONING)
    rigs = [make_rig(*OFFERED.values(), controller=make_controller(config)) for _ in range(2)]
    repeats = rigs[0].node.repeats

    short = repeats.answer_in_python if request.param == "pure" else repeats.answer
    return [Node(rigs[0], short), Node(rigs[1], lambda *_: None)]


@pytest.mark.parametrize("seed", range(budget(6, 60)))
def test_both_ways_are_equal_whatever_happens(both: list[Node], seed: int) -> None:
    short, long = both
    rng = random.Random(seed)
    script = Script(rng, short.rig.controller)
    refusing = stub("BrokerHeartbeat", broker_id=1).inject_error("NOT_CONTROLLER")
    for _ in range(1500):
        chance = rng.random()
        if chance < 0.003:
            for node in both:
                journal = node.rig.node.journal
                journal.enabled = not journal.enabled
            continue
        if chance < 0.006:
            for node in both:
                journal = node.rig.node.journal
                if chance < 0.0045:
                    journal.subscribe(node.listen)
                else:
                    journal.unsubscribe(node.listen)
            continue
        if chance < 0.03:
            ms = rng.choice([100, 2_000, 10_000])
            effects = [node.rig.tick(node.rig.now_ms + ms) for node in both]
        elif chance < 0.05:
            for node in both:
                stubs = node.rig.node.script.stubs
                if stubs.is_armed:
                    stubs.reset()
                elif chance < 0.035:
                    stubs.add(refusing)
            continue
        else:
            data = script.other() if chance < 0.12 else script.routine()
            data += script.routine() if chance > 0.98 else b""
            cut = rng.randrange(1, len(data)) if chance > 0.96 else len(data)
            connection = rng.choice(short.connections)
            effects = [[*each.receive(connection, data[:cut])] for each in both]
            if cut < len(data):
                rest = [node.receive(connection, data[cut:]) for node in both]
                effects = [a + b for a, b in zip(effects, rest, strict=True)]
        assert effects[0] == effects[1]
        assert short.observers() == long.observers()
        assert short.rig.node.next_tick_ms(short.rig.now_ms) == long.rig.node.next_tick_ms(long.rig.now_ms)
    assert short.state() == long.state()
    assert min(short.short_apis[request.api_key] for request in REPEATED) > 10
    assert len(short.rig.node.journal.exchanges()) == len(long.rig.node.journal.exchanges()) > 100


def unfenced(node: Node) -> BrokerHeartbeatRequest:
    """Register and unfence broker 1; return its next heartbeat."""
    rig, connection = node.rig, node.connections[0]
    registered = rig.ask(connection, registration_request(rig.controller.config.cluster_id, 1), 4)
    heartbeat = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=registered.broker_epoch, current_metadata_offset=1000, want_fence=False
    )
    assert rig.ask(connection, heartbeat, 2).is_fenced is False
    return heartbeat


def test_every_version_takes_the_short_way_from_the_second_heartbeat_on(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    short.receive(short.connections[0], short.rig.frame(heartbeat, 2, "1"))
    short.receive(short.connections[1], short.rig.frame(heartbeat, 2, "1"))
    assert (short.short_answers, short.rig.node.client_of(short.connections[1])) == (1, ("1", 1))
    for version in (0, 1, 2):
        for offset in (1000, 1001, 1002):
            heartbeat.current_metadata_offset = offset
            short.receive(short.connections[1], short.rig.frame(heartbeat, version, "1"))
    assert short.short_answers == 7
    newest = short.rig.node.journal.exchanges()[-1]
    assert isinstance(newest, Exchange)
    assert (newest.request.current_metadata_offset, newest.client_id, newest.api_version) == (1002, "1", 2)
    assert newest.response.is_fenced is False


def test_each_heartbeat_is_a_contact_also_of_a_session_that_was_forgotten(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    sessions = short.rig.controller.sessions
    frame, session = short.rig.frame(heartbeat, 2, "1"), (1, heartbeat.broker_epoch)
    for _ in range(5):
        short.rig.now_ms += 1
        short.receive(short.connections[0], frame)
        assert sessions.last_contact_ms(*session) == short.rig.now_ms
    far_ms = short.rig.now_ms + 2 * sessions.session_timeout_ms
    assert sessions.pop_expired(far_ms) == session
    short.receive(short.connections[0], frame)
    assert (short.short_answers, sessions.pop_expired(far_ms)) == (5, session)


def remembered(node: Node) -> int:
    return sum(len(of_api.repeats) for of_api in node.rig.node.repeats._remembered.values())


def test_remembers_no_more_senders_than_a_bound(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    for number in range(500):
        short.receive(short.connections[0], short.rig.frame(heartbeat, 2, f"client {number}"))
    assert remembered(short) <= 66


def test_remembers_no_large_heartbeat(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    before = remembered(short)
    heartbeat.unknown_tagged_fields = [(100, bytes(REQUEST_BYTES_MAX))]
    short.receive(short.connections[0], short.rig.frame(heartbeat, 2, "large"))
    assert remembered(short) == before


def test_uncommitted_records_take_the_long_way(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    controller = short.rig.controller
    controller.pending_offset = controller.log.end_offset
    assert short.receive(short.connections[0], short.rig.frame(heartbeat, 2)) == []
    assert (short.rig.node.parked, short.short_answers) == (1, 0)


def test_a_repeated_exchange_is_one_object_however_often_it_is_read(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    for _ in range(3):
        short.receive(short.connections[0], short.rig.frame(heartbeat, 2))
    journal = short.rig.node.journal
    assert short.short_answers == 2
    assert [id(entry) for entry in journal.entries] == [id(entry) for entry in journal.entries]
    assert journal.entry(journal.mark()) is journal.exchanges()[-1]


def test_an_error_on_the_way_is_raised(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    short.receive(short.connections[0], short.rig.frame(heartbeat, 2))

    def broken() -> int:
        raise OSError("no clock")

    short.rig.node.responses.now_us = broken
    with pytest.raises(OSError, match="no clock"):
        short.receive(short.connections[0], short.rig.frame(heartbeat, 2))


def test_a_node_that_nobody_uses_is_collected(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    for _ in range(3):
        short.receive(short.connections[0], short.rig.frame(heartbeat, 2))
    assert short.rig.node.journal.entries
    repeats = weakref.ref(short.rig.node.repeats)
    both.clear()
    del short
    gc.collect()
    assert repeats() is None


def sent(effects: Iterable[Effect]) -> list[bytes]:
    return [effect.data for effect in effects if isinstance(effect, Send)]


def test_another_offer_takes_the_long_way(both: list[Node]) -> None:
    short, _ = both
    heartbeat = unfenced(short)
    del short.rig.node.apis[BrokerHeartbeatRequest.api_key]
    assert sent(short.receive(short.connections[0], short.rig.frame(heartbeat, 2))) == []
    assert short.rig.node.journal.counters()["closed"] == {"request": 1}
