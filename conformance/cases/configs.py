"""IncrementalAlterConfigs and AlterConfigs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.topics import create
from mockraft.conformance.expectation import (
    GOOD,
    MISSING,
    Fields,
    InAnyOrder,
    NotApplicableError,
    expect,
    like,
    refused,
)
from mockraft.conformance.records import Expected, record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

MANAGER = "ConfigurationControlManager"
TEST = f"{MANAGER}Test"
RESOURCES_TEST = "ControllerApisTest.testInvalidIncrementalAlterConfigsResources"
GROUP_CONFIG = "GroupConfig.validate"
LOGGERS = "RuntimeLoggerManager.validateLogLevelConfigs"
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[int, str, str | None]


def resource(kind: int, name: str, *changes: Change) -> Tree:
    configs = [{"name": key, "configOperation": operation, "value": value} for operation, key, value in changes]
    return {"resourceType": kind, "resourceName": name, "configs": configs}


async def alter(world: World, *resources: Tree, answer: Sequence[Fields], **fields: object) -> None:
    request = {"resources": list(resources), **fields}
    await world.send("IncrementalAlterConfigs", request, answer={"responses": InAnyOrder(answer)})


def written(kind: int, name: str, key: str, value: object) -> Expected:
    return record("Config", resourceType=kind, resourceName=name, name=key, value=value)


async def topic_name(world: World, **configs: str) -> str:
    return (await world.topic([await world.broker()], **configs)).name


CHANGES: list[tuple[str, str, Change, str | None, object]] = [
    ("a topic's config is set with one record", "Configs", (SET, "flush.ms", "1000"), None, "1000"),
    ("a topic's config that is set to what it is is not written", "Configs", (SET, "flush.ms", "1000"), "1000", MISSING),
    ("a topic's config is deleted with a null", "Configs", (DELETE, "flush.ms", "ignored"), "1000", None),
    ("a config that is not there is deleted without a record", "Configs", (DELETE, "flush.ms", None), None, MISSING),
    ("what is appended to a list comes behind what is there, once", "MultipleConfigValues", (APPEND, "cleanup.policy", "delete,compact"), "compact", "compact,delete"),
]  # fmt: skip
"""Name of the case, end of its source, change, value before it, value that is written."""


@cases("{}", f"{TEST}.testIncrementalAlter{{1}}", CHANGES)
async def topic_config_is_changed(world: World, _test: str, change: Change, before: str | None, after: object) -> None:
    key = change[1]
    name = await topic_name(world, **({} if before is None else {key: before}))
    answer = [{**GOOD, "resourceType": TOPIC, "resourceName": name}]
    await alter(world, resource(TOPIC, name, change), answer=answer)
    await world.wrote(*([] if after is MISSING else [written(TOPIC, name, key, after)]))


@case("a list that is not set is appended to its default", f"{TEST}.testIncrementalAlterConfigs", Rank.SHOULD)
async def list_that_is_not_set_is_appended_to_its_default(world: World) -> None:
    await topic_config_is_changed(world, "", (APPEND, "cleanup.policy", "compact"), None, "delete,compact")


@case("what is subtracted from a list goes", f"{TEST}.testIncrementalAlterMultipleConfigValues")
async def subtract_removes_elements(world: World) -> None:
    change = (SUBTRACT, "cleanup.policy", "delete,other")
    await topic_config_is_changed(world, "", change, "compact,delete", "compact")


@case("nothing is appended to what is no list", f"{TEST}.testIncrementalAlterConfigs")
async def append_is_refused_unless_the_config_is_a_list(world: World) -> None:
    name = await topic_name(world)
    for operation, verb in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
        message = f"Can't {verb} to key retention.ms because its type is not LIST."
        answer = [refused(codes.INVALID_CONFIG, message)]
        await alter(world, resource(TOPIC, name, (operation, "retention.ms", "1")), answer=answer)


@case("a resource with one bad value is left as it is", f"{TEST}.testIncrementalAlterConfigs")
async def resource_with_one_bad_value_is_left(world: World) -> None:
    name = await topic_name(world)
    request = resource(TOPIC, name, (SET, "retention.ms", "7"), (SET, "segment.ms", "0"))
    await alter(world, request, answer=[refused(codes.INVALID_CONFIG)])
    await world.wrote()


@case("a bad resource does not harm a good one", f"{TEST}.testIncrementalAlterConfigs")
async def bad_resource_does_not_harm_good_one(world: World) -> None:
    name, none = await topic_name(world), world.name("none")
    answer = [{**GOOD, "resourceName": name}, {"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION, "resourceName": none}]
    await alter(
        world,
        resource(TOPIC, name, (SET, "flush.ms", "8")),
        resource(TOPIC, none, (SET, "flush.ms", "8")),
        answer=answer,
    )
    await world.wrote(written(TOPIC, name, "flush.ms", "8"))


@case("configs that are only validated are not written", "QuorumController.incrementalAlterConfigs")
async def configs_that_are_only_validated_are_not_written(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (SET, "flush.ms", "11")), answer=[GOOD], validateOnly=True)
    await world.wrote()


@case("a resource that is named twice is refused once", RESOURCES_TEST)
async def resource_that_is_named_twice_is_refused_once(world: World) -> None:
    name = await topic_name(world)
    twice = [resource(TOPIC, name, (SET, "flush.ms", value)) for value in ("1", "2")]
    await alter(world, *twice, answer=[refused(codes.INVALID_REQUEST, "Duplicate resource.")])
    await world.wrote()


@case("an unknown type of resource is refused", RESOURCES_TEST)
async def unknown_type_of_resource_is_refused(world: World) -> None:
    for kind in (0, 3, 64):
        answer = [refused(codes.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")]
        await alter(world, resource(kind, world.name()), answer=answer)


NAME_REFUSALS: list[tuple[str, int, str, int]] = [
    ("topic with no name", TOPIC, "", codes.INVALID_REQUEST),
    ("topic with a name that cannot be", TOPIC, "no/where", codes.INVALID_TOPIC_EXCEPTION),
    ("topic with an unknown name", TOPIC, "-unheard-of-", codes.UNKNOWN_TOPIC_OR_PARTITION),
    ("broker with a name that is no number", BROKER, "one", codes.INVALID_REQUEST),
    ("broker with a negative id", BROKER, "-1", codes.INVALID_REQUEST),
    ("broker with an id that nobody registered", BROKER, "2147483646", codes.BROKER_ID_NOT_REGISTERED),
]
VALUE_REFUSALS: list[tuple[str, str, str | None, object]] = [
    ("an unknown key", "no.such", "1", "Unknown topic config name: no.such"),
    ("a value that is no number", "retention.ms", "soon", "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
    ("a value below its least", "segment.bytes", "13", like("Invalid value 13 for configuration segment.bytes: .*")),
    ("an unknown word", "compression.type", "zip", like("Invalid value zip for configuration compression.type: .*")),
]  # fmt: skip


@cases("configs of a {} are refused", f"{TEST}.testIncrementalAlterConfigsWithoutExistence", NAME_REFUSALS)
async def configs_of_unusable_resource_name_are_refused(world: World, kind: int, name: str, code: int) -> None:
    key = "flush.ms" if kind == TOPIC else "num.io.threads"
    await alter(world, resource(kind, name, (SET, key, "1")), answer=[refused(code)], validateOnly=True)


@cases("a topic's config with {} is refused", f"{TEST}.testIncrementalAlterConfigs", VALUE_REFUSALS)
async def invalid_topic_config_is_refused(world: World, key: str, value: str | None, message: object) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (SET, key, value)), answer=[refused(codes.INVALID_CONFIG, message)])
    await world.wrote()


@case("a broker's config is written even if it is what it was", MANAGER, Rank.QUIRK)
async def unchanged_broker_config_is_written(world: World) -> None:
    name = str((await world.broker()).id)
    for _ in range(2):
        await alter(world, resource(BROKER, name, (SET, "num.io.threads", "9")), answer=[GOOD])
        await world.wrote(written(BROKER, name, "num.io.threads", "9"))


@case("a broker's config may have any key", MANAGER, Rank.QUIRK)
async def brokers_config_may_have_any_key(world: World) -> None:
    name = str((await world.broker()).id)
    await alter(world, resource(BROKER, name, (SET, "anything.goes", "x")), answer=[GOOD])
    await world.wrote(written(BROKER, name, "anything.goes", "x"))


@case("the configs of all brokers have an empty name", MANAGER, alone=True)
async def configs_of_all_brokers_have_empty_name(world: World) -> None:
    deletion = resource(BROKER, "", (DELETE, "log.retention.ms", None))
    world.afterwards("IncrementalAlterConfigs", {"resources": [deletion]})
    await alter(world, resource(BROKER, "", (SET, "log.retention.ms", "77000")), answer=[GOOD])
    await world.wrote(written(BROKER, "", "log.retention.ms", "77000"))


@case("a topic takes over what all brokers have", f"{MANAGER}.computeEffectiveTopicConfigs", Rank.SHOULD, alone=True)
async def topic_inherits_cluster_wide_configs(world: World) -> None:
    world.afterwards("IncrementalAlterConfigs", {"resources": [resource(BROKER, "", (DELETE, "log.roll.ms", None))]})
    await alter(world, resource(BROKER, "", (SET, "log.roll.ms", "78000")), answer=[GOOD])
    created = await create(world, world.creatable("t", [await world.broker()]), answer=[{"errorCode": 0}])
    (segment,) = [each for each in created["topics"][0]["configs"] if each["name"] == "segment.ms"]
    expect("segment.ms", {"value": "78000", "configSource": 3}, segment)


@case("a controller has configs by its id", MANAGER, Rank.SHOULD, since=15, has=Behaviour.CONTROLLERS_ARE_NODES)
async def controller_has_configs_by_its_id(world: World) -> None:
    request = resource(BROKER, str(world.target.leader_id), (SET, "num.io.threads", "9"))
    await alter(world, request, answer=[GOOD], validateOnly=True)


@case(
    "a controller of a dynamic quorum has no configs",
    MANAGER,
    Rank.QUIRK,
    lacks=Behaviour.CONTROLLERS_ARE_NODES,
    without_brokers=True,
)
async def controller_of_a_dynamic_quorum_has_no_configs(world: World) -> None:
    if not world.target.finalized_features.get("kraft.version"):
        raise NotApplicableError("the quorum is static: kraft.version is 0")
    name = str(world.target.leader_id)
    answer = [refused(codes.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")]
    await alter(world, resource(BROKER, name, (SET, "num.io.threads", "9")), answer=answer, validateOnly=True)


async def append_reporter(world: World, after: str) -> None:
    key = "metric.reporters"
    world.afterwards("IncrementalAlterConfigs", {"resources": [resource(BROKER, "", (DELETE, key, None))]})
    await alter(world, resource(BROKER, "", (APPEND, key, "mine")), answer=[GOOD])
    await world.wrote(written(BROKER, "", key, after))


@case("a reporter is appended to the default one", "KIP-830", Rank.SHOULD, since_release="4.0", alone=True)
async def reporter_is_appended_to_the_default_one(world: World) -> None:
    await append_reporter(world, "org.apache.kafka.common.metrics.JmxReporter,mine")


@case("a reporter is appended to none", "KIP-830", Rank.SHOULD, before_release="4.0", alone=True)
async def reporter_is_appended_to_none(world: World) -> None:
    await append_reporter(world, "mine")


@case("a broker has no minimum of in-sync replicas of its own with eligible leaders", "KIP-966", elr=True)
async def broker_has_no_minimum_of_in_sync_replicas_of_its_own_with_eligible_leaders(world: World) -> None:
    name = str((await world.broker()).id)
    message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    request = resource(BROKER, name, (SET, "min.insync.replicas", "2"))
    await alter(world, request, answer=[refused(codes.INVALID_CONFIG, message)])


@case("the cluster's minimum of in-sync replicas stays with eligible leaders", "KIP-966", elr=True)
async def clusters_minimum_of_in_sync_replicas_stays_with_eligible_leaders(world: World) -> None:
    message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    request = resource(BROKER, "", (DELETE, "min.insync.replicas", None))
    await alter(world, request, answer=[refused(codes.INVALID_CONFIG, message)])


@case("a broker may have a minimum of in-sync replicas of its own without eligible leaders", "KIP-966", elr=False)
async def broker_may_have_minimum_of_in_sync_replicas_of_its_own_without_eligible_leaders(world: World) -> None:
    name = str((await world.broker()).id)
    await alter(world, resource(BROKER, name, (SET, "min.insync.replicas", "2")), answer=[GOOD])


@case("a topic's minimum of in-sync replicas clears its eligible leaders", "KIP-966, ClearElrRecord", elr=True)
async def topics_minimum_of_in_sync_replicas_clears_its_eligible_leaders(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (SET, "min.insync.replicas", "2")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "min.insync.replicas", "2"), record("ClearElr", topicName=name))


@case("client metrics have an interval and a match", "KIP-714, ClientMetricsConfigs")
async def client_metrics_have_interval_and_match(world: World) -> None:
    name = world.name("m")
    request = resource(CLIENT_METRICS, name, (SET, "interval.ms", "100"), (SET, "match", "client_id=a.*"))
    await alter(world, request, answer=[GOOD])
    await world.wrote(
        written(CLIENT_METRICS, name, "interval.ms", "100"),
        written(CLIENT_METRICS, name, "match", "client_id=a.*"),
        in_any_order=True,
    )


@case("bad client metrics are refused", "KIP-714, ClientMetricsConfigs", Rank.SHOULD)
async def bad_client_metrics_are_refused(world: World) -> None:
    for key, value, code in (
        ("interval.ms", "99", codes.INVALID_REQUEST),
        ("match", "client=a", codes.INVALID_CONFIG),
        ("b.c", "1", codes.INVALID_REQUEST),
    ):
        await alter(world, resource(CLIENT_METRICS, world.name("m"), (SET, key, value)), answer=[refused(code)])


@case("a group's configs are checked", "KIP-848, GroupConfig", Rank.SHOULD, has=Behaviour.GROUPS_HAVE_CONFIGS)
async def groups_configs_are_checked(world: World) -> None:
    name = world.name("g")
    await alter(world, resource(GROUP, name, (SET, "consumer.session.timeout.ms", "50000")), answer=[GOOD])
    await world.wrote(written(GROUP, name, "consumer.session.timeout.ms", "50000"))
    for key, value in (("consumer.heartbeat.interval.ms", "4999"), ("no.such", "1")):
        await alter(world, resource(GROUP, name, (SET, key, value)), answer=[refused(codes.INVALID_CONFIG)])
    await world.wrote()


BOUNDS: list[tuple[str, str, str, str, str]] = [
    (
        "heartbeat interval",
        "consumer.heartbeat.interval.ms",
        "4999",
        "5000 to 15000",
        "greater than or equal to group.consumer.min",
    ),
    (
        "session timeout",
        "consumer.session.timeout.ms",
        "60001",
        "45000 to 60000",
        "less than or equal to group.consumer.max",
    ),
]
"""Name, key, value, the range, and how the key of the bound begins."""


@cases(
    "a group's {} out of bounds is refused", GROUP_CONFIG, BOUNDS, Rank.SHOULD, has=Behaviour.GROUP_BOUNDS_ARE_NUMBERS
)
async def refusal_names_the_bounds(world: World, key: str, value: str, bounds: str, _by_key: str) -> None:
    await refuse_group_config(world, key, value, f"{key} must be in the range {bounds} inclusive.")


@cases(
    "a group's {} out of bounds is refused with the bound's key",
    GROUP_CONFIG,
    BOUNDS,
    Rank.QUIRK,
    has=Behaviour.GROUPS_HAVE_CONFIGS,
    lacks=Behaviour.GROUP_BOUNDS_ARE_NUMBERS,
)
async def refusal_names_the_key_of_the_bound(world: World, key: str, value: str, _bounds: str, by_key: str) -> None:
    await refuse_group_config(world, key, value, f"{key} must be {by_key}.{key.removeprefix('consumer.')}")


CHECKED: list[tuple[str, str, str, str]] = [
    ("task assignor", "streams.assignor.name", "fast", "'fast' is not a registered task assignor."),
    ("rack tags", "streams.rack.aware.assignment.tags", "a , a", "must not contain duplicate tag keys."),
    ("dead letter topic", "errors.deadletterqueue.topic.name", "__dead", "DLQ topic name must not start with '__'"),
]
"""Name, key, value, message."""


@cases("a group's {} is checked", GROUP_CONFIG, CHECKED, Rank.SHOULD, since_release="4.4")
async def new_group_config_is_checked(world: World, key: str, value: str, message: str) -> None:
    await refuse_group_config(world, key, value, like(f"{re.escape(key)}:? {re.escape(message)}.*"))


async def refuse_group_config(world: World, key: str, value: str, message: object) -> None:
    answer = [refused(codes.INVALID_CONFIG, message)]
    await alter(world, resource(GROUP, world.name("g"), (SET, key, value)), answer=answer)
    await world.wrote()


@case(
    "an operation that no broker logger has is refused", LOGGERS, Rank.SHOULD, has=Behaviour.LOGGER_OPERATIONS_ARE_NAMED
)
async def logger_operation_is_refused(world: World) -> None:
    message = "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource"
    await alter(world, logger_change(world), answer=[refused(codes.INVALID_REQUEST, message)])


@case("an operation that no broker logger has breaks", LOGGERS, Rank.QUIRK, lacks=Behaviour.LOGGER_OPERATIONS_ARE_NAMED)
async def logger_operation_breaks(world: World) -> None:
    await alter(world, logger_change(world), answer=[refused(codes.UNKNOWN_SERVER_ERROR)])


def logger_change(world: World) -> Tree:
    return resource(BROKER_LOGGER, str(world.target.leader_id), (9, "root", "INFO"))


@case("groups have no configs", "ConfigResource.Type", Rank.SHOULD, lacks=Behaviour.GROUPS_HAVE_CONFIGS)
async def groups_have_no_configs(world: World) -> None:
    answer = [refused(codes.UNSUPPORTED_VERSION, "Unknown resource type 32.")]
    await alter(world, resource(GROUP, world.name("g"), (SET, "consumer.session.timeout.ms", "50000")), answer=answer)
    await world.wrote()


async def replace(world: World, name: str, answer: object, **values: str) -> None:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in values.items()]
    request = {"resources": [{"resourceType": TOPIC, "resourceName": name, "configs": configs}]}
    await world.send("AlterConfigs", request, answer={"responses": answer})


@case("AlterConfigs deletes what it does not name", f"{TEST}.testLegacyAlterConfigs")
async def alter_configs_deletes_omitted_configs(world: World) -> None:
    name = await topic_name(world, retention_ms="1000", flush_ms="4")
    await replace(world, name, [GOOD], flush_ms="5")
    await world.wrote(
        written(TOPIC, name, "flush.ms", "5"), written(TOPIC, name, "retention.ms", None), in_any_order=True
    )


@case("AlterConfigs of what is there already writes nothing", f"{TEST}.testLegacyAlterConfigs")
async def alter_configs_without_change_writes_nothing(world: World) -> None:
    name = await topic_name(world, flush_ms="4")
    await replace(world, name, [GOOD], flush_ms="4")
    await world.wrote()


@case("AlterConfigs refuses what it cannot set", "ControllerApisTest.testHandleLegacyAlterConfigsErrors")
async def alter_configs_refuses_invalid_configs(world: World) -> None:
    name = await topic_name(world, flush_ms="4")
    await replace(world, name, [refused(codes.INVALID_CONFIG)], no_such="1")
    await replace(world, world.name("none"), [refused(codes.UNKNOWN_TOPIC_OR_PARTITION)], flush_ms="4")
    await world.wrote()
