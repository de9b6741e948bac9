"""Configs, feature levels, client quotas and producer ids."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mockraft.kafka_configs import config_keys
from mockraft.releases import METADATA_VERSION, Behaviour, Release, release
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.client_quota_record import ClientQuotaRecord, EntityData
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.producer_ids_record import ProducerIdsRecord

METADATA_VERSION_MIN = 7
"""3.3-IV3, the first one with which Kafka's own controller was released: the lowest of a new log.

Controllers of Kafka 3.7 to 3.9 also open logs from 3.3-IV0 (level 4) on, which their kafka-storage formats.
"""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted (entity type, entity name) pairs; name None is the default entity."""


@dataclass(slots=True)
class SettingsImage:
    """Config values by (resource type, resource name), levels by feature, quota values by entity.

    `next_producer_id` is the first of the next block; -1 before the first block. `release` determines the known keys,
    and with the levels and the `proposals` it determines `behaviours`.
    """

    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    client_quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    next_producer_id: int = -1
    release: Release = field(default_factory=release, compare=False, repr=False)
    proposals: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    behaviours: frozenset[Behaviour] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Find what the levels bring."""
        self._find_behaviours()

    @property
    def metadata_version(self) -> int:
        """Finalized metadata.version level; the lowest one until the log contains one."""
        return self.features.get(METADATA_VERSION, METADATA_VERSION_MIN)

    def _find_behaviours(self) -> None:
        levels = {**self.features, METADATA_VERSION: self.metadata_version}
        self.behaviours = self.release.behaviours(levels, self.proposals)

    def apply_config(self, record: ConfigRecord, offset: int) -> None:
        """Set a config value, or delete it if None; keys that no resource of the type has are skipped."""
        if not config_keys.is_supported(record.resource_type, record.name, self.release):
            return
        resource = (record.resource_type, record.resource_name)
        values = self.configs.setdefault(resource, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if not values:
            del self.configs[resource]

    def apply_feature_level(self, record: FeatureLevelRecord, offset: int) -> None:
        """Set a feature's finalized level; level 0 removes it."""
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        self._find_behaviours()

    def apply_producer_ids(self, record: ProducerIdsRecord, offset: int) -> None:
        """Record an allocated block of producer ids."""
        self.next_producer_id = record.next_producer_id

    def apply_client_quota(self, record: ClientQuotaRecord, offset: int) -> None:
        """Set or remove a quota."""
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        values = self.client_quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.client_quotas[entity]

    def features_to_records(self, level: int) -> Iterator[RecordAt]:
        """Return the levels as records, metadata.version first: readers need it to read on (FeaturesImage.write)."""
        yield RecordAt(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)
        for name, feature_level in self.features.items():
            if name != METADATA_VERSION:
                yield RecordAt(FeatureLevelRecord(name=name, feature_level=feature_level), 0)

    def configs_to_records(self) -> Iterator[RecordAt]:
        """Return the configs as records (ConfigurationsImage.write)."""
        for (resource_type, resource_name), values in self.configs.items():
            for name, value in values.items():
                yield RecordAt(
                    ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value), 0
                )

    def client_quotas_to_records(self) -> Iterator[RecordAt]:
        """Return the quotas as records (ClientQuotasImage.write)."""
        for entity, values in self.client_quotas.items():
            for key, value in values.items():
                parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
                yield RecordAt(ClientQuotaRecord(entity=parts, key=key, value=value, remove=False), 0)

    def producer_ids_to_records(self) -> Iterator[RecordAt]:
        """Return the next block as a record without a broker, if one was allocated (ProducerIdsImage.write)."""
        if self.next_producer_id >= 0:
            record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)
            yield RecordAt(record, 0)
