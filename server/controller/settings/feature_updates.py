"""Changes of finalized features, and the records they require (FeatureControlManager, KIP-584, KIP-778).

Also the preconditions of ELR (ConfigurationControlManager.updateFeatures, KIP-966).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.kafka_configs.config_keys import BROKER
from mockraft.releases import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, Behaviour, Release
from mockraft.server.controller.image import VersionRange
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.settings.configs import MIN_INSYNC_REPLICAS
from mockraft.server.controller.settings.features import STREAMS_VERSION
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_hash_map_order, in_timeline_map_order
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.no_op_record import NoOpRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

_DISABLED: Final = VersionRange(0, 0)
_LEVEL_MAX: Final = (1 << 15) - 1
_LOWEST_OF_KRAFT: Final = 4
"""The lowest metadata.version that a controller of Kafka below 4.0 takes; newer ones do not know it."""


class UpgradeType(IntEnum):
    """Allowed direction of an update (FeatureUpdate.UpgradeType); any other number is unknown."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """Requested level; `upgrade_type` may be an unknown number."""

    level: int
    upgrade_type: int


def update_features(controller: "ControllerContext", updates: Mapping[str, FeatureUpdate]) -> ControllerResult[int]:
    """Return the records for all updates by feature; ApiError with the first reason why one of them fails.

    The response is the new kraft.version level: it needs control records of the log, not these.
    """
    finalized = controller.image.features | {METADATA_VERSION: controller.image.metadata_version}
    proposed = finalized | {name: update.level for name, update in updates.items()}
    kraft_version = controller.log.kraft_version
    records: list[RecordAt] = []
    for name, (level, upgrade_type) in in_hash_map_order(updates):
        keeps_kraft_version = name == KRAFT_VERSION and not controller.has(Behaviour.KRAFT_VERSION_STAYS)
        current = kraft_version if name == KRAFT_VERSION else finalized.get(name, 0)
        if keeps_kraft_version and level <= current and not _reason_not_supported(controller, name, level):
            # To Kafka below 4.1 it is also a feature like any other, while the log's control records have its level.
            is_read = not controller.has(Behaviour.KRAFT_VERSION_RECORDS_ARE_NOT_READ)
            _check(controller, name, level, finalized.get(name, 0) if is_read else 0, upgrade_type)
            records.append(RecordAt(FeatureLevelRecord(name=name, feature_level=level), 0))
            continue
        _check(controller, name, level, current, upgrade_type)
        if name == METADATA_VERSION:
            _check_metadata_version(controller.release, level, current, upgrade_type)
        elif name == KRAFT_VERSION:
            if level < current:
                raise _invalid(name, level, "Can't downgrade the version of this feature.")
            if upgrade_type == UpgradeType.UPGRADE:
                kraft_version = level
                records.append(RecordAt(NoOpRecord(), 0))
            continue
        else:
            _check_dependencies(controller.release, name, level, proposed)
        records.append(RecordAt(FeatureLevelRecord(name=name, feature_level=level), 0))
    if ELR_VERSION in updates and updates[ELR_VERSION].level > 0:
        records = _before_elr(controller) + records
    changed = ", ".join(f"{name} {update.level}" for name, update in updates.items())
    return ControllerResult(records, kraft_version, f"features updated: {changed}" if records else "")


def _check(controller: "ControllerContext", name: str, level: int, current: int, upgrade_type: int) -> None:
    if upgrade_type not in tuple(UpgradeType):
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(controller, name, level)
    if reason is not None:
        raise _invalid(name, level, reason)
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")


def _reason_not_supported(controller: "ControllerContext", name: str, level: int) -> str | None:
    """Return the first node that does not support the level: this controller, a broker, or another controller.

    A voter of a static quorum that never registered may not either.
    """
    own_id = controller.config.node_id
    low, high = controller.supported_features().get(name, (0, 0))
    ranges = [(f"Local controller {own_id}", VersionRange(low, high))]
    cluster = controller.image.cluster
    for broker_id, broker in in_timeline_map_order(cluster.brokers):
        ranges.append((f"Broker {broker_id}", broker.features.get(name, _DISABLED)))
    if controller.has(Behaviour.CONTROLLER_REGISTRATION):
        for controller_id, registered in in_timeline_map_order(cluster.controllers):
            if controller_id != own_id:
                ranges.append((f"Controller {controller_id}", registered.features.get(name, _DISABLED)))
    for who, supported in ranges:
        if not supported.min_version <= level <= supported.max_version:
            return f"{who} {_how_far(supported)}"
    if controller.has(Behaviour.CONTROLLER_REGISTRATION):
        for voter_id in controller.config.static_voter_ids:
            if voter_id != own_id and voter_id not in cluster.controllers:
                return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _how_far(supported: VersionRange) -> str:
    low, high = supported.min_version, supported.max_version
    if high == 0:
        return "does not support this feature."
    return f"only supports versions {low}" + ("" if low == high else "+" if high == _LEVEL_MAX else f"-{high}")


def _check_metadata_version(release: Release, level: int, current: int, upgrade_type: int) -> None:
    if level < _LOWEST_OF_KRAFT:
        lowest = release.metadata_versions[_LOWEST_OF_KRAFT].name
        reason = f"Unable to set a metadata.version less than {lowest}"
        raise ApiError(error_codes.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. {reason}")
    crossed = [version for version in release.metadata_versions.values() if level < version.level <= current]
    if not any(version.metadata_changed for version in crossed):
        return
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    else:
        reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    names_both = release.has(Behaviour.DOWNGRADE_NAMES_BOTH_LEVELS)
    what = f"Unsupported metadata.version downgrade from {current} to" if names_both else "Invalid metadata.version"
    raise ApiError(error_codes.INVALID_UPDATE_VERSION, f"{what} {level}. {reason}")


def _check_dependencies(release: Release, name: str, level: int, proposed: Mapping[str, int]) -> None:
    feature = release.features.get(name)
    if feature is None and not release.has(Behaviour.FEATURES_FAIL_TOGETHER):
        return
    if (name, level) == (STREAMS_VERSION, 0) and release.has(Behaviour.STREAMS_VERSION_IS_KNOWN):
        return
    if feature is None:
        raise _invalid(name, level, f"Feature {name} not found.")
    lowest_version = next(iter(release.metadata_versions.values()))
    if level >= 1 and proposed[METADATA_VERSION] < lowest_version.level:
        needed = f"metadata.version={lowest_version.level} ({lowest_version.name})"
        raise _invalid(name, level, f"{name} could not be set to {level} because it depends on {needed}")
    for needed, lowest in feature.dependencies.get(level, {}).items():
        if proposed.get(needed, -1) < lowest:
            raise _invalid(
                name, level, f"{name} could not be set to {level} because it depends on {needed} level {lowest}"
            )


def _before_elr(controller: "ControllerContext") -> list[RecordAt]:
    """Generate the records ELR needs: one min.insync.replicas for the cluster, and none for single brokers."""
    configs = controller.image.configs
    records = []
    if MIN_INSYNC_REPLICAS not in configs.get((BROKER, ""), {}):
        replicas = str(controller.config.min_insync_replicas)
        records.append(ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_INSYNC_REPLICAS, value=replicas))
    own = {int(name): values for (kind, name), values in configs.items() if kind == BROKER and name}
    for broker_id, values in in_timeline_map_order(own):
        if MIN_INSYNC_REPLICAS in values:
            records.append(
                ConfigRecord(resource_type=BROKER, resource_name=str(broker_id), name=MIN_INSYNC_REPLICAS, value=None)
            )
    return [RecordAt(record, 0) for record in records]


def _invalid(name: str, level: int, reason: str) -> ApiError:
    message = f"Invalid update version {level} for feature {name}. {reason}"
    return ApiError(error_codes.INVALID_UPDATE_VERSION, message)
