"""Validation of a resource's configs as a whole (ControllerConfigurationValidator).

Broker configs are checked by the broker that forwards them; here only the broker's name is.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from mockraft.kafka_api.linear_patterns import Checks, PatternError
from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, CLIENT_METRICS, DEFAULT_RELEASE, GROUP, TOPIC
from mockraft.kafka_configs.config_values import converted, invalid_config, invalid_value, parse_all
from mockraft.kafka_configs.described_configs import broker_key
from mockraft.releases import Behaviour, Release
from mockraft.server.controller.result import ApiError, invalid_request
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_hash_map_order, parse_integer, split_trimmed
from mockraft.wire.topic_names import reason_invalid

_CLIENT_MATCH_PARAMETERS: Final = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)
_INTERVAL_MS_RANGE: Final = range(100, 3_600_001)
_GROUP_ASSIGNOR: Final = "streams.assignor.name"
_GROUP_TAGS: Final = "streams.rack.aware.assignment.tags"
_DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"

_BOUNDED_GROUP_KEYS: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
    "streams.task.offset.interval.ms",
    "streams.num.warmup.replicas",
)
"""In the order in which GroupConfig.validateValues compares them with the broker's lowest and highest values."""

_BOUNDED_IF_SET: Final = frozenset(f"{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams"))
"""Keys that are only compared where the group itself has a value (KAFKA-20337)."""


@dataclass(frozen=True)
class ConfigNode:
    """The controller that validates: its release and its static configs.

    Dynamic configs do not count: Kafka's validator has a KafkaConfig of its own (SharedServer.brokerConfig), which they
    never reach. Made once for each request: what follows from it is worked out once for all resources.
    """

    of: Release = DEFAULT_RELEASE
    static: Mapping[str, str] = field(default_factory=dict)
    patterns: Checks = field(default_factory=Checks)

    @cached_property
    def topic_defaults(self) -> Mapping[str, Any]:
        """All values of a topic without configs, parsed (extractLogConfigMap)."""
        found = {}
        for name, synonyms in config_keys.topic_synonyms(self.of).items():
            strongest = next((each for each in synonyms if each.name in self.static), None)
            if strongest is not None:
                found[name] = converted(self.static[strongest.name], strongest.factor)
        return parse_all(TOPIC, found, self.of)


ANY_NODE: Final = ConfigNode()
"""A controller of the default release without configs."""


def validate(
    resource_type: int, name: str, configs: Mapping[str, str], before: Mapping[str, str], node: ConfigNode
) -> None:
    """Raise ApiError, with Kafka's code and message, for a resource that may not change from `before` to `configs`."""
    if resource_type == TOPIC:
        validate_topic(name, configs, before, node)
    elif resource_type == BROKER:
        validate_broker_name(name)
    elif resource_type == CLIENT_METRICS:
        validate_client_metrics(name, configs, node)
    elif resource_type == GROUP:
        validate_group(name, configs, node)


def validate_topic(
    name: str, configs: Mapping[str, str], before: Mapping[str, str] | None = None, node: ConfigNode = ANY_NODE
) -> None:
    """Validate as LogConfig.validate: names, values in the order of their definition, then dependencies.

    Values that the topic does not have are the controller's.
    """
    of = node.of
    if not name:
        raise invalid_request("Default topic resources are not allowed.")
    invalid = reason_invalid(name)
    if invalid is not None:
        raise ApiError(error_codes.INVALID_TOPIC_EXCEPTION, invalid)
    for unknown in _unknown(config_keys.keys(TOPIC, of), configs):
        raise invalid_config(f"Unknown topic config name: {unknown}")
    values = parse_all(TOPIC, configs, of, node.topic_defaults)
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    validate_remote_storage(
        values,
        was_enabled=(before or {}).get(ENABLE, "").lower() == "true",
        is_system_enabled=node.static.get(SYSTEM_ENABLE, "").lower() == "true",
        of=of,
    )


def validate_broker_name(name: str) -> None:
    """Validate a broker's name: its id, or empty for all brokers."""
    if not name:
        return
    broker_id = parse_integer(name)
    if broker_id is None:
        raise invalid_request("Unable to parse broker name as a base 10 number.")
    if broker_id < 0:
        raise invalid_request("Invalid negative broker ID.")


def validate_client_metrics(name: str, configs: Mapping[str, str], node: ConfigNode) -> None:
    """Validate as ClientMetricsConfigs.validate: names, push interval, match patterns (KIP-714)."""
    of = node.of
    if not name:
        raise invalid_request("Subscription name can't be empty")
    for unknown in _unknown(config_keys.keys(CLIENT_METRICS, of), configs):
        raise invalid_request(f"Unknown client metrics configuration: {unknown}")
    if not of.has(Behaviour.CLIENT_METRICS_ARE_PARSED):
        _parse_client_metrics(configs)
    values = parse_all(CLIENT_METRICS, configs, of)
    interval_ms = values["interval.ms"]
    if interval_ms not in _INTERVAL_MS_RANGE:
        raise ApiError(
            error_codes.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    for pattern in values["match"]:
        if not _is_client_match(pattern, node.patterns):
            raise invalid_config(f"Illegal client matching pattern: {pattern}")


def _parse_client_metrics(configs: Mapping[str, str]) -> None:
    """Refuse what Kafka below 4.0 cannot parse: spaces around a number, an empty pattern."""
    interval_ms = configs.get("interval.ms")
    if interval_ms is not None and parse_integer(interval_ms) is None:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    pattern = configs.get("match")
    if pattern is not None and not pattern.strip():
        raise invalid_config(f"Illegal client matching pattern: {pattern}")


def validate_group(name: str, configs: Mapping[str, str], node: ConfigNode) -> None:
    """Validate as GroupConfig.validate: names, values, the node's bounds, and sessions longer than heartbeats.

    Values that the group does not have are the controller's (GroupCoordinatorConfig.extractGroupConfigMap).
    """
    of = node.of
    if not name:
        raise invalid_request("Default group resources are not allowed.")
    for unknown in _unknown(config_keys.keys(GROUP, of), configs):
        raise invalid_config(f"Unknown group config name: {unknown}")
    tags = split_trimmed(configs.get(_GROUP_TAGS, ""))
    if len(set(tags)) < len(tags):
        raise invalid_config(f"{_GROUP_TAGS} must not contain duplicate tag keys.")
    defaults = {key: node.static[broker_key(key)] for key in _BOUNDED_GROUP_KEYS if broker_key(key) in node.static}
    values = parse_all(GROUP, {**defaults, **configs}, of)
    for key in _BOUNDED_GROUP_KEYS:
        if key in values and (key in configs or key not in _BOUNDED_IF_SET):
            _check_bounds(key, values[key], node)
    _check_assignor(values.get(_GROUP_ASSIGNOR), node)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in values and values[session] <= values[heartbeat]:
            raise invalid_config(f"{session} must be greater than {heartbeat}")
    if values.get(_DEAD_LETTER_TOPIC, "").startswith("__"):
        raise invalid_config(f"{_DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'")


def _unknown(keys: Container[str], configs: Mapping[str, str]) -> list[str]:
    return [name for name, _ in in_hash_map_order(configs) if name not in keys]


def _check_bounds(key: str, value: int, node: ConfigNode) -> None:
    kind, _, rest = key.partition(".")
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    least, most = _broker_value(low, node), _broker_value(high, node)
    is_too_low = least is not None and value < int(least)
    if not is_too_low and (most is None or value <= int(most)):
        return
    if node.of.has(Behaviour.GROUP_BOUNDS_ARE_NUMBERS):
        if least is not None and most is not None:
            raise invalid_config(f"{key} must be in the range {least} to {most} inclusive.")
        low, high = str(least), str(most)
    wanted = f"greater than or equal to {low}" if is_too_low else f"less than or equal to {high}"
    raise invalid_config(f"{key} must be {wanted}")


def _broker_value(name: str, node: ConfigNode) -> str | None:
    key = config_keys.keys(BROKER, node.of).get(name)
    return node.static.get(name, None if key is None else key.default)


def _check_assignor(name: str | None, node: ConfigNode) -> None:
    if name is None:
        return
    registered = split_trimmed(_broker_value("group.streams.assignors", node) or "")
    if name not in registered:
        known = ", ".join(registered)
        raise invalid_config(
            f"{_GROUP_ASSIGNOR} '{name}' is not a registered task assignor. Registered assignors are: [{known}]."
        )


def _is_client_match(pattern: str, patterns: Checks) -> bool:
    parts = pattern.rstrip("=").split("=")
    if len(parts) != 2 or parts[0].strip() not in _CLIENT_MATCH_PARAMETERS:
        return False
    try:
        patterns.check(parts[1].strip())
    except PatternError:
        return False
    return True


SYSTEM_ENABLE: Final = "remote.log.storage.system.enable"
ENABLE: Final = "remote.storage.enable"
_DELETE_ON_DISABLE: Final = "remote.log.delete.on.disable"
_COPY_DISABLE: Final = "remote.log.copy.disable"

_AS_RETENTION: Final = -2
"""The local retention that is the retention itself."""


def validate_remote_storage(
    values: Mapping[str, Any], *, was_enabled: bool, is_system_enabled: bool, of: Release
) -> None:
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
