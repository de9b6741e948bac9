import pytest
from mockraft.kafka_configs import config_keys, config_values
from mockraft.kafka_configs.config_keys import BROKER, GROUP, TOPIC
from mockraft.releases import release
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes

from ..rows import each_row


def parse(key: str, text: str | None, resource_type: int = TOPIC) -> object:
    return config_values.parse(config_keys.keys(resource_type)[key], text)


@each_row(
    ("key", "text", "value"),
    [
        ("segment.bytes", " +2097152\t", 2_097_152),
        ("retention.ms", "-1", -1),
        ("flush.ms", "9223372036854775807", 2**63 - 1),
        ("preallocate", " TrUe ", True),
        ("preallocate", "false", False),
        ("min.cleanable.dirty.ratio", "1e-3", 0.001),
        ("min.cleanable.dirty.ratio", ".5d", 0.5),
        ("min.cleanable.dirty.ratio", "1", 1.0),
        ("cleanup.policy", "compact , delete,compact", ["compact", "delete"]),
        ("cleanup.policy", " ", []),
        ("compression.type", " zstd ", "zstd"),
        ("compression.gzip.level", "-1", -1),
        ("compression.zstd.level", "-131072", -131_072),
        ("leader.replication.throttled.replicas", "0:1, 12:34", ["0:1", "12:34"]),
        ("leader.replication.throttled.replicas", "*", ["*"]),
        ("leader.replication.throttled.replicas", "", []),
        ("internal.segment.bytes", None, None),
    ],
)
def test_parses_values_like_kafka(key: str, text: str | None, value: object) -> None:
    assert parse(key, text) == value


def test_a_ratio_that_is_not_a_number_is_a_number() -> None:
    ratio = parse("min.cleanable.dirty.ratio", "NaN")
    assert ratio != ratio


@each_row(
    ("key", "text", "message"),
    [
        (
            "segment.bytes",
            "2147483648",
            "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT",
        ),
        ("segment.bytes", "1_0", "Invalid value 1_0 for configuration segment.bytes: Not a number of type INT"),
        ("segment.bytes", " x", "Invalid value  x for configuration segment.bytes: Not a number of type INT"),
        (
            "retention.ms",
            "9" * 5000,
            f"Invalid value {'9' * 5000} for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "1.0", "Invalid value 1.0 for configuration retention.ms: Not a number of type LONG"),
        ("segment.ms", "0", "Invalid value 0 for configuration segment.ms: Value must be at least 1"),
        (
            "compression.lz4.level",
            "18",
            "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            "compression.gzip.level",
            "10",
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "a half",
            "Invalid value a half for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "message.timestamp.type",
            "createtime",
            "Invalid value createtime for configuration message.timestamp.type: "
            "String must be one of: CreateTime, LogAppendTime",
        ),
        (
            "cleanup.policy",
            "delete,shred",
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,,compact", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "follower.replication.throttled.replicas",
            "0:1,*",
            "Invalid value [0:1, *] for configuration follower.replication.throttled.replicas: "
            "follower.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_refuses_with_kafkas_messages(key: str, text: str | None, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(key, text)
    assert (refused.value.error_code, refused.value.message) == (error_codes.INVALID_CONFIG, message)


@each_row(
    "text", ["latest", "earliest", "by_duration:PT0S", "by_duration:P1DT2H", "by_duration:pt1.5s", "by_duration:-PT-3S"]
)
def test_share_groups_start_at_an_end_or_some_time_ago(text: str) -> None:
    assert parse("share.auto.offset.reset", text, GROUP) == text


@each_row(
    "text",
    [
        "none",
        "Latest",
        "by_duration",
        "by_duration:",
        "by_duration:1h",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1H",
        "by_duration:PT-3S",
        "by_duration:-PT3S",
        "by_duration:PT1H2D",
    ],
)
def test_share_groups_do_not_start_anywhere_else(text: str | None) -> None:
    with pytest.raises(ApiError, match=r"The value must be either 'earliest', 'latest' or of the format"):
        parse("share.auto.offset.reset", text, GROUP)


def test_reports_the_first_bad_key_in_the_order_of_definition() -> None:
    with pytest.raises(ApiError, match=r"segment\.bytes"):
        config_values.parse_all(TOPIC, {"retention.ms": "x", "segment.bytes": "x"})


def test_keys_have_defaults_and_only_passwords_are_sensitive() -> None:
    assert config_keys.keys(TOPIC)["retention.ms"].default == "604800000"
    assert not config_keys.keys(BROKER)["num.partitions"].is_sensitive
    assert config_keys.keys(BROKER)["ssl.key.password"].is_sensitive
    assert config_keys.keys(config_keys.BROKER_LOGGER) == {}


def test_records_with_unknown_keys_count_for_brokers_only() -> None:
    assert config_keys.is_supported(TOPIC, "retention.ms")
    assert not config_keys.is_supported(TOPIC, "log.retention.ms")
    assert config_keys.is_supported(BROKER, "anything.goes")
    assert not config_keys.is_supported(GROUP, "retention.ms")
    assert [
        each for each in ("4.3", "4.4") if config_keys.is_supported(GROUP, "streams.assignor.name", release(each))
    ] == ["4.4"]


@each_row("text", ["2.8", "2.8-IV1", "2.8.1", "0.10.2", "0.10.2-IV0", "3.0-IV1"])
def test_release_3_9_has_message_formats(text: str) -> None:
    key = config_keys.keys(TOPIC, release("3.9"))["message.format.version"]
    assert config_values.parse(key, text) == text


@each_row("text", ["", "2", "2.x", "x", "0.1", "2.8-IV7", "99.0"])
def test_release_3_9_refuses_other_message_formats(text: str) -> None:
    key = config_keys.keys(TOPIC, release("3.9"))["message.format.version"]
    with pytest.raises(ApiError) as refusal:
        config_values.parse(key, text)
    why = f"Version {text} is not a valid version"
    assert refusal.value.message == f"Invalid value {text} for configuration message.format.version: {why}"
