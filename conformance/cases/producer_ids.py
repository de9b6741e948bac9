"""AllocateProducerIds."""

from __future__ import annotations

from mockraft.conformance.case import case
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import record
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

AREA = "producer ids"
TEST = "ProducerIdControlManagerTest"
BLOCK = 1000


@case("a block of producer ids is 1000 long and written with its end", AREA, f"{TEST}.testGenerateProducerIds")
async def _(world: World) -> None:
    a = await world.broker()
    asked = {"brokerId": a.id, "brokerEpoch": a.epoch}
    told = await world.ask("AllocateProducerIds", asked, answer={"errorCode": 0, "producerIdLen": BLOCK})
    after = told["producerIdStart"] + BLOCK
    await world.wrote(record("ProducerIds", brokerId=a.id, brokerEpoch=a.epoch, nextProducerId=after))


@case("blocks follow each other, whoever asks", AREA, f"{TEST}.testMonotonic", alone=True)
async def _(world: World) -> None:
    starts = []
    for broker in await world.brokers(2):
        asked = {"brokerId": broker.id, "brokerEpoch": broker.epoch}
        starts.append((await world.ask("AllocateProducerIds", asked))["producerIdStart"])
    expect("the second block", starts[0] + BLOCK, starts[1])


@case("a fenced broker may have producer ids", AREA, f"{TEST}.testGenerateProducerIds")
async def _(world: World) -> None:
    a = await world.broker(fenced=True)
    await world.ask("AllocateProducerIds", {"brokerId": a.id, "brokerEpoch": a.epoch}, answer={"errorCode": 0})


@case("a broker of an old epoch gets no producer ids", AREA, f"{TEST}.testUnknownBrokerOrEpoch")
async def _(world: World) -> None:
    a = await world.broker()
    asked = {"brokerId": a.id, "brokerEpoch": a.epoch - 1}
    await world.ask("AllocateProducerIds", asked, answer={"errorCode": codes.STALE_BROKER_EPOCH})
    await world.wrote()


@case("a broker that nobody registered gets no producer ids", AREA, f"{TEST}.testUnknownBrokerOrEpoch")
async def _(world: World) -> None:
    asked = {"brokerId": world.identities.broker_id(), "brokerEpoch": 0}
    await world.ask("AllocateProducerIds", asked, answer={"errorCode": codes.STALE_BROKER_EPOCH})
