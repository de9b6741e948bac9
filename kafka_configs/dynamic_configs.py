"""Broker keys that may change while a broker runs, and their scope (DynamicBrokerConfig)."""

import re
from collections.abc import Mapping
from typing import Final

from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, ConfigKey
from mockraft.kafka_configs.config_values import check
from mockraft.wire.errors import ApiError

LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
"""A key for one listener; its group is the key behind it."""
_LISTENER_KEYS_OF_THE_CLUSTER: Final = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_ONLY_BY_LISTENER: Final = re.compile(
    r"ssl\.(keystore\.(type|location|password|certificate\.chain|key)|key\.password"
    r"|truststore\.(type|location|password|certificates))"
)
"""SslConfigs.RECONFIGURABLE_CONFIGS."""


def key_of(name: str) -> ConfigKey | None:
    """Return the key that validates a value; for a listener's own values, the key without the listener prefix."""
    by_listener = LISTENER_KEY.fullmatch(name)
    return config_keys.keys(BROKER).get(by_listener[1] if by_listener else name)


def is_by_listener_only(name: str) -> bool:
    """Return True if the key may be changed for one listener but not for all of them."""
    return not LISTENER_KEY.fullmatch(name) and _ONLY_BY_LISTENER.fullmatch(name) is not None


def is_per_broker(name: str) -> bool:
    """Return True if the key may be set for one broker but not for all."""
    by_listener = LISTENER_KEY.fullmatch(name)
    if by_listener:
        return by_listener[1] not in _LISTENER_KEYS_OF_THE_CLUSTER
    key = key_of(name)
    return key is not None and key.update_mode == "per-broker"


def usable(values: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """Return the dynamic values that a node accepts (DynamicBrokerConfig.fromPersistentProps)."""
    return {name: value for name, value in values.items() if _is_usable(name, value, per_broker)}


def _is_usable(name: str, value: str, per_broker: bool) -> bool:
    if not per_broker and is_per_broker(name):
        return False
    key = key_of(name)
    if key is None:
        return True
    if key.update_mode is None or is_by_listener_only(name):
        return False
    try:
        check(key, value)
    except ApiError:
        return False
    return True
