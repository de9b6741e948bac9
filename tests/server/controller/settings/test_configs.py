from pathlib import Path

import pytest
from mockraft.kafka_configs.config_keys import BROKER, CLIENT_METRICS, GROUP, TOPIC
from mockraft.kafka_configs.config_values import ConfigSource, Operation
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings import configs
from mockraft.server.controller.settings.config_rules import validate_topic
from mockraft.server.controller.settings.configs import ConfigOperation, clear_elr_records, static_configs
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

from ....configs import config_record
from ....conftest import Cluster
from ....rows import each_row


def alter(cluster: Cluster, kind: int, name: str, **changes: tuple[int, str | None]) -> dict[str, str | None]:
    """Changes of a resource: keys with `_` for `.`, values as (operation, value). Returns {key: new value}."""
    asked = {key.replace("_", "."): ConfigOperation(*change) for key, change in changes.items()}
    records = configs.alter_resource(
        cluster.controller, (kind, name), asked, configs.validating_node(cluster.controller)
    )
    return {record.name: record.value for record, _ in records}


def refusal(cluster: Cluster, kind: int, name: str, **changes: tuple[int, str | None]) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        alter(cluster, kind, name, **changes)
    assert refused.value.message is not None
    return refused.value.error_code, refused.value.message


def effective(cluster: Cluster, key: str, **own: str) -> tuple[str | None, int]:
    own = {name.replace("_", "."): value for name, value in own.items()}
    found = {each.key.name: each for each in configs.effective_topic_configs(cluster.controller, own)}
    return found[key].value, found[key].source


@pytest.fixture
def topic(cluster: Cluster) -> Cluster:
    cluster.start(1)
    cluster.create_topic("t", [1])
    return cluster


def test_a_topics_own_value_is_stronger_than_the_nodes_the_clusters_and_the_default(cluster: Cluster) -> None:
    cluster.write(config_record(BROKER, "1", "log.retention.ms", "4"))
    assert effective(cluster, "retention.ms") == ("604800000", ConfigSource.DEFAULT), "another broker's does not count"
    cluster.write(config_record(BROKER, "", "log.retention.ms", "3"))
    assert effective(cluster, "retention.ms") == ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    cluster.write(config_record(BROKER, "3000", "log.retention.ms", "2"))
    assert effective(cluster, "retention.ms") == ("2", ConfigSource.DYNAMIC_BROKER)
    assert effective(cluster, "retention.ms", retention_ms="1") == ("1", ConfigSource.TOPIC)
    assert configs.topic_config(cluster.controller, "t", "retention.ms") == "2"
    cluster.write(config_record(TOPIC, "t", "retention.ms", "1"))
    assert configs.topic_config(cluster.controller, "t", "retention.ms") == "1"


def test_brokers_units_become_the_topics(cluster: Cluster) -> None:
    cluster.write(config_record(BROKER, "", "log.retention.hours", "2"))
    assert effective(cluster, "retention.ms") == ("7200000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    cluster.write(config_record(BROKER, "", "log.retention.minutes", " 3 "))
    assert effective(cluster, "retention.ms")[0] == "180000"
    cluster.write(config_record(BROKER, "", "log.roll.hours", "a day"))
    assert effective(cluster, "segment.ms")[0] == "0"


def test_internal_key_is_described_only_where_set(cluster: Cluster) -> None:
    names = {each.key.name for each in configs.effective_topic_configs(cluster.controller, {})}
    assert "internal.segment.bytes" not in names
    assert effective(cluster, "internal.segment.bytes", internal_segment_bytes="7") == ("7", ConfigSource.TOPIC)


def test_the_controllers_min_insync_replicas_is_the_clusters_where_elr_is_on(new_cluster: type[Cluster]) -> None:
    assert effective(new_cluster(min_insync_replicas=2), "min.insync.replicas") == (
        "2",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    )
    before_elr = new_cluster(min_insync_replicas=2, metadata_version=20)
    assert effective(before_elr, "min.insync.replicas") == ("2", ConfigSource.STATIC_BROKER)


def test_a_topic_is_written_only_where_it_changes_a_broker_always(topic: Cluster) -> None:
    topic.write(config_record(TOPIC, "t", "retention.ms", "5"))
    topic.write(config_record(BROKER, "1", "num.io.threads", "5"))
    assert alter(topic, TOPIC, "t", retention_ms=(Operation.SET, "5"), flush_ms=(Operation.DELETE, None)) == {}
    assert alter(topic, TOPIC, "t", retention_ms=(Operation.DELETE, "5")) == {"retention.ms": None}
    unchanged = alter(topic, BROKER, "1", num_io_threads=(Operation.SET, "5"), nothing=(Operation.DELETE, None))
    assert unchanged == {"num.io.threads": "5", "nothing": None}


def test_lists_grow_and_shrink_from_their_value_or_their_default(topic: Cluster) -> None:
    assert alter(topic, TOPIC, "t", cleanup_policy=(Operation.APPEND, "compact,delete")) == {
        "cleanup.policy": "delete,compact"
    }
    topic.write(config_record(TOPIC, "t", "cleanup.policy", "compact"))
    assert alter(topic, TOPIC, "t", cleanup_policy=(Operation.APPEND, "compact")) == {}
    assert alter(topic, TOPIC, "t", cleanup_policy=(Operation.SUBTRACT, "delete,compact")) == {"cleanup.policy": ""}


def test_only_topics_and_brokers_have_lists(topic: Cluster) -> None:
    assert refusal(topic, TOPIC, "t", retention_ms=(Operation.APPEND, "1")) == (
        error_codes.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    )
    assert refusal(topic, CLIENT_METRICS, "m", metrics=(Operation.SUBTRACT, "1")) == (
        error_codes.INVALID_CONFIG,
        "Can't SUBTRACT to key metrics because its type is not LIST.",
    )


def test_min_insync_replicas_stays_with_cluster_and_topics_while_elr_is_on(
    topic: Cluster, new_cluster: type[Cluster]
) -> None:
    one = (Operation.SET, "1")
    assert refusal(topic, BROKER, "1", min_insync_replicas=one)[0] == error_codes.INVALID_CONFIG
    assert refusal(topic, BROKER, "", min_insync_replicas=(Operation.DELETE, None))[0] == error_codes.INVALID_CONFIG
    assert alter(topic, BROKER, "", min_insync_replicas=one) == {"min.insync.replicas": "1"}
    before_elr = new_cluster(metadata_version=22)
    before_elr.start(1)
    assert alter(before_elr, BROKER, "1", min_insync_replicas=one) == {"min.insync.replicas": "1"}
    assert (
        configs.clear_elr_records(before_elr.controller, [RecordAt(ConfigRecord(name="min.insync.replicas"), 0)]) == []
    )


def test_log_dirs_are_cordoned_from_level_30_on(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=29)
    cluster.start(1)
    assert refusal(cluster, BROKER, "1", cordoned_log_dirs=(Operation.DELETE, None)) == (
        error_codes.INVALID_CONFIG,
        "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0",
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((name, 42) for name in ("one", "-1", "2147483648", " 1", "9" * 5_000)),
        *((name, 102) for name in ("77", "-0")),
        *((name, None) for name in ("1", "3000", "", "+1", "\N{ARABIC-INDIC DIGIT ONE}", "0" * 5_000 + "1")),
    ],
)
def test_a_broker_is_named_by_the_id_of_a_registered_node(topic: Cluster, name: str, code: int | None) -> None:
    change = {"x": (Operation.SET, "y")}
    if code is None:
        assert alter(topic, BROKER, name, **change) == {"x": "y"}
    else:
        assert refusal(topic, BROKER, name, **change)[0] == code


def test_the_controller_itself_is_no_node_before_controllers_register(new_cluster: type[Cluster]) -> None:
    assert refusal(new_cluster(metadata_version=14), BROKER, "3000", x=(Operation.SET, "y"))[0] == 102


def test_a_value_may_have_32767_characters(topic: Cluster) -> None:
    assert alter(topic, BROKER, "1", x=(Operation.SET, "v" * 32_767))
    assert refusal(topic, BROKER, "1", x=(Operation.SET, "v" * 32_768)) == (
        error_codes.INVALID_CONFIG,
        "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
    )


def test_values_that_were_there_before_are_checked_too(topic: Cluster) -> None:
    topic.write(config_record(TOPIC, "t", "min.compaction.lag.ms", "9"))
    assert refusal(topic, TOPIC, "t", max_compaction_lag_ms=(Operation.SET, "8")) == (
        error_codes.INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
    )


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("interval.ms", "100", None),
        ("interval.ms", "99", 42),
        ("interval.ms", "3600001", 42),
        ("interval.ms", "often", 40),
        ("match", "client_id=a.*,client_source_port=[0-9]+", None),
        ("match", "client_id=X", None),
        ("match", "client=a", 40),
        ("match", "client_id=(", 40),
        ("match", "client_id=" + "(" * 9_000 + ")" * 9_000, 40),
        ("match", "client_id", 40),
        ("no.such", "1", 42),
    ],
)
def test_client_metrics_have_an_interval_and_patterns(topic: Cluster, key: str, value: str, code: int | None) -> None:
    change = {key: (Operation.SET, value)}
    if code is None:
        assert alter(topic, CLIENT_METRICS, "m", **change) == {key: value}
    else:
        assert refusal(topic, CLIENT_METRICS, "m", **change)[0] == code


@each_row(
    ("release", "key", "value", "message"),
    [
        ("4.4", "consumer.heartbeat.interval.ms", "5001", None),
        ("4.4", "consumer.heartbeat.interval.ms", "4999", "must be in the range 5000 to 15000 inclusive."),
        ("4.3", "consumer.heartbeat.interval.ms", "4999", "greater than or equal to group.consumer.min.heartbeat."),
        ("4.3", "share.delivery.count.limit", "11", "less than or equal to group.share.max.delivery.count.limit"),
        ("4.4", "streams.num.standby.replicas", "3", "must be less than or equal to 2"),
        ("4.3", "streams.num.standby.replicas", "3", "less than or equal to group.streams.max.standby.replicas"),
        ("4.4", "streams.assignor.name", "nobodys", "'nobodys' is not a registered task assignor"),
        ("4.4", "streams.no.such", "3", "Unknown group config name: streams.no.such"),
    ],
)
def test_groups_stay_within_the_brokers_bounds(
    new_cluster: type[Cluster], release: str, key: str, value: str, message: str | None
) -> None:
    cluster = new_cluster(release=release)
    change = {key: (Operation.SET, value)}
    if message is None:
        assert alter(cluster, GROUP, "g", **change) == {key: value}
    else:
        code, why = refusal(cluster, GROUP, "g", **change)
        assert code == error_codes.INVALID_CONFIG
        assert message in why


@pytest.mark.parametrize("kind", [CLIENT_METRICS, GROUP, TOPIC])
def test_only_brokers_have_a_default_resource(topic: Cluster, kind: int) -> None:
    assert refusal(topic, kind, "", x=(Operation.SET, "1"))[0] == error_codes.INVALID_REQUEST


def test_the_clusters_min_insync_replicas_clears_the_elr_of_all_topics(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster()
    cluster.start(1)
    record = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    (at,) = clear_elr_records(cluster.controller, [RecordAt(record, 0)])
    assert at.record.topic_name == ""
    record.resource_type, record.resource_name = 2, "t"
    (at,) = clear_elr_records(cluster.controller, [RecordAt(record, 0)])
    assert at.record.topic_name == "t"


def test_a_controllers_options_are_its_static_configs_where_they_differ_from_kafkas_defaults(tmp_path: Path) -> None:
    plain = static_configs(ControllerConfig(node_id=7, host="h", port=1))
    assert plain == {
        "process.roles": "controller",
        "node.id": "7",
        "broker.id": "7",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://h:1",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    }
    config = ControllerConfig(
        node_id=7,
        host="h",
        port=1,
        data_dir=tmp_path,
        authorizer=True,
        super_users="User:a;User:b",
        allow_everyone_if_no_acl_found=True,
        min_insync_replicas=2,
    )
    assert dict(static_configs(config).items() - plain.items()) == {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:a;User:b",
        "allow.everyone.if.no.acl.found": "true",
        "log.dirs": str(tmp_path),
        "min.insync.replicas": "2",
    }


def test_the_smallest_and_the_largest_lag_of_compaction_may_be_equal(topic: Cluster) -> None:
    for low, code in (("5", None), ("6", error_codes.INVALID_CONFIG)):
        values = {"min.compaction.lag.ms": low, "max.compaction.lag.ms": "5"}
        if code is None:
            validate_topic("t", values)
        else:
            with pytest.raises(ApiError, match=r"min\.compaction\.lag\.ms \(6\) > max\.compaction\.lag\.ms \(5\)"):
                validate_topic("t", values)
