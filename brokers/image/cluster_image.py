"""The committed metadata of a cluster, from which a broker answers its clients (Kafka's MetadataImage).

A broker that serves no clients has none: `MetadataView` is enough for it. Committed records are passed to
:meth:`ClusterImage.apply`; transactions are applied as a whole or not at all (KIP-868). The cost of a record does not
depend on the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from mockraft.kafka_api.authorization.acl_index import AccessControlEntry, AclIndex
from mockraft.releases import METADATA_VERSION, Behaviour, present
from mockraft.wire.directory_ids import LOST, MIGRATING, UNASSIGNED
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.client_quota_record import ClientQuotaRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.register_controller_record import RegisterControllerRecord
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord
from mockraft.wire.scram import ScramCredential

_NOTHING: tuple[RecordAt, ...] = ()


class Transactions:
    """Holds back committed records while their transaction is open."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[RecordAt] | None = None

    def clear(self) -> None:
        """Drop the open transaction before a snapshot is read."""
        self._held = None

    def passed(self, at: RecordAt) -> Sequence[RecordAt]:
        """Return the records that take effect with this committed one: itself, a whole transaction, or none."""
        kind = type(at.record).__name__
        if kind == "BeginTransactionRecord":
            self._held = []
        elif kind == "AbortTransactionRecord":
            self._held = None
        elif kind == "EndTransactionRecord":
            held, self._held = self._held or _NOTHING, None
            return held
        elif self._held is None:
            return (at,)
        else:
            self._held.append(at)
        return _NOTHING


NO_LEADER: Final = -1
_LEADER_UNCHANGED: Final = -2


class Partition(NamedTuple):
    """One partition, immutable. `directories` are 16-byte ids in the order of `replicas`.

    `elr` are the eligible leader replicas, `last_known_elr` the last non-empty ones (KIP-966).
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        """Return the partition of a PartitionRecord; directories that it leaves out are MIGRATING."""
        replicas = tuple(record.replicas)
        return cls(
            replicas,
            _directories(tuple(record.directories), len(replicas)),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def merge(self, change: PartitionChangeRecord) -> Partition:
        """Return this partition after a PartitionChangeRecord, which replaces the fields that it sets.

        The partition epoch always grows by one, the leader epoch whenever the record sets a leader.
        """
        replicas = _changed(change.replicas, self.replicas)
        names_leader = change.leader != _LEADER_UNCHANGED
        return Partition(
            replicas,
            _directories(_changed(change.directories, self.directories), len(replicas)),
            _changed(change.isr, self.isr),
            change.leader if names_leader else self.leader,
            self.leader_epoch + names_leader,
            self.partition_epoch + 1,
            _changed(change.adding_replicas, self.adding_replicas),
            _changed(change.removing_replicas, self.removing_replicas),
            _changed(change.eligible_leader_replicas, self.elr),
            _changed(change.last_known_elr, self.last_known_elr),
        )

    def directory(self, broker_id: int) -> bytes:
        """Return the directory of this broker's replica; it must have one."""
        return self.directories[self.replicas.index(broker_id)]


class Topic(NamedTuple):
    """One topic and its partitions by index, which change as the log grows."""

    name: str
    topic_id: bytes
    partitions: dict[int, Partition]


def _changed(new: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if new is None else tuple(new)


def _directories(directories: tuple[bytes, ...], replicas: int) -> tuple[bytes, ...]:
    if len(directories) == replicas:
        return directories
    return (directories + (MIGRATING,) * replicas)[:replicas]


class Endpoint(NamedTuple):
    """The endpoint of a node; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    host: str
    port: int
    security_protocol: int


class BrokerNode(NamedTuple):
    """A registered broker. `endpoints` is by listener name, `log_dirs` are 16-byte ids of its online directories."""

    broker_id: int
    broker_epoch: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerNode:
        """Return the broker of a RegisterBrokerRecord."""
        return cls(
            record.broker_id,
            record.broker_epoch,
            {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points},
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
        )

    def merge(self, change: BrokerRegistrationChangeRecord) -> BrokerNode:
        """Return this broker after a BrokerRegistrationChangeRecord; fields that are 0 or empty stay unchanged."""
        return self._replace(
            fenced=change.fenced > 0 if change.fenced else self.fenced,
            in_controlled_shutdown=change.in_controlled_shutdown > 0 or self.in_controlled_shutdown,
            log_dirs=tuple(change.log_dirs) or self.log_dirs,
        )

    def has_online_dir(self, directory_id: bytes) -> bool:
        """Return True if a replica that the log places there is online (Kafka's DirectoryId.isOnline)."""
        if directory_id in (UNASSIGNED, MIGRATING):
            return True
        return directory_id != LOST and (not self.log_dirs or directory_id in self.log_dirs)


class ControllerNode(NamedTuple):
    """A controller that registered its endpoints (KIP-919)."""

    controller_id: int
    endpoints: Mapping[str, Endpoint]

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerNode:
        """Return the controller of a RegisterControllerRecord."""
        endpoints = {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points}
        return cls(record.controller_id, endpoints)


K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted (entity type, entity name) pairs; name None is the default entity."""

NOT_MODELLED: Final = {
    "NoOpRecord": "it only moves the offset",
    "ProducerIdsRecord": "the controller hands out blocks of producer ids",
    "ZkMigrationStateRecord": "migration from ZooKeeper ended with Kafka 4.0",
    "DelegationTokenRecord": "brokers without a key of delegation tokens do not describe them",
    "RemoveDelegationTokenRecord": "brokers without a key of delegation tokens do not describe them",
}


class FinalizedLevels:
    """The finalized levels by feature, and what follows from them."""

    __slots__ = ()
    features: dict[str, int]

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version, 0 while unknown."""
        return self.features.get(METADATA_VERSION, 0)

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if the finalized levels of features bring the behaviour."""
        return behaviour in present(levels=tuple(self.features.items()))


class ClusterImage(FinalizedLevels):
    """Topics by id and by name, brokers and controllers by id, configs by (resource type, name), feature levels.

    Client quotas are values by key by entity; SCRAM credentials are by mechanism by user, ACLs by id and in an index.

    Only :meth:`apply` and :meth:`clear` change anything in it; `version` grows with every change.
    """

    def __init__(self) -> None:
        self.topics: dict[bytes, Topic] = {}
        self.topics_by_name: dict[str, Topic] = {}
        self.brokers: dict[int, BrokerNode] = {}
        self.controllers: dict[int, ControllerNode] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.scram: dict[str, dict[int, ScramCredential]] = {}
        self.acls: dict[bytes, AccessControlEntry] = {}
        self.acl_index = AclIndex()
        self.version = 0
        self._transactions = Transactions()

    def partition(self, topic_id: bytes, partition: int) -> Partition | None:
        """Return the partition, or None."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def alive(self) -> list[BrokerNode]:
        """Return the brokers that are not fenced, in order of their ids."""
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers) if not self.brokers[broker_id].fenced]

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the values that were set for one resource."""
        return self.configs.get((resource_type, name), {})

    def clear(self) -> None:
        """Clear everything before a snapshot is read."""
        held: tuple[dict[Any, Any], ...] = (
            self.topics,
            self.topics_by_name,
            self.brokers,
            self.controllers,
            self.configs,
            self.features,
            self.client_quotas,
            self.scram,
            self.acls,
        )
        for each in held:
            each.clear()
        self.acl_index = AclIndex()
        self._transactions.clear()
        self.version += 1

    def apply(self, at: RecordAt) -> None:
        """Apply one committed record."""
        for each in self._transactions.passed(at):
            if apply := APPLIED.get(type(each.record).__name__):
                apply(self, each.record)
                self.version += 1

    def _feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _register(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = BrokerNode.from_record(record)

    def _registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        before = self.brokers.get(record.broker_id)
        if before is not None:
            self.brokers[record.broker_id] = before.merge(record)

    def _fence(self, record: FenceBrokerRecord) -> None:
        if record.id in self.brokers:
            self.brokers[record.id] = self.brokers[record.id]._replace(fenced=True)

    def _unfence(self, record: UnfenceBrokerRecord) -> None:
        if record.id in self.brokers:
            self.brokers[record.id] = self.brokers[record.id]._replace(fenced=False)

    def _unregister(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = ControllerNode.from_record(record)

    def _controller_left(self, record: UnregisterControllerRecord) -> None:
        self.controllers.pop(record.controller_id, None)

    def _topic(self, record: TopicRecord) -> None:
        topic = Topic(record.name, record.topic_id, {})
        self.topics[record.topic_id] = self.topics_by_name[record.name] = topic

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics.pop(record.topic_id, None)
        if topic is not None:
            self.topics_by_name.pop(topic.name, None)
            self.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _partition(self, record: PartitionRecord) -> None:
        topic = self.topics.get(record.topic_id)
        if topic is not None:
            topic.partitions[record.partition_id] = Partition.from_record(record)

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        before = self.partition(record.topic_id, record.partition_id)
        if before is not None:
            self.topics[record.topic_id].partitions[record.partition_id] = before.merge(record)

    def _clear_elr(self, record: ClearElrRecord) -> None:
        named = self.topics_by_name.get(record.topic_name)
        topics = list(self.topics.values()) if not record.topic_name else [named] if named else []
        for topic in topics:
            for index, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    epoch = partition.partition_epoch + 1  # It counts as a change: TopicDelta.maybeClearElr.
                    topic.partitions[index] = partition._replace(elr=(), last_known_elr=(), partition_epoch=epoch)

    def _config(self, record: ConfigRecord) -> None:
        _put(self.configs, (record.resource_type, record.resource_name), record.name, record.value)

    def _client_quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        _put(self.client_quotas, entity, record.key, None if record.remove else record.value)

    def _scram(self, record: UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        _put(self.scram, record.name, record.mechanism, credential)

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        _put(self.scram, record.name, record.mechanism, None)

    def _acl(self, record: AccessControlEntryRecord) -> None:
        acl = self.acls[record.id] = AccessControlEntry.from_record(record)
        self.acl_index.add(acl)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        acl = self.acls.pop(record.id, None)
        if acl is not None:
            self.acl_index.remove(acl)


def _put(table: dict[K, dict[N, V]], key: K, name: N, value: V | None) -> None:
    """Set one value of a resource, or remove it, and the resource with its last one."""
    values = table.setdefault(key, {})
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if not values:
        del table[key]


APPLIED: Final[Mapping[str, Callable[[ClusterImage, Any], None]]] = {
    "FeatureLevelRecord": ClusterImage._feature,
    "RegisterBrokerRecord": ClusterImage._register,
    "BrokerRegistrationChangeRecord": ClusterImage._registration_change,
    "FenceBrokerRecord": ClusterImage._fence,
    "UnfenceBrokerRecord": ClusterImage._unfence,
    "UnregisterBrokerRecord": ClusterImage._unregister,
    "RegisterControllerRecord": ClusterImage._controller,
    "UnregisterControllerRecord": ClusterImage._controller_left,
    "TopicRecord": ClusterImage._topic,
    "RemoveTopicRecord": ClusterImage._remove_topic,
    "PartitionRecord": ClusterImage._partition,
    "PartitionChangeRecord": ClusterImage._partition_change,
    "ClearElrRecord": ClusterImage._clear_elr,
    "ConfigRecord": ClusterImage._config,
    "ClientQuotaRecord": ClusterImage._client_quota,
    "UserScramCredentialRecord": ClusterImage._scram,
    "RemoveUserScramCredentialRecord": ClusterImage._remove_scram,
    "AccessControlEntryRecord": ClusterImage._acl,
    "RemoveAccessControlEntryRecord": ClusterImage._remove_acl,
}
"""The effect of each record type on the image; those of NOT_MODELLED and the three of transactions are not here."""
