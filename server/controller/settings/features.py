"""Metadata versions and features: the meaning of each level, and the first records of a log.

Source: MetadataVersion, Feature, QuorumFeatures, BootstrapMetadata and ActivationRecordsGenerator of Kafka, whose
tables a `Release` has.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockraft.releases import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    Behaviour,
    Release,
    metadata_version,
)
from mockraft.releases import release as release_named
from mockraft.server.controller.image.settings import METADATA_VERSION_MIN
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

STREAMS_VERSION: Final = "streams.version"
SIMULATED_BROKERS_HAVE: Final = {"share.version": 1, STREAMS_VERSION: 0}
"""The levels up to which simulated brokers have features that they register in full: no dead letters of share groups
(KIP-1191), no streams groups.
"""

_BROKER_CONFIG_TYPE: Final = 4


def metadata_version_level(text: str, release: Release, *, unstable: bool = False) -> int:
    """Return the feature level of a version: "4.1-IV1", "4.1", "4.1.2" or "27".

    A release means its newest version, and text after the second dot is ignored, as Kafka does
    (MetadataVersion.fromVersionString). ValueError for a version that a new log of the release cannot begin with.
    """
    versions = [*release.metadata_versions.values()]
    versions += release.unstable_metadata_versions.values() if unstable else ()
    known = [version for version in versions if version.level >= METADATA_VERSION_MIN]
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


def default_kraft_version(release: Release) -> int:
    """Return the kraft.version of a new log, as of `kafka-storage format --standalone`: 1, or 0 before Kafka 3.9.

    It is 1 at every metadata.version: brokers that look for controllers by bootstrap servers find none at 0.
    """
    return 1 if KRAFT_VERSION in release.features else 0


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
    if not metadata_version(level).has(Behaviour.METADATA_TRANSACTIONS):
        return bootstrap
    begin = RecordAt(BeginTransactionRecord(name="Bootstrap records"), 0)
    return [begin, *bootstrap, RecordAt(EndTransactionRecord(), 0)]


def _feature_level_record(name: str, level: int) -> RecordAt:
    return RecordAt(FeatureLevelRecord(name=name, feature_level=level), 0)


def check_supported(release: Release, name: str, level: int, *, unstable: bool) -> None:
    """Raise ValueError for a level in a log that controllers of the release do not support (a fatal fault in Kafka)."""

    def has_level(of: Release) -> bool:
        low, high = of.feature_ranges(unstable=unstable).get(name, (0, 0))
        return level == 0 or low <= level <= high

    if not has_level(release):
        fitting = [each for each in map(release_named, SUPPORTED) if has_level(each)]
        hint = "no known release has it"
        if fitting:
            nearest = fitting[-1] if release.is_since(fitting[-1].name) else fitting[0]
            hint = f"serve with --release {nearest.name}"
        raise ValueError(f"{name} {level} is not supported by controllers of Kafka {release.name}; {hint}")


class InitialLevels(NamedTuple):
    """Feature levels that a new log begins with; `kraft_version` None is the metadata version's default."""

    metadata_version: int
    kraft_version: int | None
    others: Mapping[str, int]


def levels_for_simulated_brokers(
    release: Release, chosen: Mapping[str, int], metadata_level: int = 0
) -> dict[str, int]:
    """Return the chosen levels of a new log, and of others at most what simulated brokers have, unless chosen."""
    metadata_level = metadata_level or chosen.get(METADATA_VERSION, 0) or max(release.metadata_versions)
    defaults = default_feature_levels(metadata_level, release)
    known = {name: level for name, level in SIMULATED_BROKERS_HAVE.items() if name in release.features}
    return {**{name: min(level, defaults.get(name, 0)) for name, level in known.items()}, **chosen}


def initial_levels(
    release: Release, metadata_level: int, chosen: Mapping[str, int], *, unstable: bool = False
) -> InitialLevels:
    """Return the levels of a new log for a metadata.version (0: the newest) and the levels chosen by feature.

    ValueError with Kafka's message for a feature or level that `kafka-storage format --feature` refuses.
    """
    ranges, others = release.feature_ranges(unstable=unstable), dict(chosen)
    low, high = ranges[METADATA_VERSION]
    low = max(low, METADATA_VERSION_MIN)
    if metadata_level and not low <= metadata_level <= high:
        about = f"controllers of Kafka {release.name} know {METADATA_VERSION} {low} to {high}"
        raise ValueError(f"metadata_version={metadata_level}: {about}")
    if METADATA_VERSION in others:
        if metadata_level:
            raise ValueError(f"{METADATA_VERSION} is given twice: as an option and as a feature")
        metadata_level = _known_level(release, others.pop(METADATA_VERSION), unstable=unstable)
    metadata_level = metadata_level or max(release.metadata_versions)
    for name in others:
        if name not in ranges:
            known = ", ".join(sorted(ranges.keys() - {METADATA_VERSION}))
            raise ValueError(f"Unsupported feature: {name}. Supported features are: {known}")
    for name, level in others.items():
        low, high = ranges[name]
        if not low <= level <= high:
            raise ValueError(f"No feature:{name} with feature level {level}")
    for name, level in others.items():
        needed = release.features[name].dependencies.get(level, {}).get(METADATA_VERSION, 0)
        if metadata_level < needed:
            raise ValueError(
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
            )
    return InitialLevels(metadata_level, others.pop(KRAFT_VERSION, None), others)


def _known_level(release: Release, level: int, *, unstable: bool) -> int:
    ready, not_ready = release.metadata_versions, release.unstable_metadata_versions
    levels = [known for known in (*ready, *not_ready) if known >= METADATA_VERSION_MIN]
    if level not in levels:
        raise ValueError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {levels[0]} to {levels[-1]}."
        )
    if level in not_ready and not unstable:
        raise ValueError(f"{METADATA_VERSION} {not_ready[level].name} is not yet stable.")
    return level
