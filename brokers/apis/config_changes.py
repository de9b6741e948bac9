"""Validation of config changes before they are forwarded to the controller (ConfigAdminManager).

Each resource and each key must appear once, without null values; a broker's configs can only be changed through that
broker and must be valid for it as a whole. Not modelled: the checks of single components of a real broker (keystores of
its listeners, thread pools that would halve or double).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from mockraft.brokers.apis.api import ApiError, RequestContext, invalid
from mockraft.brokers.config import static_configs
from mockraft.brokers.log_dirs.placement import CORDONED_LOG_DIRS, CordoningError, cordoned_paths
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_configs import config_keys, config_values, loggers
from mockraft.kafka_configs.config_keys import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from mockraft.kafka_configs.config_values import Operation
from mockraft.kafka_configs.dynamic_configs import is_by_listener_only, is_per_broker, key_of, usable
from mockraft.wire import error_codes
from mockraft.wire.java_values import parse_integer, split
from mockraft.wire.messages import alter_configs_request as legacy
from mockraft.wire.messages import incremental_alter_configs_request as incremental

Key: TypeAlias = tuple[int, str]
"""Resource type and name."""
Resource: TypeAlias = legacy.AlterConfigsResource | incremental.AlterConfigsResource


def refused_twice(resources: Iterable[Resource]) -> dict[Key, ApiError]:
    """Return an error for each resource that is named more than once."""
    counted = Counter((each.resource_type, each.resource_name) for each in resources)
    return {key: invalid("Each resource must appear at most once.") for key, count in counted.items() if count > 1}


def check(resource: Resource, ctx: RequestContext, *, validate_only: bool) -> None:
    """Validate one resource of AlterConfigs or IncrementalAlterConfigs, and change log levels. Raises ApiError."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise invalid("Error due to duplicate config keys")
    nulls = [c.name for c in resource.configs if c.value is None and not _deletes(c)]
    if nulls:
        raise invalid(f"Null value not supported for : {', '.join(nulls)}")
    kind = resource.resource_type
    if kind == BROKER:
        name, broker_id = resource.resource_name, ctx.broker.config.broker_id
        if name and _named_id(name) != broker_id:
            raise invalid(f"Unexpected broker id, expected {broker_id}, but received {name}")
        values = (
            _changed(resource, ctx)
            if isinstance(resource, incremental.AlterConfigsResource)
            else {c.name: c.value or "" for c in resource.configs}
        )
        _check_broker_values(values, ctx, per_broker=bool(name))
    elif kind == BROKER_LOGGER and isinstance(resource, incremental.AlterConfigsResource):
        _alter_loggers(resource, ctx, validate_only=validate_only)
    elif kind not in (TOPIC, CLIENT_METRICS, GROUP):
        raise invalid(f"Unknown resource type {kind}")


def _deletes(config: legacy.AlterableConfig | incremental.AlterableConfig) -> bool:
    return isinstance(config, incremental.AlterableConfig) and config.config_operation == Operation.DELETE


def _named_id(name: str) -> int:
    named_id = parse_integer(name)
    if named_id is None:
        raise invalid(f"Node id must be an integer, but it is: {name}")
    return named_id


def _alter_loggers(resource: incremental.AlterConfigsResource, ctx: RequestContext, *, validate_only: bool) -> None:
    """Change log levels as RuntimeLoggerManager.applyChangesForResource."""
    ctx.check(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
    broker_id = ctx.broker.config.broker_id
    named_id = _named_id(resource.resource_name)
    if named_id != broker_id:
        raise invalid(f"Unexpected node id. Expected {broker_id}, but received {named_id}")
    loggers.alter(resource.configs, validate_only=validate_only)


def _changed(resource: incremental.AlterConfigsResource, ctx: RequestContext) -> dict[str, str]:
    """Return the resource's dynamic values after the operations (ConfigAdminManager.prepareIncrementalConfigs)."""
    values = usable(ctx.image.config(BROKER, resource.resource_name), per_broker=bool(resource.resource_name))
    for config in resource.configs:
        if config.config_operation not in list(Operation):
            raise invalid(f"Unknown operations type {config.config_operation}")
    for config in resource.configs:
        operation = Operation(config.config_operation)
        if operation is Operation.SET:
            values[config.name] = config.value or ""
        elif operation is Operation.DELETE:
            values.pop(config.name, None)
        else:
            values[config.name] = _listed(config.name, config.value or "", operation, values)
    return values


def _listed(name: str, value: str, operation: Operation, values: Mapping[str, str]) -> str:
    key = config_keys.keys(BROKER).get(name)
    if key is None:
        raise ApiError(error_codes.INVALID_CONFIG, f"Unknown config name: {name}")
    if key.type != "LIST":
        message = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
        raise ApiError(error_codes.INVALID_CONFIG, message)
    before = values.get(name, key.default) or ""
    if operation is Operation.APPEND:
        old = split(before) if before else []
        return ",".join([*old, *(each for each in split(value) if each not in old)])
    old = split(before)
    for each in split(value):
        if each in old:
            old.remove(each)
    return ",".join(old)


def _check_broker_values(values: Mapping[str, str], ctx: RequestContext, *, per_broker: bool) -> None:
    """Check which keys may change, each value, and the resulting config as a whole (DynamicBrokerConfig.validate)."""
    keys = config_keys.keys(BROKER)
    fixed = [name for name in values if name in keys and keys[name].update_mode is None]
    _refuse(fixed, "Cannot update these configs dynamically")
    by_listener = [name for name in values if is_by_listener_only(name)]
    message = "These security configs can be dynamically updated only per-listener using the listener prefix"
    _refuse(by_listener, message)
    for name, value in values.items():
        if (key := key_of(name)) is not None:
            try:
                config_values.check(key, value)
            except ApiError as refusal:
                raise invalid(refusal.message or "") from refusal
    if not per_broker:
        own = [name for name in values if is_per_broker(name)]
        _refuse(own, "Cannot update these configs at default cluster level, broker id must be specified")
    static = static_configs(ctx.broker.config)
    _check_cordoned(values.get(CORDONED_LOG_DIRS, static.get(CORDONED_LOG_DIRS, "")), ctx)


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise invalid(f"{why}: [{', '.join(names)}]")


def _check_cordoned(value: str, ctx: RequestContext) -> None:
    """Check `cordoned.log.dirs` (KafkaConfig.validateCordonedLogDirs, KIP-1066)."""
    try:
        cordoned_paths(value, ctx.broker.config.log_dir_paths)
    except CordoningError as error:
        raise invalid(f"requirement failed: {error}") from error
