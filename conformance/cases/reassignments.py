"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import InAnyOrder
from mockraft.conformance.records import partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, Topic, World, ids
from mockraft.wire import error_codes as codes

AREA = "reassignments"
TEST = "ReplicationControlManagerTest"
PARTS_TEST = "PartitionReassignmentReplicasTest"


async def move(
    world: World, topic: str, replicas: Sequence[Broker] | None, *, code: int = 0, partition: int = 0, **fields: Any
) -> None:
    """Reassign partition 0 to these; None takes back what is under way."""
    wanted = None if replicas is None else ids(replicas)
    asked = {
        "timeoutMs": TIMEOUT_MS,
        "topics": [{"name": topic, "partitions": [{"partitionIndex": partition, "replicas": wanted}]}],
        **{key: value for key, value in fields.items() if key != "errorMessage"},
    }
    told: Tree = {"errorCode": code}
    if "errorMessage" in fields:
        told["errorMessage"] = fields["errorMessage"]
    answer = {"errorCode": 0, "responses": [{"name": topic, "partitions": [told]}]}
    await world.ask("AlterPartitionReassignments", asked, answer=answer)


async def listed(world: World, topic: Topic, *expected: Tree) -> None:
    """Expect that these, and no others, of the topic's partition 0 are under way."""
    asked = {"topics": [{"name": topic.name, "partitionIndexes": [0]}], "timeoutMs": TIMEOUT_MS}
    topics = [{"name": topic.name, "partitions": list(expected)}] if expected else []
    await world.ask("ListPartitionReassignments", asked, answer={"errorCode": 0, "topics": topics})


def directories(world: World, *brokers: Broker) -> Tree:
    """What a change of replicas says of their directories, each broker having one."""
    return {"directories": [broker.dirs[0] for broker in brokers]} if world.level >= 17 else {}


@case("a move to another broker adds it and marks the old one", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, a])
    change = {"replicas": [c.id, a.id, b.id], "addingReplicas": [c.id], "removingReplicas": [b.id]}
    await world.wrote(partition_change(topic.id, **change, **directories(world, c, a, b)))
    under_way = {"replicas": [c.id, a.id, b.id], "addingReplicas": [c.id], "removingReplicas": [b.id]}
    await listed(world, topic, {"partitionIndex": 0, **under_way})


@case("a move is complete when the new replicas are in sync", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [a, c])
    await world.propose_isr(topic, [a, b, c])
    change = {
        "replicas": [a.id, c.id],
        "isr": [a.id, c.id],
        "addingReplicas": [],
        "removingReplicas": [],
        "leader": a.id,
    }
    await world.wrote(partition_change(topic.id, **change, **directories(world, a, c)))
    await listed(world, topic)


@case("a leader that is moved away hears that another leads", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    await move(world, topic.name, [b])
    answer = {"topics": [{"partitions": [{"errorCode": codes.NEW_LEADER_ELECTED}]}]}
    await world.propose_isr(topic, [a, b], answer=answer)
    change = {"replicas": [b.id], "isr": [b.id], "addingReplicas": [], "removingReplicas": [], "leader": b.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, b)))


@case("a move that only drops followers is complete at once", AREA, f"{PARTS_TEST}.testRemovals")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b, c])
    await move(world, topic.name, [a, c])
    change = {"replicas": [a.id, c.id], "isr": [a.id, c.id], "leader": a.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, a, c)))


@case("a move that only changes the order is complete at once", AREA, f"{PARTS_TEST}.testRearrangement")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await move(world, topic.name, [b, a])
    await world.wrote(partition_change(topic.id, replicas=[b.id, a.id], **directories(world, b, a)))


@case("a move to where the partition is does nothing", AREA, f"{PARTS_TEST}.testNoneAddedOrRemoved")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await move(world, topic.name, [a, b])
    await world.wrote()


@case("a move that is taken back leaves what was", AREA, f"{TEST}.testCancelReassignPartitions")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, a])
    await world.records()
    await move(world, topic.name, None)
    change = {"replicas": [a.id, b.id], "addingReplicas": [], "removingReplicas": [], "leader": a.id}
    await world.wrote(partition_change(topic.id, **change, **directories(world, a, b)))
    await listed(world, topic)


@case("nothing can be taken back where nothing moves", AREA, f"{TEST}.testCancelReassignPartitions")
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    await move(world, topic.name, None, code=codes.NO_REASSIGNMENT_IN_PROGRESS)


@case(
    "another move replaces the one under way",
    AREA,
    f"{TEST}.testReassignPartitionsHandlesNewReassignmentThatRemovesPreviouslyAddingReplicas",
)
async def _(world: World) -> None:
    a, b, c, d = await world.brokers(4)
    topic = await world.topic([a, b])
    await move(world, topic.name, [a, c])
    await world.records()
    await move(world, topic.name, [a, d])
    under_way = {"replicas": [a.id, d.id, b.id, c.id], "addingReplicas": [d.id], "removingReplicas": [b.id, c.id]}
    await world.wrote(partition_change(topic.id, **under_way, **directories(world, a, d, b, c)))
    await listed(world, topic, under_way)


@case("a move to a fenced broker is accepted", AREA, f"{TEST}.testReassignPartitions", Rank.QUIRK)
async def _(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(fenced=True)
    topic = await world.topic([a])
    await move(world, topic.name, [fenced])


@case("a fenced replica is moved away when the new one is in sync", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b])
    await world.fence(b)
    await move(world, topic.name, [a, c])
    await world.propose_isr(topic, [a, c], answer={"topics": [{"partitions": [{"errorCode": 0, "isr": [a.id, c.id]}]}]})
    await listed(world, topic)


@case("a move to nobody is refused", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    message = "The manual partition assignment includes an empty replica list."
    await move(world, topic.name, [], code=codes.INVALID_REPLICA_ASSIGNMENT, errorMessage=message)


@case("a move to a broker that nobody registered is refused", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    stranger = Broker(-7, 0, [], {})
    message = "The manual partition assignment includes broker -7, but no such broker is registered."
    await move(world, topic.name, [a, stranger], code=codes.INVALID_REPLICA_ASSIGNMENT, errorMessage=message)


@case("a move to one broker twice is refused", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    message = f"The manual partition assignment includes the broker {a.id} more than once."
    await move(world, topic.name, [a, a], code=codes.INVALID_REPLICA_ASSIGNMENT, errorMessage=message)
    await world.wrote()


@case("a move of a partition that is not there is refused", AREA, f"{TEST}.testReassignPartitions")
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    await move(world, topic.name, [a], partition=5, code=codes.UNKNOWN_TOPIC_OR_PARTITION)
    await move(world, world.name("none"), [a], code=codes.UNKNOWN_TOPIC_OR_PARTITION)


@case("a move to more replicas is refused where their number is fixed", AREA, "KIP-860", Rank.SHOULD)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    message = "The replication factor is changed from 1 to 2"
    fixed = {"allowReplicationFactorChange": False}
    await move(world, topic.name, [a, b], code=codes.INVALID_REPLICATION_FACTOR, errorMessage=message, **fixed)
    await move(world, topic.name, [b], **fixed)


@case(
    "taking a move back where nobody of the old replicas is in sync is refused",
    AREA,
    f"{TEST}.testCancelReassignPartitions",
    Rank.SHOULD,
)
async def _(world: World) -> None:
    a, b, c, d = await world.brokers(4)
    topic = await world.topic([a, b])
    await move(world, topic.name, [c, d])
    await world.propose_isr(topic, [a, b, c])
    await world.fence(a, b)
    await move(world, topic.name, None, code=codes.INVALID_REPLICA_ASSIGNMENT)


@case("no reassignments are listed for no partitions", AREA, "ReplicationControlManager.listPartitionReassignments")
async def _(world: World) -> None:
    asked: Tree = {"topics": [], "timeoutMs": TIMEOUT_MS}
    await world.ask("ListPartitionReassignments", asked, answer={"errorCode": 0, "errorMessage": None, "topics": []})


@case(
    "all reassignments are listed when none is named",
    AREA,
    "ReplicationControlManager.listPartitionReassignments",
    alone=True,
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    one, two = await world.topic([a], name="one"), await world.topic([b], name="two")
    await move(world, one.name, [b])
    await move(world, two.name, [a])
    mine = [
        {"name": one.name, "partitions": [{"partitionIndex": 0}]},
        {"name": two.name, "partitions": [{"partitionIndex": 0}]},
    ]
    asked = {"topics": None, "timeoutMs": TIMEOUT_MS}
    await world.ask("ListPartitionReassignments", asked, answer={"errorCode": 0, "topics": InAnyOrder(mine)})


@case(
    "moves that were to be made in no time are refused",
    AREA,
    "QuorumController.alterPartitionReassignments",
    Rank.SHOULD,
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a])
    asked = {
        "timeoutMs": 0,
        "topics": [{"name": topic.name, "partitions": [{"partitionIndex": 0, "replicas": [b.id]}]}],
    }
    await world.ask("AlterPartitionReassignments", asked, answer={"errorCode": codes.REQUEST_TIMED_OUT})
    await world.wrote()
