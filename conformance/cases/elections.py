"""ElectLeaders: preferred and unclean."""

from __future__ import annotations

from typing import Any

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import InAnyOrder, expect
from mockraft.conformance.records import partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, Topic, World
from mockraft.wire import error_codes as codes

AREA = "elections"
TEST = "ReplicationControlManagerTest"
PREFERRED, UNCLEAN = 0, 1


async def elect(
    world: World, kind: int, topic: str, *partitions: int, answer: Any, code: int = 0, **fields: Any
) -> None:
    """`answer` is what each partition gets."""
    asked = {
        "electionType": kind,
        "topicPartitions": [{"topic": topic, "partitions": list(partitions)}],
        "timeoutMs": TIMEOUT_MS,
        **fields,
    }
    results = [{"topic": topic, "partitionResult": answer}] if answer else []
    await world.ask("ElectLeaders", asked, answer={"errorCode": code, "replicaElectionResults": results})


def told(code: int, partition: int = 0, **fields: Any) -> list[dict[str, Any]]:
    return [{"partitionId": partition, "errorCode": code, **fields}]


async def led_by_the_second(world: World) -> tuple[Topic, Broker, Broker]:
    """Both replicas run and are in sync; the second leads."""
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a)
    await world.unfence(a)
    await world.propose_isr(topic, [b, a])
    await world.records()
    return topic, a, b


@case("the preferred replica is elected when it is in sync", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    await elect(world, PREFERRED, topic.name, 0, answer=told(0))
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("the preferred replica that leads needs no election", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    message = "Leader election not needed for topic partition."
    await elect(world, PREFERRED, topic.name, 0, answer=told(codes.ELECTION_NOT_NEEDED, errorMessage=message))
    await world.wrote()


@case("the preferred replica that is not in sync is not available", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a)
    await world.unfence(a)
    await elect(world, PREFERRED, topic.name, 0, answer=told(codes.PREFERRED_LEADER_NOT_AVAILABLE))
    await world.wrote()


@case("the preferred replica that is fenced is not available", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a)
    await elect(world, PREFERRED, topic.name, 0, answer=told(codes.PREFERRED_LEADER_NOT_AVAILABLE))


@case("partitions that are not there are told", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    for kind in (PREFERRED, UNCLEAN):
        await elect(world, kind, topic.name, 7, answer=told(codes.UNKNOWN_TOPIC_OR_PARTITION, 7))
        await elect(world, kind, world.name("none"), 0, answer=told(codes.UNKNOWN_TOPIC_OR_PARTITION))


@case("an unclean election is not needed where there is a leader", AREA, f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def _(world: World) -> None:
    topic, _a, _b = await led_by_the_second(world)
    await elect(world, UNCLEAN, topic.name, 0, answer=told(codes.ELECTION_NOT_NEEDED))


@case("an unclean election takes the first replica that runs", AREA, f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a, b)
    await world.unfence(a)
    await elect(world, UNCLEAN, topic.name, 0, answer=told(0))
    with_elr: Tree = {"eligibleLeaderReplicas": [], "lastKnownElr": []} if world.level >= 26 else {}
    await world.wrote(partition_change(topic.id, isr=[a.id], leader=a.id, leaderRecoveryState=1, **with_elr))


@case("an unclean election finds nobody where nobody runs", AREA, f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    await world.fence(a)
    await elect(world, UNCLEAN, topic.name, 0, answer=told(codes.ELIGIBLE_LEADERS_NOT_AVAILABLE))
    await world.wrote()


@case(
    "a preferred election does not become an unclean one",
    AREA,
    f"{TEST}.testPreferredElectionDoesNotTriggerUncleanElection",
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b], unclean_leader_election_enable="true")
    await world.fence(a, b)
    await elect(world, PREFERRED, topic.name, 0, answer=told(codes.PREFERRED_LEADER_NOT_AVAILABLE))
    await world.wrote()


@case(
    "a kind of election that nobody knows is refused for each partition",
    AREA,
    "ReplicationControlManager.electLeaders",
    Rank.SHOULD,
)
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    refused = InAnyOrder([*told(codes.INVALID_REQUEST), *told(codes.INVALID_REQUEST, 9)])
    for kind in (2, -1, 127):
        await elect(world, kind, topic.name, 0, 9, answer=refused, code=codes.INVALID_REQUEST)


@case("an election of no partitions is answered with none", AREA, f"{TEST}.testElectPreferredLeaders")
async def _(world: World) -> None:
    await world.ask(
        "ElectLeaders",
        {"topicPartitions": [], "timeoutMs": TIMEOUT_MS},
        answer={"errorCode": 0, "replicaElectionResults": []},
    )


@case(
    "an election of all partitions tells only of those that needed one",
    AREA,
    f"{TEST}.testElectPreferredLeaders",
    alone=True,
)
async def _(world: World) -> None:
    topic, a, b = await led_by_the_second(world)
    await world.topic([b, a], name="fine")
    told_ = await world.ask("ElectLeaders", {"topicPartitions": None, "timeoutMs": TIMEOUT_MS})
    results = {each["topic"]: each["partitionResult"] for each in told_["replicaElectionResults"]}
    expect("the results", [{"errorCode": 0}], results[topic.name])
    expect("the results of what is led well", [], results.get(world.name("fine"), []))
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("a partition that is given twice is elected twice", AREA, "ReplicationControlManager.electLeaders", Rank.QUIRK)
async def _(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    await elect(world, PREFERRED, topic.name, 0, 0, answer=[*told(0), *told(0)])
    await world.wrote(partition_change(topic.id, leader=a.id), partition_change(topic.id, leader=a.id))


@case("an election in version 0 is a preferred one", AREA, "ElectLeadersRequest.json", Rank.SHOULD)
async def _(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    asked = {"topicPartitions": [{"topic": topic.name, "partitions": [0]}], "timeoutMs": TIMEOUT_MS}
    await world.ask("ElectLeaders", asked, version=0)
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("elections that were to be held in no time are refused", AREA, "QuorumController.electLeaders", Rank.SHOULD)
async def _(world: World) -> None:
    topic, _a, _b = await led_by_the_second(world)
    await elect(
        world, PREFERRED, topic.name, 0, timeoutMs=0, answer=told(codes.REQUEST_TIMED_OUT), code=codes.REQUEST_TIMED_OUT
    )
    await world.wrote()
