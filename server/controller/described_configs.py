"""What a resource's configs are in effect and why, as a controller tells it (ConfigHelper, DynamicBrokerConfig).

A value's synonyms are where it could come from, the strongest first: the resource's own, those of this node, of the
cluster, of this node's options, the default. Not done: the documentation of keys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mockraft.server.controller import config_keys
from mockraft.server.controller.config_keys import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigKey
from mockraft.server.controller.config_values import parse
from mockraft.server.controller.configs import CORDONED_LOG_DIRS, ConfigSource, converted
from mockraft.server.controller.java_values import double_text
from mockraft.server.controller.result import ApiError
from mockraft.server.rules import Rule

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

_TYPES: Final = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
_OWN_SOURCES: Final = {
    TOPIC: ConfigSource.TOPIC,
    CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
    GROUP: ConfigSource.GROUP,
}
_SAME_CONFIG: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_LISTENER_KEYS_OF_THE_CLUSTER: Final = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_ONLY_BY_LISTENER: Final = re.compile(
    r"ssl\.(keystore\.(type|location|password|certificate\.chain|key)|key\.password"
    r"|truststore\.(type|location|password|certificates))"
)
"""SslConfigs.RECONFIGURABLE_CONFIGS."""


class SynonymValue(NamedTuple):
    """One place that has a value; None when it is not to be shown."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """One key; `type` is the number of its type in DescribeConfigs responses, 0 for a key that nobody knows."""

    name: str
    value: str | None
    type: int
    is_sensitive: bool
    is_read_only: bool
    synonyms: Sequence[SynonymValue]

    @property
    def source(self) -> ConfigSource:
        """Where the value comes from."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


_Layers = Sequence[tuple[Mapping[str, str], ConfigSource]]


def describe(controller: "Controller", resource_type: int, name: str) -> list[DescribedConfig]:
    """All configs of a topic, a group or a client metrics subscription, sorted by name."""
    own = controller.image.configs.get((resource_type, name), {})
    layers = _layers(controller)
    merged = _merged(layers)
    return [
        _described(resource_type, key, own, layers, merged)
        for key in _sorted(config_keys.keys(resource_type))
        if not key.internal or key.name in own
    ]


def describe_node(controller: "Controller") -> list[DescribedConfig]:
    """All configs of this controller's node, sorted by name; also what is set and no key."""
    layers = _layers(controller)
    merged = _merged(layers)
    keys = config_keys.keys(BROKER)
    names = {name for name, key in keys.items() if not key.internal}
    names |= {name for values, source in layers if source != ConfigSource.DEFAULT for name in values}
    found = [_described_broker(name, merged.get(name), layers) for name in sorted(names)]
    if Rule.CORDONED_CONFIG_IS_A_STRING in controller.config.rules:
        is_string = _TYPES.index("STRING") + 1
        found = [key._replace(type=is_string) if key.name == CORDONED_LOG_DIRS else key for key in found]
    return found


def describe_cluster_default(controller: "Controller") -> list[DescribedConfig]:
    """The configs that are set for all brokers, sorted by name, those left out that cannot be."""
    layers = [layer for layer in _layers(controller) if layer[1] == ConfigSource.DYNAMIC_DEFAULT_BROKER]
    return [_described_broker(name, value, layers, parsed=False) for name, value in sorted(layers[0][0].items())]


def _described(
    resource_type: int, key: ConfigKey, own: Mapping[str, str], layers: _Layers, merged: Mapping[str, str]
) -> DescribedConfig:
    value = own.get(key.name)
    if value is None:
        value = _inherited(resource_type, key, merged)
    shown = None if key.is_sensitive else _shown(key, value)
    synonyms = _synonyms_of(resource_type, key, layers)
    if key.name in own:
        synonyms.insert(0, SynonymValue(key.name, shown, _OWN_SOURCES[resource_type]))
    return DescribedConfig(key.name, shown, _type_number(key), key.is_sensitive, False, synonyms)


def _inherited(resource_type: int, key: ConfigKey, merged: Mapping[str, str]) -> str | None:
    if resource_type == TOPIC:
        for synonym in config_keys.topic_synonyms().get(key.name, ()):
            if synonym.name in merged:
                return converted(merged[synonym.name], synonym.factor)
    return merged.get(f"group.{key.name}", key.default) if resource_type == GROUP else key.default


def _synonyms_of(resource_type: int, key: ConfigKey, layers: _Layers) -> list[SynonymValue]:
    if resource_type == TOPIC:
        behind = config_keys.topic_synonyms().get(key.name)
        return list(_synonyms(behind[0].name, layers, key.is_sensitive)) if behind else []
    if resource_type == GROUP:
        if f"group.{key.name}" in config_keys.keys(BROKER):
            return list(_synonyms(f"group.{key.name}", layers, key.is_sensitive))
        return [] if key.default is None else [SynonymValue(key.name, key.default, ConfigSource.DEFAULT)]
    return []


def _described_broker(name: str, value: str | None, layers: _Layers, *, parsed: bool = True) -> DescribedConfig:
    keys = config_keys.keys(BROKER)
    key = next((keys[each] for each in (name, *_same(name)) if each in keys), None)
    is_sensitive = key is None or key.is_sensitive
    if key is None or is_sensitive:
        shown = None
    else:
        shown = _shown(key, value) if parsed and name in keys and not key.internal else value
    is_read_only = name not in keys or keys[name].update_mode is None
    synonyms = list(_synonyms(name, layers, is_sensitive))
    return DescribedConfig(name, shown, _type_number(key), is_sensitive, is_read_only, synonyms)


def _synonyms(name: str, layers: _Layers, is_sensitive: bool) -> Iterator[SynonymValue]:
    """From the first that has the very name on (ConfigHelper.configSynonyms)."""
    is_met = False
    for values, source in layers:
        for synonym in _same(name):
            is_met = is_met or (synonym == name and synonym in values)
            if is_met and synonym in values:
                yield SynonymValue(synonym, None if is_sensitive else values[synonym], source)


def _same(name: str) -> tuple[str, ...]:
    """The broker keys that say the same, the strongest first (DynamicBrokerConfig.brokerConfigSynonyms)."""
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    for names in _SAME_CONFIG:
        if name in names:
            return names
    by_listener = _LISTENER_KEY.fullmatch(name)
    return (name, by_listener[1]) if by_listener else (name,)


def _layers(controller: "Controller") -> _Layers:
    configs = controller.image.configs
    own = configs.get((BROKER, str(controller.config.node_id)), {})
    defaults = {key.name: key.default for key in config_keys.keys(BROKER).values() if key.default is not None}
    return (
        (_usable(own, per_broker=True), ConfigSource.DYNAMIC_BROKER),
        (_usable(configs.get((BROKER, ""), {}), per_broker=False), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (controller.static_configs, ConfigSource.STATIC_BROKER),
        (defaults, ConfigSource.DEFAULT),
    )


def _usable(values: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """What a node takes of values that were set for it (DynamicBrokerConfig.fromPersistentProps)."""
    return {name: value for name, value in values.items() if _is_usable(name, value, per_broker)}


def _is_usable(name: str, value: str, per_broker: bool) -> bool:
    by_listener = _LISTENER_KEY.fullmatch(name)
    if by_listener and not per_broker and by_listener[1] not in _LISTENER_KEYS_OF_THE_CLUSTER:
        return False
    key = config_keys.keys(BROKER).get(by_listener[1] if by_listener else name)
    if key is None:
        return True
    if key.update_mode is None or (not by_listener and _ONLY_BY_LISTENER.fullmatch(name)):
        return False
    if not per_broker and not by_listener and key.update_mode == "per-broker":
        return False
    try:
        parse(key, value)
    except ApiError:
        return False
    return True


def _merged(layers: _Layers) -> dict[str, str]:
    merged: dict[str, str] = {}
    for values, _ in reversed(layers):
        merged.update(values)
    return merged


def _shown(key: ConfigKey, text: str | None) -> str | None:
    """The value as Kafka prints it after it was parsed (ConfigDef.convertToString)."""
    value: Any = parse(key, text)
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    return ",".join(value) if isinstance(value, list) else str(value)


def _type_number(key: ConfigKey | None) -> int:
    return 0 if key is None else _TYPES.index(key.type) + 1


def _sorted(keys: Mapping[str, ConfigKey]) -> list[ConfigKey]:
    return [keys[name] for name in sorted(keys)]
