"""Replica placement by Kafka's striped algorithm. These cases need a controller without other brokers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.topics import counted, create
from mockraft.conformance.expectation import ANYTHING, NotApplicableError, expect, refused
from mockraft.conformance.world import Broker, World, ids
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "StripedReplicaPlacerTest"
MANY = 10_000
TOO_FEW = (
    "Unable to replicate the partition {wanted} time(s): The target replication factor of {wanted} cannot be reached "
    "because only {found} broker(s) are registered or some brokers have all their log directories cordoned."
)
Placed = list[tuple[list[int], list[int]]]


async def only_mine(world: World, *brokers: Broker) -> Sequence[Broker]:
    """Return these brokers; skip the case if the controller has others that may get replicas."""
    response = await create(world, counted(world.name("probe"), 1, MANY), answer=ANYTHING, validateOnly=True)
    found = re.search(r"only (\d+) broker", response["topics"][0]["errorMessage"] or "")
    if found is None or int(found[1]) > len(brokers):
        raise NotApplicableError("the controller has brokers of its own, or does not unregister those of other cases")
    return brokers


async def place(world: World, partitions: int, replicas: int) -> Placed:
    """Create such a topic; return each partition's replicas and ISR."""
    answer = {"errorCode": 0, "numPartitions": partitions, "replicationFactor": replicas}
    await create(world, counted(world.name("t"), partitions, replicas), answer=[answer])
    written = [each.fields for each in await world.records() if each.kind == "PartitionRecord"]
    return [(each["replicas"], each["isr"]) for each in written]


async def refuse(world: World, partitions: int, replicas: int, message: str) -> None:
    answer = [refused(codes.INVALID_REPLICATION_FACTOR, message)]
    await create(world, counted(world.name("refused"), partitions, replicas), answer=answer)


@case("replicas of a partition are on different brokers", f"{TEST}.testSuccessfulPlacement", alone=True)
async def replicas_of_partition_are_on_different_brokers(world: World) -> None:
    await only_mine(world, *await world.brokers(4))
    placed = await place(world, 12, 3)
    expect("the numbers of brokers", [3] * 12, [len(set(replicas)) for replicas, _ in placed])


@case("leaders and replicas are spread evenly", f"{TEST}.testEvenDistribution", alone=True)
async def leaders_and_replicas_are_spread_evenly(world: World) -> None:
    brokers = await only_mine(world, *await world.brokers(4))
    placed = await place(world, 8, 2)
    leaders = Counter(replicas[0] for replicas, _ in placed)
    every = Counter(broker for replicas, _ in placed for broker in replicas)
    expect("partitions led by each", [2] * 4, [leaders[broker.id] for broker in brokers])
    expect("replicas on each", [4] * 4, [every[broker.id] for broker in brokers])


@case("replicas of a partition are in different racks", f"{TEST}.testRackListWithMultipleRacks", alone=True)
async def replicas_of_partition_are_in_different_racks(world: World) -> None:
    racks = ("a", "b", "c", "a", "b", "c")
    brokers = await only_mine(world, *[await world.broker(rack=rack) for rack in racks])
    rack_of = dict(zip(ids(brokers), racks, strict=True))
    placed = await place(world, 9, 3)
    expect("the numbers of racks", [3] * 9, [len({rack_of[each] for each in replicas}) for replicas, _ in placed])


FENCED: list[tuple[str, str, int, int]] = [
    ("has replicas only when the others do not suffice", "AvoidFencedReplicaIfPossible", 3, 0),
    ("that is needed follows and is not in sync", "PlacementOnFencedReplica", 2, 6),
]
"""End of the name, test, running brokers, partitions with a replica on the fenced one."""


@cases("a fenced broker {}", f"{TEST}.test{{1}}OnSingleRack", FENCED, alone=True)
async def fenced_broker_follows_only_if_needed(world: World, _test: str, running: int, count: int) -> None:
    *_, fenced = await only_mine(world, *await world.brokers(running), await world.broker(fenced=True))
    placed = await place(world, 6, 3)
    expect("replicas on the fenced broker", count, sum(fenced.id in replicas for replicas, _ in placed))
    following = [replicas[-1] == fenced.id and fenced.id not in isr for replicas, isr in placed]
    expect("where it stands", [bool(count)] * 6, following)


@case("more replicas than brokers are refused", f"{TEST}.testNotEnoughBrokers", alone=True, has=Behaviour.CORDONING)
async def more_replicas_than_brokers_are_refused(world: World) -> None:
    await only_mine(world, *await world.brokers(2))
    await refuse(world, 1, 3, TOO_FEW.format(wanted=3, found=2))


@case(
    "a topic cannot be placed while all brokers are fenced",
    f"{TEST}.testAllBrokersFenced",
    alone=True,
    has=Behaviour.CORDONING,
)
async def topic_cannot_be_placed_while_all_brokers_are_fenced(world: World) -> None:
    a = await world.broker()
    await only_mine(world, a)
    await world.fence(a)
    message = (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log "
        "directories cordoned."
    )
    await refuse(world, 1, 1, message)


@case(
    "a refused placement names no cordoned directories",
    "StripedReplicaPlacer",
    Rank.SHOULD,
    lacks=Behaviour.CORDONING,
    alone=True,
)
async def refused_placement_names_no_cordoned_directories(world: World) -> None:
    brokers = await world.brokers(2)
    await only_mine(world, *brokers)
    prefix = "Unable to replicate the partition {} time(s): "
    few = "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered."
    await refuse(world, 1, 3, prefix.format(3) + few)
    await world.fence(*brokers)
    await refuse(world, 1, 1, prefix.format(1) + "All brokers are currently fenced.")


@case("a broker with all directories cordoned has no new replicas", "KIP-1066", since=30, alone=True)
async def broker_with_all_directories_cordoned_has_no_new_replicas(world: World) -> None:
    a, _cordoned = await world.broker(), await world.broker(cordoned=[0])
    await only_mine(world, a)
    placed = await place(world, 4, 1)
    expect("the replicas", [[a.id]] * 4, [replicas for replicas, _ in placed])
    await refuse(world, 1, 2, TOO_FEW.format(wanted=2, found=1))


@case("a broker with a directory that is not cordoned has new replicas", "KIP-1066", since=30, alone=True)
async def broker_with_directory_that_is_not_cordoned_has_new_replicas(world: World) -> None:
    a, half = await world.broker(), await world.broker(log_dirs=2, cordoned=[0])
    await only_mine(world, a, half)
    placed = await place(world, 2, 2)
    expect("the replicas", [sorted([a.id, half.id])] * 2, [sorted(replicas) for replicas, _ in placed])


@case(
    "a broker in controlled shutdown has no new replicas",
    "ClusterControlManager.usableBrokers",
    Rank.SHOULD,
    alone=True,
)
async def broker_in_controlled_shutdown_has_no_new_replicas(world: World) -> None:
    a, b = await world.brokers(2)
    await only_mine(world, a, b)
    await world.topic([b, a], name="led")
    await world.heartbeat(b, wantShutDown=True, answer={"isFenced": False, "shouldShutDown": False})
    await world.records()
    placed = await place(world, 3, 1)
    expect("the replicas", [[a.id]] * 3, [replicas for replicas, _ in placed])
