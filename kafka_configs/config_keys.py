"""Kafka's configuration keys by resource type: their types, defaults and validators, read on first use.

Source: the ConfigDefs of LogConfig, KafkaConfig, GroupConfig and ClientMetricsConfigs, and ServerTopicConfigSynonyms,
kept in schemas_json/<release>/configs.json.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, TypedDict

from mockraft.releases import Behaviour, Release, release

DEFAULT_RELEASE: Final = release()

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

RESOURCE_TYPES: Final = frozenset((TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))
"""The ids of ConfigResource.Type, without UNKNOWN."""

_TABLES: Final = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client_metrics", GROUP: "group"}


class Validator(TypedDict, total=False):
    """A key's validator: the name of its class, and its own description if the other values do not describe it."""

    kind: str
    min: float | None
    max: float | None
    values: list[str]
    null_allowed: bool
    empty_allowed: bool
    says: str


class ConfigKey(NamedTuple):
    """One key: `type` is the name of a ConfigDef.Type; `default` is text as Kafka shows it, None if there is none.

    An `internal` key is shown only where it is set. `update_mode` is "cluster-wide" or "per-broker" for broker keys
    that may change in a running broker, else None.
    """

    name: str
    type: str
    default: str | None
    internal: bool
    validator: Validator | None
    update_mode: str | None = None

    @property
    def is_sensitive(self) -> bool:
        """True if the value is never shown."""
        return self.type == "PASSWORD"


class Synonym(NamedTuple):
    """A broker key that gives a topic key its default; its number counts `factor` of the topic key's unit."""

    name: str
    factor: int


@cache
def resource_types(of: Release) -> frozenset[int]:
    """Return the types of resources that have configs in a release."""
    return RESOURCE_TYPES if of.has(Behaviour.GROUPS_HAVE_CONFIGS) else RESOURCE_TYPES - {GROUP}


@cache
def keys(resource_type: int, of: Release = DEFAULT_RELEASE) -> Mapping[str, ConfigKey]:
    """Return a release's keys of a resource type by name, in the order of their definition; none for BROKER_LOGGER."""
    if resource_type not in _TABLES:
        return {}
    return {
        row["name"]: ConfigKey(
            row["name"],
            row["type"],
            row.get("default"),
            row.get("internal", False),
            row.get("validator"),
            row.get("update_mode"),
        )
        for row in of.config_tables[_TABLES[resource_type]]
    }


@cache
def topic_synonyms(of: Release) -> Mapping[str, Sequence[Synonym]]:
    """Return the broker keys behind each topic key of a release, the strongest first."""
    return {
        name: [Synonym(row["name"], row["times"]) for row in rows]
        for name, rows in of.config_tables["topic_synonyms"].items()
    }


def is_supported(resource_type: int, key: str, of: Release = DEFAULT_RELEASE) -> bool:
    """Return True if a config record is replayed rather than skipped (DefaultSupportedConfigChecker)."""
    return resource_type == BROKER or key in keys(resource_type, of)
