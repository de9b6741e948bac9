"""DescribeConfigs on a controller: the resources it describes, and the source of each value."""

from collections.abc import Callable

import pytest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import DescribeConfigsResourceResult

from ...configs import config_record
from ...conftest import Cluster

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OWN_TOPIC, OWN_BROKER, CLUSTER, STATIC, DEFAULT, OWN_CLIENT_METRICS, OWN_GROUP = 1, 2, 3, 4, 5, 7, 8
LONG, LIST = 5, 7


Described = Callable[[Cluster, int, str], dict[str, DescribeConfigsResourceResult]]


def request(
    *resources: tuple[int, str], keys: list[str] | None = None, include_synonyms: bool = True
) -> DescribeConfigsRequest:
    """Resources as (type, name)."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        include_synonyms=include_synonyms,
    )


@pytest.fixture
def described() -> Described:
    """The configs of one resource by name."""

    def tell(cluster: Cluster, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
        (result,) = cluster.ask(request((kind, name))).results
        assert (result.error_code, result.error_message) == (0, "")
        assert [config.name for config in result.configs] == sorted(config.name for config in result.configs)
        return {config.name: config for config in result.configs}

    return tell


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]


def test_a_topics_own_value_comes_before_the_brokers(topic: Cluster, described: Described) -> None:
    topic.write(
        config_record(BROKER, "3000", "log.retention.ms", "3"), config_record(BROKER, "", "log.retention.ms", "2")
    )
    retention = described(topic, TOPIC, "t")["retention.ms"]
    assert (retention.value, retention.config_source, retention.config_type) == ("3", OWN_BROKER, LONG)
    assert synonyms(retention) == [
        ("log.retention.ms", "3", OWN_BROKER),
        ("log.retention.ms", "2", CLUSTER),
        ("log.retention.hours", "168", DEFAULT),
    ]
    topic.set_config("t", "retention.ms", "1")
    retention = described(topic, TOPIC, "t")["retention.ms"]
    assert (retention.value, retention.config_source) == ("1", OWN_TOPIC)
    assert synonyms(retention)[0] == ("retention.ms", "1", OWN_TOPIC)


def test_values_are_shown_as_they_are_understood(topic: Cluster, described: Described) -> None:
    topic.set_config("t", "cleanup.policy", " compact , delete,compact")
    topic.set_config("t", "preallocate", "TRUE")
    configs = described(topic, TOPIC, "t")
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_type) == ("compact,delete", LIST)
    assert configs["preallocate"].value == "true"
    assert configs["min.cleanable.dirty.ratio"].value == "0.5"
    assert configs["retention.ms"].value == str(168 * 3_600_000)


def test_start_options_are_static_configs(new_cluster: type[Cluster], described: Described) -> None:
    configs = described(new_cluster(session_timeout_ms=1234, num_partitions=7), BROKER, "3000")
    assert synonyms(configs["broker.session.timeout.ms"]) == [
        ("broker.session.timeout.ms", "1234", STATIC),
        ("broker.session.timeout.ms", "9000", DEFAULT),
    ]
    assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("7", STATIC)
    assert configs["process.roles"].value == "controller"
    assert configs["node.id"].read_only
    assert not configs["num.io.threads"].read_only


def test_start_options_are_written_as_in_a_file_of_properties(new_cluster: type[Cluster], described: Described) -> None:
    options = {"sasl_enabled_mechanisms": ("PLAIN", "SCRAM-SHA-256"), "security_protocol": "SASL_PLAINTEXT"}
    configs = described(new_cluster(**options), BROKER, "3000")
    assert configs["sasl.enabled.mechanisms"].value == "PLAIN,SCRAM-SHA-256"
    assert configs["listener.security.protocol.map"].value == "CONTROLLER:SASL_PLAINTEXT"
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "delegation.token.secret.key"):
        assert configs[name].config_source == DEFAULT, name


def test_replication_quotas_are_described_where_they_are_set(cluster: Cluster, described: Described) -> None:
    name = "leader.replication.throttled.rate"
    assert name not in described(cluster, BROKER, "3000")
    cluster.write(config_record(BROKER, "3000", name, "16800"))
    config = described(cluster, BROKER, "3000")[name]
    assert (config.value, config.config_type, config.read_only, config.is_sensitive) == ("16800", LONG, False, False)
    cluster.write(config_record(BROKER, "3000", name, "-1"))
    assert name not in described(cluster, BROKER, "3000")


def test_configs_not_applicable_at_run_time_are_left_out(cluster: Cluster, described: Described) -> None:
    cluster.write(
        config_record(BROKER, "", "process.roles", "broker"),
        config_record(BROKER, "", "cordoned.log.dirs", "/a"),
        config_record(BROKER, "", "max.connections", "many"),
        config_record(BROKER, "", "ssl.keystore.location", "/a"),
        config_record(BROKER, "", "listener.name.a.ssl.keystore.location", "/a"),
        config_record(BROKER, "", "listener.name.a.max.connections", "5"),
        config_record(BROKER, "", "num.io.threads", "9"),
    )
    left = {"listener.name.a.max.connections", "min.insync.replicas", "num.io.threads"}
    assert described(cluster, BROKER, "").keys() == left


def test_sensitive_and_unknown_values_are_hidden(cluster: Cluster, described: Described) -> None:
    secret, unknown = "listener.name.a.ssl.key.password", "an.own.key"
    cluster.write(config_record(BROKER, "3000", secret, "x"), config_record(BROKER, "3000", unknown, "y"))
    configs = described(cluster, BROKER, "3000")
    for name in (secret, unknown):
        assert (configs[name].value, configs[name].is_sensitive) == (None, True)
        assert synonyms(configs[name])[0] == (name, None, OWN_BROKER)


def test_a_group_has_its_own_values_the_brokers_and_defaults(cluster: Cluster, described: Described) -> None:
    timeout = "consumer.session.timeout.ms"
    cluster.write(config_record(GROUP, "g", timeout, "50000"))
    configs = described(cluster, GROUP, "g")
    assert synonyms(configs[timeout]) == [(timeout, "50000", OWN_GROUP), (f"group.{timeout}", "45000", DEFAULT)]
    assert synonyms(configs["share.auto.offset.reset"]) == [("share.auto.offset.reset", "latest", DEFAULT)]


def test_unset_client_metrics_have_defaults(cluster: Cluster, described: Described) -> None:
    assert described(cluster, CLIENT_METRICS, "m")["interval.ms"].value == "300000"
    cluster.write(config_record(CLIENT_METRICS, "m", "interval.ms", "100"))
    interval = described(cluster, CLIENT_METRICS, "m")["interval.ms"]
    assert (interval.value, interval.config_source) == ("100", OWN_CLIENT_METRICS)


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        ((TOPIC, "none"), 3, ""),
        ((TOPIC, "no/where"), 17, None),
        ((BROKER, "1"), 42, "Unexpected broker id, expected 3000 or empty string, but received 1"),
        ((BROKER, "x"), 42, "Broker id must be an integer, but it is: x"),
        ((BROKER, "9" * 5000), 42, f"Broker id must be an integer, but it is: {'9' * 5000}"),
        ((BROKER_LOGGER, ""), 42, "Broker id must not be empty"),
        ((BROKER_LOGGER, "1"), 42, "Unexpected broker id, expected 3000 but received 1"),
        ((GROUP, ""), 42, "Group name must not be empty"),
        ((CLIENT_METRICS, ""), 42, "Client metrics subscription name must not be empty"),
    ],
)
def test_reports_errors_per_resource(topic: Cluster, resource: tuple[int, str], code: int, message: str | None) -> None:
    refused, good = topic.ask(request(resource, (BROKER_LOGGER, "3000"))).results
    assert (refused.resource_type, refused.resource_name) == resource
    assert refused.error_code == code
    assert message is None or refused.error_message == message
    assert (good.error_code, good.configs[-1].name) == (0, "root")
