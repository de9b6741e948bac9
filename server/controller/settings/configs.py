"""Configs: effective values of a topic, and the records that change a resource's (ConfigurationControlManager)."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, TOPIC, ConfigKey
from mockraft.kafka_configs.config_values import ConfigSource, Operation, converted, invalid_config
from mockraft.releases import DEFAULT, Behaviour, release
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings import config_rules
from mockraft.server.controller.settings.policies import AlteredConfigs, ask
from mockraft.server.server_properties import property_of
from mockraft.wire import error_codes
from mockraft.wire.java_values import (
    in_hash_map_order,
    in_timeline_map_order,
    parse_integer,
    split,
    split_trimmed,
    trim,
    utf16_length,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.config_record import ConfigRecord

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.server.controller.context import ControllerContext
    from mockraft.server.controller.image import Image

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"

_VALUE_LENGTH_MAX: Final = 32_767


class ConfigOperation(NamedTuple):
    """One operation on one key, as requested: `operation` may be an unknown number."""

    operation: int
    value: str | None


class EffectiveConfig(NamedTuple):
    """A key's value and its source."""

    key: ConfigKey
    value: str | None
    source: ConfigSource


class _Layers(NamedTuple):
    """Sources of a topic's value if it has none of its own, in order, and the broker keys behind each topic key."""

    values: tuple[tuple[Mapping[str, str], ConfigSource], ...]
    synonyms: Mapping[str, Sequence[config_keys.Synonym]]


class BrokenOperationError(ApiError):
    """Return UNKNOWN_SERVER_ERROR for the whole request: Kafka fails on an unexpected null."""

    def __init__(self) -> None:
        super().__init__(error_codes.UNKNOWN_SERVER_ERROR)


def topic_config(controller: "ControllerContext", topic_name: str, key: str) -> str | None:
    """Return a topic's value of one key: its own, else the controller node's, the cluster's, the default."""
    own = controller.image.configs.get((TOPIC, topic_name), {})
    return _effective(config_keys.keys(TOPIC, controller.release)[key], own, _layers(controller)).value


def topic_config_in(image: "Image", topic_name: str, key: str) -> str | None:
    """Return a topic's value of one key in an image, of which no node's own configs are known."""
    own, newest = image.configs.get((TOPIC, topic_name), {}), release(DEFAULT)
    values = ((image.configs.get((BROKER, ""), {}), ConfigSource.DYNAMIC_DEFAULT_BROKER),)
    return _effective(
        config_keys.keys(TOPIC, newest)[key], own, _Layers(values, config_keys.topic_synonyms(newest))
    ).value


def effective_topic_configs(controller: "ControllerContext", own: Mapping[str, str]) -> list[EffectiveConfig]:
    """Return all values of a topic with these configs, sorted by name; internal keys only if it has them."""
    layers = _layers(controller)
    return [
        _effective(key, own, layers)
        for name, key in sorted(config_keys.keys(TOPIC, controller.release).items())
        if not key.internal or name in own
    ]


def alter_resource(
    controller: "ControllerContext",
    resource: tuple[int, str],
    changes: Mapping[str, ConfigOperation],
    node: config_rules.ConfigNode,
    *,
    is_new: bool = False,
    forwarded: bool = False,
) -> list[RecordAt]:
    """Return the ConfigRecords for changes of a resource, by type and name, without ClearElrRecords.

    A broker's values are written even if unchanged, so that it reloads them. `node` is the `validating_node` of the
    request. `is_new` skips the check that the resource exists. ApiError with the code of the first broken rule.
    """
    current = controller.image.configs.get(resource, {})
    wanted = [
        (key, _changed(controller, resource[0], key, change, current.get(key)))
        for key, change in in_hash_map_order(changes)
    ]
    return _checked_records(controller, resource, _Wanted(wanted, changes), node, is_new=is_new, forwarded=forwarded)


def replace_resource(
    controller: "ControllerContext",
    resource: tuple[int, str],
    values: Mapping[str, str | None],
    node: config_rules.ConfigNode,
    *,
    forwarded: bool = False,
) -> list[RecordAt]:
    """Return the ConfigRecords that leave one resource with exactly these values, as AlterConfigs does."""
    current = controller.image.configs.get(resource, {})
    wanted = in_hash_map_order(values)
    wanted += [(key, None) for key, _ in in_timeline_map_order(current) if key not in values]
    return _checked_records(controller, resource, _Wanted(wanted, values), node, is_new=False, forwarded=forwarded)


class _Wanted(NamedTuple):
    """New values by key, None for its default, in the order of their records; `named` are those that were asked for."""

    values: Iterable[tuple[str, str | None]]
    named: Container[str]


def _checked_records(
    controller: "ControllerContext",
    resource: tuple[int, str],
    wanted: _Wanted,
    node: config_rules.ConfigNode,
    *,
    is_new: bool,
    forwarded: bool,
) -> list[RecordAt]:
    resource_type, name = resource
    current = controller.image.configs.get(resource, {})
    records = [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in wanted.values
        if value != current.get(key) or resource_type == BROKER
    ]
    after = dict(current)
    for record in records:
        _check_record(controller, record, current.get(CORDONED_LOG_DIRS), forwarded)
        if record.value is None:
            after.pop(record.name, None)
        else:
            after[record.name] = record.value
    config_rules.validate(resource_type, name, after, current, node)
    if not is_new:
        _check_existence(controller, resource_type, name)
    # The policy does not see keys that AlterConfigs removes by omission (KAFKA-14195).
    altered = {record.name: record.value for record in records if record.name in wanted.named}
    ask(controller, controller.config.alter_config_policy, AlteredConfigs(resource_type, name, altered))
    return [RecordAt(record, 0) for record in records]


def clear_elr_records(controller: "ControllerContext", changed: Iterable[RecordAt]) -> list[RecordAt]:
    """Return a ClearElrRecord for each change of min.insync.replicas while ELR is enabled (KIP-966)."""
    if not controller.has(Behaviour.ELR):
        return []
    return [
        RecordAt(ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC else ""), 0)
        for record, _ in changed
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
    ]


def static_configs(config: "ControllerConfig") -> dict[str, str]:
    """Return a controller's options by their broker keys, as in server.properties; defaults left out."""
    node_id, listener = str(config.node_id), config.controller_listener_name
    found = {
        "process.roles": "controller",
        "node.id": node_id,
        "broker.id": node_id,
        "controller.listener.names": listener,
        "listeners": f"{listener}://{config.host}:{config.port}",
        "listener.security.protocol.map": f"{listener}:{config.security_protocol}",
        **config.server_properties,
    }
    if config.has_authorizer:
        found["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    if config.super_users:
        found["super.users"] = config.super_users
    if config.allow_everyone_if_no_acl_found:
        found["allow.everyone.if.no.acl.found"] = "true"
    if config.data_dir is not None:
        found["log.dirs"] = str(config.data_dir)
    keys = config_keys.keys(BROKER, release(config.release))
    for field in fields(config):
        name = property_of(field.name)
        value = getattr(config, field.name)
        if name not in keys or name in found or value in (None, ()):
            continue
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        text = text.lower() if isinstance(value, bool) else text
        if text != keys[name].default:
            found[name] = text
    return found


def validating_node(controller: "ControllerContext") -> config_rules.ConfigNode:
    """Return the controller's own configs, for all resources of a request."""
    return config_rules.ConfigNode(controller.release, controller.static_configs)


def _layers(controller: "ControllerContext") -> _Layers:
    """Return the sources of values; dynamic ones are those of the records, valid or not (KafkaConfigSchema)."""
    configs = controller.image.configs
    values = (
        (configs.get((BROKER, str(controller.config.node_id)), {}), ConfigSource.DYNAMIC_BROKER),
        (configs.get((BROKER, ""), {}), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (controller.static_configs, ConfigSource.STATIC_BROKER),
    )
    return _Layers(values, config_keys.topic_synonyms(controller.release))


def _effective(key: ConfigKey, own: Mapping[str, str], layers: _Layers) -> EffectiveConfig:
    if key.name in own:
        return EffectiveConfig(key, own[key.name], ConfigSource.TOPIC)
    synonyms = layers.synonyms.get(key.name, ())
    for values, source in layers.values:
        for synonym in synonyms:
            if synonym.name in values:
                return EffectiveConfig(key, converted(values[synonym.name], synonym.factor), source)
    return EffectiveConfig(key, key.default, ConfigSource.DEFAULT)


def _changed(
    controller: "ControllerContext", resource_type: int, key: str, change: ConfigOperation, current: str | None
) -> str | None:
    if change.operation == Operation.SET:
        return change.value
    if change.operation == Operation.DELETE:
        return None
    if change.operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise BrokenOperationError
    # The schema of Kafka's controller has topic and broker keys only: it does not know lists of other resources.
    schema = config_keys.keys(resource_type, controller.release) if resource_type in (TOPIC, BROKER) else {}
    definition = schema.get(key)
    is_list = definition is not None and definition.type == "LIST"
    if key == CORDONED_LOG_DIRS and controller.has(Behaviour.CORDONED_CONFIG_IS_A_STRING):
        is_list = False
    if definition is None or not is_list:
        operation = Operation(change.operation).name
        raise invalid_config(f"Can't {operation} to key {key} because its type is not LIST.")
    if change.value is None:
        raise BrokenOperationError
    base = definition.default if current is None else current
    parts = [part for part in (base or "").split(",") if part]
    for part in split(change.value):
        if change.operation == Operation.SUBTRACT and part in parts:
            parts.remove(part)
        elif change.operation == Operation.APPEND and part not in parts:
            parts.append(part)
    return ",".join(parts)


def _check_record(controller: "ControllerContext", record: ConfigRecord, cordoned: str | None, forwarded: bool) -> None:
    is_broker = record.resource_type == BROKER
    if is_broker and record.name == MIN_INSYNC_REPLICAS and controller.has(Behaviour.ELR):
        if record.resource_name:
            raise invalid_config("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
        if record.value is None:
            raise invalid_config("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
    if is_broker and record.name == CORDONED_LOG_DIRS and controller.has(Behaviour.CORDONING):
        if not controller.has(Behaviour.CORDONED_LOG_DIRS):
            raise invalid_config(
                "The cordoned.log.dirs configuration value cannot be set because it requires "
                "metadata.version >= 4.3-IV0"
            )
        may_grow = forwarded or controller.has(Behaviour.CORDONED_CONFIG_MAY_GROW_ANYWHERE)
        if not may_grow and not _is_subset(record.value, cordoned):
            raise invalid_config(
                "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current "
                "configuration value."
            )
    if record.value is not None and utf16_length(record.value) > _VALUE_LENGTH_MAX:
        raise invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{_VALUE_LENGTH_MAX} bytes."
        )


def _is_subset(value: str | None, current: str | None) -> bool:
    if value is None or not trim(value):
        return True
    allowed: Collection[str] = () if current is None else split_trimmed(current)
    wanted: Sequence[str] = split_trimmed(value)
    return all(each in allowed for each in wanted)


def _check_existence(controller: "ControllerContext", resource_type: int, name: str) -> None:
    if resource_type == TOPIC and name not in controller.image.topics.by_name:
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource_type == BROKER and name:
        node_id = parse_integer(name)
        cluster = controller.image.cluster
        is_static = not controller.has(Behaviour.DYNAMIC_VOTERS)
        has_controllers = is_static or controller.has(Behaviour.CONTROLLERS_ARE_NODES)
        controllers = {*cluster.controllers, *controller.config.static_voter_ids} if has_controllers else ()
        if node_id not in cluster.brokers and node_id not in controllers:
            raise ApiError(error_codes.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")
