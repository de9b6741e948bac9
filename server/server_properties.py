"""Properties of a controller's server.properties: those that are fields of `ControllerConfig`, and all others.

The others are static configs of the node. They are the defaults of topics and the bounds of groups' configs, and
DescribeConfigs shows them; mockraft has no further use for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field
from typing import Any, Final

from mockraft.kafka_api.security import MECHANISMS
from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER, ConfigKey
from mockraft.kafka_configs.config_values import parse_property
from mockraft.releases import Release
from mockraft.wire.names import similar_names

_NAMED_OTHERWISE: Final = {
    "frame_bytes_max": "socket.request.max.bytes",
    "session_timeout_ms": "broker.session.timeout.ms",
    "heartbeat_interval_ms": "broker.heartbeat.interval.ms",
}
_FROM_OTHER_OPTIONS: Final = {
    "advertised.listeners": "advertised_host",
    "authorizer.class.name": "authorizer",
    "broker.id": "node_id",
    "controller.listener.names": "controller_listener_name",
    "listener.security.protocol.map": "security_protocol",
    "listeners": "port",
    "log.dir": "data_dir",
    "log.dirs": "data_dir",
    "max.connections": "connections_max",
    "metadata.log.dir": "data_dir",
    "ssl.keystore.location": "ssl_certificate_file",
    "ssl.keystore.password": "ssl_key_password",
    "ssl.truststore.location": "ssl_truststore_file",
}
"""Properties that do nothing here, each with the option in its place, whose values or defaults differ."""

_AUTHORIZERS: Final = {
    name: ConfigKey(name, kind, None, internal=False, validator=None)
    for name, kind in (("super.users", "STRING"), ("allow.everyone.if.no.acl.found", "BOOLEAN"))
}
"""Properties of Kafka's StandardAuthorizer, which are not among the keys of brokers."""


_MAX_REAUTH: Final = "connections.max.reauth.ms"
_MAX_REAUTH_OF: Final = re.compile(rf"listener\.name\.([^.]+)\.([^.]+)\.{re.escape(_MAX_REAUTH)}")
"""The property of one mechanism of a listener, both in lower case (SaslChannelBuilder)."""


def property_of(field: str) -> str:
    """Return the property that a field of `ControllerConfig` would be."""
    return _NAMED_OTHERWISE.get(field, field.replace("_", "."))


def check(properties: Mapping[str, str], of: Release, fields: Iterable[Field[object]]) -> None:
    """Raise ValueError for a property that is not Kafka's, has a field or option of its own, or a wrong value."""
    own, _ = fields_and_others(properties, of, fields)
    for field in own:
        raise ValueError(f"server_properties: {property_of(field)} has an option of its own, {field}")


def fields_and_others(
    properties: Mapping[str, str], of: Release, fields: Iterable[Field[object]], option_name: Callable[[str], str] = str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return those of the fields of `ControllerConfig` that these properties set, and the properties without a field.

    Raises ValueError for unknown properties, wrong values, and properties in whose place there is an option;
    `option_name` returns the name that the message has for a field.
    """
    by_property = {property_of(each.name): each for each in fields}
    own, others = {}, {}
    for name, text in properties.items():
        if name in _FROM_OTHER_OPTIONS:
            raise ValueError(f"{name}: a controller has an option for it, {option_name(_FROM_OTHER_OPTIONS[name])}")
        value = parse_property(_key(name, of), text)
        field = by_property.get(name)
        if field is None:
            others[name] = text
        elif isinstance(value, list):
            own[field.name] = tuple(value) if isinstance(field.default, tuple) else ",".join(value)
        else:
            own[field.name] = value
    return own, others


def mechanisms_max_reauth_ms(properties: Mapping[str, str], listener_name: str) -> dict[str, int]:
    """Return `connections.max.reauth.ms` of single mechanisms. ValueError for another listener or mechanism."""
    own = {f"listener.name.{listener_name.lower()}.{each.lower()}.{_MAX_REAUTH}": each for each in MECHANISMS}
    found = {}
    for name in filter(_MAX_REAUTH_OF.fullmatch, properties):
        if name not in own:
            raise ValueError(f"{name}: the controller has no such mechanism; it may be {' or '.join(own)}")
        found[own[name]] = int(properties[name])
    return found


def _key(name: str, of: Release) -> ConfigKey:
    keys = {**config_keys.keys(BROKER, of), **_AUTHORIZERS}
    if _MAX_REAUTH_OF.fullmatch(name):
        return keys[_MAX_REAUTH]
    if name not in keys:
        near = similar_names(name, keys)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"{name}: a broker or controller of Kafka {of.name} has no such property{hint}")
    return keys[name]
