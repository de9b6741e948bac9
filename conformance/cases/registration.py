"""BrokerRegistration: the conditions for registering, and the records written."""

from __future__ import annotations

from collections.abc import Callable

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import MISSING, above, expect
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes
from mockraft.wire import uuids

TEST = "ClusterControlManagerTest"
MANAGER = "ClusterControlManager.registerBroker"
RESERVED = uuids.text_of(bytes(15) + b"\x05")


def refused(code: int) -> Tree:
    return {"errorCode": code, "brokerEpoch": -1}


@case("a new broker is written fenced, as it said, and its epoch is the offset of its record", MANAGER)
async def new_broker_is_written_fenced_as_it_said_and_its_epoch_is_offset_of_its_record(world: World) -> None:
    listeners = [
        {"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0},
        {"name": "OTHER", "host": "example.org", "port": 65535, "securityProtocol": 3},
    ]
    broker = await world.register(rack="r1", listeners=listeners)
    (written,) = await world.wrote(
        record(
            "RegisterBroker",
            brokerId=broker.id,
            brokerEpoch=broker.epoch,
            incarnationId=broker.registration["incarnationId"],
            endPoints=listeners,
            rack="r1",
            fenced=True,
            inControlledShutdown=False,
        )
    )
    expect("the offset of the record", broker.epoch, written.offset)


@case("a broker without listeners and rack may register", MANAGER, Rank.QUIRK)
async def broker_without_listeners_and_rack_may_register(world: World) -> None:
    await world.register(listeners=[], rack=None)
    await world.wrote(record("RegisterBroker", endPoints=[], rack=None))


@case("the features of a registration are written as sent", f"{TEST}.testReplayRegisterBrokerRecord")
async def features_of_registration_are_written_as_sent(world: World) -> None:
    broker = await world.register()
    await world.wrote(record("RegisterBroker", features=broker.registration["features"]))


@case("the directories of a registration are written as sent", "KIP-858", since=17)
async def directories_of_registration_are_written_as_sent(world: World) -> None:
    broker = await world.register(logDirs=[world.uuid() for _ in range(3)])
    await world.wrote(record("RegisterBroker", logDirs=broker.dirs))


@case("directories are not looked at before metadata.version 17", "KIP-858", until=16)
async def directories_are_not_looked_at_before_metadata_version_17(world: World) -> None:
    await world.register(logDirs=[RESERVED, RESERVED])
    await world.wrote(record("RegisterBroker", logDirs=MISSING))


@case("a new registration says nothing about cordoned directories", "KIP-1066", since=30)
async def new_registration_has_no_cordoned_directories(world: World) -> None:
    await world.register()
    await world.wrote(record("RegisterBroker", cordonedLogDirs=MISSING))


@case("a broker of another cluster is refused", f"{TEST}.testRegistrationWithIncorrectClusterId")
async def broker_of_another_cluster_is_refused(world: World) -> None:
    await world.register(clusterId="another", answer=refused(codes.INCONSISTENT_CLUSTER_ID))
    await world.wrote()


@case("a broker of another cluster is told so before its directories are looked at", MANAGER)
async def cluster_id_is_checked_before_directories(world: World) -> None:
    await world.register(clusterId="another", logDirs=[], features=[], answer=refused(codes.INCONSISTENT_CLUSTER_ID))


@case(
    "another incarnation is refused while the session of the first is valid", f"{TEST}.testReRegistrationAndBrokerEpoch"
)
async def another_incarnation_is_refused_while_session_of_first_is_valid(world: World) -> None:
    broker = await world.broker()
    await world.register(broker.id, answer=refused(codes.DUPLICATE_BROKER_REGISTRATION))
    await world.wrote()


@case(
    "another incarnation is refused while a fenced broker still sends heartbeats",
    MANAGER,
    has=Behaviour.FENCED_BROKERS_KEEP_THEIR_SESSION,
)
async def another_incarnation_is_refused_while_fenced_broker_still_sends_heartbeats(world: World) -> None:
    broker = await world.register()
    await world.heartbeat(broker, wantFence=True)
    await world.register(broker.id, answer=refused(codes.DUPLICATE_BROKER_REGISTRATION))


@case(
    "another incarnation is accepted while the first is fenced",
    "BrokerHeartbeatManager.hasValidSession",
    lacks=Behaviour.FENCED_BROKERS_KEEP_THEIR_SESSION,
)
async def another_incarnation_is_accepted_while_first_is_fenced(world: World) -> None:
    broker = await world.broker()
    await world.register(broker.id, answer=refused(codes.DUPLICATE_BROKER_REGISTRATION))
    await world.fence(broker)
    await world.heartbeat(broker, wantFence=True)
    again = await world.register(broker.id)
    expect("the second epoch", above(broker.epoch), again.epoch)


@case("another incarnation is accepted while the first has sent no heartbeat", MANAGER, Rank.QUIRK)
async def another_incarnation_is_accepted_while_first_has_sent_no_heartbeat(world: World) -> None:
    first = await world.register()
    second = await world.register(first.id)
    expect("the second epoch", above(first.epoch), second.epoch)
    await world.heartbeat(first, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("another incarnation is accepted after the first was unregistered", MANAGER)
async def another_incarnation_is_accepted_after_first_was_unregistered(world: World) -> None:
    broker = await world.broker()
    await world.send("UnregisterBroker", {"brokerId": broker.id}, answer={"errorCode": 0})
    await world.register(broker.id)


@case("a broker that still migrates from ZooKeeper is refused", "KIP-866", Rank.SHOULD)
async def broker_that_still_migrates_from_zookeeper_is_refused(world: World) -> None:
    await world.register(isMigratingZkBroker=True, answer=refused(codes.BROKER_ID_NOT_REGISTERED))
    await world.wrote()


@case("a negative broker id may register", MANAGER, Rank.QUIRK)
async def negative_broker_id_may_register(world: World) -> None:
    broker_id = -world.identities.broker_id()
    world.identities.broker_ids.add(broker_id)
    await world.register(broker_id)
    await world.wrote(record("RegisterBroker", brokerId=broker_id))


async def same_again(world: World, broker: Broker, **fields: object) -> Broker:
    """Register the same incarnation again, with these fields changed."""
    return await world.register(broker.id, **{**broker.registration, **fields})


@case(
    "the same incarnation keeps its epoch and stays unfenced",
    f"{TEST}.testReRegistrationAndBrokerEpoch",
    has=Behaviour.EPOCH_IS_KEPT,
)
async def same_incarnation_keeps_its_epoch_and_stays_unfenced(world: World) -> None:
    broker = await world.broker()
    again = await same_again(world, broker, rack="moved")
    expect("the epoch", broker.epoch, again.epoch)
    await world.wrote(
        record("RegisterBroker", brokerId=broker.id, brokerEpoch=broker.epoch, fenced=False, rack="moved")
    )


@case(
    "the same incarnation that was fenced stays fenced",
    f"{TEST}.testReRegistrationAndBrokerEpoch",
    has=Behaviour.EPOCH_IS_KEPT,
)
async def same_incarnation_that_was_fenced_stays_fenced(world: World) -> None:
    broker = await world.register()
    await world.records()
    await same_again(world, broker)
    await world.wrote(record("RegisterBroker", brokerEpoch=broker.epoch, fenced=True))


@case(
    "the same incarnation gets a new epoch and stays as it was",
    f"{TEST}.testReRegistrationAndBrokerEpoch",
    lacks=Behaviour.EPOCH_IS_KEPT,
)
async def same_incarnation_gets_new_epoch_and_stays_as_it_was(world: World) -> None:
    for is_fenced in (False, True):
        broker = await world.broker(fenced=is_fenced)
        again = await same_again(world, broker)
        expect("the epoch", above(broker.epoch), again.epoch)
        await world.wrote(record("RegisterBroker", brokerEpoch=again.epoch, fenced=is_fenced))
        await world.heartbeat(broker, answer={"errorCode": codes.STALE_BROKER_EPOCH})


@case("another incarnation is refused after the same one registered again", "KIP-631, BrokerHeartbeatManager")
async def another_incarnation_is_refused_after_the_same_one(world: World) -> None:
    a = await world.broker()
    await world.send("BrokerRegistration", a.registration, answer={"errorCode": 0})
    other = {**a.registration, "incarnationId": world.uuid()}
    await world.send("BrokerRegistration", other, answer={"errorCode": codes.DUPLICATE_BROKER_REGISTRATION})


@case("the same incarnation must read up to its newest record before it is unfenced", "BrokerHeartbeatManager")
async def same_incarnation_must_read_up_to_its_newest_record_before_it_is_unfenced(world: World) -> None:
    broker = await world.register()
    await same_again(world, broker)
    behind = {"isCaughtUp": False, "isFenced": True}
    await world.heartbeat(broker, currentMetadataOffset=broker.epoch, answer=behind)


@case("the same incarnation that drops the directory of what it leads goes on leading", MANAGER, Rank.QUIRK, since=17)
async def same_incarnation_without_directory_of_its_partition_stays_leader(world: World) -> None:
    _topic, broker = await world.replicated(1, log_dirs=2)
    await same_again(world, broker, logDirs=broker.dirs[:1])
    await world.wrote(record("RegisterBroker", logDirs=broker.dirs[:1]))


DIRECTORIES: list[tuple[str, str, Callable[[str, str], list[str]]]] = [
    ("without directories", "KIP-858", lambda own, other: []),
    ("with a reserved directory id", "KIP-858 DirectoryId", lambda own, other: [own, RESERVED]),
    ("that names a directory twice", f"{TEST}.testRegisterWithDuplicateDirectoryId", lambda own, other: [own, own]),
    ("with another broker's directory", f"{TEST}.testRegisterWithDuplicateDirectoryId", lambda own, other: [own, other]),
]  # fmt: skip


@cases("a broker {} is refused", "{1}", DIRECTORIES, since=17)
async def invalid_directories_are_refused(
    world: World, _source: str, log_dirs: Callable[[str, str], list[str]]
) -> None:
    other = await world.register()
    await world.records()
    await world.register(logDirs=log_dirs(world.uuid(), *other.dirs), answer=refused(codes.INVALID_REGISTRATION))
    await world.wrote()


@case("an unregistered broker's directory is free", MANAGER, since=17)
async def unregistered_brokers_directory_is_free(world: World) -> None:
    first = await world.register()
    await world.send("UnregisterBroker", {"brokerId": first.id}, answer={"errorCode": 0})
    await world.register(logDirs=first.dirs)


@case("a registration in a version without directories is refused", "KIP-858", Rank.SHOULD, since=17)
async def registration_in_version_without_directories_is_refused(world: World) -> None:
    request = {"clusterId": world.cluster_id, "brokerId": world.identities.broker_id(), "features": world.features()}
    for version in (0, 1):
        await world.send("BrokerRegistration", request, answer=refused(codes.INVALID_REGISTRATION), version=version)


@case(
    "a broker without metadata.version among its features is refused",
    MANAGER,
    has=Behaviour.MISSING_METADATA_VERSION_IS_INVALID,
)
async def broker_without_metadata_version_among_its_features_is_refused(world: World) -> None:
    features = world.features(metadata_version=None)
    await world.register(features=features, answer=refused(codes.INVALID_REGISTRATION))


@case(
    "a broker without metadata.version knows only level 1",
    MANAGER,
    Rank.QUIRK,
    lacks=Behaviour.MISSING_METADATA_VERSION_IS_INVALID,
)
async def broker_without_metadata_version_knows_only_level_1(world: World) -> None:
    features = world.features(metadata_version=None)
    await world.register(features=features, answer=refused(codes.UNSUPPORTED_VERSION))


@case("a broker that does not know the finalized metadata.version is refused", "KIP-778")
async def broker_that_does_not_know_finalized_metadata_version_is_refused(world: World) -> None:
    for bounds in ((world.level + 1, 32767), (1, world.level - 1)):
        features = world.features(metadata_version=bounds)
        await world.register(features=features, answer=refused(codes.UNSUPPORTED_VERSION))
    await world.wrote()


@case("a broker that knows just the finalized metadata.version is accepted", "KIP-778")
async def broker_that_knows_just_finalized_metadata_version_is_accepted(world: World) -> None:
    await world.register(features=world.features(metadata_version=(world.level, world.level)))


@case("a broker that does not name a finalized feature is refused", "KIP-1022", since=26)
async def broker_that_does_not_name_finalized_feature_is_refused(world: World) -> None:
    features = world.features(group_version=None)
    await world.register(features=features, answer=refused(codes.UNSUPPORTED_VERSION))


@case("a broker may know features that the controller does not, from level 0", "KIP-584")
async def broker_may_know_features_that_controller_does_not_from_level_0(world: World) -> None:
    await world.register(features=world.features(no_such=(0, 5)))


@case(
    "a broker that needs a feature which nobody knows is refused", "KIP-584", has=Behaviour.UNKNOWN_FEATURES_ARE_CHECKED
)
async def broker_requiring_unknown_feature_is_refused(world: World) -> None:
    await world.register(features=world.features(no_such=(1, 5)), answer=refused(codes.UNSUPPORTED_VERSION))


@case(
    "a broker may need a feature which nobody knows",
    "ClusterControlManager.processRegistrationFeature",
    Rank.QUIRK,
    lacks=Behaviour.UNKNOWN_FEATURES_ARE_CHECKED,
)
async def broker_may_require_unknown_feature(world: World) -> None:
    await world.register(features=world.features(no_such=(1, 5)))


@case("a new incarnation of a clean shutdown leaves no ISR it was not in", "KIP-966", since=26, elr=True)
async def new_incarnation_of_clean_shutdown_leaves_no_isr_it_was(world: World) -> None:
    _topic, a, _b = await world.replicated(2)
    await world.fence(a)
    await world.send("UnregisterBroker", {"brokerId": a.id}, answer={"errorCode": 0})
    await world.records()
    again = await world.register(a.id, previousBrokerEpoch=a.epoch)
    await world.wrote(record("RegisterBroker", brokerId=a.id, brokerEpoch=again.epoch, fenced=True))


@case("a new incarnation takes the old one out of the ISRs before it is written", MANAGER)
async def new_incarnation_takes_old_one_out_of_isrs_before_it_is_written(world: World) -> None:
    a, b = await world.broker(fenced=True), await world.broker()
    topic = await world.topic([b, a])
    await world.send("UnregisterBroker", {"brokerId": b.id}, answer={"errorCode": 0})
    kinds = [each.kind for each in await world.records()]
    expect("the records", ["PartitionChangeRecord", "UnregisterBrokerRecord"], kinds)
    expect("the leader", -1, (await world.partition(topic)).leader)
