"""Hostile input, and the same bytes for the same input."""

import contextlib
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka_api.effects import Close, Send
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.node import Node
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.wire import messages
from mockraft.wire.connection import parse_request, write_request
from mockraft.wire.errors import WireError
from mockraft.wire.message import Struct, field_names
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState
from mockraft.wire.messages.alter_partition_request import PartitionData as AlteredPartition
from mockraft.wire.messages.alter_partition_request import TopicData as AlteredTopic
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as AssignedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ..budgets import budget
from ..fetches import fetch_request
from .conftest import START_MS, controller_in_memory

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
CAPTURED_CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
MUTATED_FRAMES = budget(10_000, 100_000)


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


@pytest.fixture
def node() -> Node:
    config = ControllerConfig(port=9093, cluster_id=CAPTURED_CLUSTER_ID, frame_bytes_max=1 << 20)
    return Node(controller_in_memory(config), APIS)


@pytest.fixture(scope="module")
def corpus() -> list[bytes]:
    """Requests of real brokers and tools, and every API in every version with its defaults."""
    captured = {
        exchange.request for exchange in read_exchanges(CAPTURE) if exchange.request and exchange.api_key in APIS
    }
    defaults = [
        write_request(messages.request(api.api_key)(), version, 1, "test")[4:]
        for api in APIS.values()
        for version in range(api.min_version, api.max_version + 1)
    ]
    return sorted(captured) + defaults


def mutated(frame: bytes, rng: random.Random) -> bytes:
    """One or a few of: a byte changed, bytes cut out, put in, the end cut off, a length made huge."""
    data = bytearray(frame)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(data)) if data else 0
        match rng.randrange(6):
            case 0 | 1:
                data[place : place + 1] = bytes([rng.randrange(256)])
            case 2:
                del data[place : place + rng.randrange(1, 9)]
            case 3:
                data[place:place] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                del data[place:]
            case 5:
                data[place : place + 4] = rng.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0"))
    return bytes(data)


def live_requests(controller: Controller, rng: random.Random) -> list[tuple[Any, int]]:
    """Requests that fit the controller's state, so that mutations of them reach far."""
    image, log = controller.image, controller.log
    requests: list[tuple[Any, int]] = [(fetch_request(log.end_offset, log.leader_epoch), 17)]
    for broker in image.cluster.brokers.values():
        dirs = rng.sample([*broker.log_dirs], rng.randrange(len(broker.log_dirs) + 1))
        heartbeat = BrokerHeartbeatRequest(
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            current_metadata_offset=log.end_offset,
            want_fence=rng.random() < 0.1,
            want_shut_down=rng.random() < 0.1,
            offline_log_dirs=dirs if rng.random() < 0.1 else [],
            cordoned_log_dirs=dirs if rng.random() < 0.3 else None,
        )
        topics = [
            AlteredTopic(
                topic_id=topic.topic_id,
                partitions=[
                    AlteredPartition(
                        partition_index=index,
                        leader_epoch=state.leader_epoch,
                        partition_epoch=state.partition_epoch,
                        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in state.replicas],
                    )
                    for index, state in topic.partitions.items()
                ],
            )
            for topic in image.topics.by_id.values()
        ]
        assigned = [
            AssignedTopic(
                topic_id=topic.topic_id,
                partitions=[AssignedPartition(partition_index=index) for index in topic.partitions],
            )
            for topic in image.topics.by_id.values()
        ]
        directories = [DirectoryData(id=directory, topics=assigned) for directory in broker.log_dirs[:1]]
        broker_id, epoch = broker.broker_id, broker.broker_epoch
        requests += [
            (heartbeat, 2),
            (heartbeat, 2),
            (AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=topics), 3),
            (AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=epoch, directories=directories), 0),
        ]
    return requests


def disturb(message: Any, rng: random.Random) -> None:
    """Set one field somewhere in a message to something odd of its own type."""
    name = rng.choice(field_names(type(message)))
    value = getattr(message, name)
    if isinstance(value, list) and value and isinstance(value[0], Struct):
        disturb(rng.choice(value), rng)
    elif isinstance(value, bool):
        setattr(message, name, not value)
    elif isinstance(value, int):
        setattr(message, name, rng.choice((-2, -1, 0, 1, value + 1, value - 1, 127)))
    elif isinstance(value, str):
        setattr(message, name, rng.choice(("", "*", "\ud7ff", "x" * 300, "..", value + "?")))
    elif isinstance(value, bytes) and len(value) == 16:
        setattr(message, name, rng.choice((bytes(16), bytes(15) + b"\2", rng.randbytes(16))))
    elif isinstance(value, list):
        setattr(message, name, rng.choice(([], value * 2)))


def test_mutated_frames_are_answered_parked_or_closed_and_never_raise(node: Node, corpus: list[bytes]) -> None:
    rng = random.Random(20_261_120)
    connection_id, now_ms = 1, START_MS
    node.connected(connection_id, "127.0.0.1:1", now_ms)
    answered = closed = parked = 0
    live: list[tuple[Any, int]] = []
    for number in range(MUTATED_FRAMES):
        if number % 20 == 0:
            live = live_requests(node.controller, rng)
            now_ms += 10
            node.tick(now_ms)
        frame = rng.choice(corpus)
        if rng.random() < 0.5:
            message, version = rng.choice(live)
            if rng.random() < 0.3:
                disturb(message, rng)
            with contextlib.suppress(WireError):
                frame = write_request(message, version, number, "live")[4:]
        if rng.random() < 0.6:
            frame = mutated(frame, rng)
        effects = node.step(connection_id, framed(frame), now_ms)
        ended = any(isinstance(effect, Close) for effect in effects)
        answered += any(isinstance(effect, Send) for effect in effects)
        closed += ended
        parked += not effects
        if not effects:
            node.disconnected(connection_id, "the test moves on", now_ms)
        if ended or not effects:
            connection_id += 1
            node.connected(connection_id, "127.0.0.1:1", now_ms)
        broken = node.journal.entries[-1] if node.journal.failures else None
        assert broken is None, f"frame {number}: {frame.hex()}\n{broken!r}\n{getattr(broken, 'failure', '')}"
    assert answered + closed + parked >= MUTATED_FRAMES
    assert min(answered, closed, parked) > MUTATED_FRAMES // 100
    assert node.connections == 1


def test_random_bytes_end_in_a_close_with_a_reason(node: Node) -> None:
    rng = random.Random(5)
    for connection_id in range(1, 2001):
        node.connected(connection_id, "127.0.0.1:1", START_MS)
        effects = node.step(connection_id, rng.randbytes(rng.randrange(1, 200)), START_MS)
        if not any(isinstance(effect, Close) for effect in effects):
            node.disconnected(connection_id, "the peer closed", START_MS)
    assert node.connections == 0
    lines = node.journal.closed()
    assert len(lines) == 2000
    assert all(line.reason for line in lines)
    assert any("frame" in line.reason for line in lines)


def test_frames_in_single_bytes_answer_as_whole_ones(node: Node, corpus: list[bytes]) -> None:
    rng = random.Random(3)
    node.connected(1, "127.0.0.1:1", START_MS)
    api_versions = next(frame for frame in corpus if parse_request(frame).api_key == 18)
    stream = framed(api_versions) * 3
    sends: list[Any] = []
    offset = 0
    while offset < len(stream):
        end = offset + rng.randrange(1, 4)
        sends += node.step(1, stream[offset:end], START_MS)
        offset = end
    assert len(sends) == 3
    assert sends[0] == sends[1] == sends[2]


def test_a_flood_of_bad_connections_leaves_a_bounded_journal(node: Node) -> None:
    for connection_id in range(1, 30_001):
        node.connected(connection_id, "127.0.0.1:1", START_MS)
        node.step(connection_id, framed(b"\x03\xe7" + bytes(2000)), START_MS)
    assert node.connections == 0
    assert node.journal.bytes_held <= node.config.journal_bytes_max
    assert len(node.journal.entries) <= node.config.journal_entries_max
    assert node.journal.counters()["closed"] == {"request": 30_000}


def captured_requests() -> list[tuple[int, bytes]]:
    """(connection, request as sent) of real brokers and tools, in order."""
    connections: dict[Any, int] = {}
    requests = []
    for exchange in read_exchanges(CAPTURE):
        if exchange.request is not None:
            connection_id = connections.setdefault(exchange.connection, len(connections) + 1)
            data = exchange.request
            requests.append((connection_id, len(data).to_bytes(4, "big") + data))
    return requests


def replayed(requests: list[tuple[int, bytes]]) -> tuple[list[Any], bytes]:
    """Everything the node said, and its log."""
    controller = controller_in_memory(ControllerConfig(cluster_id=CAPTURED_CLUSTER_ID, connections_max=1000))
    node = Node(controller, APIS)
    effects: list[Any] = []
    for connection_id in {connection_id for connection_id, _ in requests}:
        effects += node.connected(connection_id, "127.0.0.1:1", START_MS)
    now_ms = START_MS
    for number, (connection_id, data) in enumerate(requests):
        now_ms += number % 7
        effects += node.step(connection_id, data, now_ms)
        if node.next_tick_ms(now_ms) <= now_ms:
            effects += node.tick(now_ms)
    return effects, controller.log.read(0, 1 << 30)


def test_the_same_inputs_give_the_same_bytes_and_the_same_log() -> None:
    requests = captured_requests()
    assert len(requests) > 500
    first, second = replayed(requests), replayed(requests)
    assert len(first[0]) > 500
    assert first == second
