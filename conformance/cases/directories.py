"""Directories (KIP-858): assignment of replicas, failed directories, and their effect on partitions."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import broker_change, partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, World
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest"
ASSIGN_TEST = f"{TEST}.testHandleAssignReplicasToDirs"
OFFLINE_TEST = f"{TEST}.testHandleDirectoriesOffline"
MIGRATING, UNASSIGNED, LOST = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


async def assign(
    world: World, broker: Broker, directory: str, topic_id: str, *partitions: int, codes_: list[int], **fields: object
) -> None:
    """Send AssignReplicasToDirs and expect these error codes of the partitions."""
    named: Tree = {"topicId": topic_id, "partitions": [{"partitionIndex": index} for index in partitions]}
    request = {**broker.sender, "directories": [{"id": directory, "topics": [named]}], **fields}
    response = [{"partitionIndex": i, "errorCode": code} for i, code in zip(partitions, codes_, strict=True)]
    expected = [{"id": directory, "topics": [{"topicId": topic_id, "partitions": response}]}]
    await world.send("AssignReplicasToDirs", request, answer={"errorCode": 0, "directories": expected})


@case("a replica is assigned to a directory", ASSIGN_TEST, since=17)
async def replica_is_assigned_to_directory(world: World) -> None:
    topic, a = await world.replicated(1, log_dirs=2)
    await assign(world, a, a.dirs[1], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[a.dirs[1]]))


@case("an assignment to where the replica is writes nothing", ASSIGN_TEST, since=17)
async def assignment_to_where_replica_is_writes_nothing(world: World) -> None:
    topic, a = await world.replicated(1)
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.wrote()


@case("a broker assigns its own replicas only", ASSIGN_TEST, since=17)
async def broker_assigns_its_own_replicas_only(world: World) -> None:
    a, b = await world.broker(), await world.broker(log_dirs=2)
    topic = await world.topic([a])
    await assign(world, b, b.dirs[0], topic.id, 0, codes_=[codes.NOT_LEADER_OR_FOLLOWER])
    await world.wrote()


@case("an assignment leaves the other replicas' directories", ASSIGN_TEST, since=17)
async def assignment_leaves_other_replicas_directories(world: World) -> None:
    topic, _a, b = await world.replicated(2, log_dirs=2)
    await assign(world, b, b.dirs[1], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[UNASSIGNED, b.dirs[1]]))


@case("assignments are told apart by partition", ASSIGN_TEST, since=17)
async def assignments_have_a_result_per_partition(world: World) -> None:
    topic, a = await world.replicated(1, log_dirs=2)
    await assign(world, a, a.dirs[0], topic.id, 0, 5, codes_=[0, codes.UNKNOWN_TOPIC_OR_PARTITION])
    await world.wrote(partition_change(topic.id, directories=[a.dirs[0]]))


@case("an assignment in an unknown topic is refused", ASSIGN_TEST, since=17)
async def assignment_in_unknown_topic_is_refused(world: World) -> None:
    a = await world.broker()
    await assign(world, a, a.dirs[0], world.uuid(), 0, codes_=[codes.UNKNOWN_TOPIC_ID])


@case("an assignment by a stale broker is refused", ASSIGN_TEST, since=17)
async def assignment_by_stale_broker_is_refused(world: World) -> None:
    a = await world.broker()
    answer = {"errorCode": codes.STALE_BROKER_EPOCH}
    await world.send("AssignReplicasToDirs", {"brokerId": a.id, "brokerEpoch": a.epoch - 1}, answer=answer)


@case(
    "assignments are not there before metadata.version 17",
    f"{TEST}.testHandleAssignReplicasToDirsFailsOnOlderMv",
    until=16,
)
async def assignments_are_not_there_before_metadata_version_17(world: World) -> None:
    a = await world.broker()
    answer = {"errorCode": codes.UNSUPPORTED_VERSION}
    await world.send("AssignReplicasToDirs", a.sender, answer=answer)


@case("a fenced broker may assign", ASSIGN_TEST, Rank.SHOULD, since=17)
async def fenced_broker_may_assign(world: World) -> None:
    a, fenced = await world.broker(), await world.broker(log_dirs=2, fenced=True)
    topic = await world.topic([a, fenced])
    await assign(world, fenced, fenced.dirs[0], topic.id, 0, codes_=[0])
    await world.wrote(partition_change(topic.id, directories=[*a.dirs, fenced.dirs[0]]))


@case("unassigned and migrating are directories like others", ASSIGN_TEST, Rank.QUIRK, since=17)
async def unassigned_and_migrating_are_directories_like_others(world: World) -> None:
    topic, a = await world.replicated(1)
    for directory in (UNASSIGNED, MIGRATING):
        await assign(world, a, directory, topic.id, 0, codes_=[0])
        await world.wrote(partition_change(topic.id, directories=[directory]))


@cases(
    "a replica that is assigned to a {} leaves the ISR",
    ASSIGN_TEST,
    [("lost directory", LOST), ("directory nobody registered", None)],
    since=17,
)
async def replica_in_unusable_directory_leaves_isr(world: World, directory: str | None) -> None:
    topic, a, b = await world.replicated(2)
    directory = directory or world.uuid()
    await assign(world, a, directory, topic.id, 0, codes_=[0])
    await world.wrote(
        partition_change(topic.id, directories=[directory, *b.dirs]),
        partition_change(topic.id, isr=[b.id], leader=b.id),
    )


@case("the partitions of a failed directory leave it, and then the directory goes", OFFLINE_TEST, since=17)
async def partitions_of_failed_directory_leave_it_and_then_directory_goes(world: World) -> None:
    a, b = await world.broker(log_dirs=2), await world.broker()
    topic = await world.topic([a, b])
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[0]], answer={"errorCode": 0, "isFenced": False})
    await world.wrote(
        partition_change(topic.id, isr=[b.id], leader=b.id), broker_change(a.id, a.epoch, logDirs=[a.dirs[1]])
    )


@case("the partitions of a good directory stay when another fails", OFFLINE_TEST, since=17)
async def partitions_of_good_directory_stay_when_another_fails(world: World) -> None:
    topic, a = await world.replicated(1, log_dirs=2)
    await assign(world, a, a.dirs[0], topic.id, 0, codes_=[0])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.wrote(broker_change(a.id, a.epoch, logDirs=[a.dirs[0]]))


@case("a failed directory that is told again changes nothing", OFFLINE_TEST, since=17)
async def failed_directory_reported_again_changes_nothing(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.records()
    await world.heartbeat(a, offlineLogDirs=[a.dirs[1]])
    await world.wrote()


@case(
    "a failed directory that nobody registered is not minded",
    "KIP-858, ReplicationControlManager.handleDirectoriesOffline",
    Rank.QUIRK,
    since=17,
)
async def unregistered_failed_directory_is_ignored(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[world.uuid()], answer={"errorCode": 0, "isFenced": False})
    await world.wrote()


@case(
    "the failure of all directories is written at each heartbeat", "BrokerRegistration.cloneWith", Rank.QUIRK, since=17
)
async def failure_of_all_directories_is_written_at_each_heartbeat(world: World) -> None:
    a = await world.broker()
    for _ in range(2):
        await world.heartbeat(a, offlineLogDirs=a.dirs, answer={"errorCode": 0, "isFenced": False})
        written = [f"{each.kind} v{each.version}" for each in await world.records()]
        expect("the records", ["BrokerRegistrationChangeRecord v2"], written)


@case("failed directories are not looked at before metadata.version 17", "KIP-858", until=16)
async def failed_directories_are_not_looked_at_before_metadata_version_17(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=a.dirs[:1])
    await world.wrote()


@case(
    "a leader may take a replica on a failed directory into the ISR, and it is not elected",
    "ReplicationControlManager",
    Rank.QUIRK,
    since=17,
)
async def leader_may_take_replica_on_failed_directory_into_isr_and_it_is_not_elected(world: World) -> None:
    a, b = await world.broker(), await world.broker(log_dirs=2)
    topic = await world.topic([a, b])
    await assign(world, b, b.dirs[0], topic.id, 0, codes_=[0])
    await world.heartbeat(b, offlineLogDirs=[b.dirs[0]])
    await world.propose_isr(topic, [a, b], answer={"topics": [{"partitions": [{"errorCode": 0}]}]})
    await world.fence(a)
    expect("the leader", -1, (await world.partition(topic)).leader)


@case(
    "a new partition on a broker whose other directories failed is in the one that is left",
    "ClusterControlManager.defaultDir",
    since=17,
)
async def new_partition_is_placed_in_the_remaining_directory(world: World) -> None:
    a = await world.broker(log_dirs=2)
    await world.heartbeat(a, offlineLogDirs=[a.dirs[0]])
    topic = await world.topic([a])
    expect("the directories", [a.dirs[1]], (await world.partition(topic)).directories)
