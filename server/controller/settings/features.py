"""Metadata versions and features: the meaning of each level, and the first records of a log.

Source: MetadataVersion, Feature, QuorumFeatures, BootstrapMetadata and ActivationRecordsGenerator of Kafka, whose
tables a `Release` has.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from mockraft.releases import NEWEST, MetadataVersion, Release, release
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

METADATA_VERSION_MIN: Final = 7
"""3.3-IV3, the first one with which Kafka's own controller was released."""

_BROKER_CONFIG_TYPE: Final = 4


@cache
def metadata_version(level: int) -> MetadataVersion:
    """Return the metadata.version of a feature level, which means the same in every release; ValueError if unknown."""
    return release(NEWEST).metadata_version(level)


def metadata_version_level(text: str, release: Release, *, unstable: bool = False) -> int:
    """Return the feature level of a version: "4.3-IV0", "4.3", "4.3.1" or "30".

    A release means its newest version, and text after the second dot is ignored, as Kafka does
    (MetadataVersion.fromVersionString). ValueError for a version that the release does not have.
    """
    known = [*release.metadata_versions.values()]
    known += release.unstable_metadata_versions.values() if unstable else ()
    wanted = ".".join(text.split(".")[:2])
    levels = [v.level for v in known if wanted in (v.name, v.release, str(v.level))]
    if not levels:
        names = ", ".join(v.name for v in known)
        raise ValueError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}")
    return levels[-1]


def default_feature_levels(level: int, release: Release) -> dict[str, int]:
    """Return the features that `kafka-storage format` enables at a metadata.version level, sorted by name.

    Without metadata.version itself, kraft.version (not in the metadata records) and features at level 0.
    """
    defaults = release.metadata_version(level).default_levels
    return {name: value for name, value in sorted(defaults.items()) if value > 0 and name != KRAFT_VERSION}


def default_kraft_version(level: int) -> int:
    """Return the kraft.version of a new log at a metadata.version level: 0 before 3.9, whose brokers know no other."""
    return metadata_version(level).default_levels.get(KRAFT_VERSION, 0)


def bootstrap_records(
    level: int,
    release: Release,
    min_insync_replicas: int = 1,
    feature_levels: Mapping[str, int] | None = None,
    others: Sequence[RecordAt] = (),
) -> list[RecordAt]:
    """Return the records that an active controller writes into an empty log at a metadata.version level.

    `feature_levels` overrides the defaults per feature, as `kafka-storage format --feature` does; a feature at level 0
    is left out; `others` are additional records. With eligible leader replicas, min.insync.replicas is set for the
    cluster to `min_insync_replicas`. ValueError for an unknown level.
    """
    version = metadata_version(level)
    levels = {**default_feature_levels(level, release), **(feature_levels or {})}
    bootstrap = [_feature_level_record(METADATA_VERSION, level)]
    bootstrap += [_feature_level_record(name, value) for name, value in sorted(levels.items()) if value > 0]
    bootstrap += others
    if levels.get(ELR_VERSION, 0) > 0:
        config = ConfigRecord(
            resource_type=_BROKER_CONFIG_TYPE,
            resource_name="",
            name="min.insync.replicas",
            value=str(min_insync_replicas),
        )
        bootstrap.append(RecordAt(config, 0))
    if "metadata_transaction" not in version.supports:
        return bootstrap
    begin = RecordAt(BeginTransactionRecord(name="Bootstrap records"), 0)
    return [begin, *bootstrap, RecordAt(EndTransactionRecord(), 0)]


def _feature_level_record(name: str, level: int) -> RecordAt:
    return RecordAt(FeatureLevelRecord(name=name, feature_level=level), 0)


def check_feature_levels(
    release: Release, metadata_level: int, feature_levels: Mapping[str, int], *, unstable: bool = False
) -> None:
    """Raise ValueError with Kafka's message for a feature or level that `kafka-storage format --feature` refuses."""
    ranges = release.feature_ranges(unstable=unstable)
    for name, level in feature_levels.items():
        if name not in ranges or name in (METADATA_VERSION, KRAFT_VERSION):
            raise ValueError(f"Unsupported feature: {name}")
        low, high = ranges[name]
        if not low <= level <= high:
            raise ValueError(f"No feature:{name} with feature level {level}")
        needed = release.features[name].dependencies.get(level, {}).get(METADATA_VERSION, 0)
        if metadata_level < needed:
            raise ValueError(
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
            )
