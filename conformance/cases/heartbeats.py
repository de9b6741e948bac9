"""BrokerHeartbeat: how a broker comes to run, and how it goes."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case
from mockraft.conformance.records import Expected, broker_change, partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Broker, World
from mockraft.wire import error_codes as codes

AREA = "heartbeats"
STATES = "BrokerHeartbeatManager.calculateNextBrokerState"
FENCE, UNFENCE = 1, -1


def fenced(broker: Broker) -> Expected:
    return broker_change(broker.id, broker.epoch, fenced=FENCE)


def unfenced(broker: Broker) -> Expected:
    return broker_change(broker.id, broker.epoch, fenced=UNFENCE)


def shutting_down(broker: Broker) -> Expected:
    return broker_change(broker.id, broker.epoch, inControlledShutdown=1)


RUNNING = {"errorCode": 0, "isCaughtUp": True, "isFenced": False, "shouldShutDown": False}
FENCED = {"errorCode": 0, "isCaughtUp": True, "isFenced": True, "shouldShutDown": False}
DOWN = {"errorCode": 0, "isCaughtUp": True, "isFenced": True, "shouldShutDown": True}
GOING = {"errorCode": 0, "isCaughtUp": True, "isFenced": False, "shouldShutDown": False}


@case("a broker that has caught up is unfenced by its heartbeat", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.register()
    await world.records()
    await world.heartbeat(broker, answer=RUNNING)
    await world.wrote(unfenced(broker))


@case("a broker at the offset of its registration has caught up", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.register()
    await world.heartbeat(broker, currentMetadataOffset=broker.epoch, answer=RUNNING)


@case("a broker one record behind its registration stays fenced", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.register()
    await world.records()
    behind = {**FENCED, "isCaughtUp": False}
    await world.heartbeat(broker, currentMetadataOffset=broker.epoch - 1, answer=behind)
    await world.wrote()


@case("a fenced broker that wants to be fenced stays so, and nothing is written", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.register()
    await world.records()
    await world.heartbeat(broker, wantFence=True, answer=FENCED)
    await world.wrote()


@case("a running broker's heartbeat writes nothing", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.heartbeat(broker, answer=RUNNING)
    await world.wrote()


@case("a running broker that has fallen behind is not fenced", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.heartbeat(broker, currentMetadataOffset=0, answer={**RUNNING, "isCaughtUp": False})
    await world.wrote()


@case("a running broker that wants to be fenced is", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.heartbeat(broker, wantFence=True, answer=FENCED)
    await world.wrote(fenced(broker))


@case("a broker comes back from fencing in the same epoch", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.fence(broker)
    await world.heartbeat(broker, answer=RUNNING)
    await world.wrote(unfenced(broker))


@case("a heartbeat of an old epoch is stale", AREA, "ClusterControlManager.checkBrokerEpoch")
async def _(world: World) -> None:
    broker = await world.broker()
    for more in (-1, 1):
        stale = {"errorCode": codes.STALE_BROKER_EPOCH, "isFenced": True}
        await world.heartbeat(broker, brokerEpoch=broker.epoch + more, answer=stale)


@case("a heartbeat of a broker that nobody registered is stale", AREA, "ClusterControlManager.checkBrokerEpoch")
async def _(world: World) -> None:
    asked = {"brokerId": world.identities.broker_id(), "brokerEpoch": 1}
    await world.ask("BrokerHeartbeat", asked, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("a heartbeat of a broker that was unregistered is stale", AREA, "ClusterControlManager.checkBrokerEpoch")
async def _(world: World) -> None:
    broker = await world.broker()
    await world.ask("UnregisterBroker", {"brokerId": broker.id}, answer={"errorCode": 0})
    await world.heartbeat(broker, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("every version of the heartbeat unfences", AREA, "BrokerHeartbeatRequest.json", Rank.SHOULD)
async def _(world: World) -> None:
    for version in (0, 1, 2):
        await world.heartbeat(await world.register(), version=version, answer=RUNNING)


@case("a broker that is fenced leaves the ISRs and leads nothing", AREA, "ReplicationControlManager.handleBrokerFenced")
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b, c])
    await world.heartbeat(a, wantFence=True, answer=FENCED)
    await world.wrote(partition_change(topic.id, isr=[b.id, c.id], leader=b.id), fenced(a))


@case(
    "a follower that is fenced leaves the ISR, and the leader keeps its epoch",
    AREA,
    "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded",
    since=12,
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.heartbeat(b, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id]), fenced(b))


@case(
    "a follower that is fenced leaves the ISR, and the leader's epoch grows before metadata.version 12",
    AREA,
    "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded",
    until=11,
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.heartbeat(b, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id], leader=a.id), fenced(b))


@case("a partition that loses its last replica has no leader and remembers it as eligible", AREA, "KIP-966", elr=True)
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    await world.heartbeat(a, wantFence=True)
    change = {"isr": [], "leader": -1, "eligibleLeaderReplicas": [a.id], "lastKnownElr": [a.id]}
    await world.wrote(partition_change(topic.id, **change), fenced(a))


@case(
    "a partition that loses its last replica has no leader and keeps it in the ISR",
    AREA,
    "PartitionChangeBuilder",
    elr=False,
)
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    await world.heartbeat(a, wantFence=True)
    await world.wrote(partition_change(topic.id, leader=-1), fenced(a))


@case("a replica that leaves an ISR below its minimum is eligible to lead", AREA, "KIP-966", elr=True)
async def _(world: World) -> None:
    a, b, c = await world.brokers(3)
    topic = await world.topic([a, b, c], min_insync_replicas="3")
    await world.heartbeat(c, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id, b.id], eligibleLeaderReplicas=[c.id]), fenced(c))


@case("an eligible replica leads again when it comes back", AREA, "KIP-966", elr=True)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a, b)
    await world.heartbeat(b, answer=RUNNING)
    change = {"isr": [b.id], "leader": b.id, "eligibleLeaderReplicas": [], "lastKnownElr": []}
    await world.wrote(unfenced(b), partition_change(topic.id, **change))


@case("the last of the ISR leads again when it comes back", AREA, "PartitionChangeBuilder", elr=False)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.fence(a, b)
    await world.heartbeat(b, answer=RUNNING)
    await world.wrote(unfenced(b), partition_change(topic.id, leader=b.id))


@case("a replica that is not in sync does not lead when it comes back", AREA, "PartitionChangeBuilder")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    await world.topic([a, b])
    await world.fence(a, b)
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote(unfenced(a))


@case("a replica that is not in sync leads an unclean topic when it comes back", AREA, "PartitionChangeBuilder")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b], unclean_leader_election_enable="true")
    await world.fence(a, b)
    await world.heartbeat(a, answer=RUNNING)
    with_elr: Tree = {"eligibleLeaderReplicas": [], "lastKnownElr": []} if world.level >= 26 else {}
    change = {"isr": [a.id], "leader": a.id, "leaderRecoveryState": 1, **with_elr}
    await world.wrote(unfenced(a), partition_change(topic.id, **change))


@case("a running broker that leads nothing may shut down at once, and is fenced", AREA, STATES)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.heartbeat(broker, wantShutDown=True, answer=DOWN)
    await world.wrote(fenced(broker))


@case("a fenced broker may shut down at once, and is fenced again", AREA, STATES, Rank.QUIRK)
async def _(world: World) -> None:
    broker = await world.register()
    await world.records()
    await world.heartbeat(broker, wantShutDown=True, answer=DOWN)
    await world.wrote(fenced(broker))


@case("a running broker that wants to be fenced and to shut down does both", AREA, STATES)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.heartbeat(a, wantFence=True, wantShutDown=True, answer=DOWN)
    await world.wrote(partition_change(topic.id, isr=[b.id], leader=b.id), fenced(a))


@case("a leader that wants to shut down gives its partitions away first", AREA, "KIP-841")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.wrote(shutting_down(a), partition_change(topic.id, isr=[b.id], leader=b.id))


@case("a follower in no leadership leaves the ISRs when it shuts down", AREA, STATES)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    topic = await world.topic([a, b])
    shrink = {"isr": [a.id], **({"leader": a.id} if world.level < 12 else {})}
    await world.heartbeat(b, wantShutDown=True, answer=DOWN)
    await world.wrote(partition_change(topic.id, **shrink), fenced(b))


@case("the last leader of a partition cannot shut down", AREA, "KIP-841", elr=False)
async def _(world: World) -> None:
    a = await world.broker()
    await world.topic([a])
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.records()
    await world.heartbeat(a, wantShutDown=True)


@case("a broker in controlled shutdown waits until the others have read what it wrote", AREA, STATES, alone=True)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    await world.topic([a, b])
    await world.heartbeat(b, currentMetadataOffset=1)
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=DOWN)


@case("a broker that goes on with its shutdown cannot be kept by wanting to run", AREA, STATES, Rank.SHOULD, alone=True)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    await world.topic([a, b])
    await world.heartbeat(b, currentMetadataOffset=1)
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.records()
    await world.heartbeat(a, answer=GOING)
    await world.wrote()


@case(
    "a broker that shut down is fenced and stays marked until it registers anew",
    AREA,
    "KIP-841",
    Rank.QUIRK,
    alone=True,
)
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    await world.topic([a, b])
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=GOING)
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=DOWN)
    await world.records()
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote(unfenced(a))
    asked = {"topics": [world.creatable("u", [a])], "timeoutMs": TIMEOUT_MS}
    await world.ask("CreateTopics", asked, answer={"topics": [{"errorCode": codes.INVALID_REPLICA_ASSIGNMENT}]})
