"""Rules for topics with remote storage (LogConfig.validateTopicLogConfigValues)."""

from collections.abc import Mapping
from typing import Any, Final

from mockraft.kafka_configs.config_values import invalid_config, invalid_value
from mockraft.releases import Behaviour, Release

SYSTEM_ENABLE: Final = "remote.log.storage.system.enable"
ENABLE: Final = "remote.storage.enable"
_DELETE_ON_DISABLE: Final = "remote.log.delete.on.disable"
_COPY_DISABLE: Final = "remote.log.copy.disable"

_AS_RETENTION: Final = -2
"""The local retention that is the retention itself."""


def validate(values: Mapping[str, Any], *, was_enabled: bool, is_system_enabled: bool, of: Release) -> None:
    """Raise ApiError for a topic that may not have these parsed configs; `was_enabled` is its remote storage before.

    `is_system_enabled` is the controller's remote.log.storage.system.enable. Keys that a release lacks are not checked.
    """
    if not values[ENABLE]:
        if was_enabled and not values.get(_DELETE_ON_DISABLE, True):
            raise invalid_config(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote "
                "data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If "
                "you want to disable remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not is_system_enabled:
        raise invalid_config(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    _check_cleanup_policy(values["cleanup.policy"], of)
    for unit in ("bytes", "ms"):
        _check_local_retention(values, unit)
    for unit in ("bytes", "ms"):
        _check_copy_lag(values, unit)
    if values.get(_COPY_DISABLE):
        for unit in ("bytes", "ms"):
            _check_equal_retention(values, unit)


def _check_cleanup_policy(policy: list[str], of: Release) -> None:
    if of.has(Behaviour.CLEANUP_POLICY_MAY_BE_EMPTY):
        is_allowed, says = policy in ([], ["delete"]), "=delete or cleanup.policy being an empty list."
    elif of.has(Behaviour.REMOTE_STORAGE_NEEDS_DELETE_POLICY):
        is_allowed, says = policy == ["delete"], "=delete"
    elif "compact" in policy:
        raise invalid_config("Remote log storage is unsupported for the compacted topics")
    else:
        return
    if not is_allowed:
        raise invalid_config(f"Remote log storage only supports topics with cleanup.policy{says}")


def _check_local_retention(values: Mapping[str, Any], unit: str) -> None:
    key, local_key = f"retention.{unit}", f"local.retention.{unit}"
    retention, local = values[key], values[local_key]
    if retention < 0 or local == _AS_RETENTION:
        return
    if local == -1:
        raise invalid_value(local_key, local, f"Value must not be -1 as {key} value is set as {retention}.")
    if local > retention:
        raise invalid_value(local_key, local, f"Value must not be more than {key} property value: {retention}")


def _check_copy_lag(values: Mapping[str, Any], unit: str) -> None:
    key, local_key = f"remote.copy.lag.{unit}", f"local.retention.{unit}"
    lag, local = values.get(key, 0), values[local_key]
    effective = values[f"retention.{unit}"] if local == _AS_RETENTION else local
    if 0 <= effective < lag:
        raise invalid_value(key, lag, f"Value must not exceed {local_key} (effective value: {effective})")


def _check_equal_retention(values: Mapping[str, Any], unit: str) -> None:
    if values[f"local.retention.{unit}"] not in (_AS_RETENTION, values[f"retention.{unit}"]):
        raise invalid_config(
            f"When `{_COPY_DISABLE}` is set to true, the `local.retention.{unit}` and `retention.{unit}` must be set "
            "to the identical value because there will be no more logs copied to the remote storage."
        )
