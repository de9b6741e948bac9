"""AllocateProducerIds."""

from __future__ import annotations

from mockraft.conformance.case import case
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import record
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

TEST = "ProducerIdControlManagerTest"
BLOCK = 1000


@case("a block of producer ids is 1000 long and written with its end", f"{TEST}.testGenerateProducerIds")
async def block_of_producer_ids_is_1000_long_and_written_with_its_end(world: World) -> None:
    a = await world.broker()
    response = await world.send("AllocateProducerIds", a.sender, answer={"errorCode": 0, "producerIdLen": BLOCK})
    after = response["producerIdStart"] + BLOCK
    await world.wrote(record("ProducerIds", brokerId=a.id, brokerEpoch=a.epoch, nextProducerId=after))


@case("blocks follow each other, whoever asks", f"{TEST}.testMonotonic", alone=True)
async def blocks_are_consecutive_across_brokers(world: World) -> None:
    first, second = [await world.send("AllocateProducerIds", each.sender) for each in await world.brokers(2)]
    expect("the second block", first["producerIdStart"] + BLOCK, second["producerIdStart"])


@case("a fenced broker may have producer ids", f"{TEST}.testGenerateProducerIds")
async def fenced_broker_may_have_producer_ids(world: World) -> None:
    a = await world.broker(fenced=True)
    await world.send("AllocateProducerIds", a.sender, answer={"errorCode": 0})


@case("a broker of an old epoch gets no producer ids", f"{TEST}.testUnknownBrokerOrEpoch")
async def broker_of_old_epoch_gets_no_producer_ids(world: World) -> None:
    a = await world.broker()
    request = {**a.sender, "brokerEpoch": a.epoch - 1}
    await world.send("AllocateProducerIds", request, answer={"errorCode": codes.STALE_BROKER_EPOCH})
    await world.wrote()


@case("a broker that nobody registered gets no producer ids", f"{TEST}.testUnknownBrokerOrEpoch")
async def unregistered_broker_gets_no_producer_ids(world: World) -> None:
    request = {"brokerId": world.identities.broker_id(), "brokerEpoch": 0}
    await world.send("AllocateProducerIds", request, answer={"errorCode": codes.STALE_BROKER_EPOCH})
