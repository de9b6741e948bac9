"""Directories (KIP-858): where replicas are, which directory failed, and what that does to partitions."""

from __future__ import annotations

from typing import Any

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import broker_change, partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, World
from mockraft.wire import error_codes as codes

AREA = "directories"
TEST = "ReplicationControlManagerTest"
ASSIGN_TEST = f"{TEST}.testHandleAssignReplicasToDirs"
OFFLINE_TEST = f"{TEST}.testHandleDirectoriesOffline"
MIGRATING, UNASSIGNED, LOST = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


async def assign(
    world: World, broker: Broker, directory: str, topic_id: str, *partitions: int, codes_: list[int], **fields: Any
) -> None:
    """AssignReplicasToDirs, and what each partition gets."""
    named: Tree = {"topicId": topic_id, "partitions": [{"partitionIndex": index} for index in partitions]}
    asked = {
        "brokerId": broker.id,
        "brokerEpoch": broker.epoch,
        "directories": [{"id": directory, "topics": [named]}],
        **fields,
    }
    told = [{"partitionIndex": i, "errorCode": code} for i, code in zip(partitions, codes_, strict=True)]
    answer = {"errorCode": 0, "directories": [{"id": directory, "topics": [{"topicId": topic_id, "partitions": told}]}]}
    await world.ask("AssignReplicasToDirs", asked, answer=answer)


@case("a replica is assigned to a directory", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    topic = await world.topic([a])
    await assign(world, a, a.dirs[1], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[a.dirs[1]]))


@case("an assignment to where the replica is writes nothing", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.wrote()


@case("a broker assigns its own replicas only", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a, b = await world.broker(), await world.broker(log_dirs=2)
    topic = await world.topic([a])
    await assign(world, b, b.dirs[0], topic.id, 0, codes_=[codes.NOT_LEADER_OR_FOLLOWER])
    await world.wrote()


@case("an assignment leaves the other replicas' directories", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a, b = await world.brokers(2, log_dirs=2)
    topic = await world.topic([a, b])
    await assign(world, b, b.dirs[1], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[UNASSIGNED, b.dirs[1]]))


@case("assignments are told apart by partition", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    topic = await world.topic([a])
    await assign(world, a, a.dirs[0], topic.id, 0, 5, codes_=[0, codes.UNKNOWN_TOPIC_OR_PARTITION])
    await world.wrote(partition_change(topic.id, directories=[a.dirs[0]]))


@case("an assignment in an unknown topic is refused", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker()
    await assign(world, a, a.dirs[0], world.uuid(), 0, codes_=[codes.UNKNOWN_TOPIC_ID])


@case("an assignment by a stale broker is refused", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker()
    answer = {"errorCode": codes.STALE_BROKER_EPOCH}
    await world.ask("AssignReplicasToDirs", {"brokerId": a.id, "brokerEpoch": a.epoch - 1}, answer=answer)


@case(
    "assignments are not there before metadata.version 17",
    AREA,
    f"{TEST}.testHandleAssignReplicasToDirsFailsOnOlderMv",
    until=16,
)
async def _(world: World) -> None:
    a = await world.broker()
    answer = {"errorCode": codes.UNSUPPORTED_VERSION}
    await world.ask("AssignReplicasToDirs", {"brokerId": a.id, "brokerEpoch": a.epoch}, answer=answer)


@case("a fenced broker may assign", AREA, ASSIGN_TEST, Rank.SHOULD, since=17)
async def _(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(log_dirs=2, fenced=True)
    topic = await world.topic([a, fenced])
    await assign(world, fenced, fenced.dirs[0], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[*a.dirs, fenced.dirs[0]]))


@case("unassigned and migrating are directories like others", AREA, ASSIGN_TEST, Rank.QUIRK, since=17)
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    for directory in (UNASSIGNED, MIGRATING):
        await assign(world, a, directory, topic.id, 0, codes_=[0])
        await world.wrote(partition_change(topic.id, directories=[directory]))


@case("a replica that is assigned to a lost directory leaves the ISR", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await assign(world, a, LOST, topic.id, 0, codes_=[0])
    await world.wrote(
        partition_change(topic.id, directories=[LOST, *b.dirs]),
        partition_change(topic.id, isr=[b.id], leader=b.id),
    )


@case("a replica that is assigned to a directory nobody registered leaves the ISR", AREA, ASSIGN_TEST, since=17)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    unknown = world.uuid()
    await assign(world, b, unknown, topic.id, 0, codes_=[0])
    await world.wrote(
        partition_change(topic.id, directories=[*a.dirs, unknown]), partition_change(topic.id, isr=[a.id])
    )


@case("the partitions of a failed directory leave it, and then the directory goes", AREA, OFFLINE_TEST, since=17)
async def _(world: World) -> None:
    a, b = await world.broker(log_dirs=2), await world.broker()
    topic = await world.topic([a, b])
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[0]], answer={"errorCode": 0, "isFenced": False})
    await world.wrote(
        partition_change(topic.id, isr=[b.id], leader=b.id),
        broker_change(a.id, a.epoch, logDirs=[a.dirs[1]]),
    )


@case("the partitions of a good directory stay when another fails", AREA, OFFLINE_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    topic = await world.topic([a])
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.wrote(broker_change(a.id, a.epoch, logDirs=[a.dirs[0]]))


@case("a failed directory that is told again changes nothing", AREA, OFFLINE_TEST, since=17)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.wrote()


@case(
    "a failed directory that nobody registered is not minded",
    AREA,
    "KIP-858, ReplicationControlManager.handleDirectoriesOffline",
    Rank.QUIRK,
    since=17,
)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[world.uuid()], answer={"errorCode": 0, "isFenced": False})
    await world.wrote()


@case(
    "the failure of all directories is written at each heartbeat",
    AREA,
    "BrokerRegistration.cloneWith",
    Rank.QUIRK,
    since=17,
)
async def _(world: World) -> None:
    a = await world.broker()
    for _ in range(2):
        await world.heartbeat(a, offlineLogDirs=a.dirs, answer={"errorCode": 0, "isFenced": False})
        written = [f"{each.kind} v{each.version}" for each in await world.records()]
        expect("the records", ["BrokerRegistrationChangeRecord v2"], written)


@case("failed directories are not looked at before metadata.version 17", AREA, "KIP-858", until=16)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=a.dirs[:1])
    await world.wrote()


@case(
    "a leader may take a replica on a failed directory into the ISR, and it is not elected",
    AREA,
    "ReplicationControlManager",
    Rank.QUIRK,
    since=17,
)
async def _(world: World) -> None:
    a, b = await world.broker(), await world.broker(log_dirs=2)
    topic = await world.topic([a, b])
    await assign(world, b, b.dirs[0], topic.id, 0, codes_=[0])
    await world.heartbeat(b, offlineLogDirs=[b.dirs[0]])
    await world.propose_isr(topic, [a, b], answer={"topics": [{"partitions": [{"errorCode": 0}]}]})
    await world.fence(a)
    expect("the leader", -1, (await world.partition(topic)).leader)


@case(
    "a new partition on a broker whose other directories failed is in the one that is left",
    AREA,
    "ClusterControlManager.defaultDir",
    since=17,
)
async def _(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[a.dirs[0]])
    topic = await world.topic([a])
    expect("the directories", [a.dirs[1]], (await world.partition(topic)).directories)
