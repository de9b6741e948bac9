"""Cordoned directories (KIP-1066): reporting by brokers, and the effect on replica placement."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.configs import BROKER, DELETE, SET, resource
from mockraft.conformance.cases.configs import alter as alter_configs
from mockraft.conformance.cases.reassignments import move
from mockraft.conformance.cases.topics import create
from mockraft.conformance.expectation import GOOD, Fields, InAnyOrder, refused
from mockraft.conformance.records import broker_change, record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

HEARTBEAT = "KIP-1066, BrokerHeartbeatRequest v2"
IN_SPITE_OF_KIP = "KIP-1066 says otherwise"


@case("a heartbeat with cordoned directories is written", HEARTBEAT, since=30)
async def heartbeat_with_cordoned_directories_is_written(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, cordonedLogDirs=[a.dirs[1]])
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=[a.dirs[1]]))


@case("the first word that nothing is cordoned is written", HEARTBEAT, Rank.QUIRK, since=30)
async def first_report_without_cordoned_directories_is_written(world: World) -> None:
    a = await world.register()
    await world.heartbeat(a)
    await world.records()
    await world.heartbeat(a, cordonedLogDirs=[])
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=[]))
    await world.heartbeat(a, cordonedLogDirs=[])
    await world.wrote()


REPORTS: list[tuple[str, list[int], list[int] | None, bool]] = [
    ("the same cordoned directories in another order are not written again", [0, 1], [1, 0], False),
    ("a heartbeat that does not speak of cordoning changes nothing", [1], None, False),
    ("directories are uncordoned by an empty list", [0, 1], [], True),
]
"""Indexes of the cordoned directories in a first and a second heartbeat, and True if the second is written."""


@cases("{}", HEARTBEAT, REPORTS, since=30)
async def second_report_is_written_if_it_differs(
    world: World, first: list[int], second: list[int] | None, is_written: bool
) -> None:
    a = await world.broker(log_dirs=3)
    await world.heartbeat(a, cordonedLogDirs=[a.dirs[index] for index in first])
    await world.records()
    fields: Tree = {} if second is None else {"cordonedLogDirs": [a.dirs[index] for index in second]}
    await world.heartbeat(a, **fields)
    if second is None:
        await world.heartbeat(a, version=1)
    await world.wrote(*([broker_change(a.id, a.epoch, **fields)] if is_written else []))


@case("cordoned directories need not be the broker's", HEARTBEAT, Rank.QUIRK, since=30)
async def cordoned_directories_need_not_be_brokers(world: World) -> None:
    a = await world.broker()
    unknown = world.uuid()
    await world.heartbeat(a, cordonedLogDirs=[unknown])
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=[unknown]))


@case("fencing, failure and cordoning of one heartbeat are three records in this order", HEARTBEAT, since=30)
async def fencing_failure_and_cordoning_of_one_heartbeat_are_three_records_in_this_order(world: World) -> None:
    a = await world.broker(log_dirs=3)
    await world.heartbeat(a, wantFence=True, offlineLogDirs=[a.dirs[0]], cordonedLogDirs=[a.dirs[1]])
    await world.wrote(
        broker_change(a.id, a.epoch, fenced=1),
        broker_change(a.id, a.epoch, logDirs=InAnyOrder(a.dirs[1:])),
        broker_change(a.id, a.epoch, cordonedLogDirs=[a.dirs[1]]),
    )


@case("a fenced broker's cordoned directories are written", HEARTBEAT, since=30)
async def fenced_brokers_cordoned_directories_are_written(world: World) -> None:
    a = await world.register(logDirs=[world.uuid(), world.uuid()])
    await world.records()
    await world.heartbeat(a, wantFence=True, cordonedLogDirs=[a.dirs[0]])
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=[a.dirs[0]]))


@case("registering anew forgets what is cordoned", "KIP-1066, RegisterBrokerRecord v4", since=30)
async def reregistration_clears_cordoned_directories(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, cordonedLogDirs=[a.dirs[1]])
    await world.register(a.id, **{**a.registration, "rack": "r"})
    await world.records()
    await world.heartbeat(a, cordonedLogDirs=[a.dirs[1]])
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=[a.dirs[1]]))


@case("cordoned directories are not looked at before metadata.version 30", HEARTBEAT, until=29)
async def cordoned_directories_are_not_looked_at_before_metadata_version_30(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, cordonedLogDirs=a.dirs)
    await world.wrote()


@case(
    "a topic may be assigned to a broker with all directories cordoned",
    IN_SPITE_OF_KIP,
    Rank.QUIRK,
    since=30,
    lacks=Behaviour.CORDONED_BROKERS_GET_NO_REPLICAS,
)
async def topic_may_be_assigned_to_broker_with_all_directories_cordoned(world: World) -> None:
    a = await world.broker(cordoned=[0])
    await create(world, world.creatable("t", [a]), answer=[{"errorCode": 0}])
    await world.wrote(record("Topic"), record("Partition", leader=a.id, directories=a.dirs))


@case(
    "a partition may be moved to a broker with all directories cordoned",
    IN_SPITE_OF_KIP,
    Rank.QUIRK,
    since=30,
    lacks=Behaviour.CORDONED_BROKERS_GET_NO_REPLICAS,
)
async def partition_may_be_moved_to_broker_with_all_directories_cordoned(world: World) -> None:
    a, b = await world.broker(), await world.broker(cordoned=[0])
    topic = await world.topic([a])
    await move(world, topic.name, [b])


@case(
    "no topic is assigned to a broker with all directories cordoned",
    "KAFKA-20441",
    since=30,
    has=Behaviour.CORDONED_BROKERS_GET_NO_REPLICAS,
)
async def no_topic_is_assigned_to_broker_with_all_directories_cordoned(world: World) -> None:
    a = await world.broker(cordoned=[0])
    await create(world, world.creatable("t", [a]), answer=[refuses_cordoned(a)])
    await world.wrote()


@case(
    "no partition is moved to a broker with all directories cordoned",
    "KAFKA-20441",
    since=30,
    has=Behaviour.CORDONED_BROKERS_GET_NO_REPLICAS,
)
async def no_partition_is_moved_to_broker_with_all_directories_cordoned(world: World) -> None:
    a, b = await world.broker(), await world.broker(cordoned=[0])
    topic = await world.topic([a])
    partition = {"partitionIndex": 0, "replicas": [b.id]}
    request: Tree = {"timeoutMs": 10_000, "topics": [{"name": topic.name, "partitions": [partition]}]}
    answer = {"responses": [{"partitions": [refuses_cordoned(b)]}]}
    await world.send("AlterPartitionReassignments", request, answer=answer)
    await world.wrote()


def refuses_cordoned(broker: Broker) -> Fields:
    message = f"The manual partition assignment includes broker {broker.id}, but all its log directories are cordoned."
    return refused(codes.INVALID_REPLICA_ASSIGNMENT, message)


@case("a broker with all directories cordoned goes on leading", HEARTBEAT, since=30)
async def broker_with_all_directories_cordoned_goes_on_leading(world: World) -> None:
    _topic, a, _b = await world.replicated(2)
    await world.heartbeat(a, cordonedLogDirs=a.dirs)
    await world.wrote(broker_change(a.id, a.epoch, cordonedLogDirs=a.dirs))


async def alter(world: World, broker: Broker, value: str | None, answer: Fields) -> None:
    change = (DELETE if value is None else SET, "cordoned.log.dirs", value)
    await alter_configs(world, resource(BROKER, str(broker.id), change), answer=[answer])


@case("cordoned.log.dirs set at the controller must be a part of what is set", "KIP-1066", since=30)
async def cordoned_log_dirs_must_be_a_subset_of_log_dirs(world: World) -> None:
    a = await world.broker()
    message = "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current configuration value."
    await alter(world, a, "/a", refused(codes.INVALID_CONFIG, message))
    await alter(world, a, " ", GOOD)


@case("cordoned.log.dirs cannot be set before metadata.version 30", "KIP-1066", until=29, has=Behaviour.CORDONING)
async def cordoned_log_dirs_cannot_be_set_before_metadata_version_30(world: World) -> None:
    a = await world.broker()
    message = "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
    for value in ("/a", "", None):
        await alter(world, a, value, refused(codes.INVALID_CONFIG, message))
    await world.wrote()


@case("cordoned.log.dirs is a key like any unknown one", "KIP-1066", Rank.QUIRK, lacks=Behaviour.CORDONING)
async def cordoned_log_dirs_is_key_like_any_unknown_one(world: World) -> None:
    a = await world.broker()
    await alter(world, a, "/a", {"errorCode": 0})
    await world.wrote(record("Config", resourceName=str(a.id), name="cordoned.log.dirs", value="/a"))
