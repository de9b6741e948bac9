"""Metadata versions and features: the meaning of each level, and the first records of a log.

Source: MetadataVersion, Feature, QuorumFeatures, BootstrapMetadata and ActivationRecordsGenerator of Kafka, whose
tables are kept in schemas_json/<release>/features.json.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import mockraft.schemas_json
from mockraft.server.controller.settings.releases import feature_ranges
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

_BROKER_CONFIG_TYPE: Final = 4


class MetadataVersion(NamedTuple):
    """One metadata.version: its feature level, Kafka's name for it and its capabilities.

    `supports` has, in snake case, the true ones of MetadataVersion's `is…Supported` methods: migration, scram,
    metadata_transaction, delegation_token, controller_registration, directory_assignment, elr, cordoned_log_dirs.
    """

    level: int
    name: str
    release: str
    metadata_changed: bool
    supports: frozenset[str]
    leader_epoch_bump_on_isr_shrink: bool
    record_versions: Mapping[str, int]
    default_levels: Mapping[str, int]


class Feature(NamedTuple):
    """Supported levels of a feature; `dependencies[level]` = {other feature: lowest level}."""

    min_level: int
    max_level: int
    dependencies: Mapping[int, Mapping[str, int]]


@cache
def _table() -> Any:
    path = Path(mockraft.schemas_json.__path__[0]) / "4.3.1" / "features.json"
    return json.loads(path.read_text())


@cache
def metadata_versions() -> Mapping[int, MetadataVersion]:
    """Every production metadata.version by its feature level, lowest first."""
    return {
        row["level"]: MetadataVersion(**row | {"supports": frozenset(row["supports"])})
        for row in _table()["metadata_versions"]
    }


@cache
def supported_features(release: str | None = None) -> Mapping[str, Feature]:
    """Return every feature of the release, metadata.version too (QuorumFeatures.defaultSupportedFeatureMap).

    `release` is another one that the controller emulates ("3.9").
    """
    rows = _table()["features"]
    ranges = {name: (row["min"], row["max"]) for name, row in rows.items()}
    if release is not None:
        ranges = {name: levels for name, levels in feature_ranges(release).items() if name in rows}
    return {
        name: Feature(low, high, {int(level): needs for level, needs in rows[name]["dependencies"].items()})
        for name, (low, high) in ranges.items()
    }


def metadata_version(level: int) -> MetadataVersion:
    """Return the metadata.version of a feature level; ValueError with Kafka's message if unknown."""
    found = metadata_versions().get(level)
    if found is None:
        levels = list(metadata_versions())
        raise ValueError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {levels[0]} to {levels[-1]}."
        )
    return found


def metadata_version_level(text: str) -> int:
    """Return the feature level of a version: "4.3-IV0", "4.3", "4.3.1" or "30".

    A release means its newest version, and text after the second dot is ignored, as Kafka does
    (MetadataVersion.fromVersionString). ValueError for a version that the release does not have.
    """
    if text.isascii() and text.isdecimal():
        return metadata_version(int(text)).level
    wanted = ".".join(text.split(".")[:2])
    levels = [v.level for v in metadata_versions().values() if wanted in (v.name, v.release)]
    if not levels:
        names = ", ".join(v.name for v in metadata_versions().values())
        raise ValueError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}")
    return levels[-1]


def default_feature_levels(level: int) -> dict[str, int]:
    """Return the features that `kafka-storage format` enables at a metadata.version level, sorted by name.

    Without metadata.version itself, kraft.version (not in the metadata records) and features at level 0.
    """
    defaults = metadata_version(level).default_levels
    return {name: value for name, value in sorted(defaults.items()) if value > 0 and name != KRAFT_VERSION}


def bootstrap_records(
    level: int,
    *,
    min_insync_replicas: int = 1,
    feature_levels: Mapping[str, int] | None = None,
    others: Sequence[RecordAt] = (),
) -> list[RecordAt]:
    """Return the records that an active 4.3.1 controller writes into an empty log at a metadata.version level.

    `feature_levels` overrides the defaults per feature, as `kafka-storage format --feature` does; a feature at level 0
    is left out; `others` are additional records. With eligible leader replicas, min.insync.replicas is set for the
    cluster to `min_insync_replicas`. ValueError for a level or feature that the release does not support.
    """
    version = metadata_version(level)
    levels = {**default_feature_levels(level), **_checked(level, feature_levels or {})}
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


def _checked(metadata_level: int, feature_levels: Mapping[str, int]) -> Mapping[str, int]:
    for name, level in feature_levels.items():
        feature = supported_features().get(name)
        if feature is None or name in (METADATA_VERSION, KRAFT_VERSION):
            raise ValueError(f"Unsupported feature: {name}")
        if not feature.min_level <= level <= feature.max_level:
            raise ValueError(f"No feature:{name} with feature level {level}")
        needed = feature.dependencies.get(level, {}).get(METADATA_VERSION, 0)
        if metadata_level < needed:
            raise ValueError(
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
            )
    return feature_levels
