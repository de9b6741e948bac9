"""Fetch and FetchSnapshot of the metadata log."""

from __future__ import annotations

import asyncio

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.quorum import describe
from mockraft.conformance.expectation import ANYTHING, NOT_EMPTY, above, either, expect
from mockraft.conformance.log import METADATA_TOPIC_ID
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes
from mockraft.wire.topic_names import CLUSTER_METADATA

TEST = "KafkaRaftClientTest"
DIVERGING_TEST = f"{TEST}.testLeaderImmediatelySendsDivergingEpoch"
SNAPSHOT_TEST = "KafkaRaftClientSnapshotTest"
FAR = 1 << 40


async def epoch_and_end(world: World) -> tuple[int, int]:
    response = await describe(world, answer={"errorCode": 0}, version=-1)
    partition = response["topics"][0]["partitions"][0]
    return partition["leaderEpoch"], partition["highWatermark"]


async def fetch(world: World, partition: Tree, *, answer: object, version: int = -1, **fields: object) -> Tree:
    """Fetch partition 0 as a reader; `fields` replace those of the request."""
    of_reader = {"partition": 0, "lastFetchedEpoch": 0, "partitionMaxBytes": 1 << 20, **partition}
    topics = [{"topicId": METADATA_TOPIC_ID, "partitions": [of_reader]}]
    request: Tree = {"maxWaitMs": 0, "maxBytes": 1 << 20, "topics": topics, **fields}
    return await world.send("Fetch", request, answer=answer, version=version)


def of_partition(**fields: object) -> Tree:
    responses = [{"topicId": METADATA_TOPIC_ID, "partitions": [{"partitionIndex": 0, **fields}]}]
    return {"errorCode": 0, "responses": responses}


@case("records are read from an offset, in the epoch of the leader", f"{TEST}.testLeaderAppendSingleMemberQuorum")
async def records_are_read_from_offset_in_epoch_of_leader(world: World) -> None:
    await world.broker()
    epoch, end = await epoch_and_end(world)
    request = {"currentLeaderEpoch": epoch, "fetchOffset": end - 1, "lastFetchedEpoch": epoch}
    expected = of_partition(errorCode=0, highWatermark=above(end - 1), logStartOffset=ANYTHING, records=NOT_EMPTY)
    await fetch(world, request, answer=expected)


EPOCHS: list[tuple[str, int, int]] = [
    ("that knows no epoch", 0, codes.FENCED_LEADER_EPOCH),
    ("of an epoch of the future", 1 << 30, codes.UNKNOWN_LEADER_EPOCH),
]


@cases("a reader {} is told the leader's", f"{TEST}.testInvalidFetchRequest", EPOCHS)
async def fetch_with_other_epoch_returns_the_leader(world: World, sent: int, code: int) -> None:
    epoch, _end = await epoch_and_end(world)
    leader = {"leaderId": world.target.leader_id, "leaderEpoch": epoch}
    request = {"currentLeaderEpoch": sent, "fetchOffset": 0}
    await fetch(world, request, answer=of_partition(errorCode=code, currentLeader=leader))


@case("the leader's address comes with a refusal from version 17 on", "KIP-853, FetchResponse v17", Rank.SHOULD)
async def leaders_address_comes_with_refusal_from_version_17_on(world: World) -> None:
    answer = {
        **of_partition(errorCode=codes.FENCED_LEADER_EPOCH),
        "nodeEndpoints": [{"nodeId": world.target.leader_id, "host": NOT_EMPTY, "port": above(0)}],
    }
    await fetch(world, {"currentLeaderEpoch": 0, "fetchOffset": 0}, answer=answer, version=17)


@case("an offset past the end diverges at the end", DIVERGING_TEST)
async def offset_past_end_diverges_at_end(world: World) -> None:
    epoch, end = await epoch_and_end(world)
    request = {"currentLeaderEpoch": epoch, "fetchOffset": FAR, "lastFetchedEpoch": epoch}
    answer = of_partition(errorCode=0, divergingEpoch={"epoch": epoch, "endOffset": above(end - 1)})
    await fetch(world, request, answer=answer)


@case("a last epoch that the leader never had diverges", DIVERGING_TEST, Rank.SHOULD)
async def last_epoch_that_leader_never_had_diverges(world: World) -> None:
    epoch, end = await epoch_and_end(world)
    request = {"currentLeaderEpoch": epoch, "fetchOffset": end, "lastFetchedEpoch": 0}
    await fetch(world, request, answer=of_partition(errorCode=0, divergingEpoch={"epoch": 0}))


REFUSALS: list[tuple[str, Tree]] = [
    ("a negative offset", {"fetchOffset": -1}),
    ("a negative last epoch", {"fetchOffset": 5, "lastFetchedEpoch": -1}),
    ("a last epoch over the leader's", {"fetchOffset": 5, "lastFetchedEpoch": 1 << 30}),
]


@cases("a fetch with {} is refused", f"{TEST}.testInvalidFetchRequest", REFUSALS)
async def invalid_fetch_is_refused(world: World, fields: Tree) -> None:
    epoch, _end = await epoch_and_end(world)
    answer = of_partition(errorCode=codes.INVALID_REQUEST)
    await fetch(world, {"currentLeaderEpoch": epoch, **fields}, answer=answer)


@case("a fetch with a negative wait is refused", f"{TEST}.testInvalidFetchRequest")
async def fetch_with_negative_wait_is_refused(world: World) -> None:
    epoch, _end = await epoch_and_end(world)
    request = {"currentLeaderEpoch": epoch, "fetchOffset": 0}
    await fetch(world, request, maxWaitMs=-1, answer=of_partition(errorCode=codes.INVALID_REQUEST))


@case("a fetch of another cluster is refused", f"{TEST}.testFetchRequestClusterIdValidation")
async def fetch_of_another_cluster_is_refused(world: World) -> None:
    answer = {"errorCode": codes.INCONSISTENT_CLUSTER_ID, "responses": []}
    for cluster_id in ("another", ""):
        await fetch(world, {"fetchOffset": 0}, clusterId=cluster_id, answer=answer)


@case("a fetch of another topic or partition is refused as a whole", f"{TEST}.testInvalidFetchRequest")
async def fetch_of_another_topic_or_partition_is_refused_as_whole(world: World) -> None:
    answer = {"errorCode": codes.INVALID_REQUEST, "responses": []}
    await fetch(world, {"partition": 1}, answer=answer)
    await fetch(world, {}, topics=[], answer=answer)
    two = [{"topicId": METADATA_TOPIC_ID, "partitions": [{"partition": 0}, {"partition": 0}]}]
    await fetch(world, {}, topics=two, answer=answer)
    await fetch(world, {}, topics=[{"topicId": world.uuid(), "partitions": [{"partition": 0}]}], answer=answer)


@case("a fetch that names the topic and not its id is refused", "KafkaRaftClient.handleFetchRequest", Rank.QUIRK)
async def fetch_that_names_topic_and_not_its_id_is_refused(world: World) -> None:
    topics = [{"topic": CLUSTER_METADATA, "partitions": [{"partition": 0}]}]
    await fetch(world, {}, topics=topics, answer={"errorCode": codes.INVALID_REQUEST, "responses": []}, version=12)


@case("a fetch at the end waits until something is written", f"{TEST}.testPurgatoryFetchSatisfiedByWrite", alone=True)
async def fetch_at_end_waits_until_something_is_written(world: World) -> None:
    epoch, end = await epoch_and_end(world)
    request = {"currentLeaderEpoch": epoch, "fetchOffset": end, "lastFetchedEpoch": epoch}
    waiting = fetch(world, request, maxWaitMs=20_000, answer=of_partition(errorCode=0))
    async with asyncio.TaskGroup() as tasks:
        fetched = tasks.create_task(waiting)
        tasks.create_task(world.register())
    expect("the answer to Fetch", of_partition(records=NOT_EMPTY), fetched.result())


async def fetch_snapshot(world: World, *, answer: object, topic: str = CLUSTER_METADATA, **fields: object) -> None:
    """`fields` are of the partition."""
    epoch, _end = await epoch_and_end(world)
    partition = {"partition": 0, "currentLeaderEpoch": epoch, "snapshotId": {"endOffset": 5, "epoch": 1}, **fields}
    request = {"maxBytes": 1024, "topics": [{"name": topic, "partitions": [partition]}]}
    await world.send("FetchSnapshot", request, answer=answer)


SNAPSHOTS: list[tuple[str, Tree, int, str]] = [
    ("that is not there", {}, codes.SNAPSHOT_NOT_FOUND, "MissingSnapshot"),
    ("of formatting", {"snapshotId": {"endOffset": 0, "epoch": 0}}, codes.SNAPSHOT_NOT_FOUND, "BootstrapSnapshot"),
    ("at a position nowhere", {"position": FAR}, codes.SNAPSHOT_NOT_FOUND, "MissingSnapshot"),
    ("in an old epoch", {"currentLeaderEpoch": 0}, codes.FENCED_LEADER_EPOCH, "WithOlderEpoch"),
    ("in an epoch of the future", {"currentLeaderEpoch": 1 << 30}, codes.UNKNOWN_LEADER_EPOCH, "WithNewerEpoch"),
    ("of another partition", {"partition": 1}, codes.UNKNOWN_TOPIC_OR_PARTITION, "UnknownPartition"),
    ("of another topic", {"topic": "another"}, codes.UNKNOWN_TOPIC_OR_PARTITION, "UnknownPartition"),
]


@cases("a snapshot {} is not sent", f"{SNAPSHOT_TEST}.testFetchSnapshotRequest{{3}}", SNAPSHOTS, Rank.SHOULD)
async def unavailable_snapshot_is_not_sent(world: World, fields: Tree, code: int, _test: str) -> None:
    await fetch_snapshot(world, answer=meant_for_partition(code), **fields)


def meant_for_partition(code: int) -> object:
    """Return the error of a partition, or what comes instead: Kafka cannot write it, as the records are null."""
    meant = {"errorCode": 0, "topics": [{"partitions": [{"errorCode": code}]}]}
    return either(meant, {"errorCode": codes.UNKNOWN_SERVER_ERROR, "topics": []})


@case("a snapshot of another cluster is refused", f"{SNAPSHOT_TEST}.testFetchSnapshotRequestClusterIdValidation")
async def snapshot_of_another_cluster_is_refused(world: World) -> None:
    answer = {"errorCode": codes.INCONSISTENT_CLUSTER_ID, "topics": []}
    partition = {"partition": 0, "snapshotId": {"endOffset": 5, "epoch": 1}}
    for cluster_id in ("another", ""):
        topics = [{"name": CLUSTER_METADATA, "partitions": [partition]}]
        await world.send("FetchSnapshot", {"clusterId": cluster_id, "topics": topics}, answer=answer)


SEVERAL: list[tuple[str, list[tuple[str, list[int]]]]] = [
    ("several partitions", [(CLUSTER_METADATA, [0, 1])]),
    ("several topics", [(CLUSTER_METADATA, [0]), ("another", [0])]),
]


@cases(
    "a snapshot request for {} is refused",
    "KafkaRaftClient.handleFetchSnapshotRequest",
    [*SEVERAL, ("several partitions of several topics", [(CLUSTER_METADATA, [0, 1]), ("another", [0, 1])])],
    Rank.SHOULD,
    has=Behaviour.SNAPSHOTS_ARE_FETCHED_SINGLY,
)
async def snapshots_of_several_are_refused(world: World, asked: list[tuple[str, list[int]]]) -> None:
    await fetch_snapshots(world, asked, answer={"errorCode": codes.INVALID_REQUEST, "topics": []})


@case(
    "a snapshot request for several partitions of several topics is refused, too",
    "KafkaRaftClient.handleFetchSnapshotRequest",
    Rank.SHOULD,
    lacks=Behaviour.SNAPSHOTS_ARE_FETCHED_SINGLY,
)
async def snapshots_of_several_partitions_of_several_topics_are_refused(world: World) -> None:
    asked = [(CLUSTER_METADATA, [0, 1]), ("another", [0, 1])]
    await fetch_snapshots(world, asked, answer={"errorCode": codes.INVALID_REQUEST, "topics": []})


@cases(
    "a snapshot request for {} is answered for the metadata log",
    "KafkaRaftClient.handleFetchSnapshotRequest",
    SEVERAL,
    Rank.QUIRK,
    lacks=Behaviour.SNAPSHOTS_ARE_FETCHED_SINGLY,
)
async def one_snapshot_of_several_is_found(world: World, asked: list[tuple[str, list[int]]]) -> None:
    await fetch_snapshots(world, asked, answer=meant_for_partition(codes.FENCED_LEADER_EPOCH))


async def fetch_snapshots(world: World, asked: list[tuple[str, list[int]]], *, answer: object) -> None:
    topics = [{"name": name, "partitions": [{"partition": each} for each in indexes]} for name, indexes in asked]
    await world.send("FetchSnapshot", {"topics": topics}, answer=answer)
