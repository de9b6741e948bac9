"""Views of a controller's state: plain values of one moment, each with its JSON.

Uuids are Kafka's texts (22 characters), times are milliseconds of the controller's clock, offsets are those of the
metadata log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from mockraft.wire.message import Message
from mockraft.wire.names import camel
from mockraft.wire.redaction.messages import masked
from mockraft.wire.redaction.secret_fields import masked_configs

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree
    from mockraft.wire.metadata_log_frame import RecordAt

RecordLike: TypeAlias = "Message | RecordAt | LogRecord | Mapping[str, Json]"
"""A record that a test gives: an object, one with its version, one of the log, or JSON."""


class View:
    """Base of the views: a dataclass whose JSON has its fields, in camelCase."""

    def to_json(self) -> Tree:
        """Return the view as a JSON tree."""
        return {key: _tree(getattr(self, name)) for name, key in _names(type(self))}


@dataclass(frozen=True, slots=True)
class ListenerView(View):
    """An address for clients or other nodes; `security_protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True)
class LogDirView(View):
    """A log directory; `state` is online, offline (reported since the broker registered) or cordoned (KIP-1066)."""

    id: str
    state: str


@dataclass(frozen=True, slots=True)
class SupportedView(View):
    """The levels of a feature that a broker supports, both ends included."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class BrokerView(View):
    """A registered broker.

    `metadata_offset` is the last record it is known to have, from its heartbeats and fetches, and `lag` the number of
    committed records it lacks; both None if unknown. `caught_up`: it has its own registration. `last_contact_ms` is the
    time of the last renewal of its session, None if the session is over.
    """

    broker_id: int
    epoch: int
    incarnation_id: str
    fenced: bool
    in_controlled_shutdown: bool
    rack: str | None
    listeners: tuple[ListenerView, ...]
    features: dict[str, SupportedView]
    log_dirs: tuple[LogDirView, ...]
    last_contact_ms: int | None
    caught_up: bool
    metadata_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class PartitionView(View):
    """A partition; `leader` is -1 while it has none, `directories` are in the order of `replicas`."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    directories: tuple[str, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView(View):
    """A topic and its partitions, by number."""

    name: str
    topic_id: str
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ConfigView(View):
    """The dynamic configuration of one resource; `type` is topic, broker, client-metrics or group.

    The broker "" is the default of all brokers. `values` has the real values, text and JSON hide those of sensitive
    configs.
    """

    type: str
    name: str
    values: dict[str, str]

    def to_json(self, *, show_secrets: bool = False) -> Tree:
        """Return the configuration as a JSON tree."""
        values = self.values if show_secrets else masked_configs(self.values)
        return {"type": self.type, "name": self.name, "values": values}

    def __repr__(self) -> str:
        return f"ConfigView(type={self.type!r}, name={self.name!r}, values={masked_configs(self.values)!r})"


@dataclass(frozen=True, slots=True)
class SnapshotView(View):
    """A snapshot: it has the records below `end_offset`, the last of which is of `epoch`."""

    end_offset: int
    epoch: int
    size_bytes: int
    file_name: str


@dataclass(frozen=True, slots=True)
class ReplicaView(View):
    """A replica of the metadata log; offset and time are None if the leader does not know them."""

    node_id: int
    directory_id: str
    log_end_offset: int | None
    last_fetch_ms: int | None


@dataclass(frozen=True, slots=True)
class NodeView(View):
    """A node of the quorum in this process, as it sees itself; `role` is its raft state."""

    node_id: int
    role: str
    leader_id: int | None
    epoch: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class QuorumView(View):
    """The quorum as its leader sees it, or the node with the newest log if `leader_id` is None."""

    leader_id: int | None
    epoch: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    voters: tuple[ReplicaView, ...]
    observers: tuple[ReplicaView, ...]
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class LogRecord(View):
    """A record of the metadata log, or a control record, with its version.

    `record` is the generated object (`mockraft.wire.records`).
    """

    offset: int
    epoch: int
    timestamp_ms: int
    type: str
    version: int
    record: Message

    def to_json(self, *, show_secrets: bool = False) -> Tree:
        """Return the record as a JSON tree, in Kafka's own JSON form; with its secrets `State.append` accepts it."""
        from mockraft.wire.json_form import to_json

        record = self.record if show_secrets else masked(self.record)
        return {
            key: to_json(record, self.version) if name == "record" else getattr(self, name)
            for name, key in _names(type(self))
        }


def _tree(value: object) -> Json:
    if isinstance(value, View):
        return value.to_json()
    if isinstance(value, tuple):
        return [_tree(each) for each in value]
    if isinstance(value, dict):
        return {key: _tree(each) for key, each in value.items()}
    assert value is None or isinstance(value, bool | int | str)
    return value


_NAMES: dict[type[View], list[tuple[str, str]]] = {}


def _names(view: type[View]) -> list[tuple[str, str]]:
    """Return each field and its name in JSON."""
    if view not in _NAMES:
        _NAMES[view] = [(field.name, camel(field.name)) for field in fields(view)]  # type: ignore[arg-type]  # a dataclass
    return _NAMES[view]
