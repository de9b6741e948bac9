"""BrokerHeartbeat: fencing, unfencing and controlled shutdown of brokers."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.topics import create
from mockraft.conformance.records import Expected, broker_change, partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

EPOCH_BUMP = "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded"
STATES = "BrokerHeartbeatManager.calculateNextBrokerState"
FENCE, UNFENCE = 1, -1


def fenced(broker: Broker) -> Expected:
    return broker_change(broker.id, broker.epoch, fenced=FENCE)


def unfenced(broker: Broker) -> Expected:
    return broker_change(broker.id, broker.epoch, fenced=UNFENCE)


RUNNING = {"errorCode": 0, "isCaughtUp": True, "isFenced": False, "shouldShutDown": False}
FENCED = {"errorCode": 0, "isCaughtUp": True, "isFenced": True, "shouldShutDown": False}
DOWN = {"errorCode": 0, "isCaughtUp": True, "isFenced": True, "shouldShutDown": True}


BEHIND: Tree = {"isCaughtUp": False}
BEATS: list[tuple[str, bool, int | None, Tree, Tree, int]] = [
    ("a broker that has caught up is unfenced by its heartbeat", True, None, {}, RUNNING, UNFENCE),
    ("a broker at the offset of its registration has caught up", True, 0, {}, RUNNING, UNFENCE),
    ("a broker one record behind its registration stays fenced", True, -1, {}, FENCED | BEHIND, 0),
    ("a fenced broker that wants to be fenced stays so, and nothing is written", True, None, {"wantFence": True}, FENCED, 0),
    ("a running broker's heartbeat writes nothing", False, None, {}, RUNNING, 0),
    ("a running broker that has fallen behind is not fenced", False, -1, {}, RUNNING | BEHIND, 0),
    ("a running broker that wants to be fenced is", False, None, {"wantFence": True}, FENCED, FENCE),
]  # fmt: skip
"""Fenced before, offset after the registration's (None: beyond any), request, response, change of fencing."""


@cases("{}", STATES, BEATS)
async def heartbeat_fences_or_unfences(
    world: World, is_fenced: bool, offset: int | None, fields: Tree, answer: Tree, change: int
) -> None:
    broker = await world.register() if is_fenced else await world.broker()
    await world.records()
    position = {} if offset is None else {"currentMetadataOffset": broker.epoch + offset}
    await world.heartbeat(broker, answer=answer, **fields, **position)
    await world.wrote(*([broker_change(broker.id, broker.epoch, fenced=change)] if change else []))


@case("a broker comes back from fencing in the same epoch", STATES)
async def broker_comes_back_from_fencing_in_same_epoch(world: World) -> None:
    broker = await world.broker()
    await world.fence(broker)
    await world.heartbeat(broker, answer=RUNNING)
    await world.wrote(unfenced(broker))


@case("a heartbeat of an old epoch is stale", "ClusterControlManager.checkBrokerEpoch")
async def heartbeat_of_old_epoch_is_stale(world: World) -> None:
    broker = await world.broker()
    for more in (-1, 1):
        stale = {"errorCode": codes.STALE_BROKER_EPOCH, "isFenced": True}
        await world.heartbeat(broker, brokerEpoch=broker.epoch + more, answer=stale)


@case("a heartbeat of a broker that nobody registered is stale", "ClusterControlManager.checkBrokerEpoch")
async def heartbeat_of_unregistered_broker_is_stale(world: World) -> None:
    request = {"brokerId": world.identities.broker_id(), "brokerEpoch": 1}
    await world.send("BrokerHeartbeat", request, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("a heartbeat of a broker that was unregistered is stale", "ClusterControlManager.checkBrokerEpoch")
async def heartbeat_of_broker_that_was_unregistered_is_stale(world: World) -> None:
    broker = await world.broker()
    await world.send("UnregisterBroker", {"brokerId": broker.id}, answer={"errorCode": 0})
    await world.heartbeat(broker, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("every version of the heartbeat unfences", "BrokerHeartbeatRequest.json", Rank.SHOULD)
async def every_version_of_heartbeat_unfences(world: World) -> None:
    for version in (0, 1, 2):
        await world.heartbeat(await world.register(), version=version, answer=RUNNING)


@case("a broker that is fenced leaves the ISRs and leads nothing", "ReplicationControlManager.handleBrokerFenced")
async def broker_that_is_fenced_leaves_isrs_and_leads_nothing(world: World) -> None:
    topic, a, b, c = await world.replicated(3)
    await world.heartbeat(a, wantFence=True, answer=FENCED)
    await world.wrote(partition_change(topic.id, isr=[b.id, c.id], leader=b.id), fenced(a))


@case("a follower that is fenced leaves the ISR, and the leader keeps its epoch", EPOCH_BUMP, since=12)
async def follower_that_is_fenced_leaves_isr_and_leader_keeps_its_epoch(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.heartbeat(b, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id]), fenced(b))


@case(
    "a follower that is fenced leaves the ISR, and the leader's epoch grows before metadata.version 12",
    EPOCH_BUMP,
    until=11,
)
async def fenced_follower_leaves_isr_and_leader_epoch_grows_before_version_12(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.heartbeat(b, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id], leader=a.id), fenced(b))


@case("a partition that loses its last replica has no leader and remembers it as eligible", "KIP-966", elr=True)
async def partition_that_loses_its_last_replica_has_no_leader_and_remembers_it_as_eligible(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.heartbeat(a, wantFence=True)
    change = {"isr": [], "leader": -1, "eligibleLeaderReplicas": [a.id], "lastKnownElr": [a.id]}
    await world.wrote(partition_change(topic.id, **change), fenced(a))


@case(
    "a partition that loses its last replica has no leader and keeps it in the ISR", "PartitionChangeBuilder", elr=False
)
async def partition_that_loses_its_last_replica_has_no_leader_and_keeps_it_in_isr(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.heartbeat(a, wantFence=True)
    await world.wrote(partition_change(topic.id, leader=-1), fenced(a))


@case("a replica that leaves an ISR below its minimum is eligible to lead", "KIP-966", elr=True)
async def replica_that_leaves_isr_below_its_minimum_is_eligible_to_lead(world: World) -> None:
    topic, a, b, c = await world.replicated(3, min_insync_replicas="3")
    await world.heartbeat(c, wantFence=True)
    await world.wrote(partition_change(topic.id, isr=[a.id, b.id], eligibleLeaderReplicas=[c.id]), fenced(c))


@case("an eligible replica leads again when it comes back", "KIP-966", elr=True)
async def eligible_replica_leads_again_when_it_comes_back(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.fence(a, b)
    await world.heartbeat(b, answer=RUNNING)
    change = {"isr": [b.id], "leader": b.id, "eligibleLeaderReplicas": [], "lastKnownElr": []}
    await world.wrote(unfenced(b), partition_change(topic.id, **change))


@case("the last of the ISR leads again when it comes back", "PartitionChangeBuilder", elr=False)
async def last_of_isr_leads_again_when_it_comes_back(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.fence(a, b)
    await world.heartbeat(b, answer=RUNNING)
    await world.wrote(unfenced(b), partition_change(topic.id, leader=b.id))


@case("a replica that is not in sync does not lead when it comes back", "PartitionChangeBuilder")
async def replica_that_is_not_in_sync_does_not_lead_when_it_comes_back(world: World) -> None:
    _topic, a, b = await world.replicated(2)
    await world.fence(a, b)
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote(unfenced(a))


@case(
    "a replica that is not in sync leads an unclean topic when it comes back",
    "PartitionChangeBuilder",
    has=Behaviour.UNCLEAN_ELECTIONS_BY_CONFIG,
)
async def replica_that_is_not_in_sync_leads_unclean_topic_when_it_comes_back(world: World) -> None:
    topic, a, b = await world.replicated(2, unclean_leader_election_enable="true")
    await world.fence(a, b)
    await world.heartbeat(a, answer=RUNNING)
    with_elr: Tree = {"eligibleLeaderReplicas": [], "lastKnownElr": []} if world.level >= 26 else {}
    change = {"isr": [a.id], "leader": a.id, "leaderRecoveryState": 1, **with_elr}
    await world.wrote(unfenced(a), partition_change(topic.id, **change))


@case(
    "a replica that is not in sync leads nothing when it comes back",
    "ReplicationControlManager.uncleanLeaderElectionEnabledForTopic",
    lacks=Behaviour.UNCLEAN_ELECTIONS_BY_CONFIG,
)
async def replica_that_is_not_in_sync_leads_nothing_when_it_comes_back(world: World) -> None:
    _topic, a, b = await world.replicated(2, unclean_leader_election_enable="true")
    await world.fence(a, b)
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote(unfenced(a))


@case("a running broker that leads nothing may shut down at once, and is fenced", STATES)
async def running_broker_that_leads_nothing_may_shut_down_at_once_and_is_fenced(world: World) -> None:
    broker = await world.broker()
    await world.heartbeat(broker, wantShutDown=True, answer=DOWN)
    await world.wrote(fenced(broker))


@case("a fenced broker may shut down at once, and is fenced again", STATES, Rank.QUIRK)
async def fenced_broker_may_shut_down_at_once_and_is_fenced_again(world: World) -> None:
    broker = await world.register()
    await world.records()
    await world.heartbeat(broker, wantShutDown=True, answer=DOWN)
    await world.wrote(fenced(broker))


@case("a running broker that wants to be fenced and to shut down does both", STATES)
async def running_broker_that_wants_to_be_fenced_and_to_shut_down_does_both(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.heartbeat(a, wantFence=True, wantShutDown=True, answer=DOWN)
    await world.wrote(partition_change(topic.id, isr=[b.id], leader=b.id), fenced(a))


@case("a leader that wants to shut down gives its partitions away first", "KIP-841")
async def leader_that_wants_to_shut_down_gives_its_partitions_away_first(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    shutting_down = broker_change(a.id, a.epoch, inControlledShutdown=1)
    await world.wrote(shutting_down, partition_change(topic.id, isr=[b.id], leader=b.id))


@case("a follower in no leadership leaves the ISRs when it shuts down", STATES)
async def follower_in_no_leadership_leaves_isrs_when_it_shuts_down(world: World) -> None:
    topic, a, b = await world.replicated(2)
    shrink = {"isr": [a.id], **({"leader": a.id} if world.level < 12 else {})}
    await world.heartbeat(b, wantShutDown=True, answer=DOWN)
    await world.wrote(partition_change(topic.id, **shrink), fenced(b))


@case("the last leader of a partition cannot shut down", "KIP-841", elr=False)
async def last_leader_of_partition_cannot_shut_down(world: World) -> None:
    _topic, a = await world.replicated(1)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    await world.records()
    await world.heartbeat(a, wantShutDown=True)


@case(
    "a broker in controlled shutdown waits until the others have read what it wrote",
    STATES,
    alone=True,
    without_brokers=True,
)
async def controlled_shutdown_waits_until_others_have_caught_up(world: World) -> None:
    _topic, a, b = await world.replicated(2)
    await world.heartbeat(b, currentMetadataOffset=1)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=DOWN)


@case("a broker that goes on with its shutdown cannot be kept by wanting to run", STATES, Rank.SHOULD, alone=True)
async def broker_that_goes_on_with_its_shutdown_cannot_be_kept_by_wanting_to_run(world: World) -> None:
    _topic, a, b = await world.replicated(2)
    await world.heartbeat(b, currentMetadataOffset=1)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    await world.records()
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote()


@case(
    "a broker that shut down is fenced and stays marked until it registers anew",
    "KIP-841",
    Rank.QUIRK,
    alone=True,
    without_brokers=True,
)
async def broker_that_shut_down_is_fenced_and_stays_marked_until_it_registers_anew(world: World) -> None:
    _topic, a, b = await world.replicated(2)
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=RUNNING)
    await world.heartbeat(b)
    await world.heartbeat(a, wantShutDown=True, answer=DOWN)
    await world.records()
    await world.heartbeat(a, answer=RUNNING)
    await world.wrote(unfenced(a))
    await create(world, world.creatable("u", [a]), answer=[{"errorCode": codes.INVALID_REPLICA_ASSIGNMENT}])
