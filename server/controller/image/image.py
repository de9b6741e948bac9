"""The metadata image: the state defined by the records, and nothing else (MetadataImage and its deltas in one)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mockraft.kafka_configs import config_keys
from mockraft.releases import Behaviour, MetadataVersion
from mockraft.releases import metadata_version as metadata_version_of
from mockraft.server.controller.image.cluster import ClusterImage, ReplayError
from mockraft.server.controller.image.security import SecurityImage
from mockraft.server.controller.image.settings import SettingsImage
from mockraft.server.controller.image.topics import Topic, TopicsImage
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.client_quota_record import ClientQuotaRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.delegation_token_record import DelegationTokenRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.producer_ids_record import ProducerIdsRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.register_controller_record import RegisterControllerRecord
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from mockraft.wire.records.remove_delegation_token_record import RemoveDelegationTokenRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

NOT_MODELLED: Final = {
    "NoOpRecord": "it only moves the offset",
    "ZkMigrationStateRecord": "migration from ZooKeeper ended with Kafka 4.0",
}

_OF_TRANSACTIONS: Final = frozenset(
    record.api_key for record in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)


@dataclass(slots=True, kw_only=True)
class Image:
    """Metadata as of one offset of the log. Changed by `apply` only.

    Records between BeginTransactionRecord and EndTransactionRecord are kept in `open_transaction` and dropped by an
    AbortTransactionRecord (KIP-868); it is None outside a transaction.
    """

    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    settings: SettingsImage = field(default_factory=SettingsImage)
    security: SecurityImage = field(default_factory=SecurityImage)
    open_transaction: list[tuple[Message, int]] | None = None

    def apply(self, record: Message, offset: int) -> tuple[Message, ...]:
        """Apply one metadata record of the log at this offset; return the records that took effect.

        That is the record itself, none within a transaction, and all of its records at the transaction's end.
        """
        if self.open_transaction is None and record.api_key not in _OF_TRANSACTIONS:
            apply = APPLIES.get(record.api_key)
            if apply is not None:
                apply(self, record, offset)
            return (record,)
        if isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if self.open_transaction is None:
                raise ReplayError("a transaction ends that never began")
            waiting, self.open_transaction = self.open_transaction, None
            if isinstance(record, AbortTransactionRecord):
                return ()
            for waited, waited_offset in waiting:
                self.apply(waited, waited_offset)
            return tuple(waited for waited, _ in waiting)
        if self.open_transaction is not None:
            if isinstance(record, BeginTransactionRecord):
                raise ReplayError("a transaction begins inside a transaction")
            self.open_transaction.append((record, offset))
            return ()
        self.open_transaction = []
        return ()

    @property
    def configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """Config values by (resource type, resource name)."""
        return self.settings.configs

    @property
    def features(self) -> dict[str, int]:
        """Finalized levels by feature name; level 0 is absent."""
        return self.settings.features

    @property
    def metadata_version(self) -> int:
        """Finalized metadata.version level; the lowest one until the log contains one."""
        return self.settings.metadata_version

    @property
    def version(self) -> MetadataVersion:
        """The finalized metadata.version."""
        return metadata_version_of(self.metadata_version)

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if the finalized levels, the release or a proposal bring the behaviour."""
        return behaviour in self.settings.behaviours

    def copy(self) -> "Image":
        """Return what `to_records` reads as it is now, for a snapshot in steps: the values themselves never change."""
        cluster, settings, security = self.cluster, self.settings, self.security
        topics = self.topics.by_id.items()
        return Image(
            cluster=ClusterImage(brokers=dict(cluster.brokers), controllers=dict(cluster.controllers)),
            topics=TopicsImage(by_id={key: Topic(each.name, key, dict(each.partitions)) for key, each in topics}),
            settings=replace(
                settings,
                configs={key: dict(values) for key, values in settings.configs.items()},
                features=dict(settings.features),
                client_quotas={key: dict(values) for key, values in settings.client_quotas.items()},
            ),
            security=SecurityImage(
                scram=dict(security.scram), acls=dict(security.acls), delegation_tokens=dict(security.delegation_tokens)
            ),
        )

    def to_records(self, metadata_version: int) -> Iterator[RecordAt]:
        """Return records that rebuild this image, in the order of MetadataImage.write.

        Fields that the metadata.version cannot express are left out.
        """
        version = metadata_version_of(metadata_version)
        yield from self.settings.features_to_records(version.level)
        yield from self.cluster.to_records(version)
        yield from self.topics.to_records(version)
        yield from self.settings.configs_to_records()
        yield from self.settings.client_quotas_to_records()
        yield from self.settings.producer_ids_to_records()
        for acl_id, acl in self.security.acls.items():
            yield acl.to_record(acl_id)
        yield from self.security.scram_to_records(version)
        yield from self.security.delegation_tokens_to_records(version)


def _apply_remove_topic(image: Image, record: RemoveTopicRecord, offset: int) -> None:
    image.settings.configs.pop((config_keys.TOPIC, image.topics.by_id[record.topic_id].name), None)
    image.topics.apply_remove_topic(record, offset)


_Apply = Callable[[Image, Any, int], None]

APPLIES: Final[dict[int, _Apply]] = {
    RegisterBrokerRecord.api_key: lambda image, *at: image.cluster.apply_register_broker(*at),
    UnregisterBrokerRecord.api_key: lambda image, *at: image.cluster.apply_unregister_broker(*at),
    BrokerRegistrationChangeRecord.api_key: lambda image, *at: image.cluster.apply_registration_change(*at),
    FenceBrokerRecord.api_key: lambda image, record, _: image.cluster.set_fenced(record, True),
    UnfenceBrokerRecord.api_key: lambda image, record, _: image.cluster.set_fenced(record, False),
    RegisterControllerRecord.api_key: lambda image, *at: image.cluster.apply_register_controller(*at),
    UnregisterControllerRecord.api_key: lambda image, *at: image.cluster.apply_unregister_controller(*at),
    TopicRecord.api_key: lambda image, *at: image.topics.apply_topic(*at),
    PartitionRecord.api_key: lambda image, *at: image.topics.apply_partition(*at),
    PartitionChangeRecord.api_key: lambda image, *at: image.topics.apply_partition_change(*at),
    RemoveTopicRecord.api_key: _apply_remove_topic,
    ClearElrRecord.api_key: lambda image, *at: image.topics.apply_clear_elr(*at),
    ConfigRecord.api_key: lambda image, *at: image.settings.apply_config(*at),
    FeatureLevelRecord.api_key: lambda image, *at: image.settings.apply_feature_level(*at),
    ProducerIdsRecord.api_key: lambda image, *at: image.settings.apply_producer_ids(*at),
    ClientQuotaRecord.api_key: lambda image, *at: image.settings.apply_client_quota(*at),
    UserScramCredentialRecord.api_key: lambda image, *at: image.security.apply_scram(*at),
    RemoveUserScramCredentialRecord.api_key: lambda image, *at: image.security.apply_remove_scram(*at),
    AccessControlEntryRecord.api_key: lambda image, *at: image.security.apply_acl(*at),
    RemoveAccessControlEntryRecord.api_key: lambda image, *at: image.security.apply_remove_acl(*at),
    DelegationTokenRecord.api_key: lambda image, *at: image.security.apply_delegation_token(*at),
    RemoveDelegationTokenRecord.api_key: lambda image, *at: image.security.apply_remove_delegation_token(*at),
}
"""Function that applies each record type, called with image, record and offset.

Those of NOT_MODELLED and of transactions are not included.
"""
