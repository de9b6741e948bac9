"""The committed metadata of a cluster, as a broker answers its clients from it (Kafka's MetadataImage).

A broker that serves no clients has none: `MetadataView` is all it needs. Records come in through
:meth:`ClusterImage.apply` once they are committed; transactions are taken whole or not at all (KIP-868). A record costs
the same however large the cluster is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mockraft.brokers.image.brokers import BrokerNode, ControllerNode
from mockraft.brokers.image.topics import Partition, Topic
from mockraft.brokers.transactions import Transactions
from mockraft.wire.metadata_log_frame import RecordAt

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
METADATA_VERSION: Final = "metadata.version"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted (entity type, entity name) pairs; name None is the default entity."""

NOT_MODELLED: Final = {
    "NoOpRecord": "it only moves the offset",
    "ProducerIdsRecord": "the controller hands out blocks of producer ids",
    "ZkMigrationStateRecord": "migration from ZooKeeper ended with Kafka 4.0",
    "AccessControlEntryRecord": "no authorizer is configured",
    "RemoveAccessControlEntryRecord": "no authorizer is configured",
    "DelegationTokenRecord": "PLAINTEXT clients may not ask about tokens",
    "RemoveDelegationTokenRecord": "PLAINTEXT clients may not ask about tokens",
}


class ClusterImage:
    """Topics by id and by name, brokers and controllers by id, configs by (resource type, name), feature levels.

    Client quotas are values by key by entity; of SCRAM credentials there are the iterations by mechanism by user.

    Nobody but :meth:`apply` and :meth:`clear` changes anything in it; `version` grows whenever they do.
    """

    def __init__(self) -> None:
        self.topics: dict[bytes, Topic] = {}
        self.topics_by_name: dict[str, Topic] = {}
        self.brokers: dict[int, BrokerNode] = {}
        self.controllers: dict[int, ControllerNode] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.scram_iterations: dict[str, dict[int, int]] = {}
        self.version = 0
        self._transactions = Transactions()

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version, 0 while unknown."""
        return self.features.get(METADATA_VERSION, 0)

    def partition(self, topic_id: bytes, partition: int) -> Partition | None:
        """The partition, if there is one."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def alive(self) -> list[BrokerNode]:
        """The brokers that are not fenced, in order of their ids."""
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers) if not self.brokers[broker_id].fenced]

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The values that were set for one resource."""
        return self.configs.get((resource_type, name), {})

    def clear(self) -> None:
        """Forget everything: a snapshot is about to be read."""
        held: tuple[dict[Any, Any], ...] = (
            self.topics,
            self.topics_by_name,
            self.brokers,
            self.controllers,
            self.configs,
            self.features,
            self.client_quotas,
            self.scram_iterations,
        )
        for each in held:
            each.clear()
        self._transactions.clear()
        self.version += 1

    def apply(self, at: RecordAt) -> None:
        """Take in one committed record."""
        for each in self._transactions.passed(at):
            if apply := APPLIED.get(type(each.record).__name__):
                apply(self, each.record)
                self.version += 1

    def _feature(self, record: Any) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _register(self, record: Any) -> None:
        self.brokers[record.broker_id] = BrokerNode.from_record(record)

    def _registration_change(self, record: Any) -> None:
        before = self.brokers.get(record.broker_id)
        if before is not None:
            self.brokers[record.broker_id] = before.merge(record)

    def _fence(self, record: Any) -> None:
        if record.id in self.brokers:
            self.brokers[record.id] = self.brokers[record.id]._replace(fenced=True)

    def _unfence(self, record: Any) -> None:
        if record.id in self.brokers:
            self.brokers[record.id] = self.brokers[record.id]._replace(fenced=False)

    def _unregister(self, record: Any) -> None:
        self.brokers.pop(record.broker_id, None)

    def _controller(self, record: Any) -> None:
        self.controllers[record.controller_id] = ControllerNode.from_record(record)

    def _topic(self, record: Any) -> None:
        topic = Topic(record.name, record.topic_id, {})
        self.topics[record.topic_id] = self.topics_by_name[record.name] = topic

    def _remove_topic(self, record: Any) -> None:
        topic = self.topics.pop(record.topic_id, None)
        if topic is not None:
            self.topics_by_name.pop(topic.name, None)
            self.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _partition(self, record: Any) -> None:
        topic = self.topics.get(record.topic_id)
        if topic is not None:
            topic.partitions[record.partition_id] = Partition.from_record(record)

    def _partition_change(self, record: Any) -> None:
        before = self.partition(record.topic_id, record.partition_id)
        if before is not None:
            self.topics[record.topic_id].partitions[record.partition_id] = before.merge(record)

    def _clear_elr(self, record: Any) -> None:
        named = self.topics_by_name.get(record.topic_name)
        topics = list(self.topics.values()) if not record.topic_name else [named] if named else []
        for topic in topics:
            for index, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    topic.partitions[index] = partition.without_elr()

    def _config(self, record: Any) -> None:
        resource = (record.resource_type, record.resource_name)
        values = self.configs.setdefault(resource, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if not values:
            del self.configs[resource]

    def _client_quota(self, record: Any) -> None:
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        values = self.client_quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.client_quotas[entity]

    def _scram(self, record: Any) -> None:
        self.scram_iterations.setdefault(record.name, {})[record.mechanism] = record.iterations

    def _remove_scram(self, record: Any) -> None:
        credentials = self.scram_iterations.get(record.name, {})
        credentials.pop(record.mechanism, None)
        if not credentials:
            self.scram_iterations.pop(record.name, None)


APPLIED: Final[Mapping[str, Callable[[ClusterImage, Any], None]]] = {
    "FeatureLevelRecord": ClusterImage._feature,
    "RegisterBrokerRecord": ClusterImage._register,
    "BrokerRegistrationChangeRecord": ClusterImage._registration_change,
    "FenceBrokerRecord": ClusterImage._fence,
    "UnfenceBrokerRecord": ClusterImage._unfence,
    "UnregisterBrokerRecord": ClusterImage._unregister,
    "RegisterControllerRecord": ClusterImage._controller,
    "TopicRecord": ClusterImage._topic,
    "RemoveTopicRecord": ClusterImage._remove_topic,
    "PartitionRecord": ClusterImage._partition,
    "PartitionChangeRecord": ClusterImage._partition_change,
    "ClearElrRecord": ClusterImage._clear_elr,
    "ConfigRecord": ClusterImage._config,
    "ClientQuotaRecord": ClusterImage._client_quota,
    "UserScramCredentialRecord": ClusterImage._scram,
    "RemoveUserScramCredentialRecord": ClusterImage._remove_scram,
}
"""What each record does to the image; those of NOT_MODELLED and the three of transactions are not here."""
