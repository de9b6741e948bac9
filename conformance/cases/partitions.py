"""CreatePartitions."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import InAnyOrder
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, World
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest.testCreatePartitions"


async def add(world: World, *topics: Tree, answer: object, **fields: object) -> None:
    request = {"topics": list(topics), "timeoutMs": TIMEOUT_MS, **fields}
    await world.send("CreatePartitions", request, answer={"results": answer}, version=3)


def more(name: str, count: int, *manual: list[Broker]) -> Tree:
    assignments = [{"brokerIds": [broker.id for broker in each]} for each in manual]
    return {"name": name, "count": count, "assignments": assignments or None}


def refused(code: int, message: object) -> list[Tree]:
    return [{"errorCode": code, "errorMessage": message}]


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


@case("as many partitions as there are is refused", TEST)
async def as_many_partitions_as_there_are_is_refused(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a], [a])
    message = "Topic already has 2 partition(s)."
    await add(world, more(topic.name, 2), answer=refused(codes.INVALID_PARTITIONS, message))


@case("fewer partitions than there are is refused", TEST)
async def fewer_partitions_than_there_are_is_refused(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a], [a])
    message = f"The topic {topic.name} currently has 2 partition(s); 1 would not be an increase."
    await add(world, more(topic.name, 1), answer=refused(codes.INVALID_PARTITIONS, message))


@case("more new partitions than assignments are refused", TEST)
async def more_new_partitions_than_assignments_are_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    message = "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
    await add(world, more(topic.name, 3, [a]), answer=refused(codes.INVALID_REPLICA_ASSIGNMENT, message))


@case("fewer new partitions than assignments are refused", TEST)
async def fewer_new_partitions_than_assignments_are_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    message = "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."
    await add(world, more(topic.name, 2, [a], [a]), answer=refused(codes.INVALID_REPLICA_ASSIGNMENT, message))


@case("a new partition with another number of replicas is refused", TEST)
async def new_partition_with_another_number_of_replicas_is_refused(world: World) -> None:
    topic, a, _b = await world.replicated(2)
    message = (
        "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent "
        "with previous partitions, which have 2 replica(s)."
    )
    await add(world, more(topic.name, 2, [a]), answer=refused(codes.INVALID_REPLICA_ASSIGNMENT, message))


@case("a new partition on a broker that nobody registered is refused", TEST)
async def new_partition_on_unregistered_broker_is_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    request = {**more(topic.name, 2, [a]), "assignments": [{"brokerIds": [-7]}]}
    message = "The manual partition assignment includes broker -7, but no such broker is registered."
    await add(world, request, answer=refused(codes.INVALID_REPLICA_ASSIGNMENT, message))


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


@case("no topics are no partitions", TEST, Rank.SHOULD)
async def no_topics_are_no_partitions(world: World) -> None:
    await add(world, answer=[])
