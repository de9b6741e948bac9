"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Sequence

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import ANYTHING, InAnyOrder, refused
from mockraft.conformance.records import partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, Topic, World, ids
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest"
CANCEL_TEST = f"{TEST}.testCancelReassignPartitions"
LIST = "ReplicationControlManager.listPartitionReassignments"
DONE: Tree = {"addingReplicas": [], "removingReplicas": []}
PARTS_TEST = "PartitionReassignmentReplicasTest"


async def move(
    world: World,
    topic: str,
    replicas: Sequence[Broker] | None,
    *,
    code: int = 0,
    message: object = ANYTHING,
    partition: int = 0,
    **fields: object,
) -> None:
    """Reassign partition 0 to these; None cancels the reassignment in progress."""
    wanted = None if replicas is None else ids(replicas)
    request = {
        "timeoutMs": TIMEOUT_MS,
        "topics": [{"name": topic, "partitions": [{"partitionIndex": partition, "replicas": wanted}]}],
        **fields,
    }
    answer = {"errorCode": 0, "responses": [{"name": topic, "partitions": [refused(code, message)]}]}
    await world.send("AlterPartitionReassignments", request, answer=answer)


async def listed(world: World, topic: Topic, *expected: Tree) -> None:
    """Expect that these reassignments, and no others, of the topic's partition 0 are in progress."""
    request = {"topics": [{"name": topic.name, "partitionIndexes": [0]}], "timeoutMs": TIMEOUT_MS}
    topics = [{"name": topic.name, "partitions": list(expected)}] if expected else []
    await world.send("ListPartitionReassignments", request, answer={"errorCode": 0, "topics": topics})


def directories(world: World, *brokers: Broker) -> Tree:
    """Return the expected directories of a change of replicas; each broker has one directory."""
    return {"directories": [broker.dirs[0] for broker in brokers]} if world.level >= 17 else {}


@case("a move to another broker adds it and marks the old one", f"{TEST}.testReassignPartitions")
async def move_to_another_broker_adds_it_and_marks_old_one(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, a])
    change = {"replicas": [c.id, a.id, b.id], "addingReplicas": [c.id], "removingReplicas": [b.id]}
    await world.wrote(partition_change(topic.id, **change, **directories(world, c, a, b)))
    await listed(world, topic, {"partitionIndex": 0, **change})


@case("a move is complete when the new replicas are in sync", f"{TEST}.testReassignPartitions")
async def move_is_complete_when_new_replicas_are_in_sync(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [a, c])
    await world.propose_isr(topic, [a, b, c])
    change = {"replicas": [a.id, c.id], "isr": [a.id, c.id], **DONE, "leader": a.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, a, c)))
    await listed(world, topic)


@case("a leader that is moved away hears that another leads", f"{TEST}.testReassignPartitions")
async def leader_that_is_moved_away_hears_that_another_leads(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    await move(world, topic.name, [b])
    answer = {"topics": [{"partitions": [{"errorCode": codes.NEW_LEADER_ELECTED}]}]}
    await world.propose_isr(topic, [a, b], answer=answer)
    change = {"replicas": [b.id], "isr": [b.id], **DONE, "leader": b.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, b)))


DIRECT: list[tuple[str, str, list[int], list[str]]] = [
    ("a move that only drops followers is complete at once", "Removals", [0, 2], ["isr", "leader"]),
    ("a move that only changes the order is complete at once", "Rearrangement", [1, 0, 2], []),
    ("a move to where the partition is does nothing", "NoneAddedOrRemoved", [0, 1, 2], []),
]
"""Indexes of the new replicas among the three old ones, and what changes besides them."""


@cases("{}", f"{PARTS_TEST}.test{{1}}", DIRECT)
async def move_among_replicas_is_complete_at_once(world: World, _test: str, target: list[int], also: list[str]) -> None:
    topic, *old = await world.replicated(3)
    replicas = [old[index] for index in target]
    await move(world, topic.name, replicas)
    change = {"isr": ids(replicas), "leader": old[0].id}
    changes = {"replicas": ids(replicas), **{key: change[key] for key in also}, **directories(world, *replicas)}
    await world.wrote(*([] if replicas == old else [partition_change(topic.id, **changes)]))


@case("a move that is taken back leaves what was", CANCEL_TEST)
async def cancelled_reassignment_restores_the_replicas(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, a])
    await world.records()
    await move(world, topic.name, None)
    change = {"replicas": [a.id, b.id], **DONE, "leader": a.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, a, b)))
    await listed(world, topic)


@case("nothing can be taken back where nothing moves", CANCEL_TEST)
async def nothing_can_be_taken_back_where_nothing_moves(world: World) -> None:
    topic = await world.topic([await world.broker()])
    await move(world, topic.name, None, code=codes.NO_REASSIGNMENT_IN_PROGRESS)


@case(
    "another move replaces the one under way",
    f"{TEST}.testReassignPartitionsHandlesNewReassignmentThatRemovesPreviouslyAddingReplicas",
)
async def another_move_replaces_one_under_way(world: World) -> None:
    a, b, c, d = await world.brokers(4)
    topic = await world.topic([a, b])
    await move(world, topic.name, [a, c])
    await world.records()
    await move(world, topic.name, [a, d])
    under_way = {"replicas": [a.id, d.id, b.id, c.id], "addingReplicas": [d.id], "removingReplicas": [b.id, c.id]}
    await world.wrote(partition_change(topic.id, **under_way, **directories(world, a, d, b, c)))
    await listed(world, topic, under_way)


@case("a move to a fenced broker is accepted", f"{TEST}.testReassignPartitions", Rank.QUIRK)
async def move_to_fenced_broker_is_accepted(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(fenced=True)
    topic = await world.topic([a])
    await move(world, topic.name, [fenced])


@case("a fenced replica is moved away when the new one is in sync", f"{TEST}.testReassignPartitions")
async def fenced_replica_is_moved_away_when_new_one_is_in_sync(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await world.fence(b)
    await move(world, topic.name, [a, c])
    await world.propose_isr(topic, [a, c], answer={"topics": [{"partitions": [{"errorCode": 0, "isr": [a.id, c.id]}]}]})
    await listed(world, topic)


REFUSALS: list[tuple[str, list[int], str]] = [
    ("nobody", [], "The manual partition assignment includes an empty replica list."),
    ("a broker that nobody registered", [0, 1], "The manual partition assignment includes broker -7, but no such broker is registered."),
    ("one broker twice", [0, 0], "The manual partition assignment includes the broker {a} more than once."),
]  # fmt: skip
"""Indexes of the new replicas: the old one, or an unknown broker."""


@cases("a move to {} is refused", f"{TEST}.testReassignPartitions", REFUSALS)
async def invalid_reassignment_is_refused(world: World, target: list[int], message: str) -> None:
    topic, a = await world.replicated(1)
    replicas = [(a, Broker(-7, 0, [], {}))[index] for index in target]
    message = message.format(a=a.id)
    await move(world, topic.name, replicas, code=codes.INVALID_REPLICA_ASSIGNMENT, message=message)
    await world.wrote()


@case("a move of a partition that is not there is refused", f"{TEST}.testReassignPartitions")
async def move_of_partition_that_is_not_there_is_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    await move(world, topic.name, [a], partition=5, code=codes.UNKNOWN_TOPIC_OR_PARTITION)
    await move(world, world.name("none"), [a], code=codes.UNKNOWN_TOPIC_OR_PARTITION)


@case("a move to more replicas is refused where their number is fixed", "KIP-860", Rank.SHOULD)
async def move_to_more_replicas_is_refused_where_their_number_is_fixed(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    message = "The replication factor is changed from 1 to 2"
    fixed = {"allowReplicationFactorChange": False}
    await move(world, topic.name, [a, b], code=codes.INVALID_REPLICATION_FACTOR, message=message, **fixed)
    await move(world, topic.name, [b], **fixed)


@case("taking a move back where nobody of the old replicas is in sync is refused", CANCEL_TEST, Rank.SHOULD)
async def cancelling_without_in_sync_old_replica_is_refused(world: World) -> None:
    a, b, c, d = await world.brokers(4)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, d])
    await world.propose_isr(topic, [a, b, c])
    await world.fence(a, b)
    await move(world, topic.name, None, code=codes.INVALID_REPLICA_ASSIGNMENT)


@case("no reassignments are listed for no partitions", LIST)
async def no_reassignments_are_listed_for_no_partitions(world: World) -> None:
    request: Tree = {"topics": [], "timeoutMs": TIMEOUT_MS}
    await world.send("ListPartitionReassignments", request, answer={"errorCode": 0, "errorMessage": None, "topics": []})


@case("all reassignments are listed when none is named", LIST, alone=True)
async def all_reassignments_are_listed_when_none_is_named(world: World) -> None:
    a, b = await world.brokers(2)
    one, two = await world.topic([a], name="one"), await world.topic([b], name="two")
    await move(world, one.name, [b])
    await move(world, two.name, [a])
    mine = [{"name": name, "partitions": [{"partitionIndex": 0}]} for name in (one.name, two.name)]
    request = {"topics": None, "timeoutMs": TIMEOUT_MS}
    await world.send("ListPartitionReassignments", request, answer={"errorCode": 0, "topics": InAnyOrder(mine)})


@case("moves that were to be made in no time are refused", "QuorumController.alterPartitionReassignments", Rank.SHOULD)
async def moves_that_were_to_be_made_in_no_time_are_refused(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    partition = {"partitionIndex": 0, "replicas": [b.id]}
    request = {"timeoutMs": 0, "topics": [{"name": topic.name, "partitions": [partition]}]}
    await world.send("AlterPartitionReassignments", request, answer={"errorCode": codes.REQUEST_TIMED_OUT})
    await world.wrote()
