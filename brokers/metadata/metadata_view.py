"""The part of the metadata log that concerns one broker, kept small so that ten thousand brokers fit into a process.

Committed records are passed to :meth:`MetadataView.apply`; transactions are applied as a whole or not at all (KIP-868).
Records that do not concern a broker without clients are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mockraft.brokers.image.cluster_image import BROKER_RESOURCE, FinalizedLevels, Transactions
from mockraft.brokers.log_dirs.placement import CORDONED_LOG_DIRS
from mockraft.wire.directory_ids import MIGRATING
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

_UNCHANGED = -2


class Replica(NamedTuple):
    """A partition that has a replica on this broker, according to the log.

    `directory` is the replica's directory in the metadata (16 bytes; reserved uuids are Kafka's `DirectoryId`s).
    """

    topic_id: bytes
    partition: int
    directory: bytes
    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    leader: int
    isr: tuple[int, ...]


class Registration(NamedTuple):
    """This broker's registration according to the log."""

    broker_epoch: int
    incarnation_id: bytes
    fenced: bool
    log_dirs: tuple[bytes, ...]


class MetadataView(FinalizedLevels):
    """The committed metadata as one broker sees it.

    `replicas` is keyed by (topic id, partition). `changed` collects the keys of replicas that were added, removed or
    changed their directory until :meth:`take_changed`; `touched` those with any change, and is None when it is not
    used. `features` and `topics` are its own unless given: a SharedView maintains them for all its views.
    """

    __slots__ = (
        "_transactions",
        "broker_id",
        "changed",
        "configs",
        "features",
        "registration",
        "replicas",
        "topics",
        "touched",
    )

    def __init__(
        self, broker_id: int, features: dict[str, int] | None = None, topics: dict[bytes, str] | None = None
    ) -> None:
        self.broker_id = broker_id
        self.features = {} if features is None else features
        self.topics: dict[bytes, str] = {} if topics is None else topics
        self.replicas: dict[tuple[bytes, int], Replica] = {}
        self.registration: Registration | None = None
        self.configs: dict[tuple[str, str], str] = {}
        self.changed: set[tuple[bytes, int]] = set()
        self.touched: set[tuple[bytes, int]] | None = None
        self._transactions = Transactions()

    @property
    def cordoned_log_dirs(self) -> str | None:
        """The dynamic cordoned.log.dirs for this broker: its own, else the cluster's default, else None."""
        own = self.configs.get((str(self.broker_id), CORDONED_LOG_DIRS))
        return own if own is not None else self.configs.get(("", CORDONED_LOG_DIRS))

    def clear(self) -> None:
        """Clear everything before a snapshot is read."""
        self.changed |= set(self.replicas)
        if self.touched is not None:
            self.touched |= set(self.replicas)
        for held in (self.features, self.topics, self.replicas, self.configs):
            held.clear()
        self.registration = None
        self._transactions.clear()

    def take_changed(self) -> set[tuple[bytes, int]]:
        """Return the replicas that changed since the last call."""
        changed, self.changed = self.changed, set()
        return changed

    def apply(self, at: RecordAt) -> None:
        """Apply one committed record."""
        for each in self._transactions.passed(at):
            if apply := _APPLIED.get(type(each.record).__name__):
                apply(self, each.record)

    def _feature(self, record: FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level

    def _register(self, record: RegisterBrokerRecord) -> None:
        if record.broker_id == self.broker_id:
            self.registration = Registration(
                record.broker_epoch, record.incarnation_id, record.fenced, tuple(record.log_dirs)
            )

    def _registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        if record.broker_id != self.broker_id or self.registration is None:
            return
        if record.fenced:
            self.registration = self.registration._replace(fenced=record.fenced > 0)
        if record.log_dirs:
            self.registration = self.registration._replace(log_dirs=tuple(record.log_dirs))

    def _unregister(self, record: UnregisterBrokerRecord) -> None:
        if record.broker_id == self.broker_id:
            self.registration = None

    def _config(self, record: ConfigRecord) -> None:
        if record.resource_type != BROKER_RESOURCE or record.resource_name not in ("", str(self.broker_id)):
            return
        if record.value is None:
            self.configs.pop((record.resource_name, record.name), None)
        else:
            self.configs[record.resource_name, record.name] = record.value

    def _topic(self, record: TopicRecord) -> None:
        self.topics[record.topic_id] = record.name

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self.topics.pop(record.topic_id, None)
        for key in [key for key in self.replicas if key[0] == record.topic_id]:
            self._lose(key)

    def _partition(self, record: PartitionRecord) -> None:
        if self.broker_id in record.replicas:
            self._place(record, record.replicas, record.directories, record.leader, record.isr)
        else:
            self._lose((record.topic_id, record.partition_id))

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        key = (record.topic_id, record.partition_id)
        before = self.replicas.get(key)
        replicas = record.replicas if record.replicas is not None else before.replicas if before else ()
        if self.broker_id not in replicas:
            self._lose(key)
            return
        leader = record.leader if record.leader != _UNCHANGED else before.leader if before else -1
        isr = record.isr if record.isr is not None else before.isr if before else ()
        directories = record.directories or (before.directories if before else ())
        self._place(record, replicas, directories, leader, isr)
        if record.directories:
            # Kafka compares uuid objects by identity: a record that repeats ours counts as a change.
            self.changed.add(key)

    def _place(
        self, record: Any, replicas: Sequence[int], directories: Sequence[bytes], leader: int, isr: Sequence[int]
    ) -> None:
        key = (record.topic_id, record.partition_id)
        index = replicas.index(self.broker_id)
        directory = directories[index] if index < len(directories) else MIGRATING
        before = self.replicas.get(key)
        self.replicas[key] = Replica(*key, directory, tuple(replicas), tuple(directories), leader, tuple(isr))
        if before is None or before.directory != directory:
            self.changed.add(key)
        self._touch(key)

    def _lose(self, key: tuple[bytes, int]) -> None:
        if self.replicas.pop(key, None) is not None:
            self.changed.add(key)
            self._touch(key)

    def _clear_elr(self, record: ClearElrRecord) -> None:
        for key in self.replicas:
            if not record.topic_name or self.topics.get(key[0]) == record.topic_name:
                self._touch(key)

    def _touch(self, key: tuple[bytes, int]) -> None:
        if self.touched is not None:
            self.touched.add(key)


_APPLIED: Mapping[str, Callable[[MetadataView, Any], None]] = {
    "FeatureLevelRecord": MetadataView._feature,
    "RegisterBrokerRecord": MetadataView._register,
    "BrokerRegistrationChangeRecord": MetadataView._registration_change,
    "UnregisterBrokerRecord": MetadataView._unregister,
    "ConfigRecord": MetadataView._config,
    "TopicRecord": MetadataView._topic,
    "RemoveTopicRecord": MetadataView._remove_topic,
    "PartitionRecord": MetadataView._partition,
    "PartitionChangeRecord": MetadataView._partition_change,
    "ClearElrRecord": MetadataView._clear_elr,
}
