"""Views of a controller's state, made on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mockraft.kafka_api.security import SECURITY_PROTOCOLS
from mockraft.kafka_configs import config_keys
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.image import BrokerRegistration, Partition, Topic
from mockraft.server.controller.quorum.voter_set import ReplicaKey
from mockraft.server.raft.leading import ReplicaState
from mockraft.server.views import (
    BrokerView,
    ListenerView,
    LogDirView,
    NodeView,
    PartitionView,
    QuorumView,
    ReplicaView,
    SupportedView,
    TopicView,
)
from mockraft.wire import uuids

_PROTOCOL_NAMES: Final = {number: name for name, number in SECURITY_PROTOCOLS.items()}
CONFIG_TYPES: Final = {
    config_keys.TOPIC: "topic",
    config_keys.BROKER: "broker",
    config_keys.CLIENT_METRICS: "client-metrics",
    config_keys.GROUP: "group",
}


def broker_views(controller: Controller, now_ms: int, brokers: Iterable[BrokerRegistration]) -> Iterator[BrokerView]:
    """Yield the views of brokers, each made when it is asked for."""
    fetched = _fetched_offsets(controller, now_ms)
    for broker in brokers:
        yield _broker_view(controller, broker, fetched.get(broker.broker_id, -1))


def topic_view(topic: Topic) -> TopicView:
    """Return a topic with its partitions by index."""
    partitions = tuple(partition_view(number, topic.partitions[number]) for number in sorted(topic.partitions))
    return TopicView(topic.name, uuids.text_of(topic.topic_id), partitions)


def partition_view(number: int, partition: Partition) -> PartitionView:
    """Return a partition, with directory ids as text."""
    return PartitionView(
        number,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.replicas,
        partition.isr,
        partition.elr,
        partition.last_known_elr,
        tuple(map(uuids.text_of, partition.directories)),
        partition.adding_replicas,
        partition.removing_replicas,
    )


def quorum_view(controller: Controller, nodes: list[Controller], now_ms: int) -> QuorumView:
    """Return the quorum as this controller knows it, and each node of this process as it sees itself."""
    raft, log = controller.raft, controller.log
    own = raft.key
    voters = []
    for node in log.voters.nodes.values():
        key = ReplicaKey(node.key.id, node.key.directory_id)
        state = raft.leading.state_of(key) if raft.leading is not None else None
        voters.append(
            ReplicaView(key.id, uuids.text_of(key.directory_id), log.end_offset, now_ms)
            if key.id == own.id and raft.is_leader
            else _replica_view(key, state)
        )
    observers = [_replica_view(key, state) for key, state in sorted(raft.observers(now_ms).items())]
    return QuorumView(
        raft.leader_id,
        raft.epoch,
        log.high_watermark,
        log.start_offset,
        log.end_offset,
        tuple(voters),
        tuple(observers),
        tuple(_node_view(node) for node in nodes),
    )


def _broker_view(controller: Controller, broker: BrokerRegistration, fetched_offset: int) -> BrokerView:
    known = contact_ms = None
    if controller.epoch != STANDBY:
        known = controller.heartbeats.brokers.get(broker.broker_id)
        contact_ms = controller.sessions.last_contact_ms(broker.broker_id, broker.broker_epoch)
    offset = max(fetched_offset - 1, known.metadata_offset if known is not None else -1)
    return BrokerView(
        broker.broker_id,
        broker.broker_epoch,
        uuids.text_of(broker.incarnation_id),
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.rack,
        tuple(
            ListenerView(each.name, each.host, each.port, _PROTOCOL_NAMES[each.security_protocol])
            for each in broker.endpoints
        ),
        {name: SupportedView(levels.min_version, levels.max_version) for name, levels in broker.features.items()},
        _log_dirs(broker),
        contact_ms,
        offset >= broker.registration_offset,
        None if offset < 0 else offset,
        None if offset < 0 else max(0, controller.log.high_watermark - 1 - offset),
    )


def _log_dirs(broker: BrokerRegistration) -> tuple[LogDirView, ...]:
    cordoned = broker.cordoned_log_dirs or ()
    offline = [each for each in broker.offline_log_dirs if each not in broker.log_dirs]
    return (
        *(LogDirView(uuids.text_of(each), "cordoned" if each in cordoned else "online") for each in broker.log_dirs),
        *(LogDirView(uuids.text_of(each), "offline") for each in offline),
    )


def _fetched_offsets(controller: Controller, now_ms: int) -> dict[int, int]:
    """Return the offset of each broker's newest fetch of the metadata log."""
    newest: dict[int, ReplicaState] = {}
    for key, state in controller.raft.observers(now_ms).items():
        known = newest.get(key.id)
        if known is None or known.last_fetch_timestamp_ms <= state.last_fetch_timestamp_ms:
            newest[key.id] = state
    return {broker_id: state.log_end_offset for broker_id, state in newest.items()}


def _replica_view(key: ReplicaKey, state: ReplicaState | None) -> ReplicaView:
    known = state is not None and state.last_fetch_timestamp_ms >= 0
    return ReplicaView(
        key.id,
        uuids.text_of(key.directory_id),
        state.log_end_offset if known and state is not None else None,
        state.last_fetch_timestamp_ms if known and state is not None else None,
    )


def _node_view(controller: Controller) -> NodeView:
    raft, log = controller.raft, controller.log
    return NodeView(
        controller.config.node_id,
        raft.role.value,
        raft.leader_id,
        raft.epoch,
        log.start_offset,
        log.end_offset,
        log.high_watermark,
    )
