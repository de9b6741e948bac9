"""DescribeCluster, UnregisterBroker, ControllerRegistration and UnregisterController."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case
from mockraft.conformance.expectation import NOT_EMPTY, above, expect
from mockraft.conformance.records import partition_change, record
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

UNREGISTERED = "ReplicationControlManager.handleBrokerUnregistered"
DESCRIBE = "KIP-919, ControllerApis.handleDescribeCluster"
BROKERS, CONTROLLERS = 1, 2
LEVEL = 15
UNREGISTRATION = "KIP-1312, QuorumController.unregisterController"
UNREGISTRATION_LEVEL = 33
UNKNOWN_CONTROLLER = 123456


@case("a controller tells the cluster's controllers", DESCRIBE, since=LEVEL)
async def controllers_are_described(world: World) -> None:
    leader = world.target.leader_id
    answer = {"errorCode": 0, "endpointType": CONTROLLERS, "clusterId": world.cluster_id, "controllerId": leader}
    response = await world.send("DescribeCluster", {"endpointType": CONTROLLERS}, answer=answer)
    (own,) = [each for each in response["brokers"] if each["brokerId"] == leader]
    expect("the leader", {"host": NOT_EMPTY, "port": above(0)}, own)


@case("a controller does not tell the brokers", DESCRIBE, since=LEVEL)
async def brokers_are_not_described(world: World) -> None:
    answer = {"errorCode": codes.MISMATCHED_ENDPOINT_TYPE}
    await world.send("DescribeCluster", {"endpointType": BROKERS}, answer=answer, version=1)
    await world.send("DescribeCluster", {}, answer={"errorCode": codes.INVALID_REQUEST}, version=0)


@case("a controller does not tell what nobody knows", DESCRIBE, Rank.SHOULD, since=LEVEL)
async def unknown_endpoint_type_is_refused(world: World) -> None:
    for kind in (0, 3, -1):
        answer = {"errorCode": codes.UNSUPPORTED_ENDPOINT_TYPE}
        await world.send("DescribeCluster", {"endpointType": kind}, answer=answer)


@case("controllers are not described before metadata.version 15", DESCRIBE, until=LEVEL - 1)
async def controllers_are_not_described_before_metadata_version_15(world: World) -> None:
    answer = {"errorCode": codes.UNSUPPORTED_VERSION}
    await world.send("DescribeCluster", {"endpointType": CONTROLLERS}, answer=answer)


@case(
    "controllers do not register before metadata.version 15",
    "ClusterControlManagerTest.testRegisterControlWithOlderMetadataVersion",
    until=LEVEL - 1,
)
async def controllers_do_not_register_before_metadata_version_15(world: World) -> None:
    request = {"controllerId": 123456, "incarnationId": world.uuid(), "listeners": [], "features": []}
    await world.send("ControllerRegistration", request, answer={"errorCode": codes.UNSUPPORTED_VERSION})
    await world.wrote()


@case(
    "a controller that registers is written as it said",
    "ClusterControlManager.registerController",
    since=LEVEL,
    disruptive=True,
    alone=True,
)
async def controller_registration_is_written_as_sent(world: World) -> None:
    incarnation = world.uuid()
    request = {"controllerId": 123456, "incarnationId": incarnation, "listeners": [], "features": []}
    await world.send("ControllerRegistration", request, answer={"errorCode": 0})
    await world.wrote(record("RegisterController", controllerId=123456, incarnationId=incarnation))


@case("a broker is unregistered with one record", "ClusterControlManagerTest.testUnregister")
async def broker_is_unregistered_with_one_record(world: World) -> None:
    a = await world.broker()
    await world.send("UnregisterBroker", {"brokerId": a.id}, answer={"errorCode": 0})
    await world.wrote(record("UnregisterBroker", brokerId=a.id, brokerEpoch=a.epoch))


@case("a broker that is unregistered leaves its partitions first", UNREGISTERED)
async def broker_that_is_unregistered_leaves_its_partitions_first(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.send("UnregisterBroker", {"brokerId": a.id}, answer={"errorCode": 0})
    await world.wrote(partition_change(topic.id, isr=[b.id], leader=b.id), record("UnregisterBroker", brokerId=a.id))


@case(
    "a broker that nobody registered cannot be unregistered",
    "ClusterControlManagerTest.testUnregister",
    has=Behaviour.UNKNOWN_BROKER_IS_NAMED,
)
async def unregistered_broker_cannot_be_unregistered(world: World) -> None:
    broker_id = world.identities.broker_id()
    message = f"Broker ID {broker_id} is not currently registered"
    refused = {"errorCode": codes.BROKER_ID_NOT_REGISTERED, "errorMessage": message}
    await world.send("UnregisterBroker", {"brokerId": broker_id}, answer=refused)
    await world.wrote()


@case(
    "a broker that nobody registered is refused without a message",
    "ClusterControlManagerTest.testUnregister",
    Rank.QUIRK,
    lacks=Behaviour.UNKNOWN_BROKER_IS_NAMED,
)
async def unregistered_broker_is_refused_without_message(world: World) -> None:
    refused = {"errorCode": codes.BROKER_ID_NOT_REGISTERED, "errorMessage": ""}
    await world.send("UnregisterBroker", {"brokerId": world.identities.broker_id()}, answer=refused)
    await world.wrote()


@case("a broker that was unregistered stays a replica, and comes back as one", UNREGISTERED)
async def broker_that_was_unregistered_stays_replica_and_comes_back_as_one(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.send("UnregisterBroker", {"brokerId": b.id}, answer={"errorCode": 0})
    again = await world.register(b.id)
    await world.unfence(again)
    await world.propose_isr(
        topic, [a, again], answer={"topics": [{"partitions": [{"errorCode": 0, "isr": [a.id, b.id]}]}]}
    )


@case(
    "the active controller cannot be unregistered",
    UNREGISTRATION,
    Rank.SHOULD,
    since_release="4.4",
    lacks=Behaviour.VOTERS_STAY_REGISTERED,
)
async def active_controller_cannot_be_unregistered(world: World) -> None:
    message = "Controller cannot unregister itself while it is active."
    refused = {"errorCode": codes.INVALID_REQUEST, "errorMessage": message}
    await world.send("UnregisterController", {"controllerId": world.target.leader_id}, answer=refused)
    await world.wrote()


@case(
    "a controller that nobody registered cannot be unregistered",
    UNREGISTRATION,
    Rank.SHOULD,
    since=UNREGISTRATION_LEVEL,
)
async def unknown_controller_cannot_be_unregistered(world: World) -> None:
    for controller_id in (UNKNOWN_CONTROLLER, -1):
        message = f"Controller ID {controller_id} is not currently registered."
        refused = {"errorCode": codes.CONTROLLER_ID_NOT_REGISTERED, "errorMessage": message}
        await world.send("UnregisterController", {"controllerId": controller_id}, answer=refused)
    await world.wrote()


@case(
    "a controller is unregistered with one record",
    UNREGISTRATION,
    since=UNREGISTRATION_LEVEL,
    disruptive=True,
    alone=True,
)
async def controller_is_unregistered_with_one_record(world: World) -> None:
    request = {"controllerId": UNKNOWN_CONTROLLER, "incarnationId": world.uuid(), "listeners": [], "features": []}
    await world.send("ControllerRegistration", request, answer={"errorCode": 0})
    await world.send("UnregisterController", {"controllerId": UNKNOWN_CONTROLLER}, answer={"errorCode": 0})
    await world.wrote(
        record("RegisterController", controllerId=UNKNOWN_CONTROLLER),
        record("UnregisterController", controllerId=UNKNOWN_CONTROLLER),
    )
