"""`mockraft serve --server-property` for properties that set an option of the controller."""

from dataclasses import fields
from typing import Any

import pytest
from mockraft.cli.serve.command import _config as config_of
from mockraft.cli.serve.options import defaults
from mockraft.cli.serve.release import checked
from mockraft.kafka_api.options import OptionError
from mockraft.kafka_configs.config_keys import BROKER, keys
from mockraft.releases import DEFAULT, release
from mockraft.server.config import ControllerConfig
from mockraft.server.server_properties import property_of

from ..rows import each_row

_AUTHORIZERS = {"super_users": "User:a", "allow_everyone_if_no_acl_found": "true"}
_VALUES = {
    "controller_quorum_bootstrap_servers": "127.0.0.1:9093",
    "controller_quorum_voters": "3000@127.0.0.1:9093",
    "delegation_token_secret_key": "some-secret",
    "node_id": "7",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl_oauthbearer_expected_audience": "kafka,other",
    "sasl_oauthbearer_expected_issuer": "https://issuer.test",
    "sasl_oauthbearer_jwks_endpoint_url": "file:/jwks.json",
    "ssl_client_auth": "requested",
    "ssl_key_password": "of the key",
    "ssl_principal_mapping_rules": "RULE:^CN=(.*)$/$1/",
    "ssl_truststore_password": "of the truststore",
    **_AUTHORIZERS,
}
"""Values of properties that are neither numbers nor have a default to be negated."""

_KEYS = keys(BROKER, release(DEFAULT))
_FIELDS = [
    each.name for each in fields(ControllerConfig) if property_of(each.name) in _KEYS or each.name in _AUTHORIZERS
]


def config_with(*server_properties: str, given: dict[str, Any] | None = None) -> ControllerConfig:
    options: dict[str, Any] = defaults() | {"server_properties": list(server_properties), "given": given or {}}
    options |= given or {}
    return config_of(options | checked(options) | {"cluster_id": "a-cluster", "rules": frozenset(), "overlay": None})


def other_value(field: str) -> tuple[str, Any]:
    """Return a value that is not the default, as text and as ControllerConfig has it."""
    default = getattr(ControllerConfig(), field)
    if type(default) is bool:
        return str(not default).lower(), not default
    if field in _VALUES:
        text = _VALUES[field]
        return text, int(text) if type(default) is int else tuple(text.split(",")) if default == () else text
    return str(default + 1), default + 1


@each_row("field", _FIELDS)
def test_every_property_of_an_option_sets_it(field: str) -> None:
    text, expected = other_value(field)
    assert getattr(config_with(f"{property_of(field)}={text}"), field) == expected


@each_row(
    ("server_property", "option"),
    [
        ("listeners=CONTROLLER://:9093", "--port"),
        ("metadata.log.dir=/x", "--data-dir"),
        ("max.connections=5", "--connections-max"),
        ("ssl.keystore.location=/x", "--ssl-certificate-file"),
    ],
)
def test_refusal_names_the_option_in_a_propertys_place(server_property: str, option: str) -> None:
    with pytest.raises(OptionError, match=f"{server_property.partition('=')[0]}: .* has an option for it, {option}$"):
        config_with(server_property)


def test_an_option_and_its_property_agree_or_are_refused() -> None:
    """A difference is refused as KafkaConfig refuses one between node.id and broker.id, even if it is the default."""
    config = config_with("broker.session.timeout.ms=5000", given={"session_timeout_ms": 5000})
    assert config.session_timeout_ms == 5000
    about = r"^broker\.session\.timeout\.ms=5000 contradicts --session-timeout-ms 9000; give one of them$"
    with pytest.raises(OptionError, match=about):
        config_with("broker.session.timeout.ms=5000", given={"session_timeout_ms": 9000})
    with pytest.raises(OptionError, match="contradicts --sasl-enabled-mechanisms PLAIN"):
        config_with("sasl.enabled.mechanisms=SCRAM-SHA-256", given={"sasl_enabled_mechanisms": ("PLAIN",)})


def test_a_value_out_of_range_names_the_property_that_has_no_option() -> None:
    with pytest.raises(OptionError, match=r"^controller\.quorum\.fetch\.timeout\.ms=0: it must be 1 to"):
        config_with("controller.quorum.fetch.timeout.ms=0")


def test_refuses_an_unknown_mechanism() -> None:
    with pytest.raises(OptionError, match="--sasl-enabled-mechanisms='GSSAPI': it must be PLAIN or"):
        config_with("sasl.enabled.mechanisms=GSSAPI")
