"""Effective configs of a resource and their sources, as a node describes them (ConfigHelper, DynamicBrokerConfig).

A value's synonyms are its possible sources, the strongest first: the resource's own, those of this node, of the
cluster, of this node's options, the default. Not done: the documentation of keys.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, CLIENT_METRICS, DEFAULT_RELEASE, GROUP, TOPIC, ConfigKey
from mockraft.kafka_configs.config_values import ConfigSource, converted, parse
from mockraft.kafka_configs.dynamic_configs import LISTENER_KEY, usable
from mockraft.releases import Behaviour, Release
from mockraft.wire.java_values import double_text

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

_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Keys that a listener has for each mechanism, whose name stands before them."""


class SynonymValue(NamedTuple):
    """One source of a value; the value is None if it must not be shown."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """One key; `type` is the number of its type in DescribeConfigs responses, 0 for an unknown key."""

    name: str
    value: str | None
    type: int
    is_sensitive: bool
    is_read_only: bool
    synonyms: Sequence[SynonymValue]

    @property
    def source(self) -> ConfigSource:
        """The source of the effective value."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


class Layers(NamedTuple):
    """Broker values by key and their sources, the strongest first, in a node of a release."""

    values: Sequence[tuple[Mapping[str, str], ConfigSource]]
    of: Release = DEFAULT_RELEASE


def layers_of(
    own: Mapping[str, str], cluster: Mapping[str, str], static: Mapping[str, str], of: Release = DEFAULT_RELEASE
) -> Layers:
    """Return the layers of a node: its own, the cluster-wide, its server.properties' and default values."""
    values = (
        (usable(own, per_broker=True), ConfigSource.DYNAMIC_BROKER),
        (usable(cluster, per_broker=False), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (static, ConfigSource.STATIC_BROKER),
        (_defaults(of), ConfigSource.DEFAULT),
    )
    return Layers(values, of)


def describe(layers: Layers, resource_type: int, own: Mapping[str, str]) -> list[DescribedConfig]:
    """Return all configs of a topic, a group or a client metrics subscription with these own values, sorted by name."""
    merged = _merged(layers)
    has_defaults = resource_type != CLIENT_METRICS or layers.of.has(Behaviour.CLIENT_METRICS_HAVE_DEFAULTS)
    return [
        _described(resource_type, key, own, layers, merged)
        for _, key in sorted(config_keys.keys(resource_type, layers.of).items())
        if key.name in own or (has_defaults and not key.internal)
    ]


def describe_node(layers: Layers) -> list[DescribedConfig]:
    """Return all configs of a node, sorted by name, including values of unknown keys."""
    merged = _merged(layers)
    keys = config_keys.keys(BROKER, layers.of)
    names = {name for name, key in keys.items() if not key.internal}
    names |= {name for values, source in layers.values if source != ConfigSource.DEFAULT for name in values}
    return [_described_broker(name, merged.get(name), layers) for name in sorted(names)]


def describe_cluster_default(layers: Layers) -> list[DescribedConfig]:
    """Return the configs that are set for all brokers, sorted by name, without those that cannot be."""
    kept = [layer for layer in layers.values if layer[1] == ConfigSource.DYNAMIC_DEFAULT_BROKER]
    return [
        _described_broker(name, value, Layers(kept, layers.of), parsed=False)
        for name, value in sorted(kept[0][0].items())
    ]


def as_string(config: DescribedConfig) -> DescribedConfig:
    """Return the same config as if its key were of type STRING."""
    return config._replace(type=_TYPES.index("STRING") + 1)


def _described(
    resource_type: int, key: ConfigKey, own: Mapping[str, str], layers: Layers, merged: Mapping[str, str]
) -> DescribedConfig:
    value = own.get(key.name)
    if value is None:
        value = _inherited(resource_type, key, merged, layers.of)
    shown = None if key.is_sensitive else _shown(key, value)
    synonyms = _synonyms_of(resource_type, key, layers)
    if key.name in own:
        synonyms.insert(0, SynonymValue(key.name, shown, _OWN_SOURCES[resource_type]))
    return DescribedConfig(key.name, shown, _type_number(key), key.is_sensitive, False, synonyms)


def _inherited(resource_type: int, key: ConfigKey, merged: Mapping[str, str], of: Release) -> str | None:
    if resource_type == TOPIC:
        for synonym in config_keys.topic_synonyms(of).get(key.name, ()):
            if synonym.name in merged:
                return converted(merged[synonym.name], synonym.factor)
    return merged.get(broker_key(key.name), key.default) if resource_type == GROUP else key.default


def _synonyms_of(resource_type: int, key: ConfigKey, layers: Layers) -> list[SynonymValue]:
    if resource_type == TOPIC:
        behind = config_keys.topic_synonyms(layers.of).get(key.name)
        return list(_synonyms(behind[0].name, layers, key.is_sensitive)) if behind else []
    if resource_type == GROUP:
        names_broker = layers.of.has(Behaviour.GROUP_SYNONYMS_ARE_THE_BROKERS)
        if names_broker and broker_key(key.name) in config_keys.keys(BROKER, layers.of):
            return list(_synonyms(broker_key(key.name), layers, key.is_sensitive))
        return [] if key.default is None else [SynonymValue(key.name, key.default, ConfigSource.DEFAULT)]
    return []


def broker_key(group_key: str) -> str:
    """Return the broker key that gives a group key its default (GroupConfig.brokerSynonym)."""
    return "group.streams.assignors" if group_key == "streams.assignor.name" else f"group.{group_key}"


def _described_broker(name: str, value: str | None, layers: Layers, *, parsed: bool = True) -> DescribedConfig:
    keys = config_keys.keys(BROKER, layers.of)
    key = next((keys[each] for each in (name, *_same(name)) if each in keys), None)
    is_sensitive = key is None or key.is_sensitive
    if key is None or is_sensitive:
        shown = None
    else:
        shown = _shown(key, value) if parsed and name in keys and not key.internal else value
    is_read_only = name not in keys or keys[name].update_mode is None
    synonyms = list(_synonyms(name, layers, is_sensitive))
    return DescribedConfig(name, shown, _type_number(key), is_sensitive, is_read_only, synonyms)


def _synonyms(name: str, layers: Layers, is_sensitive: bool) -> Iterator[SynonymValue]:
    """Return the values from the first one of that very name on (ConfigHelper.configSynonyms)."""
    is_met = False
    for values, source in layers.values:
        for synonym in _same(name):
            is_met = is_met or (synonym == name and synonym in values)
            if is_met and synonym in values:
                yield SynonymValue(synonym, None if is_sensitive else values[synonym], source)


def _same(name: str) -> tuple[str, ...]:
    """Return the broker keys with the same meaning, the strongest first (DynamicBrokerConfig.brokerConfigSynonyms)."""
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    for names in _SAME_CONFIG:
        if name in names:
            return names
    by_listener = LISTENER_KEY.fullmatch(name)
    if by_listener is None:
        return (name,)
    return (name, next(filter(by_listener[1].endswith, _MECHANISM_KEYS), by_listener[1]))


@cache
def _defaults(of: Release) -> Mapping[str, str]:
    return {key.name: key.default for key in config_keys.keys(BROKER, of).values() if key.default is not None}


def _merged(layers: Layers) -> dict[str, str]:
    merged: dict[str, str] = {}
    for values, _ in reversed(layers.values):
        merged.update(values)
    return merged


def _shown(key: ConfigKey, text: str | None) -> str | None:
    """Return the value as Kafka prints it after parsing (ConfigDef.convertToString)."""
    value = parse(key, text)
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    return ",".join(value) if isinstance(value, list) else str(value)


def _type_number(key: ConfigKey | None) -> int:
    return 0 if key is None else _TYPES.index(key.type) + 1
