"""Properties of server.properties: those without an option of the controller, and `serve --server-property`."""

from dataclasses import fields
from typing import Any

import pytest
from mockraft.cli.serve.command import _config as config_of
from mockraft.cli.serve.options import defaults
from mockraft.cli.serve.release import checked
from mockraft.kafka_api.options import OptionError
from mockraft.kafka_configs import config_values
from mockraft.kafka_configs.config_keys import BROKER, GROUP, TOPIC, ConfigKey, keys
from mockraft.releases import DEFAULT, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings import configs
from mockraft.server.controller.settings.configs import ConfigOperation, static_configs
from mockraft.server.server_properties import fields_and_others, property_of
from mockraft.wire import error_codes
from mockraft.wire.messages import alter_configs_request as alter_configs

from ..configs import config_record
from ..conftest import Cluster
from ..rows import each_row

SET = 0
LAG = "log.cleaner.min.compaction.lag.ms"
LONGEST = "group.streams.max.heartbeat.interval.ms"


def alter(cluster: Cluster, kind: int, name: str, **values: str) -> None:
    changes = {key.replace("_", "."): ConfigOperation(SET, value) for key, value in values.items()}
    configs.alter_resource(
        cluster.controller, (kind, name), changes, configs.validating_node(cluster.controller), is_new=True
    )


def reason(cluster: Cluster, kind: int, name: str, **values: str) -> str:
    with pytest.raises(ApiError) as refused:
        alter(cluster, kind, name, **values)
    assert refused.value.error_code == error_codes.INVALID_CONFIG
    assert refused.value.message is not None
    return refused.value.message


def test_bounds_and_defaults_of_groups_are_the_controllers(new_cluster: type[Cluster]) -> None:
    plain, cluster = new_cluster(), new_cluster(server_properties={LONGEST: "55000"})
    assert reason(plain, GROUP, "g", streams_heartbeat_interval_ms="40000").startswith("streams.heartbeat.interval.ms")
    assert "greater than" in reason(cluster, GROUP, "g", streams_heartbeat_interval_ms="55000")
    alter(cluster, GROUP, "g", streams_heartbeat_interval_ms="40000")
    later = new_cluster(server_properties={"group.streams.session.timeout.ms": "46000"})
    assert "session.timeout.ms" in reason(plain, GROUP, "g", streams_session_timeout_ms="1")
    alter(later, GROUP, "g", streams_heartbeat_interval_ms="15000")


def test_an_assignment_interval_is_bounded_where_the_group_has_one(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(server_properties={"group.consumer.min.assignment.interval.ms": "2000"})
    alter(cluster, GROUP, "g", consumer_session_timeout_ms="50000")
    assert "consumer.assignment.interval.ms" in reason(cluster, GROUP, "g", consumer_assignment_interval_ms="1999")


def test_topics_without_a_value_have_the_controllers(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(server_properties={LAG: "7", "log.retention.hours": "2"})
    assert configs.topic_config(cluster.controller, "t", "retention.ms") == "7200000"
    assert "min.compaction.lag.ms (7) >" in reason(cluster, TOPIC, "t", max_compaction_lag_ms="6")


def test_topics_are_validated_without_dynamic_configs_but_have_them(new_cluster: type[Cluster]) -> None:
    """As on Kafka: `dynamic_values` in tests/real_kafka/parity/test_later_findings_parity.py."""
    cluster = new_cluster(server_properties={LAG: "7"})
    cluster.write(config_record(BROKER, "", LAG, "5"))
    cluster.write(config_record(BROKER, "", "log.roll.ms", "x"))
    assert "min.compaction.lag.ms (7) >" in reason(cluster, TOPIC, "t", max_compaction_lag_ms="6")
    found = [configs.topic_config(cluster.controller, "t", key) for key in ("min.compaction.lag.ms", "segment.ms")]
    assert found == ["5", "x"]


def test_the_controllers_values_are_parsed_once_for_a_request(
    new_cluster: type[Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """65,536 topics in one request would otherwise keep all others waiting for seconds."""
    cluster = new_cluster(server_properties={"log.retention.hours": "2"})
    parsed: list[str] = []

    def parse(key: ConfigKey, text: str | None) -> Any:
        parsed.append(key.name)
        return parse_one(key, text)

    parse_one = config_values.parse
    monkeypatch.setattr(config_values, "parse", parse)
    resources = [alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=f"t{n}") for n in range(50)]
    assert len(cluster.ask(alter_configs.AlterConfigsRequest(resources=resources), 2).responses) == 50
    assert 0 < parsed.count("retention.ms") <= 2


@each_row(
    ("values", "refusal"),
    [
        ({}, None),
        ({"cleanup_policy": "compact"}, "only supports topics with cleanup.policy=delete or cleanup.policy being an"),
        ({"cleanup_policy": ""}, None),
        ({"retention_bytes": "9", "local_retention_bytes": "9"}, None),
        ({"retention_bytes": "9", "local_retention_bytes": "10"}, "must not be more than retention.bytes .* value: 9"),
        ({"retention_ms": "9", "local_retention_ms": "-1"}, "Value must not be -1 as retention.ms value is set as 9"),
        ({"remote_log_copy_disable": "true", "retention_ms": "9", "local_retention_ms": "8"}, "identical value"),
        ({"remote_log_copy_disable": "true", "retention_ms": "9", "local_retention_ms": "9"}, None),
    ],
)
def test_remote_storage_needs_the_controllers_and_fitting_retention(
    values: dict[str, str], refusal: str | None, new_cluster: type[Cluster]
) -> None:
    assert "functionality is disabled" in reason(new_cluster(), TOPIC, "t", remote_storage_enable="true", **values)
    cluster = new_cluster(release="4.3", server_properties={"remote.log.storage.system.enable": "true"})
    if refusal is None:
        alter(cluster, TOPIC, "t", remote_storage_enable="true", **values)
    else:
        with pytest.raises(ApiError, match=refusal):
            alter(cluster, TOPIC, "t", remote_storage_enable="true", **values)


def test_remote_storage_is_disabled_only_with_its_data(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(server_properties={"remote.log.storage.system.enable": "true"})
    cluster.set_config("t", "remote.storage.enable", "true")
    assert "without deleting remote data" in reason(cluster, TOPIC, "t", remote_storage_enable="false")
    alter(cluster, TOPIC, "t", remote_storage_enable="false", remote_log_delete_on_disable="true")


@each_row(
    ("of", "policy", "refusal"),
    [
        ("4.0", "compact,delete", "Remote log storage is unsupported for the compacted topics"),
        ("4.0", "delete", None),
        ("4.1", "compact", "Remote log storage only supports topics with cleanup.policy=delete"),
    ],
)
def test_older_releases_refuse_compaction_in_other_words(
    of: str, policy: str, refusal: str | None, new_cluster: type[Cluster]
) -> None:
    cluster = new_cluster(release=of, server_properties={"remote.log.storage.system.enable": "true"})
    if refusal is None:
        alter(cluster, TOPIC, "t", remote_storage_enable="true", cleanup_policy=policy)
    else:
        assert reason(cluster, TOPIC, "t", remote_storage_enable="true", cleanup_policy=policy) == refusal


def test_the_lag_of_copies_is_within_the_local_retention_from_4_4_on(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(release="4.4", server_properties={"remote.log.storage.system.enable": "true"})
    values = {"remote_storage_enable": "true", "retention_ms": "9", "remote_copy_lag_ms": "9"}
    alter(cluster, TOPIC, "t", **values)
    why = r"local\.retention\.ms \(effective value: 8\)"
    with pytest.raises(ApiError, match=why):
        alter(cluster, TOPIC, "t", **values, local_retention_ms="8")


def test_they_are_static_configs() -> None:
    assert static_configs(ControllerConfig(server_properties={LONGEST: "55000"}))[LONGEST] == "55000"


def test_properties_of_options_set_them() -> None:
    given = {
        "broker.session.timeout.ms": "1234",
        "auto.leader.rebalance.enable": "FALSE",
        "controller.quorum.bootstrap.servers": "a:1,b:2",
        "super.users": "User:a",
        LONGEST: "55000",
    }
    assert fields_and_others(given, release("4.3"), fields(ControllerConfig)) == (
        {
            "session_timeout_ms": 1234,
            "auto_leader_rebalance_enable": False,
            "controller_quorum_bootstrap_servers": "a:1,b:2",
            "super_users": "User:a",
        },
        {LONGEST: "55000"},
    )


@each_row(
    ("name", "value", "about"),
    [
        ("num.partitions", "2", "num.partitions has an option of its own, num_partitions"),
        ("log.retention.ms", "x", "log.retention.ms=x: Invalid value x .* Not a number of type LONG"),
        ("group.streams.max.heartbeat", "1", r"no such property; did you mean group\.streams\."),
        ("zzz", "1", "zzz: a broker or controller of Kafka 4.3 has no such property$"),
        ("listeners", "A://h:1", "listeners: a controller has an option for it, port"),
        ("metadata.log.dir", "/x", "metadata.log.dir: a controller has an option for it, data_dir"),
        ("max.connections", "5", "max.connections: a controller has an option for it, connections_max"),
        ("listener.name.c.plain.connections.max.reauth.ms", "1", r"may be listener\.name\.controller\.plain\."),
        ("listener.name.controller.plain.connections.max.reauth.ms", "x", "Not a number of type LONG"),
        ("socket.request.max.bytes", "99", "socket.request.max.bytes has an option of its own, frame_bytes_max"),
    ],
)
def test_wrong_properties_are_refused(name: str, value: str, about: str) -> None:
    with pytest.raises(ValueError, match=about):
        ControllerConfig(release="4.3", server_properties={name: value})


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
