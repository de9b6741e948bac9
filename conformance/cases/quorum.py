"""DescribeQuorum and the voters of the quorum: a leader's responses and errors. Nothing here changes the voters."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import ANYTHING, MISSING, NOT_EMPTY, above, expect, like
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes
from mockraft.wire.topic_names import CLUSTER_METADATA

TEST = "KafkaRaftClientTest"
CHANGE_TEST = "KafkaRaftClientReconfigTest"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
UNKNOWN_ID = 123456789


async def describe(
    world: World, topic: str = CLUSTER_METADATA, partition: int = 0, *, answer: object, version: int = -1
) -> Tree:
    request = {"topics": [{"topicName": topic, "partitions": [{"partitionIndex": partition}]}]}
    return await world.send("DescribeQuorum", request, answer=answer, version=version)


def of_partition(**fields: object) -> Tree:
    topics = [{"topicName": CLUSTER_METADATA, "partitions": [{"partitionIndex": 0, **fields}]}]
    return {"errorCode": 0, "topics": topics}


async def leader_epoch(world: World) -> int:
    response = await describe(world, answer=of_partition(errorCode=0))
    return int(response["topics"][0]["partitions"][0]["leaderEpoch"])


@case("a leader tells its epoch, its voters and how far it is", f"{TEST}.testDescribeQuorumWithOnlyStaticVoters")
async def leader_describes_epoch_voters_and_offsets(world: World) -> None:
    leader = world.target.leader_id
    offsets = {"leaderEpoch": above(0), "highWatermark": above(0)}
    answer = of_partition(errorCode=0, leaderId=leader, currentVoters=NOT_EMPTY, **offsets)
    for version in (0, 1, -1):
        response = await describe(world, answer=answer, version=version)
        voters = [each["replicaId"] for each in response["topics"][0]["partitions"][0]["currentVoters"]]
        expect("whether the leader is a voter", True, leader in voters)


@case("the nodes of the quorum are told from version 2 on", "KIP-853, DescribeQuorumResponse v2")
async def nodes_are_described_from_version_2(world: World) -> None:
    for version, nodes in ((1, MISSING), (2, NOT_EMPTY)):
        await describe(world, answer={**of_partition(errorCode=0), "nodes": nodes}, version=version)


@case("another topic has no quorum", "DescribeQuorumRequest", Rank.SHOULD)
async def another_topic_has_no_quorum(world: World) -> None:
    partition = {"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}
    answer = {"errorCode": 0, "topics": [{"partitions": [partition]}]}
    await describe(world, "another", answer=answer)
    await describe(world, CLUSTER_METADATA, 1, answer=answer)


@case("a voter of another cluster is not removed", CHANGE_TEST)
async def voter_of_another_cluster_is_not_removed(world: World) -> None:
    message = f'The given id "another" doesn\'t match the cluster id "{world.cluster_id}"'
    refused = {"errorCode": codes.INCONSISTENT_CLUSTER_ID, "errorMessage": like(f"{message}.*")}
    await world.send("RemoveRaftVoter", {"clusterId": "another", "voterId": 3}, answer=refused)


@case("a voter that is none cannot be removed", f"{CHANGE_TEST}.testRemoveVoter")
async def voter_that_is_none_cannot_be_removed(world: World) -> None:
    response = await describe(world, answer={**of_partition(errorCode=0), "nodes": ANYTHING})
    own = response["topics"][0]["partitions"][0]["currentVoters"][0]["replicaDirectoryId"]
    unknown = {"clusterId": world.cluster_id, "voterId": UNKNOWN_ID, "voterDirectoryId": world.uuid()}
    code = codes.UNSUPPORTED_VERSION if own == NO_ID else codes.VOTER_NOT_FOUND
    await world.send("RemoveRaftVoter", unknown, answer={"errorCode": code})


@case("a voter of another cluster is not added", CHANGE_TEST)
async def voter_of_another_cluster_is_not_added(world: World) -> None:
    request = {"clusterId": "another", "voterId": 5, "voterDirectoryId": world.uuid(), "timeoutMs": 1000}
    await world.send("AddRaftVoter", request, answer={"errorCode": codes.INCONSISTENT_CLUSTER_ID})


INCOMPLETE_VOTERS: list[tuple[str, Tree]] = [
    ("a directory", {"voterDirectoryId": NO_ID}),
    ("the controllers' listener", {"listeners": []}),
]


@cases("a voter without {} is not added", CHANGE_TEST, INCOMPLETE_VOTERS, Rank.SHOULD)
async def incomplete_voter_is_not_added(world: World, fields: Tree) -> None:
    voter = {"clusterId": world.cluster_id, "voterId": 5, "voterDirectoryId": world.uuid(), "timeoutMs": 1000}
    await world.send("AddRaftVoter", voter | fields, answer={"errorCode": codes.INVALID_REQUEST})


def vote(world: World, **fields: object) -> Tree:
    partition = {"partitionIndex": 0, "replicaEpoch": 1, "replicaId": 5, "lastOffsetEpoch": 0, "lastOffset": 0}
    return {
        "clusterId": world.cluster_id,
        "voterId": world.target.leader_id,
        "topics": [{"topicName": CLUSTER_METADATA, "partitions": [{**partition, "preVote": True, **fields}]}],
    }


@case("a vote of another cluster is refused", f"{TEST}.testVoteRequestClusterIdValidation")
async def vote_of_another_cluster_is_refused(world: World) -> None:
    request = {**vote(world), "clusterId": "another"}
    await world.send("Vote", request, answer={"errorCode": codes.INCONSISTENT_CLUSTER_ID})


@case("a vote in an old epoch is refused with the leader's", f"{TEST}.testHandleInvalidVoteRequestWithOlderEpoch")
async def vote_in_old_epoch_is_refused_with_leaders(world: World) -> None:
    leader = {"leaderId": world.target.leader_id, "leaderEpoch": above(0), "voteGranted": False}
    answer = {"errorCode": 0, "topics": [{"partitions": [{"errorCode": codes.FENCED_LEADER_EPOCH, **leader}]}]}
    await world.send("Vote", vote(world, replicaEpoch=0, lastOffsetEpoch=0), answer=answer)


@case("a vote for another topic is refused as a whole", f"{TEST}.testInvalidVoteRequest")
async def vote_for_another_topic_is_refused_as_whole(world: World) -> None:
    request = vote(world)
    request["topics"][0]["topicName"] = "another"
    await world.send("Vote", request, answer={"errorCode": codes.INVALID_REQUEST, "topics": []})


@case("a leader gives no vote in its own epoch", f"{TEST}.testLeaderIgnoreVoteRequestOnSameEpoch")
async def leader_gives_no_vote_in_its_own_epoch(world: World) -> None:
    epoch = await leader_epoch(world)
    partition = {"errorCode": 0, "leaderEpoch": epoch, "voteGranted": False}
    answer = {"errorCode": 0, "topics": [{"partitions": [partition]}]}
    await world.send("Vote", vote(world, replicaEpoch=epoch), answer=answer)


REFUSED_VOTES: list[tuple[str, Tree, Tree, int]] = [
    ("with a negative offset", {}, {"lastOffset": -1}, codes.INVALID_REQUEST),
    ("with a negative last epoch", {}, {"lastOffsetEpoch": -1}, codes.INVALID_REQUEST),
    ("with a last epoch over its own", {}, {"lastOffsetEpoch": 1 << 30}, codes.INVALID_REQUEST),
    ("for nobody", {}, {"replicaId": -1}, codes.INVALID_REQUEST),
    ("that is asked of another voter", {"voterId": UNKNOWN_ID}, {}, codes.INVALID_VOTER_KEY),
]


@cases("a vote {} is refused", "KafkaRaftClient.handleVoteRequest", REFUSED_VOTES, Rank.SHOULD)
async def invalid_vote_is_refused(world: World, top: Tree, fields: Tree, code: int) -> None:
    epoch = await leader_epoch(world)
    request = {**vote(world, **{"replicaEpoch": epoch, **fields}), **top}
    answer = {"errorCode": 0, "topics": [{"partitions": [{"errorCode": code, "voteGranted": False}]}]}
    await world.send("Vote", request, answer=answer)


def epoch_request(
    world: World, topic: str = CLUSTER_METADATA, leader_id: int | None = None, epoch: int = 0, **fields: object
) -> Tree:
    leader_id = world.target.leader_id if leader_id is None else leader_id
    partition = {"partitionIndex": 0, "leaderId": leader_id, "leaderEpoch": epoch}
    return {"clusterId": world.cluster_id, "topics": [{"topicName": topic, "partitions": [partition]}], **fields}


async def begin_and_end(world: World, request: Tree, *, code: int = 0, partition_code: int | None = None) -> None:
    """Send BeginQuorumEpoch and EndQuorumEpoch; expect this code, and this one of the partition."""
    topics = [] if partition_code is None else [{"partitions": [{"errorCode": partition_code}]}]
    for api in ("BeginQuorumEpoch", "EndQuorumEpoch"):
        await world.send(api, request, answer={"errorCode": code, "topics": topics})


@case(
    "the begin or end of an epoch in another cluster is refused",
    f"{TEST}.testBeginQuorumEpochRequestClusterIdValidation",
)
async def begin_or_end_of_epoch_in_another_cluster_is_refused(world: World) -> None:
    await begin_and_end(world, epoch_request(world, clusterId="another"), code=codes.INCONSISTENT_CLUSTER_ID)


@case("the begin or end of an old epoch is refused", f"{TEST}.testEndQuorumIgnoredAsLeaderIfOlderEpoch")
async def begin_or_end_of_old_epoch_is_refused(world: World) -> None:
    await begin_and_end(world, epoch_request(world), partition_code=codes.FENCED_LEADER_EPOCH)


@case("the begin or end of an epoch of another topic is refused", f"{TEST}.testInvalidVoteRequest", Rank.SHOULD)
async def begin_or_end_of_epoch_of_another_topic_is_refused(world: World) -> None:
    await begin_and_end(world, epoch_request(world, "another"), code=codes.INVALID_REQUEST)


@case("the begin or end of an epoch of no leader is refused", "KafkaRaftClient.validateVoterOnlyRequest", Rank.SHOULD)
async def begin_or_end_of_epoch_of_no_leader_is_refused(world: World) -> None:
    request = epoch_request(world, leader_id=-1, epoch=await leader_epoch(world))
    await begin_and_end(world, request, partition_code=codes.INVALID_REQUEST)


REFUSED_UPDATES: list[tuple[str, Tree, int]] = [
    ("of another cluster", {"clusterId": "another"}, codes.INCONSISTENT_CLUSTER_ID),
    ("in an old epoch", {"currentLeaderEpoch": 0}, codes.FENCED_LEADER_EPOCH),
    ("in an epoch of the future", {"currentLeaderEpoch": 1 << 30}, codes.UNKNOWN_LEADER_EPOCH),
    ("without an id", {"voterId": -1}, codes.INVALID_REQUEST),
    ("without a directory", {"voterDirectoryId": NO_ID}, codes.INVALID_REQUEST),
    ("without the controllers' listener", {"listeners": []}, codes.INVALID_REQUEST),
    ("with no level of kraft.version", {"kRaftVersionFeature": {"minSupportedVersion": 1}}, codes.INVALID_REQUEST),
]
NOWHERE = {"host": "localhost", "port": 1}


@case(
    "a voter that does not answer is not updated",
    "UpdateVoterHandler.handleApiVersionsResponse",
    Rank.SHOULD,
    has=Behaviour.UPDATED_VOTERS_ARE_ASKED,
)
async def unreachable_voter_is_not_updated(world: World) -> None:
    await invalid_voter_is_not_updated(world, {}, codes.REQUEST_TIMED_OUT)


@case(
    "a voter that is none is not updated",
    "KafkaRaftClient.handleUpdateVoterRequest",
    Rank.SHOULD,
    lacks=Behaviour.UPDATED_VOTERS_ARE_ASKED,
)
async def unknown_voter_is_not_updated(world: World) -> None:
    await invalid_voter_is_not_updated(world, {}, codes.VOTER_NOT_FOUND)


@cases("a voter {} is not updated", "KafkaRaftClient.handleUpdateVoterRequest", REFUSED_UPDATES, Rank.SHOULD)
async def invalid_voter_is_not_updated(world: World, fields: Tree, code: int) -> None:
    response = await describe(world, answer={**of_partition(errorCode=0), "nodes": NOT_EMPTY})
    epoch = response["topics"][0]["partitions"][0]["leaderEpoch"]
    request = {
        "clusterId": world.cluster_id,
        "currentLeaderEpoch": epoch,
        "voterId": UNKNOWN_ID,
        "voterDirectoryId": world.uuid(),
        "listeners": [{"name": response["nodes"][0]["listeners"][0]["name"], **NOWHERE}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        **fields,
    }
    leader = {"leaderId": world.target.leader_id, "leaderEpoch": epoch}
    await world.send("UpdateRaftVoter", request, answer={"errorCode": code, "currentLeader": leader})
