"""BrokerRegistration: who may register, and what is written for it."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case
from mockraft.conformance.records import record
from mockraft.conformance.world import World
from mockraft.wire.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REGISTRATION,
    UNSUPPORTED_VERSION,
)

AREA = "registration"
REFUSED = {"brokerEpoch": -1}
CLUSTER_TEST = "ClusterControlManagerTest"


@case(
    "a broker that registers is written as it said, fenced",
    AREA,
    f"{CLUSTER_TEST}.testRegistrationWithIncorrectClusterId",
)
async def _(world: World) -> None:
    broker = await world.register(rack="r1")
    fields = {
        "brokerId": broker.id,
        "brokerEpoch": broker.epoch,
        "incarnationId": broker.registration["incarnationId"],
        "endPoints": [{"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0}],
        "rack": "r1",
        "fenced": True,
    }
    (written,) = await world.wrote(record("RegisterBroker", **fields))
    assert written.offset == broker.epoch


@case("a broker of another cluster is refused", AREA, f"{CLUSTER_TEST}.testRegistrationWithIncorrectClusterId")
async def _(world: World) -> None:
    await world.register(clusterId="another", answer={"errorCode": INCONSISTENT_CLUSTER_ID, **REFUSED})
    await world.wrote()


@case(
    "another incarnation is refused while the session of the first is valid",
    AREA,
    "ClusterControlManagerTest.testRegisterBrokerRecordVersion",
)
async def _(world: World) -> None:
    broker = await world.broker()
    await world.register(broker.id, answer={"errorCode": DUPLICATE_BROKER_REGISTRATION, **REFUSED})
    await world.wrote()


@case("another incarnation is accepted while the first has sent no heartbeat", AREA, "ClusterControlManager")
async def _(world: World) -> None:
    broker = await world.register()
    again = await world.register(broker.id)
    assert again.epoch > broker.epoch


@case("a broker that still migrates from ZooKeeper is refused", AREA, "ClusterControlManager", Rank.SHOULD)
async def _(world: World) -> None:
    await world.register(isMigratingZkBroker=True, answer={"errorCode": BROKER_ID_NOT_REGISTERED, **REFUSED})


@case("a broker without directories is refused", AREA, "KIP-858", since=17)
async def _(world: World) -> None:
    await world.register(logDirs=[], answer={"errorCode": INVALID_REGISTRATION, **REFUSED})


@case("a broker that does not know the finalized metadata.version is refused", AREA, "KIP-778")
async def _(world: World) -> None:
    features = world.features(metadata_version=(world.level + 1, 32767))
    await world.register(features=features, answer={"errorCode": UNSUPPORTED_VERSION, **REFUSED})
