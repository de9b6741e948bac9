"""Sessions: fencing of a broker that stops sending heartbeats."""

from __future__ import annotations

import asyncio

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import broker_change
from mockraft.conformance.world import Broker, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

SOURCE = "BrokerHeartbeatTracker"
PAUSE_S = 0.25
PATIENCE_S = 45.0


async def until_fenced(world: World, silent: Broker, living: Broker | None) -> list[str]:
    """Keep one broker alive until the other's session expires; return the kinds of records up to then."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if living is not None:
                await world.heartbeat(living)
            found = await world.records()
            if any(each.fields.get("fenced") == 1 and each.fields["brokerId"] == silent.id for each in found):
                return [each.kind for each in found]
            await asyncio.sleep(PAUSE_S)


@case("a silent broker is fenced, and its followers lead before that is written", SOURCE)
async def silent_broker_is_fenced_and_its_followers_lead_before_that_is_written(world: World) -> None:
    _topic, silent, living = await world.replicated(2)
    kinds = await until_fenced(world, silent, living)
    expect("the records", ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"], kinds)


@case("a broker that was fenced for its silence comes back in the same epoch", SOURCE)
async def broker_that_was_fenced_for_its_silence_comes_back_in_same_epoch(world: World) -> None:
    broker = await world.broker()
    await until_fenced(world, broker, None)
    await world.heartbeat(broker, answer={"errorCode": 0, "isFenced": False})
    await world.wrote(broker_change(broker.id, broker.epoch, fenced=-1))


@case("a silent broker's place may be taken by another incarnation", "ClusterControlManager.registerBroker")
async def silent_brokers_place_may_be_taken_by_another_incarnation(world: World) -> None:
    broker = await world.broker()
    await world.register(broker.id, answer={"errorCode": codes.DUPLICATE_BROKER_REGISTRATION})
    await until_fenced(world, broker, None)
    await world.register(broker.id)
    await world.heartbeat(broker, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case(
    "heartbeats that want to be fenced keep the session",
    SOURCE,
    Rank.SHOULD,
    has=Behaviour.FENCED_BROKERS_KEEP_THEIR_SESSION,
)
async def heartbeats_that_want_to_be_fenced_keep_session(world: World) -> None:
    silent, fenced = await world.broker(), await world.broker(fenced=True)
    await world.heartbeat(fenced, wantFence=True)
    async with asyncio.timeout(PATIENCE_S):
        while not any(each.fields.get("fenced") == 1 for each in await world.records()):
            await world.heartbeat(fenced, wantFence=True)
            await asyncio.sleep(PAUSE_S)
    await world.register(fenced.id, answer={"errorCode": codes.DUPLICATE_BROKER_REGISTRATION})
    await world.heartbeat(silent, answer={"isFenced": False})
