"""Validation of a resource's configs as a whole (ControllerConfigurationValidator).

Broker configs are checked by the broker that forwards them; here only the broker's name is.
"""

import re
from collections.abc import Container, Mapping
from typing import Final

from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, CLIENT_METRICS, DEFAULT_RELEASE, GROUP, TOPIC
from mockraft.kafka_configs.config_values import invalid_config, parse_all
from mockraft.releases import Release
from mockraft.server.controller.result import ApiError, invalid_request
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_hash_map_order, parse_integer
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
)
"""In the order in which GroupConfig.validateValues compares them with the broker's lowest and highest values."""


def validate(resource_type: int, name: str, configs: Mapping[str, str], of: Release = DEFAULT_RELEASE) -> None:
    """Raise ApiError, with Kafka's code and message, for a resource that may not have these configs."""
    if resource_type == TOPIC:
        validate_topic(name, configs, of)
    elif resource_type == BROKER:
        validate_broker_name(name)
    elif resource_type == CLIENT_METRICS:
        validate_client_metrics(name, configs, of)
    elif resource_type == GROUP:
        validate_group(name, configs, of)


def validate_topic(name: str, configs: Mapping[str, str], of: Release = DEFAULT_RELEASE) -> None:
    """Validate as LogConfig.validate: names, values in the order of their definition, then dependencies."""
    if not name:
        raise invalid_request("Default topic resources are not allowed.")
    invalid = reason_invalid(name)
    if invalid is not None:
        raise ApiError(error_codes.INVALID_TOPIC_EXCEPTION, invalid)
    for unknown in _unknown(config_keys.keys(TOPIC, of), configs):
        raise invalid_config(f"Unknown topic config name: {unknown}")
    values = parse_all(TOPIC, configs, of)
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    if values["remote.storage.enable"]:
        raise invalid_config(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
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


def validate_client_metrics(name: str, configs: Mapping[str, str], of: Release = DEFAULT_RELEASE) -> None:
    """Validate as ClientMetricsConfigs.validate: names, push interval, match patterns (KIP-714)."""
    if not name:
        raise invalid_request("Subscription name can't be empty")
    for unknown in _unknown(config_keys.keys(CLIENT_METRICS, of), configs):
        raise invalid_request(f"Unknown client metrics configuration: {unknown}")
    values = parse_all(CLIENT_METRICS, configs, of)
    interval_ms = values["interval.ms"]
    if interval_ms not in _INTERVAL_MS_RANGE:
        raise ApiError(
            error_codes.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    for pattern in values["match"]:
        if not _is_client_match(pattern):
            raise invalid_config(f"Illegal client matching pattern: {pattern}")


def validate_group(name: str, configs: Mapping[str, str], of: Release = DEFAULT_RELEASE) -> None:
    """Validate as GroupConfig.validate: names, values, the broker's bounds, and sessions longer than heartbeats."""
    if not name:
        raise invalid_request("Default group resources are not allowed.")
    for unknown in _unknown(config_keys.keys(GROUP, of), configs):
        raise invalid_config(f"Unknown group config name: {unknown}")
    values = parse_all(GROUP, configs, of)
    for key in _BOUNDED_GROUP_KEYS:
        if key in values:
            _check_bounds(key, values[key], of)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in values and values[session] <= values[heartbeat]:
            raise invalid_config(f"{session} must be greater than {heartbeat}")


def _unknown(keys: Container[str], configs: Mapping[str, str]) -> list[str]:
    return [name for name, _ in in_hash_map_order(configs) if name not in keys]


def _check_bounds(key: str, value: int, of: Release) -> None:
    kind, _, rest = key.partition(".")
    bounds = config_keys.keys(BROKER, of)
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    if low in bounds and value < int(bounds[low].default or 0):
        raise invalid_config(f"{key} must be greater than or equal to {low}")
    if high in bounds and value > int(bounds[high].default or 0):
        raise invalid_config(f"{key} must be less than or equal to {high}")


def _is_client_match(pattern: str) -> bool:
    parts = pattern.rstrip("=").split("=")
    if len(parts) != 2 or parts[0].strip() not in _CLIENT_MATCH_PARAMETERS:
        return False
    try:
        re.compile(parts[1].strip())
    except (re.error, RecursionError, OverflowError):
        return False
    return True
