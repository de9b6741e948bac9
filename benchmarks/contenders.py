"""mockraft and Kafka's controller, each in its own process, and the requests of brokers to them.

mockraft takes part with its codec in C (`mockraft[speed]`), where that is installed, and with the one in pure Python.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType

from load import TimedConnection
from mockraft.brokers.config import draw_config, registration_of
from mockraft.kafka.jars import classpath, java
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.wire.messages import alter_partition_request as alter
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID
from result import OURS, THEIRS

SESSION_TIMEOUT_MS = 3_600_000
FAR_AHEAD = 1 << 40
FETCH_BYTES_MAX = 1 << 20
SPEED, PURE = "mockraft[speed]", "mockraft, pure Python"
CODECS = {OURS: "auto", SPEED: "speed", PURE: "pure"}


def has_speed() -> bool:
    """Return True if `mockraft[speed]` is installed."""
    try:
        version("mockraft-speed")
    except PackageNotFoundError:
        return False
    return True


def kinds() -> list[str]:
    """Return the controllers that can be compared, mockraft's best one first."""
    return [*([SPEED] if has_speed() else []), PURE, THEIRS]


class WarmKafkaController(KafkaController):
    """Kafka's controller with the JVM options of its start script; tests omit them to start faster."""

    def start(self) -> None:
        path = self.write_properties()
        options = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        options += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
        self.launch([java(), *options, "-cp", classpath(self.version), "kafka.Kafka", str(path)])


Contender = WarmKafkaController | MockraftController


def controller(
    kind: str, folder: Path, session_timeout_ms: int, settings: Mapping[str, str] = MappingProxyType({})
) -> Contender:
    """Return a controller that has not started, with an empty, formatted data directory below `folder`.

    `settings` are properties of Kafka's controller; mockraft's options have the same names.
    """
    if kind != THEIRS:
        options = [word for name, value in settings.items() for word in (f"--{name.replace('.', '-')}", value)]
        options += ["--session-timeout-ms", str(session_timeout_ms)]
        return MockraftController(folder / kind, random_uuid(), options=options)
    # With its own backlog of 50 a thousand connections at once take Kafka a minute: the kernel drops what is over.
    more = {"broker.session.timeout.ms": str(session_timeout_ms), "socket.listen.backlog.size": "1024"}
    kafka = WarmKafkaController(folder / "kafka", random_uuid(), properties={**settings, **more})
    kafka.format()
    return kafka


@contextmanager
def codec(kind: str) -> Iterator[None]:
    """Select the codec of the processes that are started inside."""
    before = os.environ.get("MOCKRAFT_CODEC")
    os.environ["MOCKRAFT_CODEC"] = CODECS.get(kind, "auto")
    try:
        yield
    finally:
        del os.environ["MOCKRAFT_CODEC"]
        if before is not None:
            os.environ["MOCKRAFT_CODEC"] = before


@contextmanager
def contenders(
    folder: Path, settings: Mapping[str, str], session_timeout_ms: int = SESSION_TIMEOUT_MS
) -> Iterator[dict[str, Contender]]:
    """Start all; stop them at the end."""
    all_kinds = {kind: controller(kind, folder, session_timeout_ms, settings) for kind in kinds()}
    try:
        for kind, each in all_kinds.items():
            with codec(kind):
                each.start()
            each.wait_until_running()
        yield all_kinds
    finally:
        for each in all_kinds.values():
            each.kill()


def data_folder(controller: Contender) -> Path:
    """Return the folder that has the metadata log."""
    if isinstance(controller, MockraftController):
        assert controller.data_dir is not None
        return controller.data_dir
    return controller.directory / "log"


def address(controller: Contender) -> tuple[str, int]:
    """Return the listener's address."""
    return controller.host, controller.port


def registrations(cluster_id: str, broker_ids: Sequence[int]) -> list[BrokerRegistrationRequest]:
    """Return a BrokerRegistration of each broker, with one log directory."""
    rng = random.Random(broker_ids[0])
    return [registration_of(draw_config(broker_id, cluster_id, (), rng), 4) for broker_id in broker_ids]


def heartbeat(broker_id: int, broker_epoch: int) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a broker that has caught up and wants to be unfenced."""
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=FAR_AHEAD,
        want_fence=False,
        cordoned_log_dirs=[],
    )


def brokers_up(connection: TimedConnection, cluster_id: str, count: int) -> dict[int, int]:
    """Register and unfence brokers 1 to `count`; return their epochs."""
    epochs = {}
    for request in registrations(cluster_id, range(1, count + 1)):
        registered = connection.exchange(request, 4)
        assert registered.error_code == 0, registered
        answered = connection.exchange(heartbeat(request.broker_id, registered.broker_epoch), 2)
        assert (answered.error_code, answered.is_fenced) == (0, False), answered
        epochs[request.broker_id] = registered.broker_epoch
    return epochs


def create_topic(name: str, partitions: int, replicas: int) -> CreateTopicsRequest:
    """Return a CreateTopics request for one topic, placed by the controller."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    return CreateTopicsRequest(topics=[topic], timeout_ms=60_000)


def create_topic_on(name: str, broker_ids: Sequence[int]) -> CreateTopicsRequest:
    """Return a CreateTopics request for one partition on these brokers."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(broker_ids))
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
    return CreateTopicsRequest(topics=[topic], timeout_ms=60_000)


def shrink_or_grow(
    epochs: dict[int, int], topic_id: bytes, isr: Sequence[int], partition_epoch: int
) -> alter.AlterPartitionRequest:
    """Return an AlterPartition of partition 0 by its leader, the first of the ISR."""
    partition = alter.PartitionData(
        partition_index=0,
        leader_epoch=0,
        new_isr_with_epochs=[alter.BrokerState(broker_id=each, broker_epoch=epochs[each]) for each in isr],
        partition_epoch=partition_epoch,
    )
    topic = alter.TopicData(topic_id=topic_id, partitions=[partition])
    return alter.AlterPartitionRequest(broker_id=isr[0], broker_epoch=epochs[isr[0]], topics=[topic])


def fetch(cluster_id: str, epoch: int, offset: int, last_epoch: int) -> FetchRequest:
    """Return a Fetch of the metadata log that does not wait."""
    partition = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=last_epoch
    )
    topic = FetchTopic(topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_ID, partitions=[partition])
    return FetchRequest(cluster_id=cluster_id, max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES_MAX, topics=[topic])


def leader_epoch(connection: TimedConnection, cluster_id: str) -> int:
    """Return the leader epoch from an error response, as a starting broker does."""
    found = connection.exchange(fetch(cluster_id, 0, 0, 0), 17)
    return found.responses[0].partitions[0].current_leader.leader_epoch


def end_of(batches: bytes) -> int:
    """Return the offset after the last complete batch."""
    position = end = 0
    while position + 27 <= len(batches):
        base_offset = int.from_bytes(batches[position : position + 8])
        length = 12 + int.from_bytes(batches[position + 8 : position + 12])
        if position + length > len(batches):
            break
        end = base_offset + int.from_bytes(batches[position + 23 : position + 27]) + 1
        position += length
    return end
