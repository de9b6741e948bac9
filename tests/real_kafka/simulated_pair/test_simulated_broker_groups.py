"""A real broker and a simulated one coordinate a group each, in every state of it: equal answers to administrators."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mockraft.brokers.coordinators import state_log
from mockraft.kafka.processes import KafkaTool
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest
from mockraft.wire.messages.list_groups_request import ListGroupsRequest
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mockraft.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

from .group_members import STEPS, Members, committing
from .group_pair import LEADERS, REAL, SIMULATED, Groups, Make, describing

pytestmark = pytest.mark.real_kafka

EARLIEST = -2


def describing_with_operations(group_id: str, _member_id: str) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[group_id], include_authorized_operations=True)


def deleting(group_id: str, _member_id: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[group_id, group_id])


def deleting_offsets(*topics: tuple[str, int]) -> Make:
    def make(group_id: str, _member_id: str) -> OffsetDeleteRequest:
        named = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
            for name, index in topics
        ]
        return OffsetDeleteRequest(group_id=group_id, topics=named)

    return make


def fetching(group_id: str, _member_id: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group_id, topics=None)


def syncing(group_id: str, member_id: str) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"assigned")]
    return SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id, assignments=assignments)


def leaving(group_id: str, member_id: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=group_id, member_id=member_id)


FILTERS: list[dict[str, list[str]]] = [
    {},
    {"states_filter": ["Empty"]},
    {"states_filter": ["stable", "nonsense"]},
    {"states_filter": ["CompletingRebalance"], "types_filter": ["Classic"]},
    {"types_filter": ["consumer"]},
    {"types_filter": ["classic", "share"]},
    {"types_filter": ["nonsense"]},
]


async def expect_same_everywhere(groups: Groups) -> None:
    """Compare every read in every version, and the refusals of deletions."""
    for version in range(DescribeGroupsRequest.max_version + 1):
        await groups.expect_same(describing, version)
        if version >= 3:
            await groups.expect_same(describing_with_operations, version)
    for version in range(ListGroupsRequest.max_version + 1):
        for fields in FILTERS:
            if version >= 4 + ("types_filter" in fields) or not fields:
                await groups.expect_same(lambda *_, fields=fields: ListGroupsRequest(**fields), version)
    await groups.expect_same(deleting_offsets(("none", 0), ("both", 9)), 0)


async def test_group_without_members(groups: Groups) -> None:
    await expect_same_everywhere(groups)
    await groups.expect_same(committing, 7)
    await expect_same_everywhere(groups)
    await groups.expect_same(deleting_offsets(("both", 0), ("none", 0), ("both", 7), ("both", 1)), 0)
    await groups.expect_same(fetching, 7)
    for version in range(DeleteGroupsRequest.max_version + 1):
        await groups.expect_same(committing, 7)
        assert (await groups.expect_same(deleting, version))["results"][0]["errorCode"] == error_codes.NONE
        await groups.expect_same(deleting, version)
        await groups.expect_same(fetching, 7)
    await groups.expect_same(deleting_offsets(("both", 0)), 0)
    await expect_same_everywhere(groups)


@pytest.mark.parametrize(
    ("protocol_type", "metadata"),
    [("consumer", None), ("consumer", b"?"), ("connect", b"?")],
    ids=["consumer", "unreadable", "connect"],
)
async def test_group_with_a_member(groups: Groups, protocol_type: str, metadata: bytes | None) -> None:
    await groups.expect_same(committing, 7)
    await groups.join(protocol_type, metadata)
    for _ in range(2):
        await expect_same_everywhere(groups)
        await groups.expect_same(deleting, 2)
        await groups.expect_same(deleting_offsets(("both", 0), ("single", 0), ("none", 0)), 0)
        await groups.expect_same(fetching, 7)
        await groups.expect_same(syncing, 4)
    await groups.expect_same(leaving, 2)
    await expect_same_everywhere(groups)
    await groups.expect_same(deleting_offsets(("both", 0)), 0)
    await groups.expect_same(deleting, 2)
    await expect_same_everywhere(groups)


async def test_requests_of_members_of_an_unknown_group(groups: Groups) -> None:
    for make, version in ((syncing, 4), (leaving, 2), (fetching, 7)):
        await groups.expect_same(make, version)
    for version in (7, 8, 9):

        def commit(group_id: str, _member_id: str) -> OffsetCommitRequest:
            request = committing(group_id, "")
            request.generation_id_or_member_epoch, request.member_id = 3, "someone"
            return request

        await groups.expect_same(commit, version)
    await groups.expect_same(lambda group_id, _: HeartbeatRequest(group_id=group_id, member_id="someone"), 4)
    await groups.expect_same(lambda *_: DescribeGroupsRequest(groups=[]), 5)
    await groups.expect_same(lambda *_: OffsetDeleteRequest(), 0)
    await expect_same_everywhere(groups)


async def test_joins_that_are_refused(groups: Groups) -> None:
    def joining(**fields: Any) -> Make:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        plain = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 1_000, "protocol_type": "consumer"}
        return lambda group_id, _: JoinGroupRequest(**{"group_id": group_id, "protocols": protocols, **plain, **fields})

    refused: list[dict[str, Any]] = [{"session_timeout_ms": 1}, {"session_timeout_ms": (1 << 31) - 1}]
    refused += [{"protocols": []}, {"protocol_type": ""}, {"member_id": "ghost"}, {"group_id": ""}]
    for version in (3, 4, 9):
        for fields in refused:
            answer = await groups.expect_same(joining(**fields), version)
            assert answer["memberId"] == ("member" if "member_id" in fields else "")
    assert (await groups.expect_same(joining(), 9))["errorCode"] == error_codes.MEMBER_ID_REQUIRED
    await groups.join()
    for fields in ({"member_id": "ghost"}, {"protocols": []}, {"protocol_type": "connect"}):
        await groups.expect_same(joining(**fields), 9)


@pytest.mark.parametrize("steps", STEPS)
async def test_members_that_come_and_go(groups: Groups, steps: str) -> None:
    ids = groups.group_ids
    members = [Members(groups.pair, which, ids[which], ids[3 - which]) for which in (REAL, SIMULATED)]

    async def do(each: Members) -> dict[str, list[object]]:
        for step in steps.split("; "):
            await each.do(step)
        return each.answers

    real, simulated = await asyncio.gather(*map(do, members))
    assert simulated == real


async def test_protocols_of_syncs(groups: Groups) -> None:
    def syncing_as(*agreed: str | None, member: str | None = None) -> Make:
        def make(group_id: str, member_id: str) -> SyncGroupRequest:
            request = syncing(group_id, member_id if member is None else member)
            request.protocol_type, request.protocol_name = agreed
            return request

        return make

    await groups.expect_same(syncing_as(None, None), 5)
    await groups.expect_same(syncing_as("consumer", "range"), 5)
    await groups.join()
    for agreed in ((None, "range"), ("consumer", None), ("connect", "range"), ("consumer", "other")):
        assert (await groups.expect_same(syncing_as(*agreed), 5))["errorCode"] == (
            error_codes.INCONSISTENT_GROUP_PROTOCOL
        )
    await groups.expect_same(syncing_as("consumer", "other", member="ghost"), 5)
    assert (await groups.expect_same(syncing_as("consumer", "range"), 5))["errorCode"] == error_codes.NONE


async def test_metadata_of_offsets_and_the_empty_group(groups: Groups) -> None:
    for metadata in ("\u00e9" * 4096, "\u00e9" * 4097, "\U0001f600" * 2048, "\U0001f600" * 2049, None):

        def commit(group_id: str, _member_id: str, metadata: str | None = metadata) -> OffsetCommitRequest:
            partitions = [OffsetCommitRequestPartition(committed_offset=3, committed_metadata=metadata)]
            return OffsetCommitRequest(
                group_id=group_id, topics=[OffsetCommitRequestTopic(name="both", partitions=partitions)]
            )

        await groups.expect_same(commit, 8)
    (topic,) = (await groups.expect_same(fetching, 7))["topics"]
    assert topic["partitions"][0]["metadata"] == "", "null is kept as an empty text"
    # The empty group is in the real broker's partition.
    for make in (committing, fetching):
        for which, code in ((REAL, error_codes.NONE), (SIMULATED, error_codes.NOT_COORDINATOR)):
            answer = await groups.pair.ask(which, make("", ""), 7)
            found = answer.topics[0].partitions[0].error_code if make is committing else answer.error_code
            assert found == code


async def test_commit_to_unknown_partitions_only_creates_no_group(groups: Groups) -> None:
    def commit(group_id: str, _member_id: str) -> OffsetCommitRequest:
        partitions = [OffsetCommitRequestPartition(partition_index=7)]
        topics = [
            OffsetCommitRequestTopic(name="none", partitions=[OffsetCommitRequestPartition()]),
            OffsetCommitRequestTopic(name="both", partitions=partitions),
        ]
        return OffsetCommitRequest(group_id=group_id, topics=topics)

    await groups.expect_same(commit, 7)
    described = await groups.expect_same(describing, 6)
    assert described["groups"][0]["errorCode"] == error_codes.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", [9, 10])
async def test_refused_topics_of_offsets_have_a_place_of_their_own(groups: Groups, version: int) -> None:
    ids = {"none": b"?" * 16, **groups.pair.topic_ids}
    named = [("both", 0), ("none", 0), ("both", 7), ("single", 0), ("none", 1), ("both", 1)]

    def commit(group_id: str, _member_id: str) -> OffsetCommitRequest:
        topics = [
            OffsetCommitRequestTopic(
                name=name, topic_id=ids[name], partitions=[OffsetCommitRequestPartition(partition_index=index)]
            )
            for name, index in named
        ]
        return OffsetCommitRequest(group_id=group_id, topics=topics)

    def fetch(group_id: str, _member_id: str) -> OffsetFetchRequest:
        topics = [
            OffsetFetchRequestTopics(name=name, topic_id=ids[name], partition_indexes=[index]) for name, index in named
        ]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])

    answer = await groups.expect_same(commit, version)
    assert answer["topics"][0]["partitions"][0]["errorCode"] != error_codes.NONE
    await groups.expect_same(fetch, version)


async def test_other_brokers_group_is_refused(groups: Groups) -> None:
    groups.group_ids = {REAL: groups.group_ids[SIMULATED], SIMULATED: groups.group_ids[REAL]}
    topics = [OffsetFetchRequestTopic(name="both", partition_indexes=[0, 1])]
    for version in (1, 2):
        await groups.expect_same(lambda group_id, _: OffsetFetchRequest(group_id=group_id, topics=topics), version)
    for version in range(DescribeGroupsRequest.max_version + 1):
        await groups.expect_same(describing, version)
    for version in range(DeleteGroupsRequest.max_version + 1):
        await groups.expect_same(deleting, version)
    answer = await groups.expect_same(deleting_offsets(("both", 0)), 0)
    assert answer["errorCode"] == error_codes.NOT_COORDINATOR


async def test_kafkas_tool_shows_and_deletes_groups_of_both(groups: Groups) -> None:
    await groups.expect_same(committing, 7)

    async def run(which: int, *arguments: str) -> str:
        tool = KafkaTool("kafka-consumer-groups")
        return await asyncio.to_thread(tool.run, "--bootstrap-server", groups.pair.addresses[which], *arguments)

    for which, group_id in groups.group_ids.items():
        assert group_id in await run(which, "--list")
        shown = [line.split() for line in (await run(which, "--describe", "--group", group_id)).splitlines()]
        assert sorted(line[1:4] for line in shown if group_id in line) == [["both", "0", "3"], ["single", "0", "3"]]
        await run(which, "--delete-offsets", "--group", group_id, "--topic", "both")
        await run(which, "--delete", "--group", group_id)
        assert group_id not in (await run(which, "--list")).split()


async def test_a_rewritten_log_is_taken_over_by_a_real_broker_and_back(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_log, "REWRITTEN_BYTES", 20_000)
    pair, group_id = groups.pair, groups.group_ids[SIMULATED]

    async def committed_offset(which: int) -> int:
        while (answer := await pair.ask(which, fetching(group_id, ""), 7)).error_code:
            await asyncio.sleep(0.05)
        return int(answer.topics[0].partitions[0].committed_offset)

    await groups.move(SIMULATED, REAL)
    for offset in range(100):
        partition = OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="m" * 1_000)
        topics = [OffsetCommitRequestTopic(name="single", partitions=[partition])]
        answer = await pair.ask(SIMULATED, OffsetCommitRequest(group_id=group_id, topics=topics), 7)
        assert answer.topics[0].partitions[0].error_code == error_codes.NONE
    start = ListOffsetsPartition(partition_index=LEADERS.index(SIMULATED), timestamp=EARLIEST)
    earliest = ListOffsetsRequest(topics=[ListOffsetsTopic(name="__consumer_offsets", partitions=[start])])
    for replicas in ((REAL,), (SIMULATED,)):
        await groups.move(SIMULATED, REAL)
        await groups.move(*replicas)
        async with asyncio.timeout(40):
            assert await committed_offset(replicas[0]) == 99
        (topic,) = (await pair.ask(replicas[0], earliest, 7)).topics
        assert topic.partitions[0].offset > 0
