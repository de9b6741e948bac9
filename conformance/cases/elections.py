"""ElectLeaders: preferred and unclean."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import InAnyOrder, expect
from mockraft.conformance.records import partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, Topic, World
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest"
PREFERRED_TEST = f"{TEST}.testElectPreferredLeaders"
PREFERRED, UNCLEAN = 0, 1


async def elect(
    world: World, kind: int, topic: str, *partitions: int, answer: object, code: int = 0, **fields: object
) -> None:
    """`answer` is the expected result of each partition."""
    request = {
        "electionType": kind,
        "topicPartitions": [{"topic": topic, "partitions": list(partitions)}],
        "timeoutMs": TIMEOUT_MS,
        **fields,
    }
    results = [{"topic": topic, "partitionResult": answer}] if answer else []
    await world.send("ElectLeaders", request, answer={"errorCode": code, "replicaElectionResults": results})


def expected_results(code: int, partition: int = 0, **fields: object) -> list[Tree]:
    return [{"partitionId": partition, "errorCode": code, **fields}]


async def led_by_the_second(world: World) -> tuple[Topic, Broker, Broker]:
    """Create a partition whose replicas both run and are in sync; the second leads."""
    topic, a, b = await world.replicated(2)
    await world.fence(a)
    await world.unfence(a)
    await world.propose_isr(topic, [b, a])
    await world.records()
    return topic, a, b


@case("the preferred replica is elected when it is in sync", PREFERRED_TEST)
async def preferred_replica_is_elected_when_it_is_in_sync(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    await elect(world, PREFERRED, topic.name, 0, answer=expected_results(0))
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("the preferred replica that leads needs no election", PREFERRED_TEST)
async def preferred_replica_that_leads_needs_no_election(world: World) -> None:
    topic = await world.topic([await world.broker()])
    message = "Leader election not needed for topic partition."
    answer = expected_results(codes.ELECTION_NOT_NEEDED, errorMessage=message)
    await elect(world, PREFERRED, topic.name, 0, answer=answer)
    await world.wrote()


@cases("the preferred replica that is {} is not available", PREFERRED_TEST, [("not in sync", True), ("fenced", False)])
async def preferred_replica_is_not_available(world: World, comes_back: bool) -> None:
    topic, a, _ = await world.replicated(2)
    await world.fence(a)
    if comes_back:
        await world.unfence(a)
    await elect(world, PREFERRED, topic.name, 0, answer=expected_results(codes.PREFERRED_LEADER_NOT_AVAILABLE))
    await world.wrote()


@case("partitions that are not there are told", PREFERRED_TEST)
async def unknown_partitions_are_reported(world: World) -> None:
    topic = await world.topic([await world.broker()])
    for kind in (PREFERRED, UNCLEAN):
        await elect(world, kind, topic.name, 7, answer=expected_results(codes.UNKNOWN_TOPIC_OR_PARTITION, 7))
        await elect(world, kind, world.name("none"), 0, answer=expected_results(codes.UNKNOWN_TOPIC_OR_PARTITION))


@case("an unclean election is not needed where there is a leader", f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def unclean_election_is_not_needed_where_there_is_leader(world: World) -> None:
    topic, _a, _b = await led_by_the_second(world)
    await elect(world, UNCLEAN, topic.name, 0, answer=expected_results(codes.ELECTION_NOT_NEEDED))


@case("an unclean election takes the first replica that runs", f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def unclean_election_takes_first_replica_that_runs(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.fence(a, b)
    await world.unfence(a)
    await elect(world, UNCLEAN, topic.name, 0, answer=expected_results(0))
    with_elr: Tree = {"eligibleLeaderReplicas": [], "lastKnownElr": []} if world.level >= 26 else {}
    await world.wrote(partition_change(topic.id, isr=[a.id], leader=a.id, leaderRecoveryState=1, **with_elr))


@case("an unclean election finds nobody where nobody runs", f"{TEST}.testElectUncleanLeaders_WithoutElr")
async def unclean_election_needs_a_running_replica(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.fence(a)
    await elect(world, UNCLEAN, topic.name, 0, answer=expected_results(codes.ELIGIBLE_LEADERS_NOT_AVAILABLE))
    await world.wrote()


@case(
    "a preferred election does not become an unclean one", f"{TEST}.testPreferredElectionDoesNotTriggerUncleanElection"
)
async def preferred_election_does_not_become_unclean_one(world: World) -> None:
    topic, a, b = await world.replicated(2, unclean_leader_election_enable="true")
    await world.fence(a, b)
    await elect(world, PREFERRED, topic.name, 0, answer=expected_results(codes.PREFERRED_LEADER_NOT_AVAILABLE))
    await world.wrote()


@case(
    "a kind of election that nobody knows is refused for each partition",
    "ReplicationControlManager.electLeaders",
    Rank.SHOULD,
)
async def unknown_election_type_is_refused_for_each_partition(world: World) -> None:
    topic = await world.topic([await world.broker()])
    refused = InAnyOrder([*expected_results(codes.INVALID_REQUEST), *expected_results(codes.INVALID_REQUEST, 9)])
    for kind in (2, -1, 127):
        await elect(world, kind, topic.name, 0, 9, answer=refused, code=codes.INVALID_REQUEST)


@case("an election of no partitions is answered with none", PREFERRED_TEST)
async def election_of_no_partitions_is_answered_with_none(world: World) -> None:
    request: Tree = {"topicPartitions": [], "timeoutMs": TIMEOUT_MS}
    await world.send("ElectLeaders", request, answer={"errorCode": 0, "replicaElectionResults": []})


@case("an election of all partitions tells only of those that needed one", PREFERRED_TEST, alone=True)
async def election_of_all_partitions_reports_only_those_that_needed_one(world: World) -> None:
    topic, a, b = await led_by_the_second(world)
    await world.topic([b, a], name="fine")
    response = await world.send("ElectLeaders", {"topicPartitions": None, "timeoutMs": TIMEOUT_MS})
    results = {each["topic"]: each["partitionResult"] for each in response["replicaElectionResults"]}
    expect("the results", [{"errorCode": 0}], results[topic.name])
    expect("the results of what is led well", [], results.get(world.name("fine"), []))
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("a partition that is given twice is elected twice", "ReplicationControlManager.electLeaders", Rank.QUIRK)
async def partition_that_is_given_twice_is_elected_twice(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    await elect(world, PREFERRED, topic.name, 0, 0, answer=[*expected_results(0), *expected_results(0)])
    await world.wrote(partition_change(topic.id, leader=a.id), partition_change(topic.id, leader=a.id))


@case("an election in version 0 is a preferred one", "ElectLeadersRequest.json", Rank.SHOULD)
async def election_in_version_0_is_preferred_one(world: World) -> None:
    topic, a, _b = await led_by_the_second(world)
    request = {"topicPartitions": [{"topic": topic.name, "partitions": [0]}], "timeoutMs": TIMEOUT_MS}
    await world.send("ElectLeaders", request, version=0)
    await world.wrote(partition_change(topic.id, leader=a.id))


@case("elections that were to be held in no time are refused", "QuorumController.electLeaders", Rank.SHOULD)
async def elections_that_were_to_be_held_in_no_time_are_refused(world: World) -> None:
    topic, _a, _b = await led_by_the_second(world)
    code = codes.REQUEST_TIMED_OUT
    await elect(world, PREFERRED, topic.name, 0, timeoutMs=0, answer=expected_results(code), code=code)
    await world.wrote()
