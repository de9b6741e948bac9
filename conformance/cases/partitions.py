"""CreatePartitions."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import InAnyOrder, refused
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest.testCreatePartitions"


async def add(world: World, *topics: Tree, answer: object, **fields: object) -> None:
    request = {"topics": list(topics), "timeoutMs": TIMEOUT_MS, **fields}
    await world.send("CreatePartitions", request, answer={"results": answer})


def more(name: str, count: int, *manual: list[Broker]) -> Tree:
    assignments = [{"brokerIds": [broker.id for broker in each]} for each in manual]
    return {"name": name, "count": count, "assignments": assignments or None}


@case("new partitions are placed as asked", TEST)
async def new_partitions_are_placed_as_asked(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await add(world, more(topic.name, 3, [b, a], [a, b]), answer=[{"name": topic.name, "errorCode": 0}])
    await world.wrote(
        record("Partition", topicId=topic.id, partitionId=1, replicas=[b.id, a.id], isr=[b.id, a.id], leader=b.id),
        record("Partition", topicId=topic.id, partitionId=2, replicas=[a.id, b.id], isr=[a.id, b.id], leader=a.id),
    )


@case("a fenced replica of a new partition is not in its ISR", f"{TEST}ISRInvariants")
async def fenced_replica_of_new_partition_is_not_in_its_isr(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(fenced=True)
    topic = await world.topic([a, fenced])
    await add(world, more(topic.name, 2, [fenced, a]), answer=[{"errorCode": 0}])
    await world.wrote(record("Partition", replicas=[fenced.id, a.id], isr=[a.id], leader=a.id))


@case("partitions that are only validated are not written", TEST)
async def partitions_that_are_only_validated_are_not_written(world: World) -> None:
    topic, a = await world.replicated(1)
    await add(world, more(topic.name, 2, [a]), validateOnly=True, answer=[{"errorCode": 0}])
    await world.wrote()


@case("partitions of an unknown topic are refused", TEST)
async def partitions_of_unknown_topic_are_refused(world: World) -> None:
    await add(world, more(world.name("none"), 2), answer=[{"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}])


REFUSALS: list[tuple[str, int, int, list[list[int]], int, str]] = [
    ("as many partitions as there are is", 1, 1, [], codes.INVALID_PARTITIONS, "Topic already has 1 partition(s)."),
    ("fewer partitions than there are is", 2, 1, [], codes.INVALID_PARTITIONS, "The topic {topic} currently has 2 partition(s); 1 would not be an increase."),
    ("more new partitions than assignments are", 1, 3, [[0]], codes.INVALID_REPLICA_ASSIGNMENT, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
    ("fewer new partitions than assignments are", 1, 2, [[0], [0]], codes.INVALID_REPLICA_ASSIGNMENT, "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."),
    ("a new partition with another number of replicas is", 1, 2, [[0, 1]], codes.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with previous partitions, which have 1 replica(s)."),
    ("a new partition on a broker that nobody registered is", 1, 2, [[2]], codes.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes broker -7, but no such broker is registered."),
]  # fmt: skip
"""Partitions before, count asked for, indexes of the brokers of each new partition: two brokers and an unknown one."""


@cases("{} refused", TEST, REFUSALS)
async def invalid_count_or_assignment_is_refused(
    world: World, before: int, count: int, manual: list[list[int]], code: int, message: str
) -> None:
    brokers = [*await world.brokers(2), Broker(-7, 0, [], {})]
    topic = await world.topic(*[brokers[:1]] * before)
    assignments = [[brokers[index] for index in each] for each in manual]
    answer = [refused(code, message.format(topic=topic.name))]
    await add(world, more(topic.name, count, *assignments), answer=answer)


@case("a new partition on fenced brokers only is refused", f"{TEST}FailsWithManualAssignmentWithAllFenced")
async def new_partition_on_fenced_brokers_only_is_refused(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(fenced=True)
    topic = await world.topic([a])
    await add(world, more(topic.name, 2, [fenced]), answer=[{"errorCode": codes.INVALID_REPLICA_ASSIGNMENT}])
    await world.wrote()


@case("a topic that is given twice gets no partitions", "ControllerApisTest.testCreatePartitionsRequest")
async def topic_that_is_given_twice_gets_no_partitions(world: World) -> None:
    topic, a = await world.replicated(1)
    answer = [{"name": topic.name, "errorCode": codes.INVALID_REQUEST, "errorMessage": "Duplicate topic name."}]
    await add(world, more(topic.name, 2, [a]), more(topic.name, 3, [a], [a]), answer=answer)
    await world.wrote()


@case("a good topic beside a bad one gets its partitions", TEST)
async def good_topic_beside_bad_one_gets_its_partitions(world: World) -> None:
    topic, a = await world.replicated(1)
    none = world.name("none")
    answer = InAnyOrder(
        [{"name": topic.name, "errorCode": 0}, {"name": none, "errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}]
    )
    await add(world, more(topic.name, 2, [a]), more(none, 2), answer=answer)
    await world.wrote(record("Partition", partitionId=1))


@case("partitions that were to be created in no time are refused", "QuorumController.createPartitions", Rank.SHOULD)
async def partitions_that_were_to_be_created_in_no_time_are_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    await add(world, more(topic.name, 2, [a]), timeoutMs=0, answer=[{"errorCode": codes.REQUEST_TIMED_OUT}])
    await world.wrote()


LARGE = 10_002
COUNTED = "ReplicationControlManager.validateTotalNumberOfPartitions"


@case("partitions beyond 10,000 in one request are refused", COUNTED, has=Behaviour.ADDED_PARTITIONS_ARE_COUNTED)
async def too_many_partitions_are_refused(world: World) -> None:
    topic, _ = await world.replicated(1)
    message = "Excessively large number of additional partitions per request."
    answer = [{"name": topic.name, **refused(codes.POLICY_VIOLATION, message)}]
    await add(world, more(topic.name, LARGE), validateOnly=True, answer=answer)
    await world.wrote()


@case("partitions beyond 10,000 break", COUNTED, Rank.QUIRK, lacks=Behaviour.ADDED_PARTITIONS_ARE_COUNTED)
async def too_many_partitions_break(world: World) -> None:
    topic, _ = await world.replicated(1)
    answer = [{"name": topic.name, "errorCode": codes.UNKNOWN_SERVER_ERROR}]
    await add(world, more(topic.name, LARGE), validateOnly=True, answer=answer)
    await world.wrote()


@case("no topics are no partitions", TEST, Rank.SHOULD)
async def no_topics_are_no_partitions(world: World) -> None:
    await add(world, answer=[])
