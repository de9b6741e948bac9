"""IncrementalAlterConfigs and AlterConfigs."""

from __future__ import annotations

from typing import Any

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import ANYTHING, InAnyOrder, expect, like
from mockraft.conformance.records import Expected, record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

AREA = "configs"
TEST = "ConfigurationControlManagerTest"
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[int, str, str | None]
GOOD: Tree = {"errorCode": 0, "errorMessage": None}


def resource(kind: int, name: str, *changes: Change) -> Tree:
    configs = [{"name": key, "configOperation": operation, "value": value} for operation, key, value in changes]
    return {"resourceType": kind, "resourceName": name, "configs": configs}


async def alter(world: World, *resources: Tree, answer: Any, **fields: Any) -> None:
    asked = {"resources": list(resources), **fields}
    await world.ask("IncrementalAlterConfigs", asked, answer={"responses": InAnyOrder(answer)})


def refused(code: int, message: Any = ANYTHING) -> list[Tree]:
    return [{"errorCode": code, "errorMessage": message}]


def written(kind: int, name: str, key: str, value: str | None) -> Expected:
    return record("Config", resourceType=kind, resourceName=name, name=key, value=value)


async def topic_name(world: World, **configs: str) -> str:
    return (await world.topic([await world.broker()], **configs)).name


@case("a topic's config is set with one record", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world)
    answer = [{**GOOD, "resourceType": TOPIC, "resourceName": name}]
    await alter(world, resource(TOPIC, name, (SET, "retention.ms", "1000")), answer=answer)
    await world.wrote(written(TOPIC, name, "retention.ms", "1000"))


@case("a topic's config that is set to what it is is not written", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world, retention_ms="1000")
    await alter(world, resource(TOPIC, name, (SET, "retention.ms", "1000")), answer=[GOOD])
    await world.wrote()


@case("a topic's config is deleted with a null", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world, retention_ms="1000")
    await alter(world, resource(TOPIC, name, (DELETE, "retention.ms", "ignored")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "retention.ms", None))


@case("a config that is not there is deleted without a record", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (DELETE, "retention.ms", None)), answer=[GOOD])
    await world.wrote()


@case(
    "what is appended to a list comes behind what is there, once",
    AREA,
    f"{TEST}.testIncrementalAlterMultipleConfigValues",
)
async def _(world: World) -> None:
    name = await topic_name(world, cleanup_policy="compact")
    await alter(world, resource(TOPIC, name, (APPEND, "cleanup.policy", "delete,compact")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "cleanup.policy", "compact,delete"))


@case("a list that is not set is appended to its default", AREA, f"{TEST}.testIncrementalAlterConfigs", Rank.SHOULD)
async def _(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (APPEND, "cleanup.policy", "compact")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "cleanup.policy", "delete,compact"))


@case("what is subtracted from a list goes", AREA, f"{TEST}.testIncrementalAlterMultipleConfigValues")
async def _(world: World) -> None:
    name = await topic_name(world, cleanup_policy="compact,delete")
    await alter(world, resource(TOPIC, name, (SUBTRACT, "cleanup.policy", "delete,other")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "cleanup.policy", "compact"))


@case("nothing is appended to what is no list", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world)
    message = "Can't APPEND to key retention.ms because its type is not LIST."
    await alter(
        world, resource(TOPIC, name, (APPEND, "retention.ms", "1")), answer=refused(codes.INVALID_CONFIG, message)
    )
    message = "Can't SUBTRACT to key retention.ms because its type is not LIST."
    await alter(
        world, resource(TOPIC, name, (SUBTRACT, "retention.ms", "1")), answer=refused(codes.INVALID_CONFIG, message)
    )


@case("a resource with one bad value is left as it is", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world)
    asked = resource(TOPIC, name, (SET, "retention.ms", "7"), (SET, "segment.ms", "0"))
    await alter(world, asked, answer=refused(codes.INVALID_CONFIG))
    await world.wrote()


@case("a bad resource does not harm a good one", AREA, f"{TEST}.testIncrementalAlterConfigs")
async def _(world: World) -> None:
    name, none = await topic_name(world), world.name("none")
    answer = [{**GOOD, "resourceName": name}, {"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION, "resourceName": none}]
    await alter(
        world,
        resource(TOPIC, name, (SET, "flush.ms", "8")),
        resource(TOPIC, none, (SET, "flush.ms", "8")),
        answer=answer,
    )
    await world.wrote(written(TOPIC, name, "flush.ms", "8"))


@case("configs that are only validated are not written", AREA, "QuorumController.incrementalAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (SET, "flush.ms", "11")), answer=[GOOD], validateOnly=True)
    await world.wrote()


@case(
    "a resource that is named twice is refused once",
    AREA,
    "ControllerApisTest.testInvalidIncrementalAlterConfigsResources",
)
async def _(world: World) -> None:
    name = await topic_name(world)
    twice = [resource(TOPIC, name, (SET, "flush.ms", value)) for value in ("1", "2")]
    await alter(world, *twice, answer=refused(codes.INVALID_REQUEST, "Duplicate resource."))
    await world.wrote()


@case("an unknown type of resource is refused", AREA, "ControllerApisTest.testInvalidIncrementalAlterConfigsResources")
async def _(world: World) -> None:
    for kind in (0, 3, 64):
        answer = refused(codes.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
        await alter(world, resource(kind, world.name()), answer=answer)


TOPIC_REFUSALS: list[tuple[str, str, int]] = [
    ("no name", "", codes.INVALID_REQUEST),
    ("a name that cannot be", "no/where", codes.INVALID_TOPIC_EXCEPTION),
    ("an unknown name", "-unheard-of-", codes.UNKNOWN_TOPIC_OR_PARTITION),
]
BROKER_REFUSALS: list[tuple[str, str, int]] = [
    ("a name that is no number", "one", codes.INVALID_REQUEST),
    ("a negative id", "-1", codes.INVALID_REQUEST),
    ("an id that nobody registered", "2147483646", codes.BROKER_ID_NOT_REGISTERED),
]
VALUE_REFUSALS: list[tuple[str, str, str | None, Any]] = [
    ("an unknown key", "no.such", "1", "Unknown topic config name: no.such"),
    ("a value that is no number", "retention.ms", "soon", "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
    ("a value below its least", "segment.bytes", "14", like("Invalid value 14 for configuration segment.bytes: .*")),
    ("an unknown word", "compression.type", "zip", like("Invalid value zip for configuration compression.type: .*")),
]  # fmt: skip


def refuse_name(kind: int, what: str, name: str, code: int) -> None:
    told = "topic" if kind == TOPIC else "broker"

    @case(f"configs of a {told} with {what} are refused", AREA, f"{TEST}.testIncrementalAlterConfigsWithoutExistence")
    async def _(world: World) -> None:
        key = "flush.ms" if kind == TOPIC else "num.io.threads"
        await alter(world, resource(kind, name, (SET, key, "1")), answer=refused(code), validateOnly=True)


def refuse_value(what: str, key: str, value: str | None, message: Any) -> None:
    @case(f"a topic's config with {what} is refused", AREA, f"{TEST}.testIncrementalAlterConfigs")
    async def _(world: World) -> None:
        name = await topic_name(world)
        await alter(world, resource(TOPIC, name, (SET, key, value)), answer=refused(codes.INVALID_CONFIG, message))
        await world.wrote()


for topic_row in TOPIC_REFUSALS:
    refuse_name(TOPIC, *topic_row)
for broker_row in BROKER_REFUSALS:
    refuse_name(BROKER, *broker_row)
for value_row in VALUE_REFUSALS:
    refuse_value(*value_row)


@case("a broker's config is written even if it is what it was", AREA, "ConfigurationControlManager", Rank.QUIRK)
async def _(world: World) -> None:
    name = str((await world.broker()).id)
    for _ in range(2):
        await alter(world, resource(BROKER, name, (SET, "num.io.threads", "9")), answer=[GOOD])
        await world.wrote(written(BROKER, name, "num.io.threads", "9"))


@case("a broker's config may have any key", AREA, "ConfigurationControlManager", Rank.QUIRK)
async def _(world: World) -> None:
    name = str((await world.broker()).id)
    await alter(world, resource(BROKER, name, (SET, "anything.goes", "x")), answer=[GOOD])
    await world.wrote(written(BROKER, name, "anything.goes", "x"))


@case("the configs of all brokers have an empty name", AREA, "ConfigurationControlManager", alone=True)
async def _(world: World) -> None:
    world.afterwards(
        "IncrementalAlterConfigs", {"resources": [resource(BROKER, "", (DELETE, "log.retention.ms", None))]}
    )
    await alter(world, resource(BROKER, "", (SET, "log.retention.ms", "77000")), answer=[GOOD])
    await world.wrote(written(BROKER, "", "log.retention.ms", "77000"))


@case(
    "a topic takes over what all brokers have",
    AREA,
    "ConfigurationControlManager.computeEffectiveTopicConfigs",
    Rank.SHOULD,
    alone=True,
)
async def _(world: World) -> None:
    world.afterwards("IncrementalAlterConfigs", {"resources": [resource(BROKER, "", (DELETE, "log.roll.ms", None))]})
    await alter(world, resource(BROKER, "", (SET, "log.roll.ms", "78000")), answer=[GOOD])
    asked = {"topics": [world.creatable("t", [await world.broker()])], "timeoutMs": 10_000}
    told = await world.ask("CreateTopics", asked, answer={"topics": [{"errorCode": 0}]})
    (segment,) = [each for each in told["topics"][0]["configs"] if each["name"] == "segment.ms"]
    expect("segment.ms", {"value": "78000", "configSource": 3}, segment)


@case("a broker has no minimum of in-sync replicas of its own with eligible leaders", AREA, "KIP-966", elr=True)
async def _(world: World) -> None:
    name = str((await world.broker()).id)
    message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    asked = resource(BROKER, name, (SET, "min.insync.replicas", "2"))
    await alter(world, asked, answer=refused(codes.INVALID_CONFIG, message))


@case("the cluster's minimum of in-sync replicas stays with eligible leaders", AREA, "KIP-966", elr=True)
async def _(world: World) -> None:
    message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    asked = resource(BROKER, "", (DELETE, "min.insync.replicas", None))
    await alter(world, asked, answer=refused(codes.INVALID_CONFIG, message))


@case("a broker may have a minimum of in-sync replicas of its own without eligible leaders", AREA, "KIP-966", elr=False)
async def _(world: World) -> None:
    name = str((await world.broker()).id)
    await alter(world, resource(BROKER, name, (SET, "min.insync.replicas", "2")), answer=[GOOD])


@case("a topic's minimum of in-sync replicas clears its eligible leaders", AREA, "KIP-966, ClearElrRecord", elr=True)
async def _(world: World) -> None:
    name = await topic_name(world)
    await alter(world, resource(TOPIC, name, (SET, "min.insync.replicas", "2")), answer=[GOOD])
    await world.wrote(written(TOPIC, name, "min.insync.replicas", "2"), record("ClearElr", topicName=name))


@case("client metrics have an interval and a match", AREA, "KIP-714, ClientMetricsConfigs")
async def _(world: World) -> None:
    name = world.name("m")
    asked = resource(CLIENT_METRICS, name, (SET, "interval.ms", "100"), (SET, "match", "client_id=a.*"))
    await alter(world, asked, answer=[GOOD])
    await world.wrote(
        written(CLIENT_METRICS, name, "interval.ms", "100"),
        written(CLIENT_METRICS, name, "match", "client_id=a.*"),
        in_any_order=True,
    )


@case("bad client metrics are refused", AREA, "KIP-714, ClientMetricsConfigs", Rank.SHOULD)
async def _(world: World) -> None:
    for key, value, code in (
        ("interval.ms", "99", codes.INVALID_REQUEST),
        ("match", "client=a", codes.INVALID_CONFIG),
        ("b.c", "1", codes.INVALID_REQUEST),
    ):
        await alter(world, resource(CLIENT_METRICS, world.name("m"), (SET, key, value)), answer=refused(code))


@case("a group's configs are checked", AREA, "KIP-848, GroupConfig", Rank.SHOULD)
async def _(world: World) -> None:
    name = world.name("g")
    await alter(world, resource(GROUP, name, (SET, "consumer.session.timeout.ms", "50000")), answer=[GOOD])
    await world.wrote(written(GROUP, name, "consumer.session.timeout.ms", "50000"))
    for key, value in (("consumer.heartbeat.interval.ms", "4999"), ("no.such", "1")):
        await alter(world, resource(GROUP, name, (SET, key, value)), answer=refused(codes.INVALID_CONFIG))
    await world.wrote()


async def replace(world: World, name: str, answer: Any, **values: str) -> None:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in values.items()]
    asked = {"resources": [{"resourceType": TOPIC, "resourceName": name, "configs": configs}]}
    await world.ask("AlterConfigs", asked, answer={"responses": answer})


@case("AlterConfigs deletes what it does not name", AREA, f"{TEST}.testLegacyAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world, retention_ms="1000", flush_ms="4")
    await replace(world, name, [GOOD], flush_ms="5")
    await world.wrote(
        written(TOPIC, name, "flush.ms", "5"), written(TOPIC, name, "retention.ms", None), in_any_order=True
    )


@case("AlterConfigs of what is there already writes nothing", AREA, f"{TEST}.testLegacyAlterConfigs")
async def _(world: World) -> None:
    name = await topic_name(world, flush_ms="4")
    await replace(world, name, [GOOD], flush_ms="4")
    await world.wrote()


@case("AlterConfigs refuses what it cannot set", AREA, "ControllerApisTest.testHandleLegacyAlterConfigsErrors")
async def _(world: World) -> None:
    name = await topic_name(world, flush_ms="4")
    await replace(world, name, refused(codes.INVALID_CONFIG), no_such="1")
    await replace(world, world.name("none"), refused(codes.UNKNOWN_TOPIC_OR_PARTITION), flush_ms="4")
    await world.wrote()
