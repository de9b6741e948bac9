"""Keys, bounds and values of configs that came, changed or went with a release."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.configs import CLIENT_METRICS, GROUP, SET, TOPIC, alter, resource, topic_name, written
from mockraft.conformance.expectation import GOOD, refused
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

LOG_CONFIG = "LogConfig"
GROUP_CONFIG = "GroupConfig"
CLIENT_METRICS_CONFIGS = "ClientMetricsConfigs.validate"
MIB = 1024 * 1024


async def accept_value(world: World, kind: int, key: str, value: str) -> None:
    name = await topic_name(world) if kind == TOPIC else world.name("g")
    await alter(world, resource(kind, name, (SET, key, value)), answer=[GOOD])
    await world.wrote(written(kind, name, key, value))


async def refuse_value(world: World, kind: int, key: str, value: str, message: str | None, code: int) -> None:
    name = await topic_name(world) if kind == TOPIC else world.name("g")
    await alter(world, resource(kind, name, (SET, key, value)), answer=[refused(code, message)])
    await world.wrote()


async def accept_topic_config(world: World, key: str, value: str) -> None:
    await accept_value(world, TOPIC, key, value)


async def refuse_unknown_topic_config(world: World, key: str, value: str) -> None:
    await refuse_value(world, TOPIC, key, value, f"Unknown topic config name: {key}", codes.INVALID_CONFIG)


async def refuse_topic_config(world: World, key: str, value: str, why: str) -> None:
    message = f"Invalid value {value} for configuration {key}: {why}"
    await refuse_value(world, TOPIC, key, value, message, codes.INVALID_CONFIG)


async def accept_group_config(world: World, key: str, value: str) -> None:
    await accept_value(world, GROUP, key, value)


async def refuse_unknown_group_config(world: World, key: str, value: str) -> None:
    await refuse_value(world, GROUP, key, value, f"Unknown group config name: {key}", codes.INVALID_CONFIG)


LEVELS: list[tuple[str, str, str]] = [
    ("gzip", "compression.gzip.level", "5"),
    ("lz4", "compression.lz4.level", "9"),
    ("zstd", "compression.zstd.level", "3"),
]
LEVELS_OUT_OF_BOUNDS: list[tuple[str, str, str, str]] = [
    ("gzip", "compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
    ("lz4", "compression.lz4.level", "18", "Value must be no more than 17"),
    ("zstd", "compression.zstd.level", "23", "Value must be no more than 22"),
]
cases("the level of {} of a topic can be set", "KIP-390, LogConfig", LEVELS, since_release="3.8")(accept_topic_config)
cases("a level that {} does not have is refused", "KIP-390, LogConfig", LEVELS_OUT_OF_BOUNDS, since_release="3.8")(
    refuse_topic_config
)
cases("the level of {} of a topic is an unknown config", "KIP-390", LEVELS, Rank.SHOULD, before_release="3.8")(
    refuse_unknown_topic_config
)

TIERED: list[tuple[str, str, str]] = [
    ("stop of remote copies", "remote.log.copy.disable", "false"),
    ("deletion of remote copies", "remote.log.delete.on.disable", "false"),
]
cases("the {} of a topic can be set", "KIP-950", TIERED, Rank.SHOULD, since_release="3.9")(accept_topic_config)
cases("the {} of a topic is an unknown config", "KIP-950", TIERED, Rank.QUIRK, before_release="3.9")(
    refuse_unknown_topic_config
)

REMOVED: list[tuple[str, str, str]] = [
    ("message format", "message.format.version", "2.8"),
    ("largest difference of timestamps", "message.timestamp.difference.max.ms", "1000"),
    ("down-conversion of messages", "message.downconversion.enable", "false"),
]
cases("the {} of a topic can be set", "KIP-724, KIP-937", REMOVED, Rank.SHOULD, before_release="4.0")(
    accept_topic_config
)
cases("the {} of a topic is an unknown config", "KIP-724, KIP-937", REMOVED, Rank.SHOULD, since_release="4.0")(
    refuse_unknown_topic_config
)


@case("a message format that no release had is refused", "MetadataVersionValidator", Rank.SHOULD, before_release="4.0")
async def unknown_message_format_is_refused(world: World) -> None:
    await refuse_topic_config(world, "message.format.version", "2.x", "Version 2.x is not a valid version")


@case("a segment has at least a mebibyte", "KIP-1030, LogConfig", since_release="4.1")
async def small_segments_are_refused(world: World) -> None:
    await refuse_topic_config(world, "segment.bytes", str(MIB - 1), f"Value must be at least {MIB}")


@case("a segment may have fourteen bytes", LOG_CONFIG, Rank.SHOULD, before_release="4.1")
async def small_segments_are_accepted(world: World) -> None:
    await accept_topic_config(world, "segment.bytes", "14")


OF_4_4: list[tuple[str, str, str]] = [
    ("delivery of dead letters", "errors.deadletterqueue.group.enable", "true"),
    ("lag of remote copies in time", "remote.copy.lag.ms", "0"),
    ("lag of remote copies in bytes", "remote.copy.lag.bytes", "0"),
]
cases("the {} of a topic can be set", LOG_CONFIG, OF_4_4, Rank.SHOULD, since_release="4.4")(accept_topic_config)
cases("the {} of a topic is an unknown config", LOG_CONFIG, OF_4_4, Rank.QUIRK, before_release="4.4")(
    refuse_unknown_topic_config
)

GROUP_KEYS: dict[str, list[tuple[str, str, str]]] = {
    "4.1": [
        ("session timeout of streams", "streams.session.timeout.ms", "46000"),
        ("number of standby replicas", "streams.num.standby.replicas", "1"),
        ("isolation level of shares", "share.isolation.level", "read_committed"),
    ],
    "4.2": [("delay of the first rebalance", "streams.initial.rebalance.delay.ms", "1000")],
    "4.3": [
        ("number of deliveries of shares", "share.delivery.count.limit", "6"),
        ("number of record locks of shares", "share.partition.max.record.locks", "3000"),
        ("interval of consumers' assignments", "consumer.assignment.interval.ms", "2000"),
    ],
    "4.4": [
        ("number of warmup replicas", "streams.num.warmup.replicas", "1"),
        ("interval of task offsets", "streams.task.offset.interval.ms", "30000"),
    ],
}
"""Keys of groups by the release that added them: name of the case, key, value."""

for _release, _keys in GROUP_KEYS.items():
    cases("the {} of a group can be set", GROUP_CONFIG, _keys, Rank.SHOULD, since_release=_release)(accept_group_config)
    cases(
        "the {} of a group is an unknown config",
        GROUP_CONFIG,
        _keys,
        Rank.QUIRK,
        has=Behaviour.GROUPS_HAVE_CONFIGS,
        before_release=_release,
    )(refuse_unknown_group_config)


@case("a number of standby replicas beyond the limit is refused", GROUP_CONFIG, Rank.SHOULD, since_release="4.4")
async def too_many_standby_replicas_are_refused(world: World) -> None:
    key = "streams.num.standby.replicas"
    await refuse_value(world, GROUP, key, "3", f"{key} must be less than or equal to 2", codes.INVALID_CONFIG)


@case(
    "a number of standby replicas beyond the limit is refused with the limit's key",
    GROUP_CONFIG,
    Rank.QUIRK,
    since_release="4.1",
    before_release="4.4",
)
async def refusal_names_the_key_of_the_limit_of_standby_replicas(world: World) -> None:
    key = "streams.num.standby.replicas"
    message = f"{key} must be less than or equal to group.streams.max.standby.replicas"
    await refuse_value(world, GROUP, key, "3", message, codes.INVALID_CONFIG)


NO_NUMBERS: list[tuple[str, str]] = [("a word", "soon"), ("a fraction", "1.5")]


@cases(
    "{} for the interval of client metrics is refused",
    CLIENT_METRICS_CONFIGS,
    NO_NUMBERS,
    Rank.SHOULD,
    has=Behaviour.CLIENT_METRICS_ARE_PARSED,
)
async def interval_that_is_no_number_is_refused(world: World, value: str) -> None:
    message = f"Invalid value {value} for configuration interval.ms: Not a number of type INT"
    await refuse_value(world, CLIENT_METRICS, "interval.ms", value, message, codes.INVALID_CONFIG)


@cases(
    "{} for the interval of client metrics breaks",
    CLIENT_METRICS_CONFIGS,
    NO_NUMBERS,
    Rank.QUIRK,
    lacks=Behaviour.CLIENT_METRICS_ARE_PARSED,
)
async def interval_that_is_no_number_breaks(world: World, value: str) -> None:
    await refuse_value(world, CLIENT_METRICS, "interval.ms", value, None, codes.UNKNOWN_SERVER_ERROR)


@case(
    "client metrics may match nothing in particular",
    CLIENT_METRICS_CONFIGS,
    Rank.SHOULD,
    has=Behaviour.CLIENT_METRICS_ARE_PARSED,
)
async def empty_match_is_accepted(world: World) -> None:
    await accept_value(world, CLIENT_METRICS, "match", "")


@case(
    "client metrics with an empty match are refused",
    CLIENT_METRICS_CONFIGS,
    Rank.QUIRK,
    lacks=Behaviour.CLIENT_METRICS_ARE_PARSED,
)
async def empty_match_is_refused(world: World) -> None:
    await refuse_value(world, CLIENT_METRICS, "match", "", "Illegal client matching pattern: ", codes.INVALID_CONFIG)
